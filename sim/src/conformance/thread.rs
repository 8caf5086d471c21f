//! Threads and tasks.

use std::panic::panic_any;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use stormlog::env::{Atomic as _, AtomicInteger as _, Env, JoinHandle as _};

use super::tools::Gate;

super::list_cases!("thread":
    join_waits_for_the_end,
    ends_are_seen_without_joining,
    runs_on_when_its_handle_is_dropped,
    a_panic_comes_out_of_join,
    yielding_lets_others_go,
    a_task_gives_its_value_or_its_panic,
);

fn join_waits_for_the_end<E: Env>(env: &E, _: &Path) {
    let done = Arc::new(E::AtomicU32::new(0));
    let (inner, sleeper) = (done.clone(), env.clone());
    let thread = env
        .spawn("sleeper", move || {
            sleeper.sleep_ns(1_000_000);
            inner.store(1, SeqCst);
        })
        .expect("a thread");
    thread.join().expect("no panic");
    assert_eq!(done.load(SeqCst), 1);
}

fn ends_are_seen_without_joining<E: Env>(env: &E, _: &Path) {
    let gate = Gate::new(env);
    let inner = gate.clone();
    let thread = env.spawn("waiter", move || inner.pass()).expect("a thread");
    assert!(!thread.is_finished(), "ended before it could");
    gate.open();
    while !thread.is_finished() {
        env.sleep_ns(100_000);
    }
    thread.join().expect("no panic");
}

fn runs_on_when_its_handle_is_dropped<E: Env>(env: &E, _: &Path) {
    let (go, gone) = (Gate::new(env), Gate::new(env));
    let inner = (go.clone(), gone.clone());
    drop(env.spawn("detached", move || {
        inner.0.pass();
        inner.1.open();
    }));
    go.open();
    gone.pass();
}

fn a_panic_comes_out_of_join<E: Env>(env: &E, _: &Path) {
    let thread = env.spawn("panics", || panic!("on purpose, {}", 7)).expect("a thread");
    assert_eq!(thread.join().expect_err("a panic").message, "on purpose, 7");
}

fn yielding_lets_others_go<E: Env>(env: &E, _: &Path) {
    let runs = Gate::new(env);
    let turns = Arc::new(E::AtomicU32::new(0));
    let (inner, world) = ((runs.clone(), turns.clone()), env.clone());
    let thread = env
        .spawn("other", move || {
            inner.0.open();
            while inner.1.fetch_add(1, SeqCst) < 100 {
                world.yield_now();
            }
        })
        .expect("a thread");
    runs.pass();
    while turns.load(SeqCst) < 100 {
        env.yield_now();
    }
    thread.join().expect("no panic");
}

fn a_task_gives_its_value_or_its_panic<E: Env>(env: &E, _: &Path) {
    assert_eq!(env.run_task(|| 7), Ok(7));
    let text = env.run_task(|| panic!("on purpose")).expect_err("a panic");
    assert_eq!(text.message, "on purpose");
    let not_text = env.spawn("panics on purpose", || panic_any(7u32)).expect("a thread").join();
    assert!(!not_text.expect_err("a panic").message.is_empty());
    let nested = env.run_task(|| {
        let inner = env.run_task(|| panic!("inner, on purpose")).expect_err("a panic");
        panic!("outer of {}", inner.message)
    });
    assert_eq!(nested.expect_err("a panic").message, "outer of inner, on purpose");

    let mutex = env.mutex("conformance.mutex", 0);
    env.run_task(|| {
        let _guard = mutex.lock();
        panic!("on purpose, while it holds a lock")
    })
    .expect_err("a panic");
    assert!(mutex.try_lock().is_some(), "a panic kept the lock");
}
