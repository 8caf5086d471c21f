//! Executors, which are the same code over any environment.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use stormlog::env::{Atomic as _, AtomicInteger as _, Env, Mutex};
use stormlog::exec::{Ordered, OrderedOptions, Pending, Pool, PoolOptions, Refused, TaskCounts, Timer};

use super::tools::Gate;

super::list_cases!("exec":
    a_pool_runs_all,
    a_pool_runs_as_many_at_once_as_it_has_workers,
    a_worker_takes_tasks_in_order,
    a_full_queue_refuses,
    a_closing_pool_discards_if_asked,
    a_closed_pool_refuses,
    a_panic_ends_its_task_alone,
    ordered_tasks_run_one_at_a_time_in_order,
    an_ordered_executor_shares_its_worker,
    an_ordered_executor_goes_on_after_a_panic,
    a_closing_pool_discards_ordered_tasks_if_asked,
    a_refused_turn_leaves_no_task,
    a_timer_runs_tasks_by_deadline,
    an_earlier_deadline_is_not_kept_waiting,
    a_cancelled_task_does_not_run,
    a_closed_timer_discards_and_refuses,
);

fn pool_of<E: Env>(env: &E, workers: usize) -> Pool<E> {
    Pool::start(env, "conformance", PoolOptions { workers, queue_limit: None }, |panic| panic!("{panic}"))
        .expect("threads")
}

fn turns_of(tasks: usize) -> OrderedOptions {
    OrderedOptions { tasks_per_turn: NonZeroUsize::new(tasks).expect("at least one") }
}

fn ran(ran: u64) -> TaskCounts {
    TaskCounts { ran, ..TaskCounts::default() }
}

/// What happened, in order.
struct Journal<E: Env, T>(Arc<Mutex<E, Vec<T>>>);

impl<E: Env, T> Clone for Journal<E, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<E: Env, T: Send + 'static> Journal<E, T> {
    fn new(env: &E) -> Self {
        Self(Arc::new(env.mutex("conformance.journal", Vec::new())))
    }

    fn push(&self, entry: T) {
        self.0.lock().push(entry);
    }

    /// A task that makes an entry.
    fn entry(&self, entry: T) -> impl FnOnce() + Send + 'static {
        let journal = self.clone();
        move || journal.push(entry)
    }

    fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.0.lock())
    }
}

/// Opens a gate when it is dropped.
struct OpensWhenDropped<E: Env>(Gate<E>);

impl<E: Env> Drop for OpensWhenDropped<E> {
    fn drop(&mut self) {
        self.0.open();
    }
}

fn a_pool_runs_all<E: Env>(env: &E, _: &Path) {
    let pool = pool_of(env, 3);
    let sum = Arc::new(E::AtomicU64::new(0));
    for n in 1..=100 {
        let sum = sum.clone();
        pool.submit(move || _ = sum.fetch_add(n, SeqCst)).expect("an open pool");
    }
    assert_eq!(pool.close(Pending::Run), Ok(ran(100)));
    assert_eq!(sum.load(SeqCst), 5050);
}

fn a_pool_runs_as_many_at_once_as_it_has_workers<E: Env>(env: &E, _: &Path) {
    const WORKERS: usize = 4;
    let pool = pool_of(env, WORKERS);
    let gates: Vec<Gate<E>> = (0..WORKERS).map(|_| Gate::new(env)).collect();
    for n in 0..WORKERS {
        let gates = gates.clone();
        pool.submit(move || {
            gates[n].open();
            gates.iter().for_each(Gate::pass);
        })
        .expect("an open pool");
    }
    assert_eq!(pool.close(Pending::Run), Ok(ran(WORKERS as u64)));
}

fn a_worker_takes_tasks_in_order<E: Env>(env: &E, _: &Path) {
    let pool = pool_of(env, 1);
    let journal = Journal::new(env);
    for n in 0..100 {
        pool.submit(journal.entry(n)).expect("an open pool");
    }
    assert_eq!(pool.close(Pending::Run), Ok(ran(100)));
    assert_eq!(journal.take(), (0..100).collect::<Vec<_>>());
}

