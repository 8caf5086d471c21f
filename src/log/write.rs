//! Bringing staged bytes to the kernel, and rolling to the next segment.

use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Release};

use crate::env::{Atomic, AtomicInteger, Condvar, Env};

use super::error::{IoFailure, RefusedError};
use super::layout::Layout;
use super::segment::Segment;
use super::shared::Shared;
use super::staging::{Next, Staging};

/// What `log.write` guards: the bytes taken from the staging, and where they go.
pub(super) struct Writer<E: Env> {
    bytes: Vec<u8>,
    position: u64,
    segment: Option<Arc<Segment<E>>>,
}

impl<E: Env> Writer<E> {
    pub fn new() -> Self {
        Self { bytes: Vec::new(), position: 0, segment: None }
    }

    /// Takes all staged bytes; they go to the active segment.
    pub fn take<L: Layout>(&mut self, staging: &mut Staging<E, L>) {
        assert!(self.bytes.is_empty(), "what was taken is written before more is taken");
        std::mem::swap(&mut self.bytes, &mut staging.bytes);
        self.position = staging.end - self.bytes.len() as u64;
        self.segment.clone_from(&staging.active);
    }

    /// Writes what was taken. Returns the position up to which the kernel now has the log.
    pub fn write(&mut self) -> Result<u64, IoFailure> {
        if let (Some(segment), false) = (&self.segment, self.bytes.is_empty()) {
            segment.write(self.position, &self.bytes)?;
        }
        let end = self.position + self.bytes.len() as u64;
        self.bytes.clear();
        Ok(end)
    }

    /// The segment that was written to last.
    pub fn segment(&self) -> Option<Arc<Segment<E>>> {
        self.segment.clone()
    }
}

impl<E: Env, L: Layout> Shared<E, L> {
    /// Writes out what is staged. On a failure the log has stopped when this returns.
    pub fn write_out(&self) {
        let mut writer = self.writer.lock();
        let mut staging = self.staging.lock();
        if staging.refusing.as_ref().is_some_and(RefusedError::is_stop) || staging.bytes.is_empty() {
            return;
        }
        writer.take(&mut staging);
        drop(staging);
        match writer.write() {
            Ok(end) => self.written_end.store(end, Release),
            Err(failure) => self.stop(failure),
        }
    }

    /// Makes the next segment the active one, unless `len` bytes fit into the active one by now.
    ///
    /// The one before is closed and synced before a byte of the next is written. Meanwhile appends go on: what they stage
    /// stays in memory until `log.write` is free.
    pub fn roll(&self, len: u64) -> Result<(), RefusedError> {
        self.await_next(len)?;
        let mut mark = self.mark.lock();
        let mut writer = self.writer.lock();
        let mut staging = self.staging.lock();
        if let Some(reason) = &staging.refusing {
            return Err(reason.clone());
        }
        if staging.fits(len, self.layout.closing_bytes()) || !matches!(staging.next, Next::Ready(..)) {
            return Ok(());
        }
        let Next::Ready(next, window) = std::mem::replace(&mut staging.next, Next::Unasked) else {
            unreachable!("looked at under the lock")
        };
        self.env.mark("log.roll");
        if let Some(active) = &staging.active {
            let remaining = active.limit - staging.end;
            if remaining > 0 {
                let staged = staging.bytes.len();
                self.layout.close_segment(remaining, &mut staging.bytes);
                let closing = (staging.bytes.len() - staged) as u64;
                assert!(closing <= self.layout.closing_bytes().min(remaining), "what closes a segment fits");
                staging.end += closing;
            }
        }
        writer.take(&mut staging);
        let old = staging.active.replace(Arc::clone(&next));
        staging.window = None;
        staging.next_window = None;
        staging.window_asked = false;
        staging.end = next.base + self.header_bytes;
        let begin = staging.end;
        staging.flush_at = begin + self.options.max_unsynced_bytes;
        self.segments.write().push(next);
        drop(staging);

        if let Some(old) = old {
            let synced = writer.write().and_then(|_| old.sync());
            if let Err(failure) = synced {
                self.stop(failure);
                return Ok(());
            }
        }
        // In this order: what is durable is written.
        self.written_end.store(begin, Release);
        self.durable_end.fetch_max(begin, AcqRel);
        if let Err(failure) = mark.advance(begin).and_then(|()| mark.sync()) {
            self.stop(failure);
            return Ok(());
        }
        let mut staging = self.staging.lock();
        if staging.refusing.is_none() {
            staging.window = window;
        }
        Ok(())
    }

    /// Waits until the next segment is there or `len` bytes fit without it, asking for it where nobody has.
    fn await_next(&self, len: u64) -> Result<(), RefusedError> {
        let mut asked = false;
        let mut staging = self.staging.lock();
        loop {
            if let Some(reason) = &staging.refusing {
                return Err(reason.clone());
            }
            if staging.fits(len, self.layout.closing_bytes()) {
                return Ok(());
            }
            match &staging.next {
                Next::Ready(..) => return Ok(()),
                Next::Failed(failure) if asked => {
                    self.env.mark("log.no-segment");
                    return Err(RefusedError::NoSegment(Arc::clone(failure)));
                }
                // An attempt that somebody else asked for may have begun before there was space again.
                Next::Asked => self.next_made.wait(&mut staging),
                Next::Unasked | Next::Failed(_) => {
                    asked = true;
                    staging.next = Next::Asked;
                    self.wake_allocator();
                }
            }
        }
    }
}
