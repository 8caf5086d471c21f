//! Words to wait on.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use stormlog::env::{Env, JoinHandle as _, Wait, Word as _};

use super::tools::on_threads;

super::list_cases!("word":
    is_an_atomic,
    another_value_is_not_waited_for,
    waiting_ends_by_time,
    waking_one_wakes_a_waiter,
    waking_all_wakes_all,
);

fn is_an_atomic<E: Env>(env: &E, _: &Path) {
    let word = env.word("conformance.word", 5);
    assert_eq!(word.load(SeqCst), 5);
    word.store(u32::MAX, SeqCst);
    assert_eq!(word.fetch_add(2, SeqCst), u32::MAX);
    assert_eq!(word.swap(9, SeqCst), 1);
    assert_eq!(word.compare_exchange(8, 1, SeqCst, SeqCst), Err(9));
    assert_eq!(word.compare_exchange(9, 1, SeqCst, SeqCst), Ok(9));
    assert_eq!(word.load(SeqCst), 1);
    // Nobody waits: nothing happens.
    word.wake_one();
    word.wake_all();
}

fn another_value_is_not_waited_for<E: Env>(env: &E, _: &Path) {
    let word = env.word("conformance.word", 1);
    assert_eq!(word.wait(0, None), Wait::Look);
    assert_eq!(word.wait(2, Some(u64::MAX)), Wait::Look);
}

fn waiting_ends_by_time<E: Env>(env: &E, _: &Path) {
    let word = env.word("conformance.word", 0);
    let before_ns = env.now_ns();
    while word.wait(0, Some(1_000_000)) != Wait::TimedOut {}
    assert!(env.now_ns() - before_ns >= 1_000_000);
    while word.wait(0, Some(0)) != Wait::TimedOut {}
}

fn waking_one_wakes_a_waiter<E: Env>(env: &E, _: &Path) {
    let words = Arc::new([env.word("conformance.word", 0), env.word("conformance.word", 0)]);
    let inner = words.clone();
    let echo = env
        .spawn("echo", move || {
            for turn in 1..=50 {
                while inner[0].load(SeqCst) < turn {
                    inner[0].wait(turn - 1, None);
                }
                inner[1].store(turn, SeqCst);
                inner[1].wake_one();
            }
        })
        .expect("a thread");
    for turn in 1..=50 {
        words[0].store(turn, SeqCst);
        words[0].wake_one();
        while words[1].load(SeqCst) < turn {
            words[1].wait(turn - 1, None);
        }
    }
    echo.join().expect("no panic");
}

fn waking_all_wakes_all<E: Env>(env: &E, _: &Path) {
    const WAITERS: u32 = 7;
    let go = Arc::new(env.word("conformance.word", 0));
    let ready = Arc::new(env.word("conformance.word", 0));
    let world = env.clone();
    on_threads(env, WAITERS as usize + 1, move |n| {
        if n == 0 {
            while ready.load(SeqCst) < WAITERS {
                world.yield_now();
            }
            go.store(1, SeqCst);
            go.wake_all();
        } else {
            ready.fetch_add(1, SeqCst);
            while go.load(SeqCst) == 0 {
                go.wait(0, None);
            }
        }
    });
}
