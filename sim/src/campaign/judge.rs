//! Runs one job in this process and judges it.
//!
//! Model: the scenario's oracles judge what happened in the simulation; here is judged what the run did to its host:
//! panics outside of simulated threads, and the [`Limits`]. A run that aborts or never ends
//! takes its process along: that is for [`super::process`] to see.

use std::panic::AssertUnwindSafe;

use super::job::{Job, Judged, TraceEvent};
use super::{panics, parameters};
use crate::alloc::{self, Allocation};
use crate::limits::Limits;
use crate::record::{Digest, Event, Recorder};
use crate::scenario::{Finding, ParameterError, RunOutcome, RunRequest, RunStats};
use crate::scenarios::Registry;

/// A job that cannot be run at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
pub enum JobError {
    /// The registry has no such scenario.
    #[error("no scenario {0:?} in this build")]
    Scenario(String),
    /// The scenario cannot use a parameter.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// A fault to plant in a build that has none.
    #[error("this build has no planted faults, and the case plants {0}")]
    Planted(String),
}

/// Oracle of a panic outside of simulated threads.
pub const PANIC: &str = "panic";
/// Oracle of a run that allocated more than its limits allow.
pub const ALLOCATION: &str = "allocation-budget";
/// Oracle of a run with more events than its limits allow.
pub const EVENTS: &str = "event-budget";
/// Oracle of a run with more virtual time than its limits allow.
pub const VIRTUAL_TIME: &str = "virtual-time-budget";

/// Live memory beyond this many times the limit ends the process rather than the host's memory.
const CAP_FACTOR: u64 = 4;

/// Runs a job and judges it.
pub fn judge(registry: Registry, job: &Job) -> Result<Judged, JobError> {
    let scenario = registry.find(&job.scenario).ok_or_else(|| JobError::Scenario(job.scenario.clone()))?;
    if let (Some(fault), false) = (job.planted, cfg!(feature = "planted-faults")) {
        return Err(JobError::Planted(fault.name().to_owned()));
    }
    let (own, limits) = parameters::split(job.parameters.clone())?;
    let request = RunRequest {
        seed: job.seed,
        parameters: own,
        limits,
        overrides: job.overrides.clone(),
        keep_choices: job.keep.choices,
        keep_events: job.keep.events || !job.keep.trail_at.is_empty(),
        planted: job.planted,
    };
    // What is kept for a re-run is the testbed's own memory, not the simulation's.
    let keeps = request.keep_choices || request.keep_events;
    let cap_bytes = if keeps { u64::MAX } else { limits.live_bytes.saturating_mul(CAP_FACTOR) };
    panics::expect(job.keep.backtrace);
    let (outcome, allocation) = alloc::measure(cap_bytes, || catch(|| scenario.run(&request)));
    let mut judged = match outcome {
        Ok(outcome) => from_outcome(outcome?, job, allocation),
        Err(message) => Judged { allocation, ..Judged::cut_short(PANIC, message) },
    };
    judged.findings.extend(over(&limits, &judged.stats, (!keeps).then_some(&allocation)));
    Ok(judged)
}

#[allow(clippy::disallowed_methods, reason = "the boundary of a run: a panic in here is the scenario's, on the host")]
fn catch<R>(run: impl FnOnce() -> R) -> Result<R, String> {
    std::panic::catch_unwind(AssertUnwindSafe(run)).map_err(|payload| panics::describe(&*payload))
}

fn from_outcome(outcome: RunOutcome, job: &Job, allocation: Allocation) -> Judged {
    let RunOutcome { findings, digest, stats, marks, choices, events, actors, report } = outcome;
    let named = job.keep.choices || job.keep.events;
    Judged {
        findings,
        digest: Some(digest),
        stats,
        marks: marks.into_iter().map(|(name, n)| (name.to_owned(), n)).collect(),
        allocation,
        choices,
        trail: trail(&events, &job.keep.trail_at),
        events: if job.keep.events { events.iter().map(TraceEvent::from).collect() } else { Vec::new() },
        actors: if named { actors } else { Default::default() },
        report,
    }
}

fn trail(events: &[Event], at: &[u64]) -> Vec<(u64, Digest)> {
    let mut recorder = Recorder::new(false);
    let mut trail = Vec::with_capacity(at.len());
    for event in events {
        recorder.record(*event);
        if at.contains(&recorder.count()) {
            trail.push((recorder.count(), recorder.digest()));
        }
    }
    trail
}

fn over(limits: &Limits, stats: &RunStats, allocation: Option<&Allocation>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut check = |oracle: &str, what: &str, value: u64, limit: u64, name: &str| {
        if value > limit {
            let message = format!("{what} is {value}, and limits.{name} is {limit}");
            findings.push(Finding { oracle: oracle.to_owned(), message });
        }
    };
    check(EVENTS, "the number of events", stats.events, limits.events, "events");
    check(VIRTUAL_TIME, "virtual time in ms", stats.virtual_ns / 1_000_000, limits.virtual_ms, "virtual_ms");
    if let Some(Allocation { largest_bytes, live_bytes, total_bytes }) = allocation {
        let limit = limits.largest_allocation_bytes;
        check(ALLOCATION, "the largest allocation in bytes", *largest_bytes, limit, "largest_allocation_bytes");
        check(ALLOCATION, "memory live at once in bytes", *live_bytes, limits.live_bytes, "live_bytes");
        check(ALLOCATION, "memory allocated in bytes", *total_bytes, limits.allocated_bytes, "allocated_bytes");
    }
    findings
}
