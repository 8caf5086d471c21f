//! One segment: a file of fixed length at a base position.

use std::path::{Path, PathBuf};

use crate::env::{Env, File, OpenOptions};

use super::error::{Context, IoFailure, Operation};
use super::layout::Layout;

/// An open segment.
pub struct Segment<E: Env> {
    /// Position of the file's first byte.
    pub base: u64,
    /// Position behind the file's last byte.
    pub limit: u64,
    /// The file's path.
    pub path: PathBuf,
    /// The file.
    pub file: E::File,
}

impl<E: Env> Segment<E> {
    /// Opens the segment at `base` of the log in `directory`.
    pub fn open<L: Layout>(env: &E, layout: &L, directory: &Path, base: u64) -> Result<Self, IoFailure> {
        let path = directory.join(layout.file_name(base));
        let file = env.open(&path, OpenOptions::READ_WRITE).context(Operation::Open, &path, None)?;
        Ok(Self { base, limit: base + layout.segment_bytes(), path, file })
    }

    /// Writes `bytes` at a position of this segment.
    pub fn write(&self, position: u64, bytes: &[u8]) -> Result<(), IoFailure> {
        assert!(self.base <= position && position + bytes.len() as u64 <= self.limit, "a write stays in its segment");
        let offset = position - self.base;
        self.file.write_all_at(bytes, offset).context(Operation::Write, &self.path, offset)
    }

    /// Reads exactly `bytes.len()` bytes at a position of this segment.
    pub fn read(&self, position: u64, bytes: &mut [u8]) -> Result<(), IoFailure> {
        assert!(self.base <= position && position + bytes.len() as u64 <= self.limit, "a read stays in its segment");
        let offset = position - self.base;
        self.file.read_exact_at(bytes, offset).context(Operation::Read, &self.path, offset)
    }

    /// Writes zeros over `[from, to)`.
    pub fn zero(&self, from: u64, to: u64) -> Result<(), IoFailure> {
        assert!(self.base <= from && from <= to && to <= self.limit, "zeros stay in their segment");
        let offset = from - self.base;
        self.file.zero_range(offset, to - from).context(Operation::Zero, &self.path, offset)
    }

    /// Makes the segment's bytes durable.
    pub fn sync(&self) -> Result<(), IoFailure> {
        self.file.sync_data().context(Operation::Sync, &self.path, None)
    }
}
