//! The simulated machine itself: that it is deterministic, that its locks are locks, that what waits for ever is told,
//! and that death is clean at every operation.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use stormlog::env::{Atomic, Condvar, Env, File, JoinHandle, Mutex, OpenOptions, Step, Wait, Word};
use stormlog_sim::choices::{Actor, Overrides};
use stormlog_sim::context::Context;
use stormlog_sim::disk::{Disk, DiskProfile};
use stormlog_sim::env::SimEnv;
use stormlog_sim::machine::{Limits, LockModel, Machine, Profile, SchedulePolicy, Shared, Stop};
use stormlog_sim::record::Digest;

const LIMITS: Limits = Limits { operations: 1_000_000, virtual_ns: 3_600_000_000_000 };
const RANDOM: SchedulePolicy = SchedulePolicy::Random { preempt_every: 4 };

fn profile() -> Profile {
    Profile::built_in("ci").expect("the profile is built in")
}

fn machine(seed: u64, policy: SchedulePolicy) -> Machine {
    machine_with(seed, policy, profile())
}

fn machine_with(seed: u64, policy: SchedulePolicy, profile: Profile) -> Machine {
    let context = Box::new(Context::new(seed, Overrides::new(), false, false));
    Machine::new(context, Actor::RUN, Rc::new(profile), policy, Disk::new(DiskProfile::default()))
}

/// Runs a program to its end and gives the digest.
fn run(seed: u64, policy: SchedulePolicy, program: impl FnOnce(SimEnv) + 'static) -> Digest {
    let mut machine = machine(seed, policy);
    machine.start("main", program);
    assert_eq!((machine.run(None, LIMITS), machine.take_findings()), (Stop::Ended, vec![]));
    machine.end().0.recorder.digest()
}

/// Eight threads raise a number that a lock protects, in steps that would lose updates without it.
fn count_to_80(env: &SimEnv) -> u64 {
    let total = Arc::new(env.mutex("count.total", 0u64));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (inner, total) = (env.clone(), Arc::clone(&total));
            env.spawn("count", move || {
                for _ in 0..10 {
                    let mut guard = total.lock();
                    let seen = *guard;
                    inner.yield_now();
                    *guard = seen + 1;
                }
            })
            .expect("a thread starts")
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
    *total.lock()
}

#[test]
fn a_seed_gives_one_digest_and_another_seed_another() {
    for policy in [SchedulePolicy::Timed, RANDOM, SchedulePolicy::Priorities { operations: 300, changes: 3 }] {
        let program = |env: SimEnv| assert_eq!(count_to_80(&env), 80);
        assert_eq!(run(1, policy, program), run(1, policy, program));
        if policy != SchedulePolicy::Timed {
            assert_ne!(run(1, policy, program), run(2, policy, program));
        }
    }
}

#[test]
fn locks_exclude_under_both_models() {
    for lock_model in [LockModel::Fair, LockModel::Barging] {
        for seed in 0..50 {
            let mut machine = machine_with(seed, RANDOM, Profile { lock_model, ..profile() });
            machine.start("main", |env| assert_eq!(count_to_80(&env), 80));
            assert_eq!((machine.run(None, LIMITS), machine.take_findings()), (Stop::Ended, vec![]));
        }
    }
}

#[test]
fn an_unlocked_counter_loses_updates_on_some_seed() {
    let lossy = (0..50).any(|seed| {
        let lost = Shared::new(false);
        let seen = lost.clone();
        run(seed, RANDOM, move |env| {
            let total = Arc::new(<SimEnv as Env>::AtomicU64::new(0));
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let total = Arc::clone(&total);
                    env.spawn("count", move || {
                        for _ in 0..5 {
                            let value = total.load(SeqCst);
                            total.store(value + 1, SeqCst);
                        }
                    })
                    .expect("a thread starts")
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
            seen.with(|lost| *lost = total.load(SeqCst) < 20);
        });
        lost.with(|lost| *lost)
    });
    assert!(lossy, "preemption between a load and a store is reached");
}

