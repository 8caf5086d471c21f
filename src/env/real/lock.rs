//! Locks: parking_lot's, which the face of `env` takes as they are, and its condition variable.

use std::time::Duration;

use lock_api::MutexGuard;
use parking_lot::RawMutex;

use crate::env::Condvar;

/// parking_lot's condition variable.
#[derive(Default)]
pub struct RealCondvar(parking_lot::Condvar);

impl Condvar<RawMutex> for RealCondvar {
    #[inline]
    fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, RawMutex, T>) {
        self.0.wait(guard);
    }

    #[inline]
    fn wait_for<T: ?Sized>(&self, guard: &mut MutexGuard<'_, RawMutex, T>, timeout_ns: u64) -> bool {
        self.0.wait_for(guard, Duration::from_nanos(timeout_ns)).timed_out()
    }

    #[inline]
    fn notify_one(&self) {
        self.0.notify_one();
    }

    #[inline]
    fn notify_all(&self) {
        self.0.notify_all();
    }
}
