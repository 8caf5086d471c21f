//! The course that damage scenarios share: a store lives, one of its records is damaged on the disk, and it is opened.
//!
//! Model: the damage is beyond what is legal, and done to one record that is surely durable. The store must tell it, lose
//! that record and no other, and go on. With two damaged records, what lies between them is vouched for by no chain, and
//! need not be served.

use std::ops::Range;

use super::drive::{Drive, ROOT};
use crate::choices::{Actor, Family, Stream};
use crate::context::Context;
use crate::disk::Disk;
use crate::history::Fate;
use crate::scenario::{ParameterError, RunOutcome, RunRequest};

/// Damages one of the stored records. Returns what of the log is excused, or nothing if nothing was done.
pub(super) type Damage = fn(&mut Disk, &mut Context, Stream, &Stored<'_>) -> Option<Range<u64>>;

/// Records that are surely in the store, by position.
pub(super) struct Stored<'a> {
    pub(super) positions: &'a [u64],
    pub(super) segment_bytes: u64,
}

impl Stored<'_> {
    /// Draws one of them.
    pub(super) fn pick(&self, ctx: &mut Context, stream: Stream) -> u64 {
        self.positions[ctx.below(stream, self.positions.len() as u64) as usize]
    }

    /// The file that holds a position, and the offset in it.
    pub(super) fn place(&self, position: u64) -> (String, u64) {
        let offset = position % self.segment_bytes;
        (format!("{ROOT}/commitlog/{:020}", position - offset), offset)
    }

    /// The record at a position, and what follows it in its segment.
    pub(super) fn read(&self, disk: &Disk, position: u64) -> Option<Vec<u8>> {
        let (path, offset) = self.place(position);
        let mut rest = vec![0; (self.segment_bytes - offset) as usize];
        disk.peek(&path, offset, &mut rest).ok()?;
        Some(rest)
    }
}

/// Total size of the record that `bytes` begin with.
pub(super) fn size_of(bytes: &[u8]) -> u64 {
    u64::from(u32::from_be_bytes(bytes[..4].try_into().expect("four bytes")))
}

pub(super) fn run(request: &RunRequest, damage: Damage) -> Result<RunOutcome, ParameterError> {
    let mut drive = Drive::new(request, |_, _| ())?;
    let rounds = drive.parameters.rounds;
    for round in 0..rounds {
        // A life that only reads settles what the crash left, so that the damage is done to what is surely stored.
        if !drive.round(2 * round, true) || !drive.settle(2 * round + 1) {
            break;
        }
        if drive.excused.is_empty() {
            damage_one(&mut drive, round, damage);
        }
    }
    if drive.holds() {
        drive.settle(2 * rounds);
    }
    Ok(drive.outcome())
}

fn damage_one(drive: &mut Drive<'_>, round: u64, damage: Damage) {
    let positions: Vec<u64> = drive.books.history.with(|history| {
        let fates = history.appends.iter().flat_map(|append| append.fates.iter());
        fates.filter_map(|fate| if let Fate::Kept(position) = fate { Some(*position) } else { None }).collect()
    });
    let stored = Stored { positions: &positions, segment_bytes: drive.setup.options.mapped_file_size_commit_log };
    if positions.is_empty() {
        return;
    }
    let excused = drive.machine.with_disk(|disk, ctx| {
        let stream = ctx.stream(Family::Damage, Actor::RUN.child("damage", round));
        // 0 leaves the disk alone.
        if ctx.operation(stream, &[1]) == 0 { None } else { damage(disk, ctx, stream, &stored) }
    });
    drive.excused.extend(excused);
}
