//! A file's unsynced changes, sorted by what they changed.
//!
//! Model: the log of changes is numbered 1 to n, 0 being the durable state; such a number is a *moment*.

use super::file::{Change, ChangeKind, FileState, ZERO_RANGE_LARGE};
use super::page::SECTOR;

/// The length at a moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Length {
    pub moment: usize,
    pub len: u64,
}

/// A zeroed range too large to look at sector by sector: whole sectors only.
#[derive(Debug, Clone, Copy)]
pub(super) struct LargeZero {
    pub moment: usize,
    pub first: u64,
    pub end: u64,
}

/// A log sorted by what it changed.
pub(super) struct History {
    /// Every length since the durable one, which comes first.
    pub lengths: Vec<Length>,
    /// Truncations: what is behind the length went.
    pub cuts: Vec<Length>,
    pub large_zeros: Vec<LargeZero>,
    /// Sectors and the moments that changed them, sorted.
    pub changes: Vec<(u64, usize)>,
}

impl History {
    pub fn of(file: &FileState) -> Self {
        let mut history = History {
            lengths: vec![Length { moment: 0, len: file.durable.len }],
            cuts: Vec::new(),
            large_zeros: Vec::new(),
            changes: Vec::new(),
        };
        let mut len = file.durable.len;
        for (index, change) in file.log.iter().enumerate() {
            let moment = index + 1;
            let after = change.len_after(len);
            if after < len {
                history.cuts.push(Length { moment, len: after });
                if !after.is_multiple_of(SECTOR as u64) {
                    history.changes.push((after / SECTOR as u64, moment));
                }
            }
            if after != len {
                history.lengths.push(Length { moment, len: after });
            }
            len = after;
            history.note_sectors(change, moment);
        }
        history.changes.sort_unstable();
        history
    }

    fn note_sectors(&mut self, change: &Change, moment: usize) {
        if change.len == 0 || matches!(change.kind, ChangeKind::Grow | ChangeKind::SetLen) {
            return;
        }
        let (first, end) = (change.offset / SECTOR as u64, change.end().div_ceil(SECTOR as u64));
        if change.kind != ChangeKind::Zero || change.len <= ZERO_RANGE_LARGE {
            self.changes.extend((first..end).map(|sector| (sector, moment)));
            return;
        }
        let whole = change.offset.div_ceil(SECTOR as u64)..change.end() / SECTOR as u64;
        self.changes.extend((first..whole.start).chain(whole.end..end).map(|sector| (sector, moment)));
        self.large_zeros.push(LargeZero { moment, first: whole.start, end: whole.end });
    }
}
