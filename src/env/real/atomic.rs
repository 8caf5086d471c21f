//! Atomics: those of std as they are.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::env::{Atomic, AtomicInteger};

macro_rules! atomic {
    ($($cell:ident: $value:ty,)*) => {$(
        impl Atomic<$value> for $cell {
            #[inline]
            fn new(value: $value) -> Self {
                $cell::new(value)
            }
            #[inline]
            fn load(&self, order: Ordering) -> $value {
                $cell::load(self, order)
            }
            #[inline]
            fn store(&self, value: $value, order: Ordering) {
                $cell::store(self, value, order);
            }
            #[inline]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                $cell::swap(self, value, order)
            }
            #[inline]
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                $cell::compare_exchange(self, current, new, success, failure)
            }
        }
    )*};
}

macro_rules! atomic_integer {
    ($($cell:ident: $value:ty,)*) => {$(
        impl AtomicInteger<$value> for $cell {
            #[inline]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                $cell::fetch_add(self, value, order)
            }
            #[inline]
            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                $cell::fetch_sub(self, value, order)
            }
            #[inline]
            fn fetch_max(&self, value: $value, order: Ordering) -> $value {
                $cell::fetch_max(self, value, order)
            }
        }
    )*};
}

atomic! { AtomicBool: bool, AtomicU32: u32, AtomicU64: u64, AtomicI64: i64, AtomicUsize: usize, }
atomic_integer! { AtomicU32: u32, AtomicU64: u64, AtomicI64: i64, AtomicUsize: usize, }