#[test]
fn readers_share_and_a_writer_excludes() {
    for seed in 0..50 {
        run(seed, RANDOM, |env| {
            let lock = Arc::new(env.rw_lock("pair", (0u64, 0u64)));
            let writer = {
                let (inner, lock) = (env.clone(), Arc::clone(&lock));
                env.spawn("write", move || {
                    for n in 1..=5 {
                        let mut pair = lock.write();
                        pair.0 = n;
                        inner.yield_now();
                        pair.1 = n;
                    }
                })
                .expect("a thread starts")
            };
            let readers: Vec<_> = (0..3)
                .map(|_| {
                    let (inner, lock) = (env.clone(), Arc::clone(&lock));
                    env.spawn("read", move || {
                        for _ in 0..5 {
                            let pair = lock.read();
                            let first = pair.0;
                            inner.yield_now();
                            assert_eq!(first, pair.1);
                        }
                    })
                    .expect("a thread starts")
                })
                .collect();
            writer.join().expect("no thread panics");
            readers.into_iter().for_each(|reader| reader.join().expect("no thread panics"));
        });
    }
}

#[test]
fn waits_time_out_and_wake() {
    run(3, RANDOM, |env| {
        let flag = Arc::new((env.mutex("flag", false), env.condvar("flag.set")));
        let mut guard = flag.0.lock();
        let before_ns = env.now_ns();
        assert!(flag.1.wait_for(&mut guard, 5_000_000));
        assert!(env.now_ns() - before_ns >= 5_000_000);
        drop(guard);
        let waiter = {
            let flag = Arc::clone(&flag);
            env.spawn("wait", move || {
                let mut guard = flag.0.lock();
                while !*guard {
                    flag.1.wait(&mut guard);
                }
            })
            .expect("a thread starts")
        };
        *flag.0.lock() = true;
        flag.1.notify_all();
        waiter.join().expect("no thread panics");

        let word = Arc::new(env.word("gate", 0));
        assert_eq!(word.wait(1, None), Wait::Look);
        assert_eq!(word.wait(0, Some(1000)), Wait::TimedOut);
        let waiter = {
            let word = Arc::clone(&word);
            env.spawn("wait", move || {
                while word.load(SeqCst) == 0 {
                    word.wait(0, None);
                }
            })
            .expect("a thread starts")
        };
        word.store(1, SeqCst);
        word.wake_all();
        waiter.join().expect("no thread panics");
    });
}

#[test]
fn charged_work_takes_a_core() {
    for (cores, expected_ns) in [(1, 4_000_000), (2, 2_000_000), (4, 1_000_000)] {
        let mut machine = machine_with(
            1,
            SchedulePolicy::Timed,
            Profile { cores, wake_ns: 0, step_ps: [("append.record".to_owned(), 1_000_000)].into(), ..profile() },
        );
        let took_ns = Shared::new(0);
        let result = took_ns.clone();
        machine.start("main", move |env| {
            let before_ns = env.now_ns();
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let inner = env.clone();
                    env.spawn("work", move || inner.charge(Step::AppendRecord, 1000)).expect("a thread starts")
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
            result.with(|took| *took = env.now_ns() - before_ns);
        });
        assert_eq!(machine.run(None, LIMITS), Stop::Ended);
        assert_eq!(took_ns.with(|took| *took), expected_ns, "{cores} cores");
    }
}

