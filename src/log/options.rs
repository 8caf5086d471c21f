//! How a log behaves.

use crate::planted::Planted;

/// How an append that is not to be durable reaches the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WrittenBy {
    /// Through a mapped region, as part of the append. Durable appends take the other way all the same.
    Region,
    /// By one positioned write for everything that is staged.
    Write,
}

/// Options of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogOptions {
    /// How bytes reach the kernel.
    pub written_by: WrittenBy,
    /// What nobody waits for is synced this long after it was staged, in milliseconds.
    pub flush_interval_ms: u64,
    /// The durable mark is itself synced this often, in milliseconds.
    pub mark_interval_ms: u64,
    /// An append that finds more staged than this writes it out itself, in bytes.
    pub max_staged_bytes: usize,
    /// More unsynced bytes than this are synced without waiting for the interval: a roll has to wait for the rest.
    pub max_unsynced_bytes: u64,
    /// Length of one mapped region, in bytes; a multiple of the page size.
    pub window_bytes: u64,
    /// The planted fault.
    pub planted: Planted,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            written_by: WrittenBy::Write,
            flush_interval_ms: 500,
            mark_interval_ms: 1000,
            max_staged_bytes: 1 << 20,
            max_unsynced_bytes: 64 << 20,
            window_bytes: 64 << 20,
            planted: Planted::NONE,
        }
    }
}
