//! Atomics.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use stormlog::env::{Atomic, AtomicInteger, Env};

use super::tools::on_threads;

super::list_cases!("atomic": hold_what_was_put_in, count_with_wrapping, lose_no_addition);

fn hold_what_was_put_in<E: Env>(_: &E, _: &Path) {
    fn check<T: Copy + Eq + std::fmt::Debug, A: Atomic<T>>(first: T, second: T) {
        let cell = A::new(first);
        assert_eq!(cell.load(SeqCst), first);
        cell.store(second, SeqCst);
        assert_eq!(cell.swap(first, SeqCst), second);
        assert_eq!(cell.compare_exchange(second, second, SeqCst, SeqCst), Err(first));
        assert_eq!(cell.compare_exchange(first, second, SeqCst, SeqCst), Ok(first));
        assert_eq!(cell.load(SeqCst), second);
    }
    check::<_, E::AtomicBool>(true, false);
    check::<_, E::AtomicU32>(u32::MAX, 1);
    check::<_, E::AtomicU64>(u64::MAX, 1);
    check::<_, E::AtomicI64>(i64::MIN, i64::MAX);
    check::<_, E::AtomicUsize>(usize::MAX, 1);
}

fn count_with_wrapping<E: Env>(_: &E, _: &Path) {
    fn check<T: Copy + Eq + std::fmt::Debug, A: AtomicInteger<T>>(low: T, high: T, one: T) {
        let cell = A::new(high);
        assert_eq!(cell.fetch_add(one, SeqCst), high);
        assert_eq!(cell.fetch_sub(one, SeqCst), low);
        assert_eq!(cell.fetch_max(low, SeqCst), high);
        assert_eq!(cell.swap(low, SeqCst), high);
        assert_eq!(cell.fetch_max(one, SeqCst), low);
        assert_eq!(cell.load(SeqCst), one);
    }
    check::<_, E::AtomicU32>(0, u32::MAX, 1);
    check::<_, E::AtomicU64>(0, u64::MAX, 1);
    check::<_, E::AtomicI64>(i64::MIN, i64::MAX, 1);
    check::<_, E::AtomicUsize>(0, usize::MAX, 1);
}

fn lose_no_addition<E: Env>(env: &E, _: &Path) {
    let cells = Arc::new((E::AtomicU64::new(0), E::AtomicU64::new(0)));
    let inner = cells.clone();
    on_threads(env, 8, move |_| {
        for _ in 0..200 {
            inner.0.fetch_add(1, SeqCst);
            let mut seen = inner.1.load(SeqCst);
            while let Err(held) = inner.1.compare_exchange(seen, seen + 1, SeqCst, SeqCst) {
                seen = held;
            }
        }
    });
    assert_eq!((cells.0.load(SeqCst), cells.1.load(SeqCst)), (1600, 1600));
}
