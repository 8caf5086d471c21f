//! Locks: `lock_api` types over the environment's raw locks.

/// A mutex of an environment.
pub type Mutex<E, T> = lock_api::Mutex<<E as super::Env>::RawMutex, T>;
/// Guard of a [`Mutex`].
pub type MutexGuard<'a, E, T> = lock_api::MutexGuard<'a, <E as super::Env>::RawMutex, T>;
/// A reader-writer lock of an environment.
pub type RwLock<E, T> = lock_api::RwLock<<E as super::Env>::RawRwLock, T>;
/// Shared guard of a [`RwLock`].
pub type RwLockReadGuard<'a, E, T> = lock_api::RwLockReadGuard<'a, <E as super::Env>::RawRwLock, T>;
/// Exclusive guard of a [`RwLock`].
pub type RwLockWriteGuard<'a, E, T> = lock_api::RwLockWriteGuard<'a, <E as super::Env>::RawRwLock, T>;

/// A condition variable that goes with the mutexes of one environment. A wait may end without a notification.
pub trait Condvar<R: lock_api::RawMutex>: Send + Sync + 'static {
    /// Releases the mutex, waits to be notified, and takes the mutex again.
    fn wait<T: ?Sized>(&self, guard: &mut lock_api::MutexGuard<'_, R, T>);
    /// As [`Condvar::wait`], for at most `timeout_ns`. True if the time ran out.
    fn wait_for<T: ?Sized>(&self, guard: &mut lock_api::MutexGuard<'_, R, T>, timeout_ns: u64) -> bool;
    /// Wakes one waiter.
    fn notify_one(&self);
    /// Wakes all waiters.
    fn notify_all(&self);
}
