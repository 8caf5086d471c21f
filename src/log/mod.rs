//! The segmented append-only log: files, positions, staging, sync, acknowledgement. It never parses a record.
//!
//! Model: an append gets its place under a short lock and returns a [`Receipt`] at once; waiting for a [`Level`] is a step
//! of its own. It ends in one of three ways: acknowledged at its level, [refused](RefusedError) with nothing of it in the
//! log, or [unknown](UnknownError). A failed write or sync is never retried into success: what it carried becomes unknown,
//! the log stops, and says why.
//!
//! On the disk, in this order: a segment is zero-filled, synced, and named durably before its first record; the segment
//! before it is synced before a byte of it is written; behind the log's end there are only zeros.
//!
//! Not modelled: what a record is, and recovery, which needs to know. A log starts from what its owner has recovered.

mod allocator;
mod callback;
mod error;
mod flusher;
mod layout;
mod make;
mod mark;
mod options;
mod receipt;
mod segment;
mod shared;
mod staging;
mod sync;
#[cfg(test)]
mod tests;
mod write;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::env::{Atomic, Env, JoinHandle, Step};
use crate::planted;

pub use callback::Callback;
pub(crate) use error::Context;
pub use error::{CloseError, IoFailure, Operation, RangeError, RefusedError, UnknownError};
pub use layout::Layout;
pub use mark::{DurableMark, Marked};
pub use options::{LogOptions, WrittenBy};
pub use receipt::{Level, Receipt};
pub use segment::Segment;

use callback::Callbacks;
use make::remove_if_there;
use shared::{Phase, Shared};
use staging::{Next, Staging, StagingGuard};
use write::Writer;

/// Where a log starts: what its owner has recovered.
pub struct LogStart<E: Env, L: Layout> {
    /// The directory of the segments.
    pub directory: PathBuf,
    /// The name, outside of that directory, under which segments are made.
    pub preparing: PathBuf,
    /// The mark; everything below `end` is durable and marked so.
    pub mark: DurableMark<E>,
    /// All segments, by base.
    pub segments: Vec<Segment<E>>,
    /// Where the first append goes: in or at the end of the last segment, or at the base of one that is to be made.
    pub end: u64,
    /// Whether there are only zeros behind `end`. Where there is something else, the mark never says that the log was closed,
    /// because that says that nothing follows.
    pub ends_in_zeros: bool,
    /// The layout's part of the tail at `end`.
    pub tail: L::Tail,
}

/// An open log.
pub struct Log<E: Env, L: Layout> {
    shared: Arc<Shared<E, L>>,
    threads: Vec<E::Thread>,
    ends_in_zeros: bool,
}

