//! `commitlog-sync-failure`: syncs and writes fail, and leave behind what the file system leaves behind.

use stormlog::planted::Fault;

use super::drive::{Drive, LATE_ERRORS};
use crate::disk::profile::FaultRates;
use crate::scenario::{ParameterError, RunOutcome, RunRequest};

pub(super) const HUNTS: &[Fault] = &[Fault::RetryFailedSync];

pub(super) fn run(request: &RunRequest) -> Result<RunOutcome, ParameterError> {
    let mut drive = Drive::new(request, |_, _| ())?;
    let rounds = drive.parameters.rounds;
    let rates = drive.parameters.failure.map_or_else(FaultRates::default, |failure| FaultRates {
        sync_error_ppm: failure.sync_error_ppm,
        dir_sync_error_ppm: failure.dir_sync_error_ppm,
        write_error_ppm: failure.write_error_ppm,
        ..FaultRates::default()
    });
    drive.late_errors = LATE_ERRORS;
    for round in 0..rounds {
        drive.machine.with_disk(|disk, _| disk.reset_faults(rates));
        drive.io_may_fail = true;
        if !drive.round(round, true) {
            break;
        }
        drive.machine.with_disk(|disk, _| disk.reset_faults(FaultRates::default()));
        drive.io_may_fail = false;
        if !drive.settle(rounds + round) {
            break;
        }
    }
    Ok(drive.outcome())
}