fn a_full_queue_refuses<E: Env>(env: &E, _: &Path) {
    let options = PoolOptions { workers: 1, queue_limit: Some(2) };
    let pool = Pool::start(env, "conformance", options, |panic| panic!("{panic}")).expect("a thread");
    let (busy, go) = (Gate::new(env), Gate::new(env));
    let inner = (busy.clone(), go.clone());
    pool.submit(move || {
        inner.0.open();
        inner.1.pass();
    })
    .expect("an open pool");
    busy.pass();
    let journal = Journal::new(env);
    pool.submit(journal.entry(1)).expect("room");
    pool.submit(journal.entry(2)).expect("room");
    assert_eq!(pool.submit(journal.entry(3)), Err(Refused::Full { limit: 2 }));
    go.open();
    assert_eq!(pool.close(Pending::Run), Ok(ran(3)));
    assert_eq!(journal.take(), [1, 2]);
}

fn a_closing_pool_discards_if_asked<E: Env>(env: &E, _: &Path) {
    let pool = pool_of(env, 1);
    let (busy, go) = (Gate::new(env), Gate::new(env));
    let inner = (busy.clone(), go.clone());
    let journal = Journal::new(env);
    let first = journal.clone();
    pool.submit(move || {
        inner.0.open();
        inner.1.pass();
        first.push("begun");
    })
    .expect("an open pool");
    busy.pass();
    let opens = OpensWhenDropped(go);
    let waiting = journal.entry("waiting");
    pool.submit(move || {
        waiting();
        drop(opens);
    })
    .expect("an open pool");
    pool.submit(journal.entry("waiting")).expect("an open pool");
    assert_eq!(pool.close(Pending::Discard), Ok(TaskCounts { ran: 1, panicked: 0, discarded: 2 }));
    assert_eq!(journal.take(), ["begun"]);
}

fn a_closed_pool_refuses<E: Env>(env: &E, _: &Path) {
    let pool = pool_of(env, 2);
    let handle = pool.handle();
    let ordered = Ordered::new(&handle, turns_of(1));
    assert_eq!(pool.close(Pending::Run), Ok(ran(0)));
    assert_eq!(handle.submit(|| ()), Err(Refused::Closed));
    assert_eq!(ordered.submit(|| ()), Err(Refused::Closed));
}

fn a_panic_ends_its_task_alone<E: Env>(env: &E, _: &Path) {
    let journal = Journal::new(env);
    let heard = journal.clone();
    let options = PoolOptions { workers: 1, queue_limit: None };
    let pool = Pool::start(env, "conformance", options, move |panic| {
        heard.push(panic.message.clone());
        assert!(!panic.message.ends_with("second"), "the handler too, on purpose");
    })
    .expect("a thread");
    pool.submit(|| panic!("on purpose, first")).expect("an open pool");
    pool.submit(|| panic!("on purpose, second")).expect("an open pool");
    pool.submit(journal.entry("runs".to_owned())).expect("an open pool");
    assert_eq!(pool.close(Pending::Run), Ok(TaskCounts { ran: 3, panicked: 3, discarded: 0 }));
    assert_eq!(journal.take(), ["on purpose, first", "on purpose, second", "runs"]);
}

fn ordered_tasks_run_one_at_a_time_in_order<E: Env>(env: &E, _: &Path) {
    const TASKS: usize = 60;
    let pool = pool_of(env, 3);
    let executors: Vec<_> = (0..4)
        .map(|n| (Ordered::new(&pool.handle(), turns_of(n + 1)), Arc::new(E::AtomicU32::new(0)), Journal::new(env)))
        .collect();
    for n in 0..TASKS {
        for (ordered, running, journal) in &executors {
            let (running, journal, world) = (running.clone(), journal.clone(), env.clone());
            ordered
                .submit(move || {
                    assert_eq!(running.fetch_add(1, SeqCst), 0, "two tasks of one executor at once");
                    world.yield_now();
                    journal.push(n);
                    assert_eq!(running.fetch_sub(1, SeqCst), 1, "two tasks of one executor at once");
                })
                .expect("an open pool");
        }
    }
    assert_eq!(pool.close(Pending::Run), Ok(ran(4 * TASKS as u64)));
    for (_, _, journal) in executors {
        assert_eq!(journal.take(), (0..TASKS).collect::<Vec<_>>());
    }
}

