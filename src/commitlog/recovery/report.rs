//! What recovery found and did, typed, and readable by a person.

use std::fmt;
use std::path::PathBuf;

use crate::codec::Rejection;

use super::super::options::RecoveryPolicy;

/// What recovery found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The policy it followed.
    pub policy: RecoveryPolicy,
    /// Whether the store was closed cleanly, as the missing abort marker says.
    pub was_closed: bool,
    /// Whether this store wrote the directory, as the durable mark says.
    pub is_ours: bool,
    /// Up to where the log is proved to have been durable.
    pub proved: Proved,
    /// The durable mark is there and says nothing that can be read.
    pub mark_is_unreadable: bool,
    /// First offset of the log.
    pub begin: u64,
    /// Where the log goes on.
    pub end: u64,
    /// Segments kept.
    pub segments: usize,
    /// Whole records served.
    pub records: u64,
    /// Damage below the proved bound: what is lost, in order.
    pub holes: Vec<Hole>,
    /// What was cut from the log's end, if anything but zeros was there.
    pub cut: Option<Cut>,
    /// Segments behind the end.
    pub removed: Vec<Removed>,
    /// Files in the segments' directory that are no segments; they are left alone.
    pub ignored: Vec<PathBuf>,
    /// What RocketMQ would make of the directory as it was found; `None` where that is the same.
    pub rocketmq: Option<RocketMqView>,
}

/// Up to where the log is proved to have been durable, and by what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proved {
    /// The bound.
    pub bound: u64,
    /// The proof.
    pub by: Proof,
}

/// What proves that the log was durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Nothing does.
    Nothing,
    /// The durable mark.
    DurableMark,
    /// A later segment with records in it: the one before is synced first.
    NewestSegment,
}

/// A stretch of the log that was durable and cannot be read any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    /// First offset that is lost.
    pub begin: u64,
    /// Where the log goes on.
    pub end: u64,
    /// What is wrong at its first offset.
    pub flaw: Flaw,
    /// Whole records inside that no chain to the proved bound vouches for; they are not served.
    pub unproved_records: u64,
}

/// What is wrong with a place of the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// What is there is no record.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The disk does not give the bytes back.
    #[error("it cannot be read: {reason}")]
    Unreadable {
        /// The kernel's reason.
        reason: String,
    },
    /// The segment is not there.
    #[error("the segment is missing")]
    MissingSegment,
}

/// What was cut from the log's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// Where the log was cut.
    pub position: u64,
    /// Behind the last byte there that is not zero, or the last whole record.
    pub content_end: u64,
    /// What is wrong at the cut.
    pub flaw: Flaw,
    /// Whole records behind the cut; the first [`Cut::MAX_LISTED`] of them.
    pub records: Vec<CutRecord>,
    /// How many there are.
    pub record_count: u64,
    /// Where the bytes are kept, if there are whole records among them.
    pub kept_as: Option<PathBuf>,
}

impl Cut {
    /// The most records listed.
    pub const MAX_LISTED: usize = 1000;
}

/// A whole record behind the cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutRecord {
    /// Offset in the log.
    pub position: u64,
    /// Length in bytes.
    pub len: u64,
    /// Its topic, malformed UTF-8 replaced.
    pub topic: String,
    /// Its queue.
    pub queue_id: i32,
    /// Its place in the queue.
    pub queue_offset: i64,
}

/// A segment behind the log's end that is not there any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// The segment's file.
    pub path: PathBuf,
    /// Where it is kept; `None` where it held only zeros, or where the policy keeps nothing.
    pub kept_as: Option<PathBuf>,
}

/// What RocketMQ would make of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RocketMqView {
    /// Where it would end the log.
    pub end: u64,
    /// How many segments behind that it would delete.
    pub deleted_segments: usize,
}

impl RecoveryReport {
    /// Whether everything that was ever proved durable is served.
    pub fn is_whole(&self) -> bool {
        self.holes.is_empty()
    }
}

impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stop = if self.was_closed { "closed cleanly" } else { "not closed" };
        let Self { policy, begin, end, segments, records, .. } = self;
        writeln!(f, "the store was {stop}; recovered by policy {policy:?}")?;
        writeln!(f, "log {begin}..{end}: {records} records in {segments} segments")?;
        let bound = self.proved.bound;
        match self.proved.by {
            Proof::Nothing => writeln!(f, "nothing proves what was durable")?,
            Proof::DurableMark => writeln!(f, "durable up to {bound}, says the durable mark")?,
            Proof::NewestSegment => writeln!(f, "durable up to {bound}, where the newest segment begins")?,
        }
        if self.mark_is_unreadable {
            writeln!(f, "the durable mark is there and cannot be read")?;
        }
        if *end < bound {
            writeln!(f, "LOST {end}..{bound} ({} bytes): it was durable, and the log ends before it", bound - end)?;
        }
        for hole in &self.holes {
            let Hole { begin, end, flaw, unproved_records } = hole;
            writeln!(f, "LOST {begin}..{end} ({} bytes): {flaw}", end - begin)?;
            if *unproved_records > 0 {
                writeln!(f, "  {unproved_records} whole records inside are not served: nothing proves their places")?;
            }
        }
        if let Some(cut) = &self.cut {
            let Cut { position, content_end, flaw, record_count, .. } = cut;
            writeln!(f, "cut a torn tail at {position} ({} bytes): {flaw}", content_end - position)?;
            for CutRecord { position, len, topic, queue_id, queue_offset } in &cut.records {
                writeln!(f, "  whole record at {position}, {len} bytes, {topic:?} queue {queue_id} @ {queue_offset}")?;
            }
            if *record_count > cut.records.len() as u64 {
                writeln!(f, "  and {} more whole records", record_count - cut.records.len() as u64)?;
            }
            if let Some(path) = &cut.kept_as {
                writeln!(f, "  its bytes are kept in {}", path.display())?;
            }
        }
        for Removed { path, kept_as } in &self.removed {
            match kept_as {
                Some(kept) => writeln!(f, "segment {} behind the end is kept as {}", path.display(), kept.display())?,
                None => writeln!(f, "removed segment {} behind the end", path.display())?,
            }
        }
        for path in &self.ignored {
            writeln!(f, "{} is no segment and was left alone; RocketMQ would not start", path.display())?;
        }
        if let Some(RocketMqView { end, deleted_segments }) = self.rocketmq {
            writeln!(f, "RocketMQ would end the log at {end} and delete {deleted_segments} segments behind it")?;
        }
        Ok(())
    }
}
