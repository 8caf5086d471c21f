//! Levels of acknowledgement, and the receipt that an append returns at once.

use std::fmt;

/// How much an acknowledged append survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// It has its place in the log; it survives nothing.
    Staged,
    /// The kernel has it: it survives a killed process.
    Written,
    /// The device has it: it survives a loss of power.
    Durable,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Staged => "staged",
            Self::Written => "written",
            Self::Durable => "durable",
        })
    }
}

/// An append's place in the log, and what its acknowledgement waits for. Dropping it cancels nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Position of the first byte.
    pub position: u64,
    /// Position behind the last byte.
    pub end: u64,
    /// The level asked for.
    pub level: Level,
    /// The sync that carries it.
    pub(super) batch: u64,
}
