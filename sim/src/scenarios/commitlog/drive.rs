//! Drives a commit log through rounds of opening, work and crashes, and judges what it serves.
//!
//! Model: one machine, one process at a time. A round opens the store (which recovers it), reads all of it, has the
//! oracles judge, lets producers work, and ends by a clean close, a kill or a power loss at some env operation, be it in
//! recovery. On the way, crash images are taken and recovered in nested machines, once or with a crash in that too.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use stormlog::commitlog::{CommitLog, CommitLogOptions, RecoveryReport};
use stormlog::env::{Env, JoinHandle};
use stormlog::planted::Planted;

use super::parameters::{Parameters, Setup};
use super::view::read_all;
use super::workload::{Books, Producer};
use crate::choices::{Actor, Family};
use crate::context::Context;
use crate::disk::Disk;
use crate::env::SimEnv;
use crate::history::Exposure;
use crate::machine::{Machine, Shared, Stop};
use crate::oracles::{View, judge, torn};
use crate::scenario::{Finding, ParameterError, RunOutcome, RunRequest, RunStats};

/// Where the store is on the simulated disk.
pub(super) const ROOT: &str = "/store";

/// How often the kernel may still tell of writes that failed before, which is once for each file.
pub(super) const LATE_ERRORS: u64 = 8;

/// Ranges of the log that were damaged beyond what is legal.
pub(super) type Excused = Vec<std::ops::Range<u64>>;

/// What the store's process does in one life.
#[derive(Clone)]
pub(super) struct Life {
    pub(super) options: CommitLogOptions,
    pub(super) books: Books,
    pub(super) excused: Excused,
    /// Producers that work, once the store is judged.
    pub(super) producers: Vec<(Actor, super::parameters::Workload)>,
    /// Whether faults are about that excuse I/O errors from opening and closing.
    pub(super) io_may_fail: bool,
    /// The size that the disk is given back once the producers are done; the store then takes messages again.
    pub(super) frees_to: Option<u64>,
}

impl Life {
    /// The body of the process's main thread.
    pub(super) fn live(&self, env: &SimEnv) {
        let Some((log, report)) = self.open(env) else { return };
        if !self.judge(&log, &report) || self.producers.is_empty() {
            return self.close(log);
        }
        let log = Arc::new(log);
        let producers: Vec<_> = self.producers(env, &log).collect();
        let producers: Vec<_> = producers
            .into_iter()
            .map(|producer| env.spawn("producer", move || producer.work()).expect("a simulated thread starts"))
            .collect();
        // A producer's panic is a finding of the machine's already.
        let panics = producers.into_iter().filter_map(|producer| producer.join().err()).count();
        if let Some(capacity) = self.frees_to {
            env.set_disk_capacity(capacity);
            if self.producers(env, &log).any(|producer| !producer.is_taken_again()) {
                self.books.find("accepts-again", "there is space again, and the store still refuses".to_owned());
            }
        }
        let Some(log) = Arc::into_inner(log).filter(|_| panics == 0) else { return };
        // Settles every append, so that the callbacks have been called and everything is visible.
        match log.sync() {
            Ok(()) => {
                self.judge(&log, &report);
            }
            Err(error) if !self.io_may_fail => self.books.find("syncs-when-healthy", error.to_string()),
            Err(_) => env.mark("store.stopped"),
        }
        self.close(log);
    }

    fn producers<'l>(
        &'l self,
        env: &'l SimEnv,
        log: &'l Arc<CommitLog<SimEnv>>,
    ) -> impl Iterator<Item = Producer> + 'l {
        self.producers.iter().map(|(actor, workload)| Producer {
            env: env.clone(),
            log: Arc::clone(log),
            books: self.books.clone(),
            workload: workload.clone(),
            actor: *actor,
            io_may_fail: self.io_may_fail,
        })
    }

    fn open(&self, env: &SimEnv) -> Option<(CommitLog<SimEnv>, RecoveryReport)> {
        match CommitLog::open(env.clone(), Path::new(ROOT), self.options.clone()) {
            Ok(opened) => Some(opened),
            Err(error) => {
                if !self.io_may_fail {
                    self.books.find("opens-after-a-crash", error.to_string());
                }
                self.books.refused_to_open.with(|refused| *refused = true);
                None
            }
        }
    }

    /// Reads everything that the log serves and has it judged. False if something was found.
    fn judge(&self, log: &CommitLog<SimEnv>, report: &RecoveryReport) -> bool {
        match read_all(log, report) {
            Ok(view) => self.judge_view(&view),
            Err(error) => {
                self.books.find("serves-what-it-recovered", error);
                false
            }
        }
    }

    fn judge_view(&self, view: &View) -> bool {
        let findings = self.books.history.with(|history| {
            let is_covered = self.options.force_verify_prop_crc;
            let findings = judge(history, view, &self.excused, is_covered);
            history.recovered(&view.positions(), &torn(history, view, is_covered));
            findings
        });
        let holds = findings.is_empty();
        self.books.findings.with(|all| all.extend(findings));
        holds
    }

    fn close(&self, log: CommitLog<SimEnv>) {
        match log.close() {
            Ok(()) => self.books.history.with(|history| history.close()),
            Err(error) if !self.io_may_fail => self.books.find("closes-cleanly", error.to_string()),
            // A store that did not close is one that crashed, on a disk that failed it.
            Err(_) => self.books.history.with(|history| history.crash(Exposure::PowerLoss)),
        }
    }
}

