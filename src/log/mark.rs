//! The durable mark: a lower bound of what the log has made durable, kept beside it.
//!
//! Model: a file of two slots, each in a sector of its own, written in turn. A slot holds a magic number, a sequence
//! number, what is [`Marked`], and a CRC-32 over those; the valid slot with the higher sequence counts. A slot is written
//! after a sync has ended and is itself synced at a roll, at the stop, and now and then in between, so that a mark may lag
//! and never leads. A torn or lost slot only lowers the bound.

use std::path::{Path, PathBuf};

use crate::env::{Env, File, OpenOptions};

use super::error::{Context, IoFailure, Operation};

const MAGIC: u64 = u64::from_be_bytes(*b"STORMRK1");
const SLOT_STRIDE: u64 = 4096;
const SLOT_BYTES: usize = 44;
const CRC_AT: usize = SLOT_BYTES - 4;
const FILE_BYTES: u64 = 2 * SLOT_STRIDE;
const LARGEST_END: u64 = 1 << 62;
const CLOSED: u64 = 1;
const SELF_CHECKED: u64 = 2;

/// What a mark says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marked {
    /// Where the log begins: what is missing before its first segment, and not before this, is lost.
    pub begin: u64,
    /// Everything from `begin` to here was durable.
    pub durable_end: u64,
    /// Whether that is all there is, because the log was closed cleanly.
    pub is_closed: bool,
    /// Whether every record from `durable_end` on carries a check of all its bytes, so that one without is a torn one.
    pub is_self_checked: bool,
}

/// The mark of an open log.
pub struct DurableMark<E: Env> {
    path: PathBuf,
    file: E::File,
    sequence: u64,
    marked: Marked,
    is_unreadable: bool,
    unsynced: bool,
}

impl<E: Env> DurableMark<E> {
    /// Opens the mark, if there is one.
    pub fn open(env: &E, path: &Path) -> Result<Option<Self>, IoFailure> {
        if !env.exists(path).context(Operation::Open, path, None)? {
            return Ok(None);
        }
        let file = env.open(path, OpenOptions::READ_WRITE).context(Operation::Open, path, None)?;
        let (mut sequence, mut marked, mut is_damaged) = (0, Marked::default(), false);
        for offset in [0, SLOT_STRIDE] {
            let mut slot = [0; SLOT_BYTES];
            match file.read_exact_at(&mut slot, offset) {
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                    is_damaged = true;
                    continue;
                }
                read => read.context(Operation::Read, path, offset)?,
            }
            match decode(&slot) {
                Some(found) if found.0 > sequence => (sequence, marked) = found,
                Some(_) => {}
                None => is_damaged |= slot != [0; SLOT_BYTES],
            }
        }
        // One slot of two may be torn by a crash; the other one speaks then.
        let is_unreadable = is_damaged && sequence == 0;
        Ok(Some(Self { path: path.to_owned(), file, sequence, marked, is_unreadable, unsynced: false }))
    }

    /// Makes the mark, its whole length reserved, with nothing marked durable. Its name is durable once its directory is
    /// synced.
    pub fn create(env: &E, path: &Path) -> Result<Self, IoFailure> {
        let file = env.open(path, OpenOptions::CREATE_EMPTY).context(Operation::Open, path, None)?;
        file.zero_range(0, FILE_BYTES).context(Operation::Zero, path, None)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            sequence: 0,
            marked: Marked::default(),
            is_unreadable: false,
            unsynced: true,
        })
    }

    /// What it says.
    pub fn marked(&self) -> Marked {
        self.marked
    }

    /// Whether something was there when it was opened, and nothing of it could be read.
    pub fn is_unreadable(&self) -> bool {
        self.is_unreadable
    }

    /// Marks an open log durable up to `durable_end`, which the caller has synced.
    pub fn advance(&mut self, durable_end: u64) -> Result<(), IoFailure> {
        self.write(Marked { durable_end, is_closed: false, ..self.marked })
    }

    /// Writes the mark. The caller has synced what it speaks of.
    pub fn write(&mut self, marked: Marked) -> Result<(), IoFailure> {
        self.sequence += 1;
        let offset = self.sequence % 2 * SLOT_STRIDE;
        let slot = encode(self.sequence, marked);
        self.file.write_all_at(&slot, offset).context(Operation::Write, &self.path, offset)?;
        self.marked = marked;
        self.unsynced = true;
        Ok(())
    }

    /// Makes the mark itself durable.
    pub fn sync(&mut self) -> Result<(), IoFailure> {
        if self.unsynced {
            self.file.sync_data().context(Operation::Sync, &self.path, None)?;
            self.unsynced = false;
        }
        Ok(())
    }
}

fn encode(sequence: u64, marked: Marked) -> [u8; SLOT_BYTES] {
    let mut slot = [0; SLOT_BYTES];
    let flag = |is_set, flag| if is_set { flag } else { 0 };
    let flags = flag(marked.is_closed, CLOSED) | flag(marked.is_self_checked, SELF_CHECKED);
    let words = [MAGIC, sequence, marked.begin, marked.durable_end, flags];
    for (place, word) in slot.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    let crc = crc32fast::hash(&slot[..CRC_AT]);
    slot[CRC_AT..].copy_from_slice(&crc.to_be_bytes());
    slot
}

fn decode(slot: &[u8; SLOT_BYTES]) -> Option<(u64, Marked)> {
    let word = |n: usize| u64::from_be_bytes(slot[n * 8..n * 8 + 8].try_into().expect("eight bytes"));
    let crc = u32::from_be_bytes(slot[CRC_AT..].try_into().expect("four bytes"));
    let flag = |flag: u64| word(4) & flag != 0;
    let marked =
        Marked { begin: word(2), durable_end: word(3), is_closed: flag(CLOSED), is_self_checked: flag(SELF_CHECKED) };
    // A CRC does not make sense of what makes none: no log begins behind its end or ends beyond what an offset can say.
    let makes_sense = marked.begin <= marked.durable_end && marked.durable_end <= LARGEST_END;
    (word(0) == MAGIC && crc == crc32fast::hash(&slot[..CRC_AT]) && makes_sense).then_some((word(1), marked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_reads_back_and_no_changed_bit_passes() {
        let marked = Marked { begin: 4096, durable_end: 0x0102_0304, is_closed: true, is_self_checked: true };
        let slot = encode(7, marked);
        assert_eq!(decode(&slot), Some((7, marked)));
        for bit in 0..SLOT_BYTES * 8 {
            let mut changed = slot;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&changed), None, "bit {bit}");
        }
    }
}
