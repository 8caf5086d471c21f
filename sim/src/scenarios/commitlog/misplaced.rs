//! `commitlog-misplaced`: a record that a misdirected write put in the place of another.
//!
//! Model: both are whole records with right CRCs; only the physical offset inside of the misplaced one says that it does
//! not belong there. It must not be served for the other, nor a second time.

use std::ops::Range;

use stormlog::planted::Fault;

use super::damaged::{self, Stored, size_of};
use crate::choices::Stream;
use crate::context::Context;
use crate::disk::Disk;
use crate::scenario::{ParameterError, RunOutcome, RunRequest};

pub(super) const HUNTS: &[Fault] = &[Fault::StaleRecordAccepted];

pub(super) fn run(request: &RunRequest) -> Result<RunOutcome, ParameterError> {
    damaged::run(request, misplace)
}

fn misplace(disk: &mut Disk, ctx: &mut Context, stream: Stream, stored: &Stored<'_>) -> Option<Range<u64>> {
    let (from, to) = (stored.pick(ctx, stream), stored.pick(ctx, stream));
    let (source, target) = (stored.read(disk, from)?, stored.read(disk, to)?);
    // One that is longer would damage a second record.
    if from == to || size_of(&source) > size_of(&target) {
        return None;
    }
    let (path, offset) = stored.place(to);
    disk.poke(ctx, &path, offset, &source[..size_of(&source) as usize]).ok()?;
    ctx.mark("damage.misplaced");
    Some(to..to + size_of(&target))
}