/// A run of a scenario of the commit log.
pub(super) struct Drive<'r> {
    pub(super) request: &'r RunRequest,
    pub(super) parameters: Parameters,
    pub(super) setup: Setup,
    pub(super) machine: Machine,
    pub(super) books: Books,
    pub(super) excused: Excused,
    pub(super) io_may_fail: bool,
    /// The size that a full disk is given back once the producers are done.
    pub(super) frees_to: Option<u64>,
    /// How often a healthy disk may still give an error of before.
    pub(super) late_errors: u64,
    stats: RunStats,
}

impl<'r> Drive<'r> {
    /// Draws the setup of a seed and makes its machine. `adjust` gives the disk what the scenario is about.
    pub(super) fn new(
        request: &'r RunRequest,
        adjust: impl FnOnce(&mut Context, &mut Setup),
    ) -> Result<Self, ParameterError> {
        let parameters = Parameters::read(request)?;
        let planted = planted(request)?;
        let overrides = request.overrides.clone();
        let mut context = Box::new(Context::new(request.seed, overrides, request.keep_choices, request.keep_events));
        let mut setup = Setup::draw(&mut context, &parameters, planted)?;
        adjust(&mut context, &mut setup);
        let placed_faults = !setup.disk.faults.is_empty();
        let disk = Disk::new(setup.disk.clone());
        let machine = Machine::new(context, Actor::RUN, Rc::clone(&setup.profile), setup.policy, disk);
        Ok(Self {
            request,
            parameters,
            setup,
            machine,
            books: Books::default(),
            excused: Excused::new(),
            io_may_fail: placed_faults,
            frees_to: None,
            late_errors: if placed_faults { LATE_ERRORS } else { 0 },
            stats: RunStats::default(),
        })
    }

    /// The actor of a round.
    pub(super) fn round_actor(round: u64) -> Actor {
        Actor::RUN.child("round", round)
    }

    /// A life with this round's producers, or with none.
    pub(super) fn life(&self, round: u64, works: bool) -> Life {
        let producers = if works { self.parameters.workload.producers } else { 0 };
        let workload = &self.parameters.workload;
        let producer = |n| (Self::round_actor(round).child("producer", n), workload.clone());
        Life {
            options: self.setup.options.clone(),
            books: self.books.clone(),
            excused: self.excused.clone(),
            producers: (0..producers).map(producer).collect(),
            io_may_fail: self.io_may_fail,
            frees_to: self.frees_to,
        }
    }

    /// Runs one round. False if something was found.
    pub(super) fn round(&mut self, round: u64, works: bool) -> bool {
        let actor = Self::round_actor(round);
        let life = self.life(round, works);
        let process = self.machine.start("store", move |env| life.live(&env));
        let begin = self.machine.operations();
        let (end, span) = self.draw_end(actor, works);
        let mut ended = false;
        for (image, at) in self.draw_images(actor, span) {
            if !ended && end.is_none_or(|(_, crash)| at < crash) && begin + at > self.machine.operations() {
                ended = self.run_to(Some(begin + at)) != Stop::AtOperation;
                if !ended {
                    self.image(actor.child("image", image));
                }
            }
        }
        if !ended {
            self.run_to(end.map(|(_, at)| begin + at));
        }
        if !self.holds() {
            return false;
        }
        match end {
            None => self.machine.kill(process),
            Some((exposure, _)) => {
                self.stats.crashes += 1;
                // A write or sync that failed took the kernel's own promise with it: a file system may drop what reads saw.
                let exposure =
                    if self.machine.with_disk(|disk, _| disk.has_failed()) { Exposure::PowerLoss } else { exposure };
                self.books.history.with(|history| history.crash(exposure));
                match exposure {
                    Exposure::PowerLoss => self.machine.power_loss(),
                    Exposure::Kill | Exposure::Nothing => self.machine.kill(process),
                }
            }
        }
        true
    }

    /// A life that only opens, reads and closes, on a healthy disk. False if something was found.
    pub(super) fn settle(&mut self, round: u64) -> bool {
        // The kernel tells each file's failed writes once more to who opens it next, so that the store may well refuse to
        // open a few times; then it opens.
        for attempt in 0..=self.late_errors {
            let life = Life { io_may_fail: attempt < self.late_errors, ..self.life(round, false) };
            self.books.refused_to_open.with(|refused| *refused = false);
            let process = self.machine.start("store", move |env| life.live(&env));
            self.run_to(None);
            self.machine.kill(process);
            if !self.books.refused_to_open.with(|refused| *refused) {
                break;
            }
        }
        self.holds()
    }

