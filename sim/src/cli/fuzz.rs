//! `stormlog fuzz`.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::args::{Format, FuzzArgs};
use super::interrupt::Interrupt;
use super::out::{Out, grouped};
use super::progress::Progress;
use super::{Exit, Failure, Shell, planted, replay_command, report};
use crate::campaign::fuzz::{Audience, Campaign, Ended, Find, Totals};
use crate::campaign::job::{Judged, Verdict};
use crate::campaign::target::Target;
use crate::record::Digest;
use crate::shrink::{Shrunk, Size};

const DEFAULT_SEEDS: u64 = 20_000;
const DEFAULT_TIME: Duration = Duration::from_secs(45);
/// Together with the time of the seeds: under a minute.
const DEFAULT_SHRINK_TIME: Duration = Duration::from_secs(10);
const SHRINK_TIME: Duration = Duration::from_secs(60);

/// Runs a campaign.
pub fn fuzz(shell: &mut Shell, args: &FuzzArgs) -> Result<Exit, Failure> {
    let given = &args.target;
    let mut target =
        Target::find(shell.registry, &given.scenario, given.parameters_file.as_deref(), &given.assignments)?;
    target.planted = planted(given.plant.as_deref())?;
    let interrupt = Interrupt::catch()?;
    let bounded = args.seeds.is_some() || args.time.is_some();
    let seeds = match (&args.seeds, args.time) {
        (Some(seeds), _) => seeds.0.clone(),
        (None, Some(_)) => 0..crate::case::SEED_MAX + 1,
        (None, None) => 0..DEFAULT_SEEDS,
    };
    let campaign = Campaign {
        registry: shell.registry,
        target,
        seeds,
        time: if bounded { args.time } else { Some(DEFAULT_TIME) },
        jobs: jobs(args.jobs),
        patience: args.patience,
        save_dir: args.save.clone(),
        shrink_time: if bounded { SHRINK_TIME } else { DEFAULT_SHRINK_TIME },
    };
    let command = shell.worker()?;
    let count = campaign.seeds.end - campaign.seeds.start;
    let mut telling = Telling {
        scenario: campaign.target.scenario.name(),
        format: args.format,
        run_without_seed: replay_command::run_without_seed(shell, given),
        replay: &|path| replay_command::replay(shell, path),
        out: Out::new(),
        progress: Progress::new((count <= SEEDS_SHOWN_MAX).then_some(count), campaign.time),
        interrupt,
        error: None,
    };
    let done = campaign.run(&command, &mut telling);
    telling.progress.finish();
    let Telling { mut out, error, .. } = telling;
    let totals = match done {
        Ok(totals) => totals,
        Err(error) => {
            out.flush()?;
            return Err(error.into());
        }
    };
    if let Some(error) = error {
        return Err(error.into());
    }
    close(&mut out, args.format, campaign.target.scenario.name(), &totals, campaign.time, count)?;
    out.flush()?;
    Ok(Exit::of(totals.findings() > 0))
}

/// A campaign over more seeds is one over time.
const SEEDS_SHOWN_MAX: u64 = 1 << 40;

/// As many workers as asked for, or as there are cores.
pub fn jobs(given: Option<u16>) -> usize {
    given.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

struct Telling<'a> {
    scenario: &'static str,
    format: Format,
    run_without_seed: String,
    replay: &'a dyn Fn(&Path) -> String,
    out: Out,
    progress: Progress,
    interrupt: Interrupt,
    error: Option<std::io::Error>,
}

#[derive(Serialize)]
struct SeedLine<'a> {
    kind: &'static str,
    scenario: &'a str,
    seed: u64,
    verdict: Verdict,
    digest: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    replay: String,
}

#[derive(Serialize)]
struct CaseLine<'a> {
    kind: &'static str,
    scenario: &'a str,
    seed: u64,
    verdict: Verdict,
    case: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    shrunk: Option<ShrunkLine>,
    replay: String,
}

#[derive(Serialize)]
struct ShrunkLine {
    before: Option<Size>,
    after: Option<Size>,
    complete: bool,
}

#[derive(Serialize)]
struct TotalsLine<'a> {
    kind: &'static str,
    scenario: &'a str,
    verdict: &'static str,
    #[serde(flatten)]
    totals: &'a Totals,
}

impl Telling<'_> {
    /// Writes with the progress bar out of the way, and remembers what went wrong.
    fn write(&mut self, write: impl FnOnce(&mut Out) -> std::io::Result<()>) {
        let Self { out, progress, error, .. } = self;
        if error.is_none() {
            *error = progress.aside(|| write(&mut *out).and_then(|()| out.flush())).err();
        }
    }

    fn flow(&self) -> ControlFlow<()> {
        if self.out.is_closed() || self.error.is_some() || self.interrupt.is_asked() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn case_line<'b>(&self, find: &'b Find, shrunk: Option<&Shrunk>) -> CaseLine<'b>
    where
        Self: 'b,
    {
        CaseLine {
            kind: "case",
            scenario: self.scenario,
            seed: find.job.seed,
            verdict: find.judged.verdict(),
            case: &find.path,
            shrunk: shrunk.map(|Shrunk { before, after, complete, .. }| ShrunkLine {
                before: *before,
                after: *after,
                complete: *complete,
            }),
            replay: (self.replay)(&find.path),
        }
    }
}

