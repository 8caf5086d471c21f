//! The hunt: plants each fault in turn and says which oracle caught it, and how soon.
//!
//! Model: a fault is caught if some seed of some scenario fails with it planted and holds without it. A range of seeds
//! of every scenario must hold with nothing planted.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "host time, outside of any run")]

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;
use stormlog::planted::Fault;

use super::finds;
use super::fuzz::CampaignError;
use super::job::{Job, Judged, Verdict};
use super::pool::{Listener, Pool};
use super::process::WorkerCommand;
use super::runner::{Isolated, Runner};
use super::target::Target;
use crate::scenario::Scenario;
use crate::scenarios::Registry;
use crate::shrink::{ShrinkError, Size, shrink};

/// What a hunt is to do.
pub struct Hunt {
    /// The scenarios.
    pub registry: Registry,
    /// How many seeds of a scenario are tried for one fault, and with none planted.
    pub seeds: u64,
    /// How many workers.
    pub jobs: usize,
    /// How long one seed may take.
    pub patience: Duration,
    /// Where the cases are saved.
    pub save_dir: PathBuf,
    /// How long shrinking one case may take.
    pub shrink_time: Duration,
}

/// A planted fault that was caught.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Caught {
    /// By which scenario.
    pub scenario: &'static str,
    /// By which oracle.
    pub oracle: String,
    /// At which seed.
    pub seed: u64,
    /// What the shrunk case comes to; none if its process does not live to tell.
    pub left: Option<Size>,
    /// The case file.
    pub case: PathBuf,
}

/// What came of planting one fault.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The fault.
    pub fault: &'static str,
    /// How it was caught, if it was.
    pub caught: Option<Caught>,
    /// Seeds that were run.
    pub seeds: u64,
    /// How long that took, shrinking left out.
    pub seconds: f64,
}

/// What came of a scenario with nothing planted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Control {
    /// The scenario.
    pub scenario: &'static str,
    /// Seeds that were run.
    pub seeds: u64,
    /// The first that did not hold, and what it came to.
    pub failed: Option<(u64, String)>,
}

/// Runs seeds until one fails.
struct FirstFailure<'a> {
    seeds: u64,
    found: Option<(u64, Judged)>,
    tick: &'a mut dyn FnMut() -> ControlFlow<()>,
    interrupted: bool,
}

impl Listener for FirstFailure<'_> {
    fn judged(&mut self, seed: u64, judged: Judged) -> ControlFlow<()> {
        if self.found.is_some() {
            return ControlFlow::Break(());
        }
        self.seeds += 1;
        if judged.verdict() == Verdict::Held {
            return ControlFlow::Continue(());
        }
        self.found = Some((seed, judged));
        ControlFlow::Break(())
    }

    fn tick(&mut self, _done: u64) -> ControlFlow<()> {
        let flow = (self.tick)();
        self.interrupted |= flow.is_break();
        flow
    }
}

impl Hunt {
    /// Whether this build has planted faults.
    pub const POSSIBLE: bool = cfg!(feature = "planted-faults");

    /// Runs a scenario with nothing planted. Breaks if `tick` did.
    pub fn control(
        &self,
        scenario: &'static dyn Scenario,
        command: &WorkerCommand,
        tick: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<ControlFlow<(), Control>, CampaignError> {
        let mut listener = FirstFailure { seeds: 0, found: None, tick, interrupted: false };
        self.pool(command).run(&Target::plain(scenario).job(0), 0..self.seeds, &mut listener)?;
        let FirstFailure { seeds, found, interrupted, .. } = listener;
        let failed = found.map(|(seed, judged)| (seed, judged.verdict().to_string()));
        let control = Control { scenario: scenario.name(), seeds, failed };
        Ok(if interrupted { ControlFlow::Break(()) } else { ControlFlow::Continue(control) })
    }

    /// Plants a fault. Breaks if `tick` did.
    pub fn plant(
        &self,
        fault: Fault,
        command: &WorkerCommand,
        tick: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<ControlFlow<(), Row>, CampaignError> {
        let began = Instant::now();
        let mut row = Row { fault: fault.name(), caught: None, seeds: 0, seconds: 0.0 };
        let mut pool = self.pool(command);
        let mut runner = Isolated::new(command.clone());
        for scenario in self.candidates(fault) {
            let job = Target { planted: Some(fault), ..Target::plain(scenario) }.job(0);
            let mut from = 0;
            while from < self.seeds {
                let mut listener = FirstFailure { seeds: 0, found: None, tick: &mut *tick, interrupted: false };
                pool.run(&job, from..self.seeds, &mut listener)?;
                let FirstFailure { seeds, found, interrupted, .. } = listener;
                row.seeds += seeds;
                row.seconds = began.elapsed().as_secs_f64();
                if interrupted {
                    return Ok(ControlFlow::Break(()));
                }
                let Some((seed, judged)) = found else { break };
                let job = Job { seed, ..job.clone() };
                if self.is_due_to_fault(&mut runner, &job)? {
                    row.caught = Some(self.settle(&mut runner, scenario, &job, &judged, tick)?);
                    return Ok(ControlFlow::Continue(row));
                }
                from = seed + 1;
            }
        }
        Ok(ControlFlow::Continue(row))
    }

    fn pool(&self, command: &WorkerCommand) -> Pool {
        Pool::new(command.clone(), self.jobs, self.patience)
    }

    /// The scenarios that are meant to catch a fault; all, if none is.
    fn candidates(&self, fault: Fault) -> Vec<&'static dyn Scenario> {
        let all = self.registry.all();
        let meant: Vec<_> = all.iter().copied().filter(|scenario| scenario.hunts().contains(&fault)).collect();
        if meant.is_empty() { all.to_vec() } else { meant }
    }

    fn is_due_to_fault(&self, runner: &mut Isolated, job: &Job) -> Result<bool, CampaignError> {
        let without = runner.run(&Job { planted: None, ..job.clone() }, self.patience)?;
        Ok(without.verdict() == Verdict::Held)
    }

    fn settle(
        &self,
        runner: &mut Isolated,
        scenario: &'static dyn Scenario,
        job: &Job,
        judged: &Judged,
        tick: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Caught, CampaignError> {
        let Verdict::Found(oracle) = judged.verdict() else { unreachable!("a fault is caught by an oracle") };
        let until = Instant::now() + self.shrink_time;
        let mut go_on = |_| if Instant::now() >= until { ControlFlow::Break(()) } else { tick() };
        let shrunk = shrink(runner, job, Some(&oracle), self.patience, &mut go_on).map_err(|error| match error {
            ShrinkError::Run(error) => CampaignError::Run(error),
            ShrinkError::Absent { seed, want, got } => {
                CampaignError::Vanished { scenario: job.scenario.clone(), seed, oracle: want, got }
            }
        })?;
        let (mut case, _) = finds::case_of(runner, &shrunk.job, self.patience)?;
        case.verdict = Verdict::Found(oracle.clone());
        let path = finds::save(self.registry, &self.save_dir, &case).map_err(|source| CampaignError::Save {
            scenario: job.scenario.clone(),
            seed: job.seed,
            verdict: case.verdict.clone(),
            source,
        })?;
        Ok(Caught { scenario: scenario.name(), oracle, seed: job.seed, left: shrunk.after, case: path })
    }
}