fn an_ordered_executor_shares_its_worker<E: Env>(env: &E, _: &Path) {
    let pool = pool_of(env, 1);
    let go = Gate::new(env);
    let inner = go.clone();
    pool.submit(move || inner.pass()).expect("an open pool");
    let journal = Journal::new(env);
    let ordered = Ordered::new(&pool.handle(), turns_of(10));
    for _ in 0..25 {
        ordered.submit(journal.entry("ordered")).expect("an open pool");
    }
    pool.submit(journal.entry("other")).expect("an open pool");
    go.open();
    assert_eq!(pool.close(Pending::Run), Ok(ran(27)));
    assert_eq!(journal.take(), [&["ordered"; 10][..], &["other"], &["ordered"; 15]].concat());
}

fn an_ordered_executor_goes_on_after_a_panic<E: Env>(env: &E, _: &Path) {
    let options = PoolOptions { workers: 2, queue_limit: None };
    let pool = Pool::start(env, "conformance", options, |_| ()).expect("threads");
    let journal = Journal::new(env);
    let ordered = Ordered::new(&pool.handle(), OrderedOptions::default());
    for n in 0..10 {
        let journal = journal.clone();
        ordered
            .submit(move || {
                assert!(n != 5, "on purpose");
                journal.push(n);
            })
            .expect("an open pool");
    }
    assert_eq!(pool.close(Pending::Run), Ok(TaskCounts { ran: 10, panicked: 1, discarded: 0 }));
    assert_eq!(journal.take(), [0, 1, 2, 3, 4, 6, 7, 8, 9]);
}

fn a_closing_pool_discards_ordered_tasks_if_asked<E: Env>(env: &E, _: &Path) {
    let pool = pool_of(env, 1);
    let (busy, go) = (Gate::new(env), Gate::new(env));
    let journal = Journal::new(env);
    let [in_turn, in_queue] = [1, 1].map(|tasks| Ordered::new(&pool.handle(), turns_of(tasks)));
    let (inner, first) = ((busy.clone(), go.clone()), journal.clone());
    in_turn
        .submit(move || {
            inner.0.open();
            inner.1.pass();
            first.push("begun");
        })
        .expect("an open pool");
    busy.pass();
    in_turn.submit(journal.entry("waiting")).expect("an open pool");
    let opens = OpensWhenDropped(go);
    in_queue.submit(move || drop(opens)).expect("an open pool");
    in_queue.submit(journal.entry("waiting")).expect("an open pool");
    assert_eq!(pool.close(Pending::Discard), Ok(TaskCounts { ran: 1, panicked: 0, discarded: 3 }));
    assert_eq!(journal.take(), ["begun"]);
    assert_eq!(in_turn.submit(|| ()), Err(Refused::Closed));
}

fn a_refused_turn_leaves_no_task<E: Env>(env: &E, _: &Path) {
    let options = PoolOptions { workers: 1, queue_limit: Some(1) };
    let pool = Pool::start(env, "conformance", options, |panic| panic!("{panic}")).expect("a thread");
    let (busy, go) = (Gate::new(env), Gate::new(env));
    let inner = (busy.clone(), go.clone());
    pool.submit(move || {
        inner.0.open();
        inner.1.pass();
    })
    .expect("an open pool");
    busy.pass();
    let journal = Journal::new(env);
    let [first, second] = [1, 1].map(|tasks| Ordered::new(&pool.handle(), turns_of(tasks)));
    first.submit(journal.entry("first")).expect("room");
    first.submit(journal.entry("first")).expect("an executor counts once");
    assert_eq!(second.submit(journal.entry("refused")), Err(Refused::Full { limit: 1 }));
    go.open();
    while pool.counts() != ran(3) {
        env.sleep_ns(100_000);
    }
    second.submit(journal.entry("second")).expect("room");
    assert_eq!(pool.close(Pending::Run), Ok(ran(4)));
    assert_eq!(journal.take(), ["first", "first", "second"]);
}

