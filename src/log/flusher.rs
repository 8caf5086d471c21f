//! The thread that syncs what nobody waits for, keeps the durable mark, and runs callbacks.
//!
//! Model: asleep without a timer while everything staged is durable and marked so. The first append after that wakes it;
//! from then on it looks again when the flush interval or the mark's interval has passed.

use std::sync::atomic::Ordering::{AcqRel, Acquire};

use crate::env::{Atomic, Env, Word};

use super::error::RefusedError;
use super::layout::Layout;
use super::shared::{Phase, Shared};

#[derive(Default)]
struct Deadlines {
    flush_ns: Option<u64>,
    mark_ns: Option<u64>,
    /// Everything below is marked durable, and the mark synced.
    marked_end: u64,
}

impl<E: Env, L: Layout> Shared<E, L> {
    /// The flusher's life.
    pub fn run_flusher(&self) {
        let mut deadlines = Deadlines::default();
        loop {
            self.flusher.swap(0, AcqRel);
            match self.phase() {
                Phase::Open => {}
                Phase::Closing => return self.run_callbacks(),
                Phase::Dropped => return,
            }
            self.run_callbacks();
            let sleep_ns = self.flush_what_is_due(&mut deadlines);
            self.flusher.wait(0, sleep_ns);
        }
    }

    /// Runs all callbacks, those that callbacks register too. Each may append; none may wait.
    fn run_callbacks(&self) {
        loop {
            let waiting = std::mem::take(&mut self.callbacks.lock().waiting);
            if waiting.is_empty() {
                return;
            }
            for (receipt, callback) in waiting {
                let outcome = self.wait(&receipt, None);
                if let Err(panic) = self.env.run_task(move || callback(outcome)) {
                    self.callbacks.lock().panic.get_or_insert(panic);
                }
            }
        }
    }

    /// Syncs and marks what is due. Returns how long there is nothing to do; `None` is until woken.
    fn flush_what_is_due(&self, deadlines: &mut Deadlines) -> Option<u64> {
        loop {
            let now = self.env.now_ns();
            let mut staging = self.staging.lock();
            let stopped = staging.refusing.as_ref().is_some_and(RefusedError::is_stop);
            if stopped || deadlines.marked_end == staging.end {
                *deadlines = Deadlines { marked_end: deadlines.marked_end, ..Deadlines::default() };
                staging.flusher_sleeps = true;
                return None;
            }
            let (batch, due) = (staging.batch, staging.flush_due);
            let unsynced = self.durable_end.load(Acquire) < staging.end;
            drop(staging);

            if unsynced {
                let deadline = *deadlines.flush_ns.get_or_insert(now + self.options.flush_interval_ms * 1_000_000);
                if due || deadline <= now {
                    deadlines.flush_ns = None;
                    self.carry(batch, None);
                    continue;
                }
            } else {
                deadlines.flush_ns = None;
            }
            let deadline = *deadlines.mark_ns.get_or_insert(now + self.options.mark_interval_ms * 1_000_000);
            if deadline <= now {
                deadlines.mark_ns = None;
                let mut mark = self.mark.lock();
                if let Err(failure) = mark.sync() {
                    self.stop(failure);
                }
                deadlines.marked_end = mark.marked().durable_end;
                continue;
            }
            return deadlines.flush_ns.into_iter().chain(deadlines.mark_ns).min().map(|at| at - now);
        }
    }
}
