//! What a scenario is: a named workload with its oracles and fault menu, run from a seed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use stormlog::planted::Fault;

use crate::choices::{ChoiceRecord, Overrides};
use crate::context::Context;
use crate::limits::Limits;
use crate::record::{Digest, Event};

/// A named workload with its oracles.
pub trait Scenario: Sync {
    /// The name on the command line and in case files.
    fn name(&self) -> &'static str;
    /// One line on what it does.
    fn about(&self) -> &'static str;
    /// All its parameters with their default values: what a user's TOML overrides key by key.
    fn default_parameters(&self) -> toml::Table;
    /// The defaults as the TOML text that `stormlog scenarios NAME` prints; a scenario that embeds a commented file
    /// gives that file.
    fn default_parameters_text(&self) -> Cow<'static, str> {
        Cow::Owned(toml::to_string(&self.default_parameters()).expect("a table of plain values is TOML"))
    }
    /// The planted faults that this scenario's oracles are meant to catch: `stormlog hunt` tries it first for these.
    fn hunts(&self) -> &'static [Fault] {
        &[]
    }
    /// Runs one seed. Must not panic on any parameters: what it cannot use it refuses.
    fn run(&self, request: &RunRequest) -> Result<RunOutcome, ParameterError>;
}

/// What to run.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// The seed.
    pub seed: u64,
    /// All parameters of the scenario (defaults already filled in), without the table `limits`.
    pub parameters: toml::Table,
    /// What the run may use. The campaign judges it; a scheduler may stop a run that is beyond events or virtual time.
    pub limits: Limits,
    /// Choices given instead of drawn.
    pub overrides: Overrides,
    /// Keep every choice made.
    pub keep_choices: bool,
    /// Keep every event.
    pub keep_events: bool,
    /// The fault to plant; refused by a build without `planted-faults`.
    pub planted: Option<Fault>,
}

/// A parameter that the scenario cannot use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[error("parameter {name}: {reason}")]
pub struct ParameterError {
    /// Its dotted name.
    pub name: String,
    /// What is wrong, and what would be right.
    pub reason: String,
}

/// What came of a run.
#[derive(Debug, Clone)]
pub struct RunOutcome {
    /// What the oracles found; empty if the seed held.
    pub findings: Vec<Finding>,
    /// Digest of the run.
    pub digest: Digest,
    /// Numbers of the run.
    pub stats: RunStats,
    /// Marks reached, with how often.
    pub marks: BTreeMap<&'static str, u64>,
    /// The choices made, if they were to be kept.
    pub choices: Vec<ChoiceRecord>,
    /// The events, if they were to be kept.
    pub events: Vec<Event>,
    /// Names of actors, for showing events and choices.
    pub actors: BTreeMap<u64, String>,
    /// The scenario's own typed report, if it makes one.
    pub report: Option<serde_json::Value>,
}

impl RunOutcome {
    /// Ends a run: what its context recorded, with what the scenario has to say of it.
    pub fn end(
        mut context: Box<Context>,
        findings: Vec<Finding>,
        stats: RunStats,
        actors: BTreeMap<u64, String>,
    ) -> Self {
        Self {
            findings,
            digest: context.recorder.digest(),
            stats: RunStats { events: context.recorder.count(), virtual_ns: context.now_ns, ..stats },
            marks: context.marks().clone(),
            choices: context.choices.take_recorded(),
            events: context.recorder.take_events(),
            actors,
            report: None,
        }
    }
}

/// Something an oracle found.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Finding {
    /// The oracle's name, such as `acknowledged-is-served`: equal for findings of one class.
    pub oracle: String,
    /// What is wrong, with offsets and values.
    pub message: String,
}

/// Numbers of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RunStats {
    /// Events recorded.
    pub events: u64,
    /// Virtual time that passed, nested simulations left out.
    pub virtual_ns: u64,
    /// Operations that clients invoked.
    pub operations: u64,
    /// Crashes of the process or of power.
    pub crashes: u64,
    /// Crash images recovered in nested simulations.
    pub images: u64,
}
