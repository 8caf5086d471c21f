//! A scenario that tests campaigns themselves.
//!
//! Model: a log of counters. An append stages a record, a sync makes what is staged durable and acknowledges it, a
//! crash loses what is staged. With `bug` on, a sync that failed acknowledges all the same: some seeds lose what was
//! acknowledged, and a find shrinks to an append, a failed sync and a crash. `misbehave` makes the host process panic,
//! abort, hang, end, allocate too much, or differ from run to run, on the seeds that `misbehave_every` divides.
//!
//! Not modelled: a store. Nothing of `stormlog` runs here.

use std::borrow::Cow;

use serde::Deserialize;
use stormlog::planted::Fault;

use crate::choices::{Actor, Family, Ratio};
use crate::context::Context;
use crate::record::Op;
use crate::scenario::{Finding, ParameterError, RunOutcome, RunRequest, RunStats, Scenario};

const PARAMETERS: &str = "\
# Operations that the client invokes.
operations = 40
# Whether a failed sync is acknowledged.
bug = true
# none, panic, abort, hang, exit, allocate, reserve, or differ.
misbehave = \"none\"
# Seeds that this divides misbehave.
misbehave_every = 1

[sync]
# Out of 100 syncs, this many fail.
failing_percent = 5
";

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selftest {
    /// `bug` is on, unless told otherwise.
    Faulty,
    /// `bug` is off, unless told otherwise; any planted fault is the bug.
    Sound,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    operations: u64,
    bug: bool,
    misbehave: Misbehave,
    misbehave_every: u64,
    sync: Sync,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sync {
    failing_percent: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Misbehave {
    None,
    Panic,
    Abort,
    Hang,
    Exit,
    Allocate,
    Reserve,
    Differ,
}

const APPEND: Op = Op::new("append");
const SYNC: Op = Op::new("sync");
const CRASH: Op = Op::new("crash");
const DIFFER: Op = Op::new("differ");

impl Scenario for Selftest {
    fn name(&self) -> &'static str {
        match self {
            Selftest::Faulty => "selftest",
            Selftest::Sound => "selftest-sound",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Selftest::Faulty => {
                "A log of counters with a mistake that some seeds show; it tests campaigns, not a store"
            }
            Selftest::Sound => "The same log of counters without the mistake",
        }
    }

    fn default_parameters(&self) -> toml::Table {
        self.default_parameters_text().parse().expect("the embedded parameters are TOML")
    }

    fn default_parameters_text(&self) -> Cow<'static, str> {
        match self {
            Selftest::Faulty => Cow::Borrowed(PARAMETERS),
            Selftest::Sound => Cow::Owned(PARAMETERS.replace("bug = true", "bug = false")),
        }
    }

    fn hunts(&self) -> &'static [Fault] {
        match self {
            Selftest::Faulty => &[],
            Selftest::Sound => Fault::ALL,
        }
    }

    fn run(&self, request: &RunRequest) -> Result<RunOutcome, ParameterError> {
        let refuse = |name: &str, reason: String| ParameterError { name: name.to_owned(), reason };
        let parameters: Parameters =
            request.parameters.clone().try_into().map_err(|e: toml::de::Error| refuse("selftest", e.to_string()))?;
        let percent = parameters.sync.failing_percent;
        if percent > 100 {
            return Err(refuse("sync.failing_percent", format!("{percent} is more than 100")));
        }
        if parameters.misbehave_every == 0 {
            return Err(refuse("misbehave_every", "0 divides no seed: want 1 or more".to_owned()));
        }
        let overrides = request.overrides.clone();
        let mut context = Box::new(Context::new(request.seed, overrides, request.keep_choices, request.keep_events));
        if request.seed.is_multiple_of(parameters.misbehave_every) {
            misbehave(&parameters.misbehave, &mut context);
        }
        let bug = parameters.bug || request.planted.is_some();
        Ok(simulate(context, parameters.operations, Ratio::new(percent, 100), bug))
    }
}

fn simulate(mut context: Box<Context>, operations: u64, failing: Ratio, bug: bool) -> RunOutcome {
    let (mut staged, mut durable, mut acknowledged) = (0, 0, 0);
    let mut stats = RunStats::default();
    let disk = Actor::RUN.child("disk", 0);
    let faults = context.stream(Family::Fault, disk);
    let survive = context.stream(Family::Survive, disk);
    let mut actors = std::collections::BTreeMap::from([(disk.0, "disk".to_owned())]);
    for n in 0..operations {
        let client = Actor::RUN.child("operation", n);
        actors.insert(client.0, format!("operation {n}"));
        let workload = context.stream(Family::Workload, client);
        let latency = context.stream(Family::Latency, client);
        let kind = context.operation(workload, &[20, 6, 1]);
        if kind == 0 {
            continue;
        }
        stats.operations += 1;
        context.now_ns += 1_000 + context.below(latency, 100_000);
        match kind {
            1 => {
                staged += 1;
                context.record(client, APPEND, [staged, 0], 0);
            }
            2 => {
                let failed = context.chance(faults, failing);
                if failed {
                    context.mark("sync-failed");
                } else {
                    durable += staged;
                    staged = 0;
                }
                if !failed || bug {
                    acknowledged = durable + staged;
                }
                context.record(client, SYNC, [durable, acknowledged], u64::from(failed));
            }
            _ => {
                let lost = context.below(survive, staged + 1);
                context.mark("crash");
                durable += staged - lost;
                staged = 0;
                stats.crashes += 1;
                context.record(client, CRASH, [durable, acknowledged], lost);
                if durable < acknowledged {
                    break;
                }
            }
        }
    }
    let findings = if durable + staged < acknowledged {
        let message = format!("{acknowledged} records were acknowledged and {durable} came back");
        vec![Finding { oracle: "acknowledged-is-served".to_owned(), message }]
    } else {
        Vec::new()
    };
    RunOutcome::end(context, findings, stats, actors)
}

fn misbehave(how: &Misbehave, context: &mut Context) {
    match how {
        Misbehave::None => {}
        Misbehave::Panic => panic!("the selftest was told to panic"),
        Misbehave::Abort => std::process::abort(),
        Misbehave::Hang => loop {
            std::hint::spin_loop();
        },
        Misbehave::Exit => std::process::exit(7),
        Misbehave::Allocate => drop(std::hint::black_box(vec![1u8; 100 << 20])),
        Misbehave::Reserve => drop(std::hint::black_box(Vec::<u8>::with_capacity(1 << 50))),
        Misbehave::Differ => {
            // The mistake that is meant: an address takes part in the run.
            let local = 0u8;
            context.record(Actor::RUN, DIFFER, [0, 0], std::ptr::from_ref(&local).addr() as u64);
        }
    }
}
