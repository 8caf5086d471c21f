//! One-word parking: a 32-bit atomic that threads can sleep on (Linux `futex(2)`).

use std::sync::atomic::Ordering;

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The word had another value already, the thread was woken, or it woke for no reason: look again.
    Look,
    /// The time ran out.
    TimedOut,
}

/// A 32-bit atomic word that threads can wait on.
pub trait Word: Send + Sync + 'static {
    /// Reads the word.
    fn load(&self, order: Ordering) -> u32;
    /// Writes the word.
    fn store(&self, value: u32, order: Ordering);
    /// Writes the word and returns what it held.
    fn swap(&self, value: u32, order: Ordering) -> u32;
    /// Adds, wrapping, and returns what the word held.
    fn fetch_add(&self, value: u32, order: Ordering) -> u32;
    /// Writes `new` if the word holds `current`; returns what it held, as `Err` if it was something else.
    fn compare_exchange(&self, current: u32, new: u32, success: Ordering, failure: Ordering) -> Result<u32, u32>;
    /// Sleeps while the word holds `expected`, until woken or until `timeout_ns` has passed.
    fn wait(&self, expected: u32, timeout_ns: Option<u64>) -> Wait;
    /// Wakes one waiting thread.
    fn wake_one(&self);
    /// Wakes all waiting threads.
    fn wake_all(&self);
}