impl<E: Env, L: Layout> Log<E, L> {
    /// Opens a log at `start`. `name` begins the names of its threads, `NAME.flush` and `NAME.allocate`.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn open(env: &E, name: &str, layout: L, options: LogOptions, start: LogStart<E, L>) -> Result<Self, IoFailure> {
        let LogStart { directory, preparing, mark, segments, end, ends_in_zeros, tail } = start;
        let segments: Vec<_> = segments.into_iter().map(Arc::new).collect();
        let active = segments.last().filter(|last| end <= last.limit).map(Arc::clone);
        match &active {
            Some(active) => assert!(active.base <= end, "a log ends in or behind its last segment"),
            None => assert_eq!(end % layout.segment_bytes(), 0, "a segment that is to be made begins at the log's end"),
        }
        let staging = Staging {
            tail,
            end,
            active: active.clone(),
            bytes: Vec::new(),
            scratch: Vec::new(),
            window: None,
            next_window: None,
            window_asked: false,
            batch: 1,
            next: Next::Unasked,
            flusher_sleeps: false,
            flush_at: end + options.max_unsynced_bytes,
            flush_due: false,
            refusing: None,
        };
        let shared = Arc::new(Shared {
            env: env.clone(),
            header_bytes: layout.header(0).len() as u64,
            layout,
            options,
            directory,
            preparing,
            mark: env.mutex("log.sync", mark),
            writer: env.mutex("log.write", Writer::new()),
            staging: env.mutex("append.lock", staging),
            segments: env.rw_lock("log.segments", segments),
            written_end: E::AtomicU64::new(end),
            durable_end: E::AtomicU64::new(end),
            led: E::AtomicU64::new(0),
            ended: [env.word("log.batch", 0), env.word("log.batch", u32::MAX)],
            callbacks: env.mutex("log.callbacks", Callbacks::default()),
            next_made: env.condvar("log.next-made"),
            flusher: env.word("log.flusher", 0),
            allocator: env.word("log.allocator", 0),
            phase: E::AtomicU32::new(Phase::Open as u32),
        });
        if let Some(active) = &active {
            let window = shared.first_window(active, end);
            shared.staging.lock().window = window;
        }
        let mut log = Self { shared, threads: Vec::new(), ends_in_zeros };
        let shared = Arc::clone(&log.shared);
        log.spawn(&format!("{name}.flush"), move || shared.run_flusher())?;
        let shared = Arc::clone(&log.shared);
        log.spawn(&format!("{name}.allocate"), move || shared.run_allocator())?;
        Ok(log)
    }

    fn spawn(&mut self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), IoFailure> {
        let directory = &self.shared.directory;
        let thread = self.shared.env.spawn(name, body).context(Operation::Spawn, directory, None)?;
        self.threads.push(thread);
        Ok(())
    }

    /// Gives `len` bytes a place. `encode` is called once, under `append.lock`, with the layout's tail, the place, and the
    /// bytes to fill, all of them; or not at all if the append is refused.
    ///
    /// # Errors
    /// The append was refused: nothing of it is in the log.
    pub fn append<R>(
        &self,
        len: usize,
        level: Level,
        encode: impl FnOnce(&mut L::Tail, u64, &mut [u8]) -> R,
    ) -> Result<(Receipt, R), RefusedError> {
        let shared = &*self.shared;
        let (mut staging, rolled) = self.place_for(len as u64)?;
        let staged = &mut *staging;
        let (position, batch) = (staged.end, staged.batch);
        shared.env.charge(Step::AppendRecord, 1);
        if rolled && planted!(shared.options.planted, RollLosesRecord) {
            let encoded = encode(&mut staged.tail, position, &mut vec![0; len]);
            return Ok((Receipt { position, end: position, level, batch }, encoded));
        }
        let end = position + len as u64;
        let encoded = if level < Level::Durable && staged.may_bypass(shared.written_end.load(Acquire), len as u64) {
            if staged.scratch.len() < len {
                staged.scratch.resize(len, 0);
            }
            let encoded = encode(&mut staged.tail, position, &mut staged.scratch[..len]);
            let window = staged.window.as_ref().expect("a bypass goes through a window");
            window.publish(position, &staged.scratch[..len]);
            shared.written_end.store(end, Release);
            encoded
        } else {
            let begin = staged.bytes.len();
            staged.bytes.resize(begin + len, 0);
            encode(&mut staged.tail, position, &mut staged.bytes[begin..])
        };
        staged.end = end;
        let wake_flusher = staged.needs_flusher();
        let wake_allocator = staged.needs_allocator();
        let is_full = staged.bytes.len() >= shared.options.max_staged_bytes;
        drop(staging);
        if wake_flusher {
            shared.wake_flusher();
        }
        if wake_allocator {
            shared.wake_allocator();
        }
        if is_full {
            shared.write_out();
        }
        Ok((Receipt { position, end, level, batch }, encoded))
    }

    /// Locks the tail with room for `len` bytes in the active segment. True if that took a roll.
    fn place_for(&self, len: u64) -> Result<(StagingGuard<'_, E, L>, bool), RefusedError> {
        let shared = &*self.shared;
        let closing_bytes = shared.layout.closing_bytes();
        let limit = shared.layout.segment_bytes() - shared.header_bytes - closing_bytes;
        if len > limit {
            return Err(RefusedError::TooLarge { bytes: len, limit });
        }
        let mut rolled = false;
        loop {
            let staging = shared.staging.lock();
            if let Some(reason) = &staging.refusing {
                return Err(reason.clone());
            }
            if staging.fits(len, closing_bytes) {
                return Ok((staging, rolled));
            }
            drop(staging);
            shared.roll(len)?;
            rolled = true;
        }
    }

    /// Waits until an append has reached its level. Allocates nothing.
    ///
    /// `timeout_ms` bounds the wait for someone else's sync. Who leads the sync waits for the device.
    ///
    /// # Errors
    /// What became of the append is unknown.
    pub fn wait(&self, receipt: &Receipt, timeout_ms: Option<u64>) -> Result<Level, UnknownError> {
        self.shared.wait(receipt, timeout_ms)
    }

    /// Has `callback` called once with what came of an append: on the log's flush thread, outside of all locks, in the
    /// order of registration. It may append; it must not wait.
    pub fn on_settled(&self, receipt: Receipt, callback: Callback) {
        self.shared.callbacks.lock().waiting.push((receipt, callback));
        self.shared.wake_flusher();
    }

    /// Syncs everything appended so far.
    ///
    /// # Errors
    /// A write or sync failed, now or earlier.
    pub fn sync(&self) -> Result<(), UnknownError> {
        let (end, batch) = {
            let staging = self.shared.staging.lock();
            (staging.end, staging.batch)
        };
        self.shared.wait(&Receipt { position: end, end, level: Level::Durable, batch }, None).map(drop)
    }

    /// Where the next append goes.
    pub fn end(&self) -> u64 {
        self.shared.staging.lock().end
    }

    /// Everything below is with the kernel.
    pub fn written_end(&self) -> u64 {
        self.shared.written_end.load(Acquire)
    }

    /// Everything below is on the device.
    pub fn durable_end(&self) -> u64 {
        self.shared.durable_end.load(Acquire)
    }

    /// Position of the first byte that the log holds; its end where it holds nothing.
    pub fn begin(&self) -> u64 {
        let first = self.shared.segments.read().first().map(|segment| segment.base);
        first.unwrap_or_else(|| self.end())
    }

    /// Why the log has stopped, if it has.
    pub fn failure(&self) -> Option<Arc<IoFailure>> {
        self.shared.failure()
    }

    /// Looks at the layout's part of the tail, under `append.lock`.
    pub fn with_tail<R>(&self, look: impl FnOnce(&L::Tail) -> R) -> R {
        look(&self.shared.staging.lock().tail)
    }

    /// The segment that holds `position`.
    pub fn segment_at(&self, position: u64) -> Option<Arc<Segment<E>>> {
        let segments = self.shared.segments.read();
        let index = segments.partition_point(|segment| segment.base <= position).checked_sub(1)?;
        (position < segments[index].limit).then(|| Arc::clone(&segments[index]))
    }

    /// Syncs everything and ends the log's threads, after all callbacks have run.
    ///
    /// # Errors
    /// A write or sync failed, now or earlier, or a callback panicked. Everything is closed all the same.
    pub fn close(mut self) -> Result<(), CloseError> {
        let shared = Arc::clone(&self.shared);
        shared.end_threads(Phase::Closing);
        let mut panicked = None;
        for thread in self.threads.drain(..) {
            panicked = panicked.or(thread.join().err());
        }
        let synced = self.sync();
        shared.staging.lock().refusing.get_or_insert(RefusedError::Closed);
        if let Some(failure) = shared.failure() {
            return Err(CloseError::Failed(failure));
        }
        synced.expect("a sync without a timeout fails by a failure");
        let failed = |failure| CloseError::Failed(Arc::new(failure));
        self.remove_unused_segment().map_err(failed)?;
        let mut mark = shared.mark.lock();
        let marked = Marked { durable_end: self.end(), is_closed: self.ends_in_zeros, ..mark.marked() };
        mark.write(marked).and_then(|()| mark.sync()).map_err(failed)?;
        drop(mark);
        match panicked.or_else(|| shared.callbacks.lock().panic.take()) {
            Some(panic) => Err(panic.into()),
            None => Ok(()),
        }
    }

    /// Removes the segment made ahead of need, as RocketMQ does.
    fn remove_unused_segment(&self) -> Result<(), IoFailure> {
        let next = std::mem::replace(&mut self.shared.staging.lock().next, Next::Unasked);
        if let Next::Ready(segment, _) = next {
            remove_if_there(&self.shared.env, &segment.path)?;
            let directory = &self.shared.directory;
            self.shared.env.sync_dir(directory).context(Operation::SyncDirectory, directory, None)?;
        }
        Ok(())
    }
}

/// A dropped log is a crashed log: nothing is written or synced. Its threads end in their own time.
impl<E: Env, L: Layout> Drop for Log<E, L> {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.shared.end_threads(Phase::Dropped);
        }
    }
}
