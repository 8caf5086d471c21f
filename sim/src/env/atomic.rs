//! Simulated atomics: plain cells with a point of preemption before each access.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use stormlog::env::{Atomic, AtomicInteger};

use crate::machine::current;

/// An atomic cell of the simulated world.
pub struct SimAtomic<T>(Cell<T>);

// SAFETY: simulated threads are coroutines of one host thread, which the cell never leaves; an access is not divided.
unsafe impl<T: Send> Sync for SimAtomic<T> {}

impl<T: Copy> SimAtomic<T> {
    fn access<R>(&self, body: impl FnOnce(&Cell<T>) -> R) -> R {
        current(|core| {
            if let Some(core) = core {
                core.point_of_current();
            }
        });
        body(&self.0)
    }
}

impl<T: Copy + PartialEq + Send + 'static> Atomic<T> for SimAtomic<T> {
    fn new(value: T) -> Self {
        Self(Cell::new(value))
    }

    fn load(&self, _order: Ordering) -> T {
        self.access(Cell::get)
    }

    fn store(&self, value: T, _order: Ordering) {
        self.access(|cell| cell.set(value));
    }

    fn swap(&self, value: T, _order: Ordering) -> T {
        self.access(|cell| cell.replace(value))
    }

    fn compare_exchange(&self, current: T, new: T, _success: Ordering, _failure: Ordering) -> Result<T, T> {
        self.access(|cell| {
            let held = cell.get();
            if held == current {
                cell.set(new);
                Ok(held)
            } else {
                Err(held)
            }
        })
    }
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl AtomicInteger<$integer> for SimAtomic<$integer> {
            fn fetch_add(&self, value: $integer, _order: Ordering) -> $integer {
                self.access(|cell| cell.replace(cell.get().wrapping_add(value)))
            }

            fn fetch_sub(&self, value: $integer, _order: Ordering) -> $integer {
                self.access(|cell| cell.replace(cell.get().wrapping_sub(value)))
            }

            fn fetch_max(&self, value: $integer, _order: Ordering) -> $integer {
                self.access(|cell| cell.replace(cell.get().max(value)))
            }
        }
    )*};
}

integers!(u32, u64, i64, usize);
