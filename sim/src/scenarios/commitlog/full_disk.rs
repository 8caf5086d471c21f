//! `commitlog-full-disk`: the disk fills up under the store, and is freed again.

use super::drive::Drive;
use crate::scenario::{ParameterError, RunOutcome, RunRequest};

pub(super) fn run(request: &RunRequest) -> Result<RunOutcome, ParameterError> {
    let mut drive = Drive::new(request, |_, _| ())?;
    let rounds = drive.parameters.rounds;
    let parameters = drive.parameters.clone();
    for round in 0..rounds {
        let capacity = drive.choose(|ctx| parameters.draw_capacity(ctx));
        let whole = drive.setup.disk.capacity_bytes;
        drive.machine.with_disk(|disk, _| disk.set_capacity(capacity.unwrap_or(whole)));
        drive.frees_to = Some(whole);
        drive.io_may_fail = true;
        if !drive.round(round, true) {
            break;
        }
        drive.machine.with_disk(|disk, _| disk.set_capacity(whole));
        drive.frees_to = None;
        drive.io_may_fail = false;
        if !drive.settle(rounds + round) {
            break;
        }
    }
    Ok(drive.outcome())
}
