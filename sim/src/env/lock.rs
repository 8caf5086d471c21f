//! Simulated locks: `lock_api` raw locks over the machine's, and its condition variables.

use lock_api::{GuardNoSend, MutexGuard, RawMutex, RawRwLock};
use stormlog::env::Condvar;

use crate::machine::{CoreRef, Mode, ProcessId};

struct Lock {
    core: CoreRef,
    process: ProcessId,
    id: usize,
}

impl Lock {
    fn new(core: CoreRef, process: ProcessId, name: &'static str) -> Self {
        let id = core.get_mut().add_lock(name);
        Self { core, process, id }
    }

    fn lock(&self, mode: Mode) -> GuardNoSend {
        self.core.lock(self.process, self.id, mode);
        GuardNoSend::new()
    }

    fn try_lock(&self, mode: Mode) -> Option<GuardNoSend> {
        self.core.try_lock(self.process, self.id, mode).then_some(GuardNoSend::new())
    }

    fn unlock(&self, mode: Mode) {
        self.core.unlock(self.process, self.id, mode);
    }

    fn is_locked(&self, mode: Mode) -> bool {
        self.core.get().is_locked(self.id, mode)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.core.get_mut().remove_lock(self.id);
    }
}

const UNNAMED: &str = "a simulated lock is made by its environment";

/// A raw mutex of the simulated world. Made by [`SimEnv`](super::SimEnv), not from `INIT`.
pub struct SimRawMutex(Option<Lock>);

impl SimRawMutex {
    pub(super) fn new(core: CoreRef, process: ProcessId, name: &'static str) -> Self {
        Self(Some(Lock::new(core, process, name)))
    }

    fn inner(&self) -> &Lock {
        self.0.as_ref().expect(UNNAMED)
    }
}

// SAFETY: the machine gives an exclusive lock to one thread at a time; a thread of a dead process, to which it grants
// everything, only unwinds.
unsafe impl RawMutex for SimRawMutex {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait's own way of naming an initial value")]
    const INIT: Self = Self(None);
    type Guard = GuardNoSend;

    fn lock(&self) -> GuardNoSend {
        self.inner().lock(Mode::Exclusive)
    }

    fn try_lock(&self) -> Option<GuardNoSend> {
        self.inner().try_lock(Mode::Exclusive)
    }

    unsafe fn unlock(&self, _guard: GuardNoSend) {
        self.inner().unlock(Mode::Exclusive);
    }

    fn is_locked(&self) -> bool {
        self.inner().is_locked(Mode::Shared)
    }
}

/// A raw reader-writer lock of the simulated world.
pub struct SimRawRwLock(Option<Lock>);

impl SimRawRwLock {
    pub(super) fn new(core: CoreRef, process: ProcessId, name: &'static str) -> Self {
        Self(Some(Lock::new(core, process, name)))
    }

    fn inner(&self) -> &Lock {
        self.0.as_ref().expect(UNNAMED)
    }
}

// SAFETY: as for the mutex; shared holders exclude an exclusive one and the other way round.
unsafe impl RawRwLock for SimRawRwLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait's own way of naming an initial value")]
    const INIT: Self = Self(None);
    type SharedGuard = GuardNoSend;
    type ExclusiveGuard = GuardNoSend;

    fn lock_shared(&self) -> GuardNoSend {
        self.inner().lock(Mode::Shared)
    }

    fn try_lock_shared(&self) -> Option<GuardNoSend> {
        self.inner().try_lock(Mode::Shared)
    }

    unsafe fn unlock_shared(&self, _guard: GuardNoSend) {
        self.inner().unlock(Mode::Shared);
    }

    fn lock_exclusive(&self) -> GuardNoSend {
        self.inner().lock(Mode::Exclusive)
    }

    fn try_lock_exclusive(&self) -> Option<GuardNoSend> {
        self.inner().try_lock(Mode::Exclusive)
    }

    unsafe fn unlock_exclusive(&self, _guard: GuardNoSend) {
        self.inner().unlock(Mode::Exclusive);
    }

    fn is_locked(&self) -> bool {
        self.inner().is_locked(Mode::Shared)
    }

    fn is_locked_exclusive(&self) -> bool {
        self.inner().is_locked(Mode::Exclusive)
    }
}

/// A condition variable of the simulated world.
pub struct SimCondvar {
    core: CoreRef,
    process: ProcessId,
    queue: usize,
}

impl SimCondvar {
    pub(super) fn new(core: CoreRef, process: ProcessId, name: &'static str) -> Self {
        let queue = core.get_mut().add_queue(name);
        Self { core, process, queue }
    }

    fn wait_until<T: ?Sized>(&self, guard: &mut MutexGuard<'_, SimRawMutex, T>, timeout_ns: Option<u64>) -> bool {
        let Some(me) = self.core.point(self.process) else { return false };
        // SAFETY: the raw lock is only asked for its number; the guard goes on to own it.
        let lock = unsafe { MutexGuard::mutex(guard).raw() }.inner().id;
        self.core.enqueue(me, self.queue);
        MutexGuard::unlocked(guard, || self.core.wait_on_condvar(me, self.queue, lock, timeout_ns))
    }
}

impl Drop for SimCondvar {
    fn drop(&mut self) {
        self.core.get_mut().remove_queue(self.queue);
    }
}

impl Condvar<SimRawMutex> for SimCondvar {
    fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, SimRawMutex, T>) {
        self.wait_until(guard, None);
    }

    fn wait_for<T: ?Sized>(&self, guard: &mut MutexGuard<'_, SimRawMutex, T>, timeout_ns: u64) -> bool {
        self.wait_until(guard, Some(timeout_ns))
    }

    fn notify_one(&self) {
        self.core.notify(self.process, self.queue, 1);
    }

    fn notify_all(&self) {
        self.core.notify(self.process, self.queue, usize::MAX);
    }
}
