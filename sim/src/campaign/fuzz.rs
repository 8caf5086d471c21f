//! A campaign over the seeds of one scenario: counts what was reached, keeps the first finds, shrinks and saves them.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "host time, outside of any run")]

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::finds;
use super::job::{Job, Judged, Verdict};
use super::pool::{Coverage, Listener, Pool};
use super::process::{NO_PROGRESS, PROCESS_DIED, WorkerCommand};
use super::runner::{Isolated, RunError};
use super::target::Target;
use crate::case::CaseError;
use crate::scenario::RunStats;
use crate::scenarios::Registry;
use crate::shrink::{ShrinkError, Shrunk, Size, shrink};

/// How many finds of one oracle are kept: the lowest seeds.
const KEPT_PER_ORACLE: usize = 3;
/// How many finds are kept in all.
const KEPT_MAX: usize = 20;
/// A campaign whose workers die this often ends: each death costs up to the patience of a seed.
const DEATHS_MAX: u64 = 20;

/// What a campaign is to do.
pub struct Campaign {
    /// Where the target's scenario was found.
    pub registry: Registry,
    /// What to run.
    pub target: Target,
    /// Which seeds.
    pub seeds: Range<u64>,
    /// How long, if the seeds do not run out.
    pub time: Option<Duration>,
    /// How many workers.
    pub jobs: usize,
    /// How long one seed may take.
    pub patience: Duration,
    /// Where finds are saved.
    pub save_dir: PathBuf,
    /// How long all shrinking may take.
    pub shrink_time: Duration,
}

/// Why a campaign ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// All seeds are done.
    #[default]
    AllSeeds,
    /// The time is up.
    Time,
    /// The user interrupted it, or nobody reads what it says.
    Interrupted,
    /// Its workers kept dying.
    WorkersDie,
}

/// What a mark was reached by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Reached {
    /// Seeds that reached it.
    pub seeds: u64,
    /// How often in all.
    pub times: u64,
}

/// The totals of a campaign.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Totals {
    /// Seeds that were judged.
    pub seeds: u64,
    /// Seeds that held.
    pub held: u64,
    /// Seeds by the first oracle that found something.
    pub found: BTreeMap<String, u64>,
    /// Sums of the numbers of all runs.
    pub stats: RunStats,
    /// Marks reached.
    pub marks: BTreeMap<String, Reached>,
    /// Seeds that came to no end when the campaign stopped; they are not judged.
    pub unfinished: Vec<u64>,
    /// How long the seeds took.
    pub seconds: f64,
    /// Seeds judged per second.
    pub seeds_per_s: f64,
    /// Why it ended.
    pub ended: Ended,
}

impl Totals {
    fn add(&mut self, judged: &Judged) {
        self.seeds += 1;
        match judged.verdict() {
            Verdict::Held => self.held += 1,
            Verdict::Found(oracle) => *self.found.entry(oracle).or_default() += 1,
        }
        for (name, times) in &judged.marks {
            let reached = self.marks.entry(name.clone()).or_default();
            reached.seeds += 1;
            reached.times += times;
        }
        let RunStats { events, virtual_ns, operations, crashes, images } = judged.stats;
        self.stats.events += events;
        self.stats.virtual_ns += virtual_ns;
        self.stats.operations += operations;
        self.stats.crashes += crashes;
        self.stats.images += images;
    }

    /// Seeds in which something was found.
    pub fn findings(&self) -> u64 {
        self.seeds - self.held
    }
}

/// A find that was kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Find {
    /// Its seed.
    pub job: Job,
    /// What was seen.
    pub judged: Judged,
    /// Its case file.
    pub path: PathBuf,
}

/// A campaign that could not go on. What was found before is saved.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// A seed cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A find did not show when it was run once more.
    #[error("{scenario} seed {seed} came to {oracle}, and when it was run again to {got}: see run --check-determinism")]
    Vanished {
        /// The scenario.
        scenario: String,
        /// The seed.
        seed: u64,
        /// What it came to first.
        oracle: String,
        /// What it came to then.
        got: Verdict,
    },
    /// A find cannot be saved.
    #[error("{scenario} seed {seed} came to {verdict}, and cannot be saved: {source}")]
    Save {
        /// The scenario.
        scenario: String,
        /// The seed.
        seed: u64,
        /// What it came to.
        verdict: Verdict,
        /// Why it is not saved.
        source: CaseError,
    },
}

/// Hears of a campaign as it goes on.
pub trait Audience {
    /// A seed is done; seeds come in order. Breaks if nobody listens any more.
    fn judged(&mut self, seed: u64, judged: &Judged, totals: &Totals) -> ControlFlow<()>;
    /// A find was kept and saved, as it is.
    fn kept(&mut self, find: &Find);
    /// Some ten times a second; breaks to end the campaign. `done` may run ahead of the seeds that were told.
    fn tick(&mut self, done: u64, totals: &Totals) -> ControlFlow<()>;
    /// While a find is shrunk; breaks to leave it as small as it is.
    fn shrinking(&mut self, find: &Find, left: Option<Size>) -> ControlFlow<()>;
    /// A find was shrunk and saved again.
    fn shrunk(&mut self, find: &Find, shrunk: &Shrunk);
    /// A find did not show again when it was run once more.
    fn vanished(&mut self, find: &Find, got: &Verdict);
}

