//! The durable mark: a lower bound of what the log has made durable, kept beside it.
//!
//! Model: a file of two slots, each in a sector of its own, written in turn. A slot holds a magic number, a sequence
//! number, the end of what was durable, and a CRC-32 over those; the valid slot with the higher sequence counts. A slot is
//! written after a sync has ended and is itself synced at a roll, at the stop, and now and then in between, so that a
//! mark may lag and never leads. A torn or lost slot only lowers the bound.

use std::path::{Path, PathBuf};

use crate::env::{Env, File, OpenOptions};

use super::error::{Context, IoFailure, Operation};

const MAGIC: u64 = u64::from_be_bytes(*b"STORMRK1");
const SLOT_STRIDE: u64 = 4096;
const SLOT_BYTES: usize = 28;
const FILE_BYTES: u64 = 2 * SLOT_STRIDE;

/// The mark of an open log.
pub struct DurableMark<E: Env> {
    path: PathBuf,
    file: E::File,
    sequence: u64,
    durable_end: u64,
    unsynced: bool,
}

impl<E: Env> DurableMark<E> {
    /// Opens the mark, if there is one.
    pub fn open(env: &E, path: &Path) -> Result<Option<Self>, IoFailure> {
        if !env.exists(path).context(Operation::Open, path, None)? {
            return Ok(None);
        }
        let file = env.open(path, OpenOptions::READ_WRITE).context(Operation::Open, path, None)?;
        let (mut sequence, mut durable_end) = (0, 0);
        for offset in [0, SLOT_STRIDE] {
            let mut slot = [0; SLOT_BYTES];
            match file.read_exact_at(&mut slot, offset) {
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => continue,
                read => read.context(Operation::Read, path, offset)?,
            }
            if let Some(found) = decode(&slot)
                && found.0 > sequence
            {
                (sequence, durable_end) = found;
            }
        }
        Ok(Some(Self { path: path.to_owned(), file, sequence, durable_end, unsynced: false }))
    }

    /// Makes the mark, its whole length reserved, with nothing marked durable. Its name is durable once its directory is
    /// synced.
    pub fn create(env: &E, path: &Path) -> Result<Self, IoFailure> {
        let file = env.open(path, OpenOptions::CREATE_EMPTY).context(Operation::Open, path, None)?;
        file.zero_range(0, FILE_BYTES).context(Operation::Zero, path, None)?;
        Ok(Self { path: path.to_owned(), file, sequence: 0, durable_end: 0, unsynced: true })
    }

    /// End of what is marked durable.
    pub fn durable_end(&self) -> u64 {
        self.durable_end
    }

    /// Whether there is something to sync.
    pub fn is_unsynced(&self) -> bool {
        self.unsynced
    }

    /// Marks everything below `durable_end`, which the caller has synced.
    pub fn write(&mut self, durable_end: u64) -> Result<(), IoFailure> {
        self.sequence += 1;
        let offset = self.sequence % 2 * SLOT_STRIDE;
        let slot = encode(self.sequence, durable_end);
        self.file.write_all_at(&slot, offset).context(Operation::Write, &self.path, offset)?;
        self.durable_end = durable_end;
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

fn encode(sequence: u64, durable_end: u64) -> [u8; SLOT_BYTES] {
    let mut slot = [0; SLOT_BYTES];
    slot[..8].copy_from_slice(&MAGIC.to_be_bytes());
    slot[8..16].copy_from_slice(&sequence.to_be_bytes());
    slot[16..24].copy_from_slice(&durable_end.to_be_bytes());
    let crc = crc32fast::hash(&slot[..24]);
    slot[24..].copy_from_slice(&crc.to_be_bytes());
    slot
}

fn decode(slot: &[u8; SLOT_BYTES]) -> Option<(u64, u64)> {
    let word = |at: usize| u64::from_be_bytes(slot[at..at + 8].try_into().expect("eight bytes"));
    let crc = u32::from_be_bytes(slot[24..].try_into().expect("four bytes"));
    (word(0) == MAGIC && crc == crc32fast::hash(&slot[..24])).then(|| (word(8), word(16)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_reads_back_and_no_changed_bit_passes() {
        let slot = encode(7, 0x0102_0304);
        assert_eq!(decode(&slot), Some((7, 0x0102_0304)));
        for bit in 0..SLOT_BYTES * 8 {
            let mut changed = slot;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&changed), None, "bit {bit}");
        }
    }
}
