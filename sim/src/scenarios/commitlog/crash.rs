//! `commitlog-crash`: kills and power losses at any operation, in recovery too.

use stormlog::planted::Fault;

use super::drive::Drive;
use crate::scenario::{ParameterError, RunOutcome, RunRequest};

pub(super) const HUNTS: &[Fault] = &[
    Fault::AckBeforeSync,
    Fault::NoDirectorySync,
    Fault::TruncateWrongRecord,
    Fault::MarkAheadOfData,
    Fault::CrcNotMasked,
    Fault::BlankWithoutLength,
    Fault::RollLosesRecord,
];

pub(super) fn run(request: &RunRequest) -> Result<RunOutcome, ParameterError> {
    let mut drive = Drive::new(request, |_, _| ())?;
    let rounds = drive.parameters.rounds;
    for round in 0..rounds {
        if !drive.round(round, round + 1 < rounds) {
            break;
        }
    }
    Ok(drive.outcome())
}
