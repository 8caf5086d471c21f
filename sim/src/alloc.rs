//! The command line's global allocator: counts what one simulation asks for.
//!
//! Model: the system allocator, with counters of the process. A worker process has one thread, which runs one
//! simulation at a time, so that what [`measure`] returns is that simulation's alone. Beyond a hard cap a request is
//! refused, which ends the process as an allocation failure does, after a line that starts with [`REFUSED`] on standard
//! error.
//!
//! Not modelled: what an allocation costs beyond its size (headers, rounding), and memory that is mapped, not allocated
//! (stacks of simulated threads). Where several threads allocate at once, counts get lost: nothing is measured there.

#![allow(clippy::disallowed_types, reason = "the host's allocator, below any simulation")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

/// Starts the line on standard error that says that a request was refused.
pub const REFUSED: &str = "stormlog: allocation refused:";

/// Counts, and hands on to [`System`].
#[derive(Debug, Clone, Copy, Default)]
pub struct CountingAllocator;

/// What was allocated while measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// Largest single request, in bytes.
    pub largest_bytes: u64,
    /// Most bytes live at once, of those asked for while measured.
    pub live_bytes: u64,
    /// Bytes asked for in all.
    pub total_bytes: u64,
}

/// Counters of one process.
struct Counters {
    /// Signed: what was allocated before may be freed while measured.
    live: AtomicI64,
    live_max: AtomicI64,
    total: AtomicU64,
    largest: AtomicU64,
    cap: AtomicI64,
}

static COUNTERS: Counters = Counters::new();

/// Runs `body` and says what it allocated. More than `live_cap_bytes` live at once ends the process. All zeros where
/// [`CountingAllocator`] is not the global allocator.
pub fn measure<R>(live_cap_bytes: u64, body: impl FnOnce() -> R) -> (R, Allocation) {
    COUNTERS.measure(live_cap_bytes, body)
}

impl Counters {
    const fn new() -> Self {
        Self {
            live: AtomicI64::new(0),
            live_max: AtomicI64::new(0),
            total: AtomicU64::new(0),
            largest: AtomicU64::new(0),
            cap: AtomicI64::new(i64::MAX),
        }
    }

    fn measure<R>(&self, live_cap_bytes: u64, body: impl FnOnce() -> R) -> (R, Allocation) {
        self.live.store(0, Relaxed);
        self.live_max.store(0, Relaxed);
        self.total.store(0, Relaxed);
        self.largest.store(0, Relaxed);
        self.cap.store(i64::try_from(live_cap_bytes).unwrap_or(i64::MAX), Relaxed);
        let result = body();
        self.cap.store(i64::MAX, Relaxed);
        let allocation = Allocation {
            largest_bytes: self.largest.load(Relaxed),
            live_bytes: u64::try_from(self.live_max.load(Relaxed)).unwrap_or(0),
            total_bytes: self.total.load(Relaxed),
        };
        (result, allocation)
    }

    /// Counts a request of `size` bytes in place of `old_size`; false if it is to be refused.
    #[inline]
    fn admit(&self, size: usize, old_size: usize) -> bool {
        // Loads and stores, not read-modify-write: see the module on threads.
        self.largest.store(self.largest.load(Relaxed).max(size as u64), Relaxed);
        let freed = self.live.load(Relaxed).saturating_sub_unsigned(old_size as u64);
        let live = freed.saturating_add_unsigned(size as u64);
        if live > self.cap.load(Relaxed) {
            return refuse(size, self.cap.load(Relaxed));
        }
        self.live.store(live, Relaxed);
        self.live_max.store(self.live_max.load(Relaxed).max(live), Relaxed);
        self.total.store(self.total.load(Relaxed).wrapping_add(size as u64), Relaxed);
        true
    }

    #[inline]
    fn release(&self, size: usize) {
        self.live.store(self.live.load(Relaxed).saturating_sub_unsigned(size as u64), Relaxed);
    }
}

#[cold]
fn refuse(size: usize, cap: i64) -> bool {
    let mut line = [0u8; 160];
    let mut rest = &mut line[..];
    // Formatted on the stack and written unbuffered: nothing is allocated here. Nobody to tell if it cannot be said.
    let _ = writeln!(rest, "{REFUSED} a request of {size} bytes would leave more than {cap} bytes live");
    let left = rest.len();
    let used = line.len() - left;
    let _ = std::io::stderr().write_all(&line[..used]);
    false
}

// SAFETY: every call is handed to `System` unchanged, or refused with a null pointer as the contract allows. The
// counters are statics: they never allocate.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !COUNTERS.admit(layout.size(), 0) {
            return std::ptr::null_mut();
        }
        // SAFETY: as our caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !COUNTERS.admit(layout.size(), 0) {
            return std::ptr::null_mut();
        }
        // SAFETY: as our caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        COUNTERS.release(layout.size());
        // SAFETY: as our caller's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !COUNTERS.admit(new_size, layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as our caller's.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_largest_live_and_total() {
        let counters = Counters::new();
        counters.release(30);
        let ((), allocation) = counters.measure(u64::MAX, || {
            assert!(counters.admit(100, 0) && counters.admit(50, 0) && counters.admit(80, 50));
            counters.release(100);
            assert!(counters.admit(10, 0));
        });
        assert_eq!(allocation, Allocation { largest_bytes: 100, live_bytes: 180, total_bytes: 240 });
    }

    #[test]
    fn refuses_beyond_the_cap() {
        let counters = Counters::new();
        let (admitted, allocation) = counters.measure(999, || [999, 1].map(|size| counters.admit(size, 0)));
        assert_eq!((admitted, allocation.live_bytes), ([true, false], 999));
        let (admitted, allocation) = counters.measure(999, || counters.admit(1000, 0));
        assert_eq!((admitted, allocation.largest_bytes, allocation.live_bytes), (false, 1000, 0));
        assert!(counters.admit(1 << 40, 0), "the cap is on only while measured");
    }
}
