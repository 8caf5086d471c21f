//! How the commit log's work fails.

use std::path::PathBuf;

use crate::codec::{EncodeError, MessageId, Rejection};
use crate::log::{CloseError, IoFailure, Level, RangeError, RefusedError, UnknownError};

use super::options::OptionError;

/// Why a store was not opened. Nothing of it is open then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// An option is of no use.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// Somebody has it open.
    #[error("{} is locked: the store is open already", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// A segment is not of the configured length; upstream refuses the directory too.
    #[error("segment {} has {len} bytes, not {expected}", path.display())]
    SegmentLen {
        /// The segment's file.
        path: PathBuf,
        /// Its length in bytes.
        len: u64,
        /// The configured length in bytes.
        expected: u64,
    },
    /// A file's name stands for no segment, which upstream does not forgive.
    #[error("{} is no segment's name", path.display())]
    SegmentName {
        /// The file.
        path: PathBuf,
    },
    /// An I/O operation failed.
    #[error(transparent)]
    Io(#[from] IoFailure),
}

/// Why a message was refused: nothing of it is in the log, and it took no queue offset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// It cannot be stored as a record.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A batch without messages.
    #[error("the batch is empty")]
    EmptyBatch,
    /// The log does not take it.
    #[error(transparent)]
    Refused(#[from] RefusedError),
}

/// What came of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is stored, as safely as the level says.
    Acknowledged(Level),
    /// Nothing of it is in the log.
    Refused(AppendError),
    /// After the next recovery it is in its place, once, or not there at all.
    Unknown(UnknownError),
}

/// Why a record cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The place is outside of what the log holds and may show, or cannot be read from the disk.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// What is there is not a whole record.
    #[error("there is no whole record at {position}: {rejection}")]
    Rejected {
        /// Offset in the log.
        position: u64,
        /// What is wrong with it.
        rejection: Rejection,
    },
    /// The blank at the end of a segment is there; the next record is at the next segment's base.
    #[error("there is the blank of a segment at {position}, the log goes on at {next}")]
    Blank {
        /// Offset in the log.
        position: u64,
        /// Where the log goes on.
        next: u64,
    },
    /// The record is not the one that the id names.
    #[error("the record at {} has id {found}, not {wanted}", wanted.physical_offset)]
    OtherId {
        /// The id asked for.
        wanted: MessageId,
        /// The record's.
        found: MessageId,
    },
}

/// Why a store did not close cleanly. Its next opening is a recovery after a crash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StopError {
    /// The log did not close.
    #[error(transparent)]
    Log(#[from] CloseError),
    /// A file beside it could not be brought up to date.
    #[error(transparent)]
    Io(#[from] IoFailure),
}
