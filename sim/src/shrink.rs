//! Shrinking: which few choices of a failing run matter.
//!
//! Model: a run is a seed plus overrides. Shrinking sets choices to 0, the benign outcome, as long as the same oracle
//! still finds something; a client operation is a choice whose 0 drops it. Nothing else moves, since each choice has a
//! stream of its own. Families are tried whole, then actor by actor, then one choice at a time, in halves (delta
//! debugging). A family that cannot go is written as "all 0 but for these", so that what is left reads as the list of
//! what must happen. At last what is left is lowered, and operations are dropped while later choices follow them.
//!
//! Not modelled: other seeds, and choices that are 0 in the run that is shrunk.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "host time, outside of any run")]

mod follow;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::campaign::job::{Job, Judged, Keep, Verdict};
use crate::campaign::process::NO_PROGRESS;
use crate::campaign::runner::{RunError, Runner};
use crate::choices::{ChoiceKey, ChoiceRecord, Family, Overrides};

/// What is tried first when single choices are: dropping operations makes every later run shorter.
const ORDER: [Family; 12] = [
    Family::Workload,
    Family::Crash,
    Family::Image,
    Family::Fault,
    Family::Damage,
    Family::Survive,
    Family::Clock,
    Family::Entropy,
    Family::Schedule,
    Family::Preempt,
    Family::Latency,
    Family::Option,
];

/// A family with more choices left than this is left to the seed: the list would tell nobody anything.
const LISTED_MAX: usize = 1000;

/// Choices are lowered, and follow operations that go, once no more than these are left.
const FOLLOWED_MAX: usize = 256;

/// How large a run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Size {
    /// Choices with another outcome than 0.
    pub choices: u64,
    /// Operations that clients invoked.
    pub operations: u64,
    /// Crashes.
    pub crashes: u64,
    /// Events.
    pub events: u64,
}

/// What is left of a failing run.
#[derive(Debug, Clone, PartialEq)]
pub struct Shrunk {
    /// The run, with its overrides.
    pub job: Job,
    /// The oracle that finds something in it.
    pub oracle: String,
    /// How large it was; none if it does not live to tell.
    pub before: Option<Size>,
    /// How large it is.
    pub after: Option<Size>,
    /// Runs that were tried.
    pub runs: u64,
    /// Whether nothing more can be set to 0 alone; false when time ran out.
    pub complete: bool,
}

/// A run that cannot be shrunk.
#[derive(Debug, thiserror::Error)]
pub enum ShrinkError {
    /// It cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It does not show what it should.
    #[error("seed {seed} comes to {got}, not {want}: there is nothing to shrink")]
    Absent {
        /// The seed.
        seed: u64,
        /// What was to be shrunk.
        want: String,
        /// What was seen.
        got: Verdict,
    },
}

/// Shrinks a run in which `oracle` (the first that does, if none is named) finds something. `patience` is what one run
/// may take. `go_on` is asked before each run, with what is left by then.
pub fn shrink(
    runner: &mut dyn Runner,
    job: &Job,
    oracle: Option<&str>,
    patience: Duration,
    go_on: &mut dyn FnMut(Option<Size>) -> ControlFlow<()>,
) -> Result<Shrunk, ShrinkError> {
    let began = Instant::now();
    let judged = runner.run(&Job { keep: Keep::default(), ..job.clone() }, patience)?;
    let took = began.elapsed();
    let absent = |want: &str| ShrinkError::Absent { seed: job.seed, want: want.to_owned(), got: judged.verdict() };
    let oracle = match (oracle, judged.verdict()) {
        (Some(oracle), _) if judged.finding_of(oracle).is_some() => oracle.to_owned(),
        (None, Verdict::Found(oracle)) => oracle,
        (named, _) => return Err(absent(named.unwrap_or("a finding"))),
    };
    // An attempt may go astray: it gets little more time than the run that is shrunk.
    let astray = if oracle == NO_PROGRESS { Duration::from_secs(2) } else { (took * 20).max(Duration::from_secs(1)) };
    let mut shrinker = Shrinker {
        runner,
        job: Job { keep: Keep::default(), ..job.clone() },
        oracle,
        patience: astray.min(patience),
        go_on,
        nonzero: Vec::new(),
        size: None,
        runs: 1,
    };
    shrinker.record()?;
    let before = shrinker.size;
    let complete = match shrinker.exhaust() {
        Ok(()) => true,
        Err(Stop::TimeIsUp) => false,
        Err(Stop::Failed(error)) => return Err(error.into()),
    };
    shrinker.record()?;
    let Shrinker { job, oracle, size: after, runs, .. } = shrinker;
    Ok(Shrunk { job, oracle, before, after, runs, complete })
}

