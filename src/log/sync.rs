//! Group commit: what is staged while a sync runs goes out with the next.
//!
//! Model: every append belongs to the batch that was being staged when it got its place. The first to wait for a batch leads
//! it: it waits for the running sync, gives way once so that the producers which that sync woke can join, takes everything
//! staged, writes and syncs it. Everyone else of the batch sleeps on the batch's word and is woken once.
//!
//! A failed sync is never tried again: the kernel may have dropped the pages and called them clean.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use crate::env::{AtomicInteger, Env, Wait, Word};
use crate::planted;

use super::error::{IoFailure, RefusedError, UnknownError};
use super::layout::Layout;
use super::mark::DurableMark;
use super::receipt::{Level, Receipt};
use super::shared::Shared;

impl<E: Env, L: Layout> Shared<E, L> {
    /// Waits until an append has reached its level. Who follows a sync waits at most `timeout_ms`; who leads one waits for
    /// the device.
    pub fn wait(&self, receipt: &Receipt, timeout_ms: Option<u64>) -> Result<Level, UnknownError> {
        if self.is_reached(receipt) {
            return Ok(receipt.level);
        }
        match receipt.level {
            Level::Staged => {}
            Level::Written => self.write_out(),
            Level::Durable => {
                if !self.carry(receipt.batch, timeout_ms) && !self.is_reached(receipt) {
                    let timeout_ms = timeout_ms.expect("only a wait with a timeout runs out of it");
                    return Err(UnknownError::TimedOut { level: receipt.level, timeout_ms });
                }
            }
        }
        self.settle(receipt)
    }

    /// Leads a batch, or waits for its end where it has a leader. False if the time ran out.
    pub fn carry(&self, batch: u64, timeout_ms: Option<u64>) -> bool {
        if self.led.fetch_max(batch, AcqRel) < batch {
            self.lead(batch);
            return true;
        }
        self.follow(batch, timeout_ms)
    }

    fn lead(&self, batch: u64) {
        let mut mark = self.mark.lock();
        self.env.yield_now();
        if let Err(failure) = self.sync_batch(&mut mark, batch) {
            self.stop(failure);
        }
        // Before the lock is free for the next leader, so that the woken can join its batch.
        self.end_batch(batch);
    }

    fn follow(&self, batch: u64, timeout_ms: Option<u64>) -> bool {
        let word = &self.ended[(batch % 2) as usize];
        let timeout_ns = timeout_ms.map(|ms| ms.saturating_mul(1_000_000));
        loop {
            let ended = word.load(Acquire);
            if ended.wrapping_sub(batch as u32).cast_signed() >= 0 {
                return true;
            }
            if word.wait(ended, timeout_ns) == Wait::TimedOut {
                return false;
            }
        }
    }

    fn end_batch(&self, batch: u64) {
        let word = &self.ended[(batch % 2) as usize];
        word.store(batch as u32, Release);
        word.wake_all();
    }

    /// Writes and syncs everything staged, as that batch. Does nothing where the log has stopped.
    fn sync_batch(&self, mark: &mut DurableMark<E>, batch: u64) -> Result<(), IoFailure> {
        let mut writer = self.writer.lock();
        let mut staging = self.staging.lock();
        if staging.refusing.as_ref().is_some_and(RefusedError::is_stop) {
            return Ok(());
        }
        assert_eq!(staging.batch, batch, "a batch is taken by its leader, once");
        staging.batch += 1;
        staging.flush_due = false;
        staging.flush_at = staging.end + self.options.max_unsynced_bytes;
        writer.take(&mut staging);
        drop(staging);
        // Before the next writer comes: what failed is not to be written around.
        let end = writer.write().inspect_err(|failure| self.stop(failure.clone()))?;
        // Before the next writer can find nothing left to write.
        self.written_end.fetch_max(end, AcqRel);
        let segment = writer.segment();
        drop(writer);

        let planted = self.options.planted;
        if planted!(planted, AckBeforeSync) {
            self.durable_end.fetch_max(end, AcqRel);
            self.end_batch(batch);
        }
        if planted!(planted, MarkAheadOfData) {
            mark.advance(end).and_then(|()| mark.sync())?;
        }
        if let Some(segment) = segment {
            let mut synced = segment.sync();
            if planted!(planted, RetryFailedSync) && synced.is_err() {
                synced = segment.sync();
            }
            synced?;
        }
        self.durable_end.fetch_max(end, AcqRel);
        mark.advance(end)
    }
}
