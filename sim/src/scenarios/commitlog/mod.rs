//! Scenarios of the RocketMQ-compatible commit log.

mod corrupt_size;
mod crash;
mod damaged;
mod drive;
mod full_disk;
mod misplaced;
mod parameters;
mod sync_failure;
mod view;
mod workload;

use std::borrow::Cow;

use stormlog::planted::Fault;

use crate::scenario::{ParameterError, RunOutcome, RunRequest, Scenario};

/// A scenario of the commit log: its parameters, and what it does with them.
pub struct CommitLogScenario {
    name: &'static str,
    about: &'static str,
    parameters: &'static str,
    hunts: &'static [Fault],
    run: fn(&RunRequest) -> Result<RunOutcome, ParameterError>,
}

/// Kills and power losses at any operation, in recovery too.
const CRASH: CommitLogScenario = CommitLogScenario {
    name: "commitlog-crash",
    about: "Producers on a commit log; kills and power losses at any operation, in recovery too",
    parameters: include_str!("../../../../fixtures/scenarios/commitlog-crash.toml"),
    hunts: crash::HUNTS,
    run: crash::run,
};

/// Size fields set to boundary values.
const CORRUPT_SIZE: CommitLogScenario = CommitLogScenario {
    name: "commitlog-corrupt-size",
    about: "Size fields of stored records set to boundary values: told, and nothing else lost",
    parameters: include_str!("../../../../fixtures/scenarios/commitlog-corrupt-size.toml"),
    hunts: corrupt_size::HUNTS,
    run: corrupt_size::run,
};

/// The disk fills up and is freed.
const FULL_DISK: CommitLogScenario = CommitLogScenario {
    name: "commitlog-full-disk",
    about: "The disk fills up under producers and is freed: refused cleanly, taken again",
    parameters: include_str!("../../../../fixtures/scenarios/commitlog-full-disk.toml"),
    hunts: &[],
    run: full_disk::run,
};

/// A record in the place of another.
const MISPLACED: CommitLogScenario = CommitLogScenario {
    name: "commitlog-misplaced",
    about: "A record that a misdirected write put in another's place: told, and never served",
    parameters: include_str!("../../../../fixtures/scenarios/commitlog-misplaced.toml"),
    hunts: misplaced::HUNTS,
    run: misplaced::run,
};

/// Syncs fail.
const SYNC_FAILURE: CommitLogScenario = CommitLogScenario {
    name: "commitlog-sync-failure",
    about: "Syncs and writes fail as file systems let them: the store stops and promises nothing",
    parameters: include_str!("../../../../fixtures/scenarios/commitlog-sync-failure.toml"),
    hunts: sync_failure::HUNTS,
    run: sync_failure::run,
};

/// All of them, in the order in which they are listed.
pub static ALL: [&dyn Scenario; 5] = [&CRASH, &CORRUPT_SIZE, &FULL_DISK, &MISPLACED, &SYNC_FAILURE];

impl Scenario for CommitLogScenario {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn default_parameters(&self) -> toml::Table {
        self.parameters.parse().expect("the embedded parameters are TOML")
    }

    fn default_parameters_text(&self) -> Cow<'static, str> {
        Cow::Borrowed(self.parameters)
    }

    fn hunts(&self) -> &'static [Fault] {
        self.hunts
    }

    fn run(&self, request: &RunRequest) -> Result<RunOutcome, ParameterError> {
        (self.run)(request)
    }
}
