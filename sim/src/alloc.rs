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

/// Signed: what was allocated before may be freed while measured.
static LIVE: AtomicI64 = AtomicI64::new(0);
static LIVE_MAX: AtomicI64 = AtomicI64::new(0);
static TOTAL: AtomicU64 = AtomicU64::new(0);
static LARGEST: AtomicU64 = AtomicU64::new(0);
static CAP: AtomicI64 = AtomicI64::new(i64::MAX);

/// Runs `body` and says what it allocated. More than `live_cap_bytes` live at once ends the process. All zeros where
/// [`CountingAllocator`] is not the global allocator.
pub fn measure<R>(live_cap_bytes: u64, body: impl FnOnce() -> R) -> (R, Allocation) {
    LIVE.store(0, Relaxed);
    LIVE_MAX.store(0, Relaxed);
    TOTAL.store(0, Relaxed);
    LARGEST.store(0, Relaxed);
    CAP.store(i64::try_from(live_cap_bytes).unwrap_or(i64::MAX), Relaxed);
    let result = body();
    CAP.store(i64::MAX, Relaxed);
    let live_bytes = u64::try_from(LIVE_MAX.load(Relaxed)).unwrap_or(0);
    (result, Allocation { largest_bytes: LARGEST.load(Relaxed), live_bytes, total_bytes: TOTAL.load(Relaxed) })
}

/// Counts a request of `size` bytes in place of `old_size`; false if it is to be refused.
#[inline]
fn admit(size: usize, old_size: usize) -> bool {
    // Loads and stores, not read-modify-write: see the module on threads.
    LARGEST.store(LARGEST.load(Relaxed).max(size as u64), Relaxed);
    let live = LIVE.load(Relaxed).saturating_sub_unsigned(old_size as u64).saturating_add_unsigned(size as u64);
    if live > CAP.load(Relaxed) {
        return refuse(size, CAP.load(Relaxed));
    }
    LIVE.store(live, Relaxed);
    LIVE_MAX.store(LIVE_MAX.load(Relaxed).max(live), Relaxed);
    TOTAL.store(TOTAL.load(Relaxed).wrapping_add(size as u64), Relaxed);
    true
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
        if !admit(layout.size(), 0) {
            return std::ptr::null_mut();
        }
        // SAFETY: as our caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !admit(layout.size(), 0) {
            return std::ptr::null_mut();
        }
        // SAFETY: as our caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.store(LIVE.load(Relaxed).saturating_sub_unsigned(layout.size() as u64), Relaxed);
        // SAFETY: as our caller's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !admit(new_size, layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as our caller's.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // One test: the counters are the process's.
    #[test]
    fn counts_and_refuses() {
        let allocator = CountingAllocator;
        let layout = |size| Layout::from_size_align(size, 8).expect("a small layout");
        let ((), allocation) = measure(u64::MAX, || {
            // SAFETY: each block is freed once, with the layout it was last given.
            unsafe {
                let a = allocator.alloc(layout(100));
                let b = allocator.alloc_zeroed(layout(50));
                let b = allocator.realloc(b, layout(50), 80);
                allocator.dealloc(a, layout(100));
                let c = allocator.alloc(layout(10));
                allocator.dealloc(b, layout(80));
                allocator.dealloc(c, layout(10));
            }
        });
        assert_eq!(allocation, Allocation { largest_bytes: 100, live_bytes: 180, total_bytes: 240 });
        // SAFETY: nothing is allocated, as is asserted, so that nothing is to be freed.
        let (block, allocation) = measure(999, || unsafe { allocator.alloc(layout(1000)) });
        assert_eq!((block.is_null(), allocation.largest_bytes, allocation.live_bytes), (true, 1000, 0));
    }
}