impl Audience for Telling<'_> {
    fn judged(&mut self, seed: u64, judged: &Judged, _totals: &Totals) -> ControlFlow<()> {
        if self.format == Format::Json {
            let line = SeedLine {
                kind: "seed",
                scenario: self.scenario,
                seed,
                verdict: judged.verdict(),
                digest: judged.digest,
                message: judged.findings.first().map(|finding| finding.message.as_str()),
                replay: format!("{} --seed {seed}", self.run_without_seed),
            };
            // Not flushed seed by seed: a campaign is fast.
            let written = self.out.json(&line);
            self.error = self.error.take().or(written.err());
        }
        self.flow()
    }

    fn kept(&mut self, find: &Find) {
        if self.format == Format::Text {
            let replay = (self.replay)(&find.path);
            self.write(|out| {
                let message = report::first_line(&find.judged.findings[0].message);
                let text = format!("found {} at seed {}: {message}", find.judged.verdict(), find.job.seed);
                out.wrapped("", &text, 2)?;
                out.command("replay", &replay)
            });
        }
    }

    fn tick(&mut self, done: u64, totals: &Totals) -> ControlFlow<()> {
        self.progress.seeds_done(done, totals.findings());
        let flushed = self.out.flush();
        self.error = self.error.take().or(flushed.err());
        self.flow()
    }

    fn shrinking(&mut self, find: &Find, left: Option<Size>) -> ControlFlow<()> {
        self.progress.say(&format!("shrinking seed {}: {}", find.job.seed, report::left(left)));
        self.flow()
    }

    fn shrunk(&mut self, find: &Find, shrunk: &Shrunk) {
        match self.format {
            Format::Json => {
                let line = self.case_line(find, Some(shrunk));
                self.write(|out| out.json(&line));
            }
            Format::Text => {
                let text = format!("shrunk seed {}: {}", find.job.seed, report::shrunk(shrunk));
                self.write(|out| out.wrapped("", &text, 2));
            }
        }
    }

    fn vanished(&mut self, find: &Find, got: &Verdict) {
        let (seed, verdict) = (find.job.seed, find.judged.verdict());
        let check = format!("{} --seed {seed} --check-determinism", self.run_without_seed);
        match self.format {
            Format::Json => {
                let line = self.case_line(find, None);
                self.write(|out| out.json(&line));
            }
            Format::Text => self.write(|out| {
                out.wrapped("", &format!("seed {seed} came to {verdict}, and when run again to {got}:"), 2)?;
                out.command("see", &check)
            }),
        }
    }
}

fn close(
    out: &mut Out,
    format: Format,
    scenario: &str,
    totals: &Totals,
    time: Option<Duration>,
    of: u64,
) -> std::io::Result<()> {
    let found = totals.findings();
    if format == Format::Json {
        let verdict = if found > 0 { "found" } else { "held" };
        return out.json(&TotalsLine { kind: "totals", scenario, verdict, totals });
    }
    let Totals { seeds, seconds, seeds_per_s, stats, .. } = totals;
    let seeds = grouped(*seeds);
    if found > 0 {
        let found = grouped(found);
        let by = report::list(totals.found.iter().map(|(oracle, n)| format!("{oracle} {n}")));
        out.wrapped("", &format!("{scenario}: FOUND in {found} of {seeds} seeds: {by}"), 2)?;
    } else {
        out.line(&format!("{scenario}: held, {seeds} seeds"))?;
    }
    out.field("seeds/s", &format!("{seeds_per_s:.0} ({seconds:.1} s)"))?;
    match totals.ended {
        Ended::AllSeeds => {}
        Ended::Time => {
            let time = humantime::format_duration(time.unwrap_or_default());
            let of = if of <= SEEDS_SHOWN_MAX { format!(", of {} seeds", grouped(of)) } else { String::new() };
            out.field("ended", &format!("when {time} were up{of}"))?;
        }
        Ended::Interrupted => out.field("ended", "when it was interrupted; nothing was shrunk")?,
        Ended::WorkersDie => out.field("ended", "early: its workers kept dying")?,
    }
    if !totals.unfinished.is_empty() {
        let seeds = report::list(totals.unfinished.iter().map(u64::to_string));
        out.field("unfinished", &format!("seeds {seeds}, which are not judged"))?;
    }
    out.field("operations", &grouped(stats.operations))?;
    out.field("crashes", &grouped(stats.crashes))?;
    out.field("crash images", &grouped(stats.images))?;
    out.field("virtual time", &report::seconds(stats.virtual_ns))?;
    let reached = totals.marks.iter().map(|(name, reached)| format!("{name} in {} seeds", grouped(reached.seeds)));
    out.field("reached", &report::list(reached))
}