fn a_timer_runs_tasks_by_deadline<E: Env>(env: &E, _: &Path) {
    let timer = Timer::start(env, "conformance", |panic| panic!("{panic}")).expect("a thread");
    let handle = timer.handle();
    let (busy, go, done) = (Gate::new(env), Gate::new(env), Gate::new(env));
    let inner = (busy.clone(), go.clone());
    handle
        .schedule_at(0, move || {
            inner.0.open();
            inner.1.pass();
        })
        .expect("an open timer");
    busy.pass();
    let journal = Journal::new(env);
    let base_ns = env.now_ns();
    for (delay_ns, n) in [(2_000_000, 4), (0, 1), (1_000_000, 2), (1_000_000, 3)] {
        let (journal, world) = (journal.clone(), env.clone());
        handle
            .schedule_at(base_ns + delay_ns, move || {
                assert!(world.now_ns() >= base_ns + delay_ns, "ran before its deadline");
                journal.push(n);
            })
            .expect("an open timer");
    }
    let inner = done.clone();
    handle.schedule_after(3_000_000, move || inner.open()).expect("an open timer");
    go.open();
    done.pass();
    assert_eq!(timer.close(), Ok(ran(6)));
    assert_eq!(journal.take(), [1, 2, 3, 4]);
}

fn an_earlier_deadline_is_not_kept_waiting<E: Env>(env: &E, _: &Path) {
    let timer = Timer::start(env, "conformance", |panic| panic!("{panic}")).expect("a thread");
    let handle = timer.handle();
    handle.schedule_at(u64::MAX, || panic!("not for five centuries")).expect("an open timer");
    // Time to fall asleep over it, with luck.
    env.sleep_ns(1_000_000);
    let done = Gate::new(env);
    let inner = done.clone();
    handle.schedule_after(0, move || inner.open()).expect("an open timer");
    done.pass();
    assert_eq!(timer.close().map(|counts| counts.discarded), Ok(1));
}

fn a_cancelled_task_does_not_run<E: Env>(env: &E, _: &Path) {
    let timer = Timer::start(env, "conformance", |panic| panic!("{panic}")).expect("a thread");
    let handle = timer.handle();
    let (done, world) = (Gate::new(env), env.clone());
    let doomed = handle.schedule_after(1 << 40, || panic!("cancelled")).expect("an open timer");
    let kept = done.clone();
    let ran_already = handle.schedule_at(world.now_ns(), move || kept.open()).expect("an open timer");
    done.pass();
    assert!(handle.cancel(doomed));
    assert!(!handle.cancel(doomed), "cancelled twice");
    assert!(!handle.cancel(ran_already), "cancelled what has run");
    assert_eq!(timer.close(), Ok(TaskCounts { ran: 1, panicked: 0, discarded: 1 }));
}

fn a_closed_timer_discards_and_refuses<E: Env>(env: &E, _: &Path) {
    let timer = Timer::start(env, "conformance", |panic| panic!("{panic}")).expect("a thread");
    let handle = timer.handle();
    let dropped = Gate::new(env);
    let opens = OpensWhenDropped(dropped.clone());
    handle.schedule_after(1 << 60, move || drop(opens)).expect("an open timer");
    assert_eq!(timer.close(), Ok(TaskCounts { ran: 0, panicked: 0, discarded: 1 }));
    assert!(dropped.is_open(), "kept what it will not run");
    assert_eq!(handle.schedule_after(0, || ()), Err(Refused::Closed));
}
