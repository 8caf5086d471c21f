//! Mutexes, reader-writer locks, condition variables.

use std::path::Path;
use std::sync::Arc;

use stormlog::env::{Condvar as _, Env, JoinHandle as _};

use super::tools::{Gate, on_threads};

super::list_cases!("lock":
    a_mutex_lets_one_in,
    a_held_mutex_cannot_be_tried,
    readers_share,
    a_writer_is_alone,
    held_rw_locks_cannot_be_tried,
    a_notification_wakes_a_waiter,
    a_notification_of_all_wakes_all,
    waiting_releases_the_mutex_and_takes_it_again,
    waiting_ends_by_time,
    waiting_for_long_ends_by_notification,
);

const THREADS: usize = 8;
const ROUNDS: u64 = 200;

fn a_mutex_lets_one_in<E: Env>(env: &E, _: &Path) {
    let count = Arc::new(env.mutex("conformance.mutex", 0));
    let (inner, world) = (count.clone(), env.clone());
    on_threads(env, THREADS, move |_| {
        for _ in 0..ROUNDS {
            let mut guard = inner.lock();
            let seen = *guard;
            world.yield_now();
            *guard = seen + 1;
        }
    });
    assert_eq!(*count.lock(), THREADS as u64 * ROUNDS);
}

fn a_held_mutex_cannot_be_tried<E: Env>(env: &E, _: &Path) {
    let mutex = Arc::new(env.mutex("conformance.mutex", ()));
    let held = mutex.lock();
    let inner = mutex.clone();
    on_threads(env, 1, move |_| assert!(inner.try_lock().is_none(), "two hold it"));
    drop(held);
    assert!(mutex.try_lock().is_some(), "nobody holds it");
}

fn readers_share<E: Env>(env: &E, _: &Path) {
    let lock = Arc::new(env.rw_lock("conformance.rw_lock", ()));
    let gates = [Gate::new(env), Gate::new(env)];
    // Each reader holds the lock until the other does.
    on_threads(env, 2, move |n| {
        let _guard = lock.read();
        gates[n].open();
        gates[1 - n].pass();
    });
}

fn a_writer_is_alone<E: Env>(env: &E, _: &Path) {
    let pair = Arc::new(env.rw_lock("conformance.rw_lock", (0, 0)));
    let (inner, world) = (pair.clone(), env.clone());
    on_threads(env, THREADS, move |n| {
        for _ in 0..ROUNDS {
            if n % 2 == 0 {
                let mut guard = inner.write();
                guard.0 += 1;
                world.yield_now();
                guard.1 += 1;
            } else {
                let guard = inner.read();
                let first = guard.0;
                world.yield_now();
                assert_eq!(*guard, (first, first), "a reader saw a writer's work half done");
            }
        }
    });
    let writes = THREADS as u64 / 2 * ROUNDS;
    assert_eq!(*pair.read(), (writes, writes));
}

fn held_rw_locks_cannot_be_tried<E: Env>(env: &E, _: &Path) {
    let lock = Arc::new(env.rw_lock("conformance.rw_lock", ()));
    let reading = lock.read();
    let inner = lock.clone();
    on_threads(env, 1, move |_| assert!(inner.try_write().is_none(), "a writer beside a reader"));
    drop(reading);
    let writing = lock.write();
    let inner = lock.clone();
    on_threads(env, 1, move |_| {
        assert!(inner.try_read().is_none(), "a reader beside a writer");
        assert!(inner.try_write().is_none(), "a writer beside a writer");
    });
    drop(writing);
    assert!(lock.try_write().is_some(), "nobody holds it");
}

fn a_notification_wakes_a_waiter<E: Env>(env: &E, _: &Path) {
    let shared = Arc::new((env.mutex("conformance.mutex", 0), env.condvar("conformance.condvar")));
    let inner = shared.clone();
    let waiter = env
        .spawn("waiter", move || {
            let mut turns = inner.0.lock();
            while *turns < 3 {
                inner.1.wait(&mut turns);
            }
        })
        .expect("a thread");
    for _ in 0..3 {
        *shared.0.lock() += 1;
        shared.1.notify_one();
    }
    waiter.join().expect("no panic");
}

fn a_notification_of_all_wakes_all<E: Env>(env: &E, _: &Path) {
    let shared = Arc::new((env.mutex("conformance.mutex", (0, false)), env.condvar("conformance.condvar")));
    let inner = shared.clone();
    let (last, world) = (THREADS - 1, env.clone());
    on_threads(env, THREADS, move |n| {
        let mut state = inner.0.lock();
        if n == last {
            while state.0 < last {
                drop(state);
                world.yield_now();
                state = inner.0.lock();
            }
            state.1 = true;
            inner.1.notify_all();
        } else {
            state.0 += 1;
            while !state.1 {
                inner.1.wait(&mut state);
            }
        }
    });
}

fn waiting_releases_the_mutex_and_takes_it_again<E: Env>(env: &E, _: &Path) {
    let shared = Arc::new((env.mutex("conformance.mutex", 0usize), env.condvar("conformance.condvar")));
    let inner = shared.clone();
    // Two threads move the number in turn: neither can unless the other's wait gave the mutex up.
    on_threads(env, 2, move |n| {
        let mut number = inner.0.lock();
        for _ in 0..50 {
            while *number % 2 != n {
                inner.1.wait(&mut number);
            }
            assert!(inner.0.try_lock().is_none(), "woke without the mutex");
            *number += 1;
            inner.1.notify_one();
        }
    });
    assert_eq!(*shared.0.lock(), 100);
}

fn waiting_ends_by_time<E: Env>(env: &E, _: &Path) {
    let mutex = env.mutex("conformance.mutex", ());
    let condvar = env.condvar("conformance.condvar");
    let mut guard = mutex.lock();
    let before_ns = env.now_ns();
    // A wait may end early without a reason, but not say then that the time ran out.
    while !condvar.wait_for(&mut guard, 1_000_000) {}
    assert!(env.now_ns() - before_ns >= 1_000_000);
    assert!(mutex.try_lock().is_none(), "woke without the mutex");
}

fn waiting_for_long_ends_by_notification<E: Env>(env: &E, _: &Path) {
    let shared = Arc::new((env.mutex("conformance.mutex", false), env.condvar("conformance.condvar")));
    let inner = shared.clone();
    let waiter = env
        .spawn("waiter", move || {
            let mut ready = inner.0.lock();
            while !*ready {
                assert!(!inner.1.wait_for(&mut ready, u64::MAX), "five centuries went by");
            }
        })
        .expect("a thread");
    *shared.0.lock() = true;
    shared.1.notify_one();
    waiter.join().expect("no panic");
}