enum Stop {
    TimeIsUp,
    Failed(RunError),
}

impl From<RunError> for Stop {
    fn from(error: RunError) -> Self {
        Stop::Failed(error)
    }
}

struct Shrinker<'a> {
    runner: &'a mut dyn Runner,
    /// The smallest run known to fail.
    job: Job,
    oracle: String,
    patience: Duration,
    go_on: &'a mut dyn FnMut(Option<Size>) -> ControlFlow<()>,
    /// Its choices other than 0, in the order in which they were made; none if the run does not survive to tell them.
    nonzero: Vec<ChoiceRecord>,
    size: Option<Size>,
    runs: u64,
}

impl Shrinker<'_> {
    fn exhaust(&mut self) -> Result<(), Stop> {
        // It may be that none of it matters.
        let nothing = Overrides { benign: Family::ALL.iter().copied().collect(), given: BTreeMap::new() };
        if self.try_out(nothing)? {
            return Ok(());
        }
        loop {
            let before = (self.job.overrides.clone(), self.nonzero.len());
            for family in ORDER {
                self.drop_family(family)?;
            }
            self.record()?;
            for family in ORDER {
                self.thin_out(family)?;
            }
            self.lower()?;
            self.follow()?;
            if before == (self.job.overrides.clone(), self.nonzero.len()) {
                return Ok(());
            }
        }
    }

    /// Learns the choices and the size of the present run, and drops overrides of choices that it no longer makes.
    fn record(&mut self) -> Result<(), RunError> {
        self.runs += 1;
        let job = Job { keep: Keep { choices: true, ..Keep::default() }, ..self.job.clone() };
        let Judged { choices, stats, .. } = self.runner.run(&job, self.patience)?;
        if choices.is_empty() {
            return Ok(());
        }
        let made: BTreeSet<ChoiceKey> = choices.iter().map(|choice| choice.key).collect();
        self.job.overrides.given.retain(|key, _| made.contains(key));
        self.nonzero = choices.into_iter().filter(|choice| choice.value != 0).collect();
        self.size = Some(Size {
            choices: self.nonzero.len() as u64,
            operations: stats.operations,
            crashes: stats.crashes,
            events: stats.events,
        });
        Ok(())
    }

    /// Whether a run with these overrides still fails; if so it becomes the present one.
    fn try_out(&mut self, overrides: Overrides) -> Result<bool, Stop> {
        if (self.go_on)(self.size).is_break() {
            return Err(Stop::TimeIsUp);
        }
        self.runs += 1;
        let job = Job { overrides, ..self.job.clone() };
        let judged = self.runner.run(&job, self.patience)?;
        let fails = judged.finding_of(&self.oracle).is_some();
        if fails {
            self.job = job;
        }
        Ok(fails)
    }

    fn entries(&self, family: Family) -> Vec<ChoiceRecord> {
        self.nonzero.iter().filter(|choice| choice.key.family == family).copied().collect()
    }

    /// The present overrides, but with a family 0 except for some choices.
    fn with_only(&self, family: Family, kept: impl IntoIterator<Item = ChoiceRecord>) -> Overrides {
        let mut overrides = self.job.overrides.clone();
        overrides.benign.insert(family);
        overrides.given.retain(|key, _| key.family != family);
        overrides.given.extend(kept.into_iter().map(|choice| (choice.key, choice.value)));
        overrides
    }

    fn drop_family(&mut self, family: Family) -> Result<(), Stop> {
        let is_there = match self.size {
            Some(_) => !self.entries(family).is_empty(),
            None => !self.job.overrides.benign.contains(&family),
        };
        if is_there {
            self.try_out(self.with_only(family, []))?;
        }
        Ok(())
    }

    fn thin_out(&mut self, family: Family) -> Result<(), Stop> {
        let entries = self.entries(family);
        if entries.is_empty() {
            return Ok(());
        }
        let before = self.job.overrides.clone();
        if !self.try_out(self.with_only(family, entries.iter().copied()))? {
            return Ok(());
        }
        let mut by_actor: BTreeMap<_, Vec<ChoiceRecord>> = BTreeMap::new();
        for choice in entries {
            by_actor.entry(choice.key.actor).or_default().push(choice);
        }
        let actors = self.minimise(family, by_actor.into_values().collect())?;
        let singles = actors.into_iter().flatten().map(|choice| vec![choice]).collect();
        let left = self.minimise(family, singles)?.len();
        if left > LISTED_MAX && !before.benign.contains(&family) {
            let mut overrides = self.job.overrides.clone();
            overrides.benign.remove(&family);
            overrides.given.retain(|key, _| key.family != family);
            self.try_out(overrides)?;
        }
        self.record()?;
        Ok(())
    }

    /// Drops operations one by one while later choices follow.
    fn follow(&mut self) -> Result<(), Stop> {
        if self.nonzero.len() > FOLLOWED_MAX {
            return Ok(());
        }
        for operation in follow::operations(&self.job.overrides) {
            for candidate in follow::dropping(&self.job.overrides, operation) {
                if self.try_out(candidate)? {
                    break;
                }
            }
        }
        Ok(self.record()?)
    }

    /// Lowers what cannot be 0, in ever smaller steps.
    fn lower(&mut self) -> Result<(), Stop> {
        if self.nonzero.len() > FOLLOWED_MAX {
            return Ok(());
        }
        let listed: Vec<ChoiceKey> = self.job.overrides.given.keys().copied().collect();
        for key in listed {
            let mut step = self.job.overrides.given.get(&key).map_or(0, |value| value / 2);
            while step > 0 {
                let mut overrides = self.job.overrides.clone();
                let value = overrides.given.entry(key).or_default();
                // Down to 1: that it cannot be 0 is known.
                let lower = value.saturating_sub(step);
                *value = lower;
                if lower == 0 || !self.try_out(overrides)? {
                    step /= 2;
                }
            }
        }
        Ok(self.record()?)
    }

    /// Removes as many groups as can go, in ever smaller runs of neighbours; what is left cannot go one by one.
    fn minimise(&mut self, family: Family, mut groups: Vec<Vec<ChoiceRecord>>) -> Result<Vec<Vec<ChoiceRecord>>, Stop> {
        let mut width = groups.len().div_ceil(2).max(1);
        loop {
            let before = groups.len();
            let mut at = 0;
            while at < groups.len() {
                let end = groups.len().min(at + width);
                let rest = groups[..at].iter().chain(&groups[end..]).flatten().copied();
                if self.try_out(self.with_only(family, rest))? {
                    groups.drain(at..end);
                } else {
                    at = end;
                }
            }
            if width > 1 {
                width = width.div_ceil(2);
            } else if groups.len() == before {
                return Ok(groups);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::runner::InProcess;
    use crate::campaign::target::Target;
    use crate::scenarios::Registry;

    const PATIENCE: Duration = Duration::from_secs(600);

    fn failing(assignments: &[&str]) -> Job {
        let assignments: Vec<String> = assignments.iter().map(|text| (*text).to_owned()).collect();
        let target = Target::find(Registry::Selftest, "selftest", None, &assignments).expect("known parameters");
        let fails = |job: &Job| {
            let judged = InProcess(Registry::Selftest).run(job, PATIENCE).expect("it runs");
            judged.finding_of("acknowledged-is-served").is_some()
        };
        (0..10_000).map(|seed| target.job(seed)).find(fails).expect("some seed shows the mistake")
    }

    fn go_on(_: Option<Size>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    #[test]
    fn only_what_matters_is_left() {
        let job = failing(&[]);
        let shrunk = shrink(&mut InProcess(Registry::Selftest), &job, None, PATIENCE, &mut go_on).expect("it fails");
        // An append, a sync that fails, a crash, and a record that it loses.
        let (before, after) = (shrunk.before.expect("it ended"), shrunk.after.expect("it ended"));
        assert_eq!((after.operations, after.crashes, after.choices), (3, 1, 5), "{shrunk:#?}");
        assert!(shrunk.complete && before.operations > 3);
        assert_eq!(shrunk.job.overrides.given.len(), 5, "what is left is what the case file lists");
        assert!(shrunk.job.overrides.benign.contains(&Family::Latency));
        let again =
            shrink(&mut InProcess(Registry::Selftest), &shrunk.job, None, PATIENCE, &mut go_on).expect("it fails");
        assert_eq!(again.job, shrunk.job);
    }

    #[test]
    fn five_hundred_operations() {
        let job = failing(&["operations=500"]);
        let shrunk = shrink(&mut InProcess(Registry::Selftest), &job, None, PATIENCE, &mut go_on).expect("it fails");
        assert_eq!(shrunk.after.map(|size| (size.operations, size.choices)), Some((3, 5)));
        assert!(shrunk.runs < 4 * 500, "{} runs", shrunk.runs);
    }

    /// Ends its process, so to say, where some fault is drawn.
    struct Dying;

    impl Runner for Dying {
        fn run(&mut self, job: &Job, _: Duration) -> Result<Judged, RunError> {
            let lives = job.overrides.benign.contains(&Family::Fault);
            Ok(if lives { Judged::default() } else { Judged::cut_short("process-died", String::new()) })
        }
    }

    #[test]
    fn a_run_that_dies_is_shrunk_by_whole_families() {
        let shrunk = shrink(&mut Dying, &failing(&[]), None, PATIENCE, &mut go_on).expect("it fails");
        assert_eq!((shrunk.before, shrunk.after), (None, None));
        let left: Vec<_> = Family::ALL.iter().filter(|f| !shrunk.job.overrides.benign.contains(f)).collect();
        assert_eq!(left, [&Family::Fault]);
    }

    #[test]
    fn stops_when_told_to_with_a_run_that_fails() {
        let job = failing(&[]);
        let mut runs_left = 7;
        let mut go_on = |_| {
            runs_left -= 1;
            if runs_left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut runner = InProcess(Registry::Selftest);
        let shrunk = shrink(&mut runner, &job, None, PATIENCE, &mut go_on).expect("it fails");
        assert!(!shrunk.complete);
        let judged = runner.run(&shrunk.job, PATIENCE).expect("it runs");
        assert!(judged.finding_of(&shrunk.oracle).is_some());
    }

    #[test]
    fn a_seed_that_holds_is_refused() {
        let target = Target::find(Registry::Selftest, "selftest", None, &["bug=false".to_owned()]).expect("known");
        let job = target.job(0);
        let error = shrink(&mut InProcess(Registry::Selftest), &job, Some("x"), PATIENCE, &mut go_on);
        assert!(matches!(error, Err(ShrinkError::Absent { got: Verdict::Held, .. })), "{error:?}");
    }
}
