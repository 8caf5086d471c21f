//! How the log's work fails.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Level;

/// An I/O operation that failed: which, on which file, where, and the kernel's reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoFailure {
    /// The operation.
    pub operation: Operation,
    /// The file or directory.
    pub path: PathBuf,
    /// Offset in the file, where the operation has one.
    pub offset: Option<u64>,
    /// The kernel's `errno`, if it gave one.
    pub errno: Option<i32>,
    /// The reason in words.
    pub reason: String,
}

/// An I/O operation, as [`IoFailure`] names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Opening or making a file.
    Open,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Syncing a file's data.
    Sync,
    /// Reserving a file's space.
    Preallocate,
    /// Writing zeros.
    Zero,
    /// Mapping a region.
    Map,
    /// Asking for a file's length.
    Length,
    /// Renaming; the path is the old name.
    Rename,
    /// Removing a name.
    Remove,
    /// Making a directory.
    MakeDirectory,
    /// Listing a directory.
    List,
    /// Syncing a directory.
    SyncDirectory,
    /// Locking a file.
    Lock,
    /// Starting a thread; the path is the log's.
    Spawn,
}

impl Operation {
    const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Preallocate => "preallocate",
            Self::Zero => "write zeros to",
            Self::Map => "map",
            Self::Length => "length of",
            Self::Rename => "rename",
            Self::Remove => "remove",
            Self::MakeDirectory => "make directory",
            Self::List => "list",
            Self::SyncDirectory => "sync directory",
            Self::Lock => "lock",
            Self::Spawn => "start a thread for",
        }
    }
}

impl IoFailure {
    /// Names a failed operation.
    pub fn new(operation: Operation, path: &Path, offset: Option<u64>, error: &io::Error) -> Self {
        let (path, errno) = (path.to_owned(), error.raw_os_error());
        Self { operation, path, offset, errno, reason: error.to_string() }
    }
}

impl fmt::Display for IoFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation.name(), self.path.display())?;
        if let Some(offset) = self.offset {
            write!(f, " at {offset}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for IoFailure {}

/// Adds the operation, file and offset to an I/O error.
pub(crate) trait Context<T> {
    fn context(self, operation: Operation, path: &Path, offset: impl Into<Option<u64>>) -> Result<T, IoFailure>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, operation: Operation, path: &Path, offset: impl Into<Option<u64>>) -> Result<T, IoFailure> {
        self.map_err(|error| IoFailure::new(operation, path, offset.into(), &error))
    }
}

/// Why an append was refused: nothing of it is in the log, and nothing of it ever will be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefusedError {
    /// It fits into no segment.
    #[error("{bytes} bytes do not fit into a segment, which takes {limit}")]
    TooLarge {
        /// Length of what was to be appended.
        bytes: u64,
        /// The most that a segment takes in one append.
        limit: u64,
    },
    /// The next segment could not be made; the next append that needs it tries again.
    #[error("no room for a new segment: {0}")]
    NoSegment(Arc<IoFailure>),
    /// An earlier write or sync failed; the log takes nothing until it is opened anew.
    #[error("the log has stopped: {0}")]
    Stopped(Arc<IoFailure>),
    /// The log is being closed.
    #[error("the log is closed")]
    Closed,
}

impl RefusedError {
    /// Whether it is for good, because of a failure.
    pub fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped(_))
    }
}

/// Why it is unknown what became of an append: after the next recovery it is in its place, once, or not there at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownError {
    /// The write or sync that was to carry it failed.
    #[error("it is unknown whether the append is in the log: {0}")]
    Failed(Arc<IoFailure>),
    /// It did not reach its level in the time given; it still may.
    #[error("the append did not reach level {level} within {timeout_ms} ms")]
    TimedOut {
        /// The level waited for.
        level: Level,
        /// The time given.
        timeout_ms: u64,
    },
}

/// Why a range of the log cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// It is outside of what the log holds and may show.
    #[error("{position} is outside of the log, which shows {begin} to {end}")]
    Outside {
        /// First byte asked for.
        position: u64,
        /// First byte of the log.
        begin: u64,
        /// End of what may be shown.
        end: u64,
    },
    /// Reading failed.
    #[error(transparent)]
    Io(#[from] IoFailure),
}

/// Why a log did not close cleanly. Its next opening is a recovery.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloseError {
    /// A write or sync failed, now or earlier.
    #[error("the log did not close cleanly: {0}")]
    Failed(Arc<IoFailure>),
    /// One of the log's threads, or a callback on it, panicked.
    #[error("the log did not close cleanly: {0}")]
    Panicked(#[from] crate::env::TaskPanic),
}