    /// How the round ends (`None`: by a clean close), and in how many operations of it crash images lie.
    fn draw_end(&mut self, actor: Actor, works: bool) -> (Option<(Exposure, u64)>, u64) {
        let ends = self.parameters.ends;
        self.choose(|ctx| {
            let stream = ctx.stream(Family::Crash, actor);
            let exposure = match ctx.weighted(stream, &ends) {
                0 => None,
                1 => Some(Exposure::Kill),
                _ => Some(Exposure::PowerLoss),
            };
            // Crashes in recovery are as wanted as crashes in the work that follows, which takes far more operations.
            let span = 16 << ctx.below(stream, if works { 7 } else { 4 });
            (exposure.map(|exposure| (exposure, 1 + ctx.below(stream, span))), span)
        })
    }

    fn draw_images(&mut self, actor: Actor, span: u64) -> Vec<(u64, u64)> {
        let images = self.parameters.images;
        let mut points: Vec<(u64, u64)> = self.choose(|ctx| {
            let stream = ctx.stream(Family::Image, actor);
            (0..images).map(|image| (image, ctx.below(stream, span + 1))).filter(|(_, at)| *at > 0).collect()
        });
        points.sort_by_key(|(_, at)| *at);
        points
    }

    /// Draws choices of the scenario's own.
    pub(super) fn choose<R>(&mut self, body: impl FnOnce(&mut Context) -> R) -> R {
        self.machine.with_disk(|_, ctx| body(ctx))
    }

    /// Runs the machine and collects what was found inside of it.
    pub(super) fn run_to(&mut self, stop_before: Option<u64>) -> Stop {
        let stop = self.machine.run(stop_before, self.request.limits);
        let found = self.machine.take_findings();
        self.books.findings.with(|findings| findings.extend(found));
        stop
    }

    /// Whether nothing was found so far.
    pub(super) fn holds(&self) -> bool {
        self.books.findings.with(|findings| findings.is_empty())
    }

    /// Recovers what the disk could hold if the power went now, in a machine of its own.
    fn image(&mut self, actor: Actor) {
        self.stats.images += 1;
        let disk = self.machine.crash_image(actor);
        let mut history = self.books.history.with(|history| history.clone());
        history.crash(Exposure::PowerLoss);
        let findings: Shared<Vec<Finding>> = Shared::default();
        let books = Books { history: Shared::new(history), findings: findings.clone(), ..Books::default() };
        let life = Life { books, producers: Vec::new(), ..self.life(0, false) };
        let (profile, policy, limits) = (Rc::clone(&self.setup.profile), self.setup.policy, self.request.limits);
        self.machine.with_context(|mut context| {
            let stream = context.stream(Family::Crash, actor);
            // Half of the images are recovered in one go; the others are crashed in their recovery.
            let crash_at = context.below(stream, 2) * context.range(stream, 1, 64);
            let mut inner = Machine::new(context, actor, profile, policy, disk);
            let first = life.clone();
            inner.start("image", move |env| first.live(&env));
            let stop = inner.run((crash_at > 0).then_some(crash_at), limits);
            if stop == Stop::AtOperation {
                inner.power_loss();
                life.books.history.with(|history| history.crash(Exposure::PowerLoss));
                inner.start("image", move |env| life.live(&env));
                inner.run(None, limits);
            }
            let found = inner.take_findings();
            findings.with(|findings| findings.extend(found));
            (inner.end().0, ())
        });
        let at = self.machine.operations();
        let here = |finding: Finding| Finding {
            message: format!("in a crash image taken at operation {at}: {}", finding.message),
            ..finding
        };
        let found = findings.with(std::mem::take);
        self.books.findings.with(|findings| findings.extend(found.into_iter().map(here)));
    }

    /// Ends the run.
    pub(super) fn outcome(self) -> RunOutcome {
        let Self { machine, books, mut stats, .. } = self;
        let mut actors: std::collections::BTreeMap<u64, String> = machine.actor_names().into_iter().collect();
        actors.insert(Actor::RUN.0, "run".to_owned());
        for round in 0..64 {
            actors.insert(Self::round_actor(round).0, format!("round {round}"));
        }
        let (context, _) = machine.end();
        stats.operations = books.history.with(|history| history.appends.len() as u64);
        RunOutcome::end(context, books.findings.with(std::mem::take), stats, actors)
    }
}

/// The fault to plant, in a build that has any.
fn planted(request: &RunRequest) -> Result<Planted, ParameterError> {
    match request.planted {
        None => Ok(Planted::NONE),
        #[cfg(feature = "planted-faults")]
        Some(fault) => Ok(Planted::one(fault)),
        #[cfg(not(feature = "planted-faults"))]
        Some(fault) => Err(ParameterError {
            name: "planted".to_owned(),
            reason: format!("{} cannot be planted in a build without the feature planted-faults", fault.name()),
        }),
    }
}
