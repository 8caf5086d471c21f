//! What the log's callers and its threads share, and the order of its locks.
//!
//! Lock order: `log.sync`, then `log.write`, then `append.lock`, then `log.segments`. `append.lock` is held for no I/O.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::env::{Atomic, Env, Mutex, RwLock, Word};

use super::callback::Callbacks;
use super::error::{IoFailure, RefusedError, UnknownError};
use super::layout::Layout;
use super::mark::DurableMark;
use super::options::LogOptions;
use super::receipt::{Level, Receipt};
use super::segment::Segment;
use super::staging::Staging;
use super::write::Writer;

pub(super) struct Shared<E: Env, L: Layout> {
    pub env: E,
    pub layout: L,
    /// Length of a segment's header.
    pub header_bytes: u64,
    pub options: LogOptions,
    pub directory: PathBuf,
    pub preparing: PathBuf,
    /// The next sync, and the mark that it moves. Held while a sync runs, so that no two report one failure to one caller.
    pub mark: Mutex<E, DurableMark<E>>,
    /// The next write.
    pub writer: Mutex<E, Writer<E>>,
    /// The tail.
    pub staging: Mutex<E, Staging<E, L>>,
    /// All segments that hold records, by base.
    pub segments: RwLock<E, Vec<Arc<Segment<E>>>>,
    /// Everything below is with the kernel.
    pub written_end: E::AtomicU64,
    /// Everything below is on the device.
    pub durable_end: E::AtomicU64,
    /// The latest batch that has a leader.
    pub led: E::AtomicU64,
    /// The low half of the number of the latest batch that ended, of even and of odd numbers.
    pub ended: [E::Word; 2],
    /// Callers that are told instead of waiting.
    pub callbacks: Mutex<E, Callbacks>,
    /// Woken when an asked-for segment is there, or is not to be had.
    pub next_made: E::Condvar,
    /// 1 if the flusher is to look around.
    pub flusher: E::Word,
    /// 1 if the allocator is to look around.
    pub allocator: E::Word,
    /// The [`Phase`] of the log's life.
    pub phase: E::AtomicU32,
}

/// Where the log is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open = 0,
    /// The threads are to finish and end.
    Closing = 1,
    /// The threads are to end as they are.
    Dropped = 2,
}

impl<E: Env, L: Layout> Shared<E, L> {
    /// Refuses all further appends, because of a failure that left some of the staged bytes' fate unknown.
    pub fn stop(&self, failure: IoFailure) {
        self.env.mark("log.stopped");
        let mut staging = self.staging.lock();
        if !matches!(staging.refusing, Some(RefusedError::Stopped(_))) {
            staging.refusing = Some(RefusedError::Stopped(Arc::new(failure)));
        }
        staging.window = None;
        staging.next_window = None;
    }

    /// The failure that stopped the log, if one did.
    pub fn failure(&self) -> Option<Arc<IoFailure>> {
        match &self.staging.lock().refusing {
            Some(RefusedError::Stopped(failure)) => Some(Arc::clone(failure)),
            _ => None,
        }
    }

    /// Whether the receipt's level is reached.
    pub fn is_reached(&self, receipt: &Receipt) -> bool {
        match receipt.level {
            Level::Staged => true,
            Level::Written => receipt.end <= self.written_end.load(Acquire),
            Level::Durable => receipt.end <= self.durable_end.load(Acquire),
        }
    }

    /// What came of an append for which nothing more is going to happen.
    pub fn settle(&self, receipt: &Receipt) -> Result<Level, UnknownError> {
        if self.is_reached(receipt) {
            return Ok(receipt.level);
        }
        let failure = self.failure().expect("an append that was carried and is not there has failed");
        Err(UnknownError::Failed(failure))
    }

    /// Wakes the flusher.
    pub fn wake_flusher(&self) {
        if self.flusher.swap(1, Release) == 0 {
            self.flusher.wake_one();
        }
    }

    /// Wakes the allocator.
    pub fn wake_allocator(&self) {
        if self.allocator.swap(1, Release) == 0 {
            self.allocator.wake_one();
        }
    }

    /// Where the log is in its life.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Acquire) {
            0 => Phase::Open,
            1 => Phase::Closing,
            _ => Phase::Dropped,
        }
    }

    /// Tells the threads to end. Touches only words, so that it does no harm anywhere.
    pub fn end_threads(&self, phase: Phase) {
        self.phase.store(phase as u32, Release);
        self.flusher.store(1, Release);
        self.flusher.wake_all();
        self.allocator.store(1, Release);
        self.allocator.wake_all();
    }
}
