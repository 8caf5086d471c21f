//! RocketMQ's checkpoint file: a page that begins with five times and offsets, without a checksum.
//!
//! Model: a hint for RocketMQ's recovery, read leniently and written in place. The sixth field, at 0x28, is of later
//! versions: it is read, and left alone when the file is written. Consume queue and index times come with those files and
//! are kept as found.

use std::path::Path;

use crate::env::{Env, File, OpenOptions};
use crate::log::{Context, IoFailure, Operation};

const PAGE_BYTES: u64 = 4096;
/// The fields that are written.
const FIELDS_BYTES: usize = 40;
const READ_BYTES: usize = FIELDS_BYTES + 8;

/// What the checkpoint says. Times are in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Store timestamp up to which the commit log is flushed.
    pub physic_msg_timestamp: i64,
    /// Store timestamp up to which the consume queues are.
    pub logics_msg_timestamp: i64,
    /// Store timestamp up to which the index is.
    pub index_msg_timestamp: i64,
    /// Offset that a master has flushed.
    pub master_flushed_offset: i64,
    /// Offset that is confirmed to be replicated.
    pub confirm_phy_offset: i64,
    /// Offset up to which the consume queues are; 0 from versions that do not keep it. Read only.
    pub logics_physical_offset: i64,
}

impl Checkpoint {
    /// Reads the file; `None` if there is none or it is cut.
    pub fn read<E: Env>(env: &E, path: &Path) -> Result<Option<Self>, IoFailure> {
        if !env.exists(path).context(Operation::Open, path, None)? {
            return Ok(None);
        }
        let file = env.open(path, OpenOptions::READ).context(Operation::Open, path, None)?;
        let mut bytes = [0; READ_BYTES];
        match file.read_exact_at(&mut bytes, 0) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read.context(Operation::Read, path, 0)?,
        }
        let field = |n: usize| i64::from_be_bytes(bytes[n * 8..n * 8 + 8].try_into().expect("eight bytes"));
        Ok(Some(Self {
            physic_msg_timestamp: field(0),
            logics_msg_timestamp: field(1),
            index_msg_timestamp: field(2),
            master_flushed_offset: field(3),
            confirm_phy_offset: field(4),
            logics_physical_offset: field(5),
        }))
    }

    /// Writes the fields and syncs the file, making it if it is missing. Its name is durable once its directory is synced.
    pub fn write<E: Env>(&self, env: &E, path: &Path) -> Result<(), IoFailure> {
        let file = env.open(path, OpenOptions::CREATE).context(Operation::Open, path, None)?;
        if file.len().context(Operation::Length, path, None)? < PAGE_BYTES {
            file.set_len(PAGE_BYTES).context(Operation::Preallocate, path, None)?;
        }
        let fields = [
            self.physic_msg_timestamp,
            self.logics_msg_timestamp,
            self.index_msg_timestamp,
            self.master_flushed_offset,
            self.confirm_phy_offset,
        ];
        let mut bytes = [0; FIELDS_BYTES];
        for (slot, field) in bytes.chunks_exact_mut(8).zip(fields) {
            slot.copy_from_slice(&field.to_be_bytes());
        }
        file.write_all_at(&bytes, 0).context(Operation::Write, path, 0)?;
        file.sync_data().context(Operation::Sync, path, None)
    }

    /// The checkpoint with no offset outside of the log. (apache/rocketmq #6703)
    #[must_use]
    pub fn clamped(self, begin: u64, end: u64) -> Self {
        let confirm_phy_offset = self.confirm_phy_offset.clamp(begin as i64, end as i64);
        Self { confirm_phy_offset, master_flushed_offset: self.master_flushed_offset.min(end as i64), ..self }
    }
}
