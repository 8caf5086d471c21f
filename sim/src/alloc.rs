//! The command line's global allocator: counts what one simulation asks for.
//!
//! Model: the system allocator, with counters of the calling host thread. A simulation never leaves its host thread, so
//! what [`measure`] returns is that simulation's alone. Beyond a hard cap a request is refused, which ends the process
//! as an allocation failure does, after a line that starts with [`REFUSED`] on standard error.
//!
//! Not modelled: what an allocation costs beyond its size (headers, rounding), and memory that is mapped, not allocated
//! (stacks of simulated threads).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write as _;

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

struct Counters {
    /// Signed: what was allocated before may be freed while measured.
    live: Cell<i64>,
    live_max: Cell<i64>,
    total: Cell<u64>,
    largest: Cell<u64>,
    cap: Cell<i64>,
}

#[allow(clippy::disallowed_macros, reason = "counters of the host thread that runs the simulation are what is meant")]
mod counters {
    use super::{Cell, Counters};

    thread_local! {
        pub(super) static COUNTERS: Counters = const {
            Counters {
                live: Cell::new(0),
                live_max: Cell::new(0),
                total: Cell::new(0),
                largest: Cell::new(0),
                cap: Cell::new(i64::MAX),
            }
        };
    }
}

use counters::COUNTERS;

/// Runs `body` and says what it allocated. More than `live_cap_bytes` live at once ends the process. All zeros where
/// [`CountingAllocator`] is not the global allocator.
pub fn measure<R>(live_cap_bytes: u64, body: impl FnOnce() -> R) -> (R, Allocation) {
    COUNTERS.with(|c| {
        c.live.set(0);
        c.live_max.set(0);
        c.total.set(0);
        c.largest.set(0);
        c.cap.set(i64::try_from(live_cap_bytes).unwrap_or(i64::MAX));
    });
    let result = body();
    COUNTERS.with(|c| {
        c.cap.set(i64::MAX);
        let live_bytes = u64::try_from(c.live_max.get()).unwrap_or(0);
        (result, Allocation { largest_bytes: c.largest.get(), live_bytes, total_bytes: c.total.get() })
    })
}

/// Counts a request of `size` bytes in place of `old_size`; false if it is to be refused.
#[inline]
fn admit(size: usize, old_size: usize) -> bool {
    COUNTERS.with(|c| {
        c.largest.set(c.largest.get().max(size as u64));
        let live = c.live.get().saturating_sub_unsigned(old_size as u64).saturating_add_unsigned(size as u64);
        if live > c.cap.get() {
            return refuse(size, c.cap.get());
        }
        c.live.set(live);
        c.live_max.set(c.live_max.get().max(live));
        c.total.set(c.total.get() + size as u64);
        true
    })
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
// counters are plain cells of the calling thread, const-initialised and without a destructor: they never allocate.
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
        COUNTERS.with(|c| c.live.set(c.live.get().saturating_sub_unsigned(layout.size() as u64)));
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

    #[test]
    fn counts_largest_live_and_total() {
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
    }

    #[test]
    fn refuses_beyond_the_cap() {
        let layout = Layout::from_size_align(1000, 8).expect("a small layout");
        // SAFETY: nothing was allocated, as is asserted, so that nothing is to be freed.
        let (block, allocation) = measure(999, || unsafe { CountingAllocator.alloc(layout) });
        assert_eq!((block.is_null(), allocation), (true, Allocation { largest_bytes: 1000, ..Allocation::default() }));
    }
}
