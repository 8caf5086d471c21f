//! Atomics with the face of `std::sync::atomic`.

use std::sync::atomic::Ordering;

/// An atomic cell.
pub trait Atomic<T: Copy>: Send + Sync + 'static {
    /// Makes a cell.
    fn new(value: T) -> Self;
    /// Reads.
    fn load(&self, order: Ordering) -> T;
    /// Writes.
    fn store(&self, value: T, order: Ordering);
    /// Writes and returns what was held.
    fn swap(&self, value: T, order: Ordering) -> T;
    /// Writes `new` if `current` is held; returns what was held, as `Err` if it was something else.
    fn compare_exchange(&self, current: T, new: T, success: Ordering, failure: Ordering) -> Result<T, T>;
}

/// An atomic integer.
pub trait AtomicInteger<T: Copy>: Atomic<T> {
    /// Adds, wrapping, and returns what was held.
    fn fetch_add(&self, value: T, order: Ordering) -> T;
    /// Subtracts, wrapping, and returns what was held.
    fn fetch_sub(&self, value: T, order: Ordering) -> T;
    /// Keeps the larger and returns what was held.
    fn fetch_max(&self, value: T, order: Ordering) -> T;
}
