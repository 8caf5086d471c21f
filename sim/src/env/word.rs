//! Simulated words to wait on.

use std::sync::atomic::Ordering;

use stormlog::env::{Atomic, AtomicInteger, Wait, Word};

use super::SimAtomic;
use crate::machine::{CoreRef, ProcessId};

/// A word of the simulated world.
pub struct SimWord {
    core: CoreRef,
    process: ProcessId,
    value: SimAtomic<u32>,
    queue: usize,
}

impl SimWord {
    pub(super) fn new(core: CoreRef, process: ProcessId, name: &'static str, value: u32) -> Self {
        let queue = core.get_mut().add_queue(name);
        Self { core, process, value: SimAtomic::new(value), queue }
    }
}

impl Drop for SimWord {
    fn drop(&mut self) {
        self.core.get_mut().remove_queue(self.queue);
    }
}

impl Word for SimWord {
    fn load(&self, order: Ordering) -> u32 {
        self.value.load(order)
    }

    fn store(&self, value: u32, order: Ordering) {
        self.value.store(value, order);
    }

    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.value.swap(value, order)
    }

    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.value.fetch_add(value, order)
    }

    fn compare_exchange(&self, current: u32, new: u32, success: Ordering, failure: Ordering) -> Result<u32, u32> {
        self.value.compare_exchange(current, new, success, failure)
    }

    fn wait(&self, expected: u32, timeout_ns: Option<u64>) -> Wait {
        // The load is this operation's point; from there to the queue nothing comes between.
        if self.value.load(Ordering::SeqCst) != expected {
            return Wait::Look;
        }
        let Some(me) = self.core.running(self.process) else { return Wait::Look };
        if self.core.wait_on_word(me, self.queue, timeout_ns) { Wait::TimedOut } else { Wait::Look }
    }

    fn wake_one(&self) {
        self.core.notify(self.process, self.queue, 1);
    }

    fn wake_all(&self) {
        self.core.notify(self.process, self.queue, usize::MAX);
    }
}
