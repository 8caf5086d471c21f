//! A word to wait on: a private futex.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::thread::futex;

use crate::env::{Wait, Word};

/// A word to wait on.
#[derive(Debug)]
#[repr(transparent)]
pub struct RealWord(AtomicU32);

impl RealWord {
    #[inline]
    pub(super) fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    #[inline]
    fn wake(&self, count: u32) {
        futex::wake(&self.0, futex::Flags::PRIVATE, count).expect("a futex in our own memory can be woken");
    }
}

impl Word for RealWord {
    #[inline]
    fn load(&self, order: Ordering) -> u32 {
        self.0.load(order)
    }

    #[inline]
    fn store(&self, value: u32, order: Ordering) {
        self.0.store(value, order);
    }

    #[inline]
    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.0.swap(value, order)
    }

    #[inline]
    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_add(value, order)
    }

    #[inline]
    fn compare_exchange(&self, current: u32, new: u32, success: Ordering, failure: Ordering) -> Result<u32, u32> {
        self.0.compare_exchange(current, new, success, failure)
    }

    fn wait(&self, expected: u32, timeout_ns: Option<u64>) -> Wait {
        let timeout = timeout_ns
            .map(|ns| futex::Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 });
        match futex::wait(&self.0, futex::Flags::PRIVATE, expected, timeout.as_ref()) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Wait::Look,
            Err(Errno::TIMEDOUT) => Wait::TimedOut,
            Err(error) => panic!("a futex in our own memory can be waited on: {error}"),
        }
    }

    #[inline]
    fn wake_one(&self) {
        self.wake(1);
    }

    #[inline]
    fn wake_all(&self) {
        self.wake(i32::MAX as u32);
    }
}