#[test]
fn a_deadlock_is_told_with_who_holds_and_who_waits() {
    let found = (0..100).find_map(|seed| {
        let mut machine = machine(seed, RANDOM);
        machine.start("main", |env| {
            let a = Arc::new(env.mutex("first", ()));
            let b = Arc::new(env.mutex("second", ()));
            let crosswise = {
                let (a, b) = (Arc::clone(&a), Arc::clone(&b));
                env.spawn("crosswise", move || {
                    let _b = b.lock();
                    let _a = a.lock();
                })
                .expect("a thread starts")
            };
            let _a = a.lock();
            let _b = b.lock();
            drop((_a, _b));
            crosswise.join().expect("no thread panics");
        });
        (machine.run(None, LIMITS) == Stop::Deadlock).then(|| machine.take_findings())
    });
    let message = &found.expect("some seed deadlocks")[0].message;
    for part in [
        "crosswise waits for lock first held by main, holding second",
        "main waits for lock second held by crosswise, holding first",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_cycle_of_locks_is_told_without_a_deadlock() {
    let mut machine = machine(1, SchedulePolicy::Timed);
    machine.start("main", |env| {
        let a = env.mutex("first", ());
        let b = env.mutex("second", ());
        {
            let _a = a.lock();
            let _b = b.lock();
        }
        let _b = b.lock();
        let _a = a.lock();
    });
    assert_eq!(machine.run(None, LIMITS), Stop::Finding);
    let findings = machine.take_findings();
    assert_eq!(findings[0].oracle, "lock-order");
    assert!(findings[0].message.contains("first -> second -> first"), "{}", findings[0].message);
}

#[inline(never)]
fn the_guilty_function() {
    panic!("on purpose");
}

#[test]
fn a_panic_is_a_finding_with_its_backtrace() {
    let mut machine = machine(1, SchedulePolicy::Timed);
    machine.start("main", |env| {
        let thread = env.spawn("guilty", the_guilty_function).expect("a thread starts");
        assert!(thread.join().is_err());
    });
    assert_eq!(machine.run(None, LIMITS), Stop::Finding);
    let message = &machine.take_findings()[0].message;
    for part in ["thread guilty panicked", "on purpose", "the_guilty_function"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn too_much_work_is_a_finding() {
    let mut machine = machine(1, SchedulePolicy::Timed);
    machine.start("main", |env| {
        loop {
            env.now_ns();
            env.yield_now();
        }
    });
    assert_eq!(machine.run(None, Limits { operations: 1000, ..LIMITS }), Stop::OverLimit);
    assert_eq!(machine.take_findings()[0].oracle, "bounded-work");
}

/// Counts the values of it that live, so that a stack that was not unwound is noticed.
struct Counted(Shared<i64>);

impl Counted {
    fn new(live: &Shared<i64>) -> Self {
        live.with(|live| *live += 1);
        Self(live.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.with(|live| *live -= 1);
    }
}

/// Does env operations when it is dropped, as no store may: the world must stand it.
struct Meddler {
    env: SimEnv,
    total: Arc<Mutex<SimEnv, u64>>,
    word: Arc<<SimEnv as Env>::Word>,
}

impl Drop for Meddler {
    fn drop(&mut self) {
        self.word.fetch_add(1, SeqCst);
        self.word.wake_all();
        self.word.wait(u32::MAX, None);
        self.env.sleep_ns(1);
        let _ = self.env.open("/meddled".as_ref(), OpenOptions::CREATE);
        if let Some(mut total) = self.total.try_lock() {
            *total += 1;
        }
    }
}

/// A program with a pool, a condition waiter, I/O, and a task that panics while it holds a lock.
fn busy_program(env: &SimEnv, live: &Shared<i64>) {
    let queue = Arc::new((env.mutex("queue", Vec::<u64>::new()), env.condvar("queue.filled")));
    let total = Arc::new(env.mutex("total", 0u64));
    let word = Arc::new(env.word("done", 0));
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let (inner, queue, total, word, live) =
                (env.clone(), Arc::clone(&queue), Arc::clone(&total), Arc::clone(&word), live.clone());
            env.spawn("worker", move || {
                let _counted = Counted::new(&live);
                loop {
                    let task = {
                        let mut tasks = queue.0.lock();
                        while tasks.is_empty() {
                            queue.1.wait(&mut tasks);
                        }
                        tasks.remove(0)
                    };
                    if task == 0 {
                        return;
                    }
                    let _meddler = Meddler { env: inner.clone(), total: Arc::clone(&total), word: Arc::clone(&word) };
                    *total.lock() += task;
                    word.fetch_add(1, SeqCst);
                    word.wake_all();
                }
            })
            .expect("a thread starts")
        })
        .collect();
    let file = env.open("/log".as_ref(), OpenOptions::CREATE).expect("a file opens");
    for task in 1..=3 {
        let _counted = Counted::new(live);
        file.write_all_at(&[task as u8; 100], task * 100).expect("a write succeeds");
        queue.0.lock().push(task);
        queue.1.notify_one();
    }
    file.sync_data().expect("a sync succeeds");
    queue.0.lock().extend([0, 0]);
    queue.1.notify_all();
    workers.into_iter().for_each(|worker| worker.join().expect("no worker panics"));
}

#[test]
fn death_is_clean_at_every_operation() {
    for seed in 0..4 {
        let mut stop_before = 1;
        loop {
            let live = Shared::new(0);
            let mut machine = machine(seed, RANDOM);
            let inside = live.clone();
            let process = machine.start("first", move |env| busy_program(&env, &inside));
            let stop = machine.run(Some(stop_before), LIMITS);
            if stop == Stop::Ended {
                break;
            }
            assert_eq!((stop, machine.take_findings()), (Stop::AtOperation, vec![]));
            machine.kill(process);
            assert_eq!(live.with(|live| *live), 0, "seed {seed}, operation {stop_before}: a stack was not unwound");
            let inside = live.clone();
            machine.start("second", move |env| busy_program(&env, &inside));
            assert_eq!((machine.run(None, LIMITS), machine.take_findings()), (Stop::Ended, vec![]));
            stop_before += 1;
        }
        assert!(stop_before > 50, "the program has operations to stop at");
    }
}

#[test]
fn death_is_clean_while_a_thread_unwinds() {
    let live = Shared::new(0);
    let inside = live.clone();
    let mut machine = machine(1, RANDOM);
    machine.start("main", move |env| {
        let total = Arc::new(env.mutex("total", 0u64));
        let word = Arc::new(env.word("done", 0));
        let held = Arc::clone(&total);
        let meddler = Meddler { env: env.clone(), total: Arc::clone(&total), word };
        let result = env.run_task(|| {
            let _counted = Counted::new(&inside);
            let _meddler = meddler;
            let _guard = held.lock();
            panic!("while it holds a lock");
        });
        assert!(result.is_err());
        *total.lock() += 1;
    });
    assert_eq!(machine.run(None, LIMITS), Stop::Finding);
    let findings = machine.take_findings();
    assert_eq!((findings.len(), findings[0].oracle.as_str()), (1, "no-panic"));
    assert_eq!(machine.run(None, LIMITS), Stop::Ended, "the panicking task gave its lock up");
    assert_eq!(live.with(|live| *live), 0);
}

#[test]
fn a_stop_changes_nothing() {
    let totals = |stops: &[u64]| {
        let mut machine = machine(5, RANDOM);
        let total = Shared::new((0, 0));
        let result = total.clone();
        machine.start("main", move |env| {
            let counted = count_to_80(&env);
            result.with(|total| *total = (counted, env.now_ns()));
        });
        for stop_before in stops {
            assert_eq!(machine.run(Some(*stop_before), LIMITS), Stop::AtOperation);
        }
        assert_eq!(machine.run(None, LIMITS), Stop::Ended);
        (total.with(|total| *total), machine.operations())
    };
    let plain = totals(&[]);
    let stops: Vec<u64> = (1..plain.1).collect();
    assert_eq!(plain, totals(&stops));
}

#[test]
fn simulations_nest() {
    let digest = |nest: bool| {
        let mut outer = machine(9, RANDOM);
        outer.start("main", |env| assert_eq!(count_to_80(&env), 80));
        assert_eq!(outer.run(Some(40), LIMITS), Stop::AtOperation);
        let before_ns = outer.now_ns();
        if nest {
            outer.with_context(|context| {
                let root = Actor::RUN.child("nested", 0);
                let mut inner =
                    Machine::new(context, root, Rc::new(profile()), RANDOM, Disk::new(DiskProfile::default()));
                inner.start("main", |env| assert_eq!(count_to_80(&env), 80));
                assert_eq!((inner.run(None, LIMITS), inner.take_findings()), (Stop::Ended, vec![]));
                (inner.end().0, ())
            });
        }
        assert_eq!(outer.now_ns(), before_ns);
        assert_eq!((outer.run(None, LIMITS), outer.take_findings()), (Stop::Ended, vec![]));
        (outer.now_ns(), outer.operations())
    };
    assert_eq!(digest(true), digest(false));
}
