//! A timer: one named thread that runs tasks at their deadlines, in the order of deadlines, equal ones in the order of
//! submission.
//!
//! Model: a task runs on the timer's thread, so that a long one makes the next late; hand long work to a pool. A task
//! that is to run again schedules itself anew.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::runner::Runner;
use super::{Refused, Task, TaskCounts};
use crate::env::{Condvar, Env, JoinHandle, Mutex, TaskPanic};

/// A timer.
pub struct Timer<E: Env> {
    handle: TimerHandle<E>,
    thread: E::Thread,
}

/// Schedules on a timer; cloning is cheap. It may outlive the timer, and is refused then.
pub struct TimerHandle<E: Env> {
    shared: Arc<Shared<E>>,
}

/// Names a scheduled task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerKey {
    deadline_ns: u64,
    n: u64,
}

struct Shared<E: Env> {
    runner: Runner<E>,
    schedule: Mutex<E, Schedule>,
    wake: E::Condvar,
}

struct Schedule {
    tasks: BTreeMap<TimerKey, Task>,
    submitted: u64,
    closed: bool,
}

impl<E: Env> Timer<E> {
    /// Starts the timer's thread, named `name`. `on_panic` is called on it after a task's panic.
    ///
    /// # Errors
    /// The error of [`Env::spawn`].
    pub fn start(env: &E, name: &str, on_panic: impl Fn(&TaskPanic) + Send + Sync + 'static) -> io::Result<Self> {
        let schedule = Schedule { tasks: BTreeMap::new(), submitted: 0, closed: false };
        let shared = Arc::new(Shared {
            runner: Runner::new(env, on_panic),
            schedule: env.mutex("timer.schedule", schedule),
            wake: env.condvar("timer.wake"),
        });
        let on_thread = shared.clone();
        let thread = env.spawn(name, move || on_thread.work())?;
        Ok(Self { handle: TimerHandle { shared }, thread })
    }

    /// A handle to schedule through.
    pub fn handle(&self) -> TimerHandle<E> {
        self.handle.clone()
    }

    /// What became of the tasks so far.
    pub fn counts(&self) -> TaskCounts {
        self.handle.shared.runner.counts()
    }

    /// Takes no more tasks, discards those that wait, and ends the thread.
    ///
    /// # Errors
    /// The panic of the thread outside of any task.
    pub fn close(self) -> Result<TaskCounts, TaskPanic> {
        let Self { handle: TimerHandle { shared }, thread } = self;
        let mut schedule = shared.schedule.lock();
        schedule.closed = true;
        let tasks = std::mem::take(&mut schedule.tasks);
        drop(schedule);
        shared.wake.notify_one();
        shared.runner.discard(tasks.into_values());
        thread.join()?;
        Ok(shared.runner.counts())
    }
}

impl<E: Env> Clone for TimerHandle<E> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<E: Env> TimerHandle<E> {
    /// Runs `task` when [`Env::now_ns`] has reached `deadline_ns`, or at once if it has.
    pub fn schedule_at(&self, deadline_ns: u64, task: impl FnOnce() + Send + 'static) -> Result<TimerKey, Refused> {
        let mut schedule = self.shared.schedule.lock();
        if schedule.closed {
            return Err(Refused::Closed);
        }
        let key = TimerKey { deadline_ns, n: schedule.submitted };
        schedule.submitted += 1;
        schedule.tasks.insert(key, Box::new(task));
        let is_next = schedule.tasks.first_key_value().is_some_and(|(first, _)| *first == key);
        drop(schedule);
        if is_next {
            self.shared.wake.notify_one();
        }
        Ok(key)
    }

    /// Runs `task` once `delay_ns` has passed.
    pub fn schedule_after(&self, delay_ns: u64, task: impl FnOnce() + Send + 'static) -> Result<TimerKey, Refused> {
        self.schedule_at(self.shared.runner.env.now_ns().saturating_add(delay_ns), task)
    }

    /// Discards a task. False if it has begun to run, or was cancelled before.
    pub fn cancel(&self, key: TimerKey) -> bool {
        let task = self.shared.schedule.lock().tasks.remove(&key);
        let was_waiting = task.is_some();
        self.shared.runner.discard(task);
        was_waiting
    }
}

impl<E: Env> Shared<E> {
    fn work(&self) {
        while let Some(task) = self.next() {
            self.runner.run(task);
        }
    }

    fn next(&self) -> Option<Task> {
        let mut schedule = self.schedule.lock();
        loop {
            if schedule.closed {
                return None;
            }
            match schedule.tasks.first_entry() {
                None => self.wake.wait(&mut schedule),
                Some(first) => {
                    let now_ns = self.runner.env.now_ns();
                    match first.key().deadline_ns.checked_sub(now_ns) {
                        None | Some(0) => return Some(first.remove()),
                        Some(left_ns) => drop(self.wake.wait_for(&mut schedule, left_ns)),
                    }
                }
            }
        }
    }
}