struct Progress<'a> {
    campaign: &'a Campaign,
    audience: &'a mut dyn Audience,
    totals: Totals,
    finds: Vec<Find>,
    began: Instant,
    save_error: Option<CampaignError>,
}

impl Campaign {
    /// Goes through the seeds, then shrinks what was found.
    pub fn run(&self, command: &WorkerCommand, audience: &mut dyn Audience) -> Result<Totals, CampaignError> {
        let mut progress = Progress {
            campaign: self,
            audience,
            totals: Totals::default(),
            finds: Vec::new(),
            began: Instant::now(),
            save_error: None,
        };
        let mut pool = Pool::new(command.clone(), self.jobs, self.patience);
        let covered = pool.run(&self.target.job(self.seeds.start), self.seeds.clone(), &mut progress);
        drop(pool);
        let Progress { audience, mut totals, finds, began, save_error, .. } = progress;
        totals.seconds = began.elapsed().as_secs_f64();
        totals.seeds_per_s = totals.seeds as f64 / totals.seconds;
        let Coverage { unfinished, .. } = covered?;
        totals.unfinished = unfinished;
        if let Some(error) = save_error {
            return Err(error);
        }
        if totals.ended != Ended::Interrupted {
            let until = Instant::now() + self.shrink_time;
            let mut runner = Isolated::new(command.clone());
            let count = finds.len() as u32;
            for (find, left) in finds.into_iter().zip((1..=count).rev()) {
                // What one find leaves is for those after it.
                let share = until.saturating_duration_since(Instant::now()) / left;
                self.settle(&mut runner, find, Instant::now() + share, audience)?;
            }
        }
        Ok(totals)
    }

    /// Shrinks a find and saves it again.
    fn settle(
        &self,
        runner: &mut Isolated,
        find: Find,
        until: Instant,
        audience: &mut dyn Audience,
    ) -> Result<(), CampaignError> {
        let Verdict::Found(oracle) = find.judged.verdict() else { unreachable!("a find is found by an oracle") };
        let mut go_on = |left| {
            if Instant::now() >= until { ControlFlow::Break(()) } else { audience.shrinking(&find, left) }
        };
        let shrunk = match shrink(runner, &find.job, Some(&oracle), self.patience, &mut go_on) {
            Ok(shrunk) => shrunk,
            Err(ShrinkError::Absent { got, .. }) => {
                audience.vanished(&find, &got);
                return Ok(());
            }
            Err(ShrinkError::Run(error)) => return Err(error.into()),
        };
        let (mut case, _) = finds::case_of(runner, &shrunk.job, self.patience)?;
        case.verdict = Verdict::Found(oracle);
        case.write(&find.path).map_err(|source| CampaignError::Save {
            scenario: find.job.scenario.clone(),
            seed: find.job.seed,
            verdict: case.verdict.clone(),
            source,
        })?;
        audience.shrunk(&find, &shrunk);
        Ok(())
    }
}

impl Progress<'_> {
    fn keep(&mut self, seed: u64, judged: Judged) {
        let verdict = judged.verdict();
        let of_this_oracle = self.finds.iter().filter(|find| find.judged.verdict() == verdict).count();
        if of_this_oracle >= KEPT_PER_ORACLE || self.finds.len() >= KEPT_MAX || self.save_error.is_some() {
            return;
        }
        let Campaign { registry, target, save_dir, .. } = self.campaign;
        let job = target.job(seed);
        match finds::save(*registry, save_dir, &finds::case_as_seen(&job, &judged)) {
            Ok(path) => {
                let find = Find { job, judged, path };
                self.audience.kept(&find);
                self.finds.push(find);
            }
            Err(source) => {
                let scenario = job.scenario.clone();
                self.save_error = Some(CampaignError::Save { scenario, seed, verdict, source });
            }
        }
    }

    fn stop(&mut self, why: Ended) -> ControlFlow<()> {
        self.totals.ended = why;
        ControlFlow::Break(())
    }
}

impl Listener for Progress<'_> {
    fn judged(&mut self, seed: u64, judged: Judged) -> ControlFlow<()> {
        self.totals.add(&judged);
        let told = self.audience.judged(seed, &judged, &self.totals);
        if judged.verdict() != Verdict::Held {
            self.keep(seed, judged);
        }
        let deaths = |oracle| self.totals.found.get(oracle).copied().unwrap_or(0);
        if told.is_break() {
            self.stop(Ended::Interrupted)
        } else if deaths(PROCESS_DIED) + deaths(NO_PROGRESS) >= DEATHS_MAX {
            self.stop(Ended::WorkersDie)
        } else if self.save_error.is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn tick(&mut self, done: u64) -> ControlFlow<()> {
        if self.audience.tick(done, &self.totals).is_break() {
            self.stop(Ended::Interrupted)
        } else if self.campaign.time.is_some_and(|time| self.began.elapsed() >= time) {
            self.stop(Ended::Time)
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Where finds are saved unless told otherwise.
pub fn default_save_dir() -> &'static Path {
    Path::new("stormlog-finds")
}
