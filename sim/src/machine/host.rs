//! What one host thread knows of the simulation that it runs: which machine's thread is on the CPU, and the last panic.
//!
//! A simulation never leaves its host thread, so this is the one place where a host thread's own state is used.

use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::panic;

use super::CoreRef;

/// A panic as the hook saw it. The backtrace holds raw frames; they are resolved when it is shown.
#[derive(Debug)]
pub(super) struct CaughtPanic {
    pub(super) message: String,
    pub(super) place: String,
    pub(super) backtrace: Backtrace,
}

/// The state of the host thread that runs the simulation.
mod local {
    use super::*;
    thread_local! {
        /// The core whose thread runs now, if one does.
        pub(super) static CURRENT: Cell<Option<*const CoreRef>> = const { Cell::new(None) };
        pub(super) static PANIC: RefCell<Option<CaughtPanic>> = const { RefCell::new(None) };
    }
}

/// Runs `body` (the resumption of a simulated thread) with `core` as the current one. Nests.
pub(super) fn with_current<R>(core: &CoreRef, body: impl FnOnce() -> R) -> R {
    struct Restore(Option<*const CoreRef>);
    impl Drop for Restore {
        fn drop(&mut self) {
            local::CURRENT.set(self.0);
        }
    }
    let _restore = Restore(local::CURRENT.replace(Some(core)));
    body()
}

/// Runs `body` on the host's side of a simulation (an oracle, a nested simulation), with no current thread.
pub(super) fn without_current<R>(body: impl FnOnce() -> R) -> R {
    struct Restore(Option<*const CoreRef>);
    impl Drop for Restore {
        fn drop(&mut self) {
            local::CURRENT.set(self.0);
        }
    }
    let _restore = Restore(local::CURRENT.replace(None));
    body()
}

/// The core whose thread calls, or `None` outside of simulated threads.
#[inline]
pub(crate) fn current<R>(body: impl FnOnce(Option<&CoreRef>) -> R) -> R {
    // SAFETY: the pointer is set by `with_current` for exactly as long as the reference that it was made from lives, on
    // this same host thread.
    body(local::CURRENT.get().map(|core| unsafe { &*core }))
}

/// The panic that the hook saw last on this host thread.
pub(super) fn take_panic() -> Option<CaughtPanic> {
    local::PANIC.take()
}

/// Makes the panic hook keep, and not print, the panics of simulated threads.
pub(super) fn install_panic_hook() {
    #[allow(clippy::disallowed_types, reason = "the panic hook is the host process's")]
    static INSTALLED: std::sync::Once = std::sync::Once::new();
    INSTALLED.call_once(|| {
        let outside = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if local::CURRENT.get().is_none() {
                return outside(info);
            }
            let payload = info.payload();
            let message = stormlog::env::TaskPanic::from_payload(payload).message;
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            let caught = CaughtPanic { message, place, backtrace: Backtrace::force_capture() };
            local::PANIC.with_borrow_mut(|slot| *slot = Some(caught));
        }));
    });
}
