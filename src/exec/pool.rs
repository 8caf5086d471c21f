//! A pool: a fixed number of named workers that take tasks from one queue, first in, first out.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::ordered::Turns;
use super::runner::Runner;
use super::{Refused, Task, TaskCounts};
use crate::env::{Condvar, Env, JoinHandle, Mutex, TaskPanic};

/// Size of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolOptions {
    /// Worker threads; at least 1.
    pub workers: usize,
    /// How many tasks may wait in the queue; `None` for any number.
    pub queue_limit: Option<usize>,
}

/// What closing does with the tasks that wait in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pending {
    /// Runs them.
    Run,
    /// Drops them unrun; what is running ends first.
    Discard,
}

/// A pool of workers.
pub struct Pool<E: Env> {
    handle: PoolHandle<E>,
    workers: Vec<E::Thread>,
}

/// Submits to a pool; cloning is cheap. It may outlive the pool, and is refused then.
pub struct PoolHandle<E: Env> {
    pub(super) shared: Arc<Shared<E>>,
}

pub(super) enum Job<E: Env> {
    Task(Task),
    Turn(Arc<Turns<E>>),
}

pub(super) struct Shared<E: Env> {
    pub(super) runner: Runner<E>,
    queue: Mutex<E, Queue<E>>,
    wake: E::Condvar,
    queue_limit: Option<usize>,
}

struct Queue<E: Env> {
    jobs: VecDeque<Job<E>>,
    waiting_workers: usize,
    closing: Option<Pending>,
}

impl<E: Env> Pool<E> {
    /// Starts the workers, named `name-0`, `name-1` and so on. `on_panic` is called on the worker after a task's panic.
    ///
    /// # Errors
    /// The error of [`Env::spawn`]; the workers started before are ended then.
    ///
    /// # Panics
    /// If there is to be no worker.
    pub fn start(
        env: &E,
        name: &str,
        options: PoolOptions,
        on_panic: impl Fn(&TaskPanic) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        assert!(options.workers > 0, "a pool without workers runs nothing");
        let shared = Arc::new(Shared {
            runner: Runner::new(env, on_panic),
            queue: env.mutex("pool.queue", Queue { jobs: VecDeque::new(), waiting_workers: 0, closing: None }),
            wake: env.condvar("pool.wake"),
            queue_limit: options.queue_limit,
        });
        let mut pool = Self { handle: PoolHandle { shared }, workers: Vec::with_capacity(options.workers) };
        for n in 0..options.workers {
            let shared = pool.handle.shared.clone();
            match env.spawn(&format!("{name}-{n}"), move || shared.work()) {
                Ok(worker) => pool.workers.push(worker),
                Err(error) => {
                    // The workers have nothing to run and hence nothing to panic on: the first error is the one to tell.
                    let _ = pool.close(Pending::Discard);
                    return Err(error);
                }
            }
        }
        Ok(pool)
    }

    /// A handle to submit through.
    pub fn handle(&self) -> PoolHandle<E> {
        self.handle.clone()
    }

    /// See [`PoolHandle::submit`].
    pub fn submit(&self, task: impl FnOnce() + Send + 'static) -> Result<(), Refused> {
        self.handle.submit(task)
    }

    /// What became of the tasks so far.
    pub fn counts(&self) -> TaskCounts {
        self.handle.counts()
    }

    /// Takes no more tasks, runs or discards those that wait, and ends the workers.
    ///
    /// # Errors
    /// The panic of a worker outside of any task.
    pub fn close(self, pending: Pending) -> Result<TaskCounts, TaskPanic> {
        let Self { handle: PoolHandle { shared }, workers } = self;
        shared.close(pending);
        let mut ends: Vec<_> = workers.into_iter().map(JoinHandle::join).collect();
        ends.drain(..).collect::<Result<(), _>>()?;
        assert!(shared.queue.lock().jobs.is_empty(), "the workers leave an empty queue");
        Ok(shared.runner.counts())
    }
}

impl<E: Env> Clone for PoolHandle<E> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<E: Env> PoolHandle<E> {
    /// Puts a task into the queue.
    pub fn submit(&self, task: impl FnOnce() + Send + 'static) -> Result<(), Refused> {
        self.shared.submit(Job::Task(Box::new(task)))
    }

    /// What became of the tasks so far, those of ordered executors on this pool included.
    pub fn counts(&self) -> TaskCounts {
        self.shared.runner.counts()
    }
}

impl<E: Env> Shared<E> {
    pub(super) fn submit(&self, job: Job<E>) -> Result<(), Refused> {
        let mut queue = self.queue.lock();
        if queue.closing.is_some() {
            return Err(Refused::Closed);
        }
        if let Some(limit) = self.queue_limit.filter(|limit| queue.jobs.len() >= *limit) {
            return Err(Refused::Full { limit });
        }
        queue.jobs.push_back(job);
        let wake = queue.waiting_workers > 0;
        drop(queue);
        if wake {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Puts a turn that has more to do to the end of the queue, whatever the limit. Called by a worker, which therefore
    /// will look at the queue again. False if tasks are being discarded.
    pub(super) fn requeue(&self, turns: &Arc<Turns<E>>) -> bool {
        let mut queue = self.queue.lock();
        if queue.closing == Some(Pending::Discard) {
            return false;
        }
        queue.jobs.push_back(Job::Turn(turns.clone()));
        true
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            match job {
                Job::Task(task) => self.runner.run(task),
                Job::Turn(turns) => turns.take_turn(),
            }
        }
    }

    fn next(&self) -> Option<Job<E>> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            if queue.closing.is_some() {
                return None;
            }
            queue.waiting_workers += 1;
            self.wake.wait(&mut queue);
            queue.waiting_workers -= 1;
        }
    }

    fn close(&self, pending: Pending) {
        let mut queue = self.queue.lock();
        queue.closing = Some(pending);
        let discarded = match pending {
            Pending::Run => VecDeque::new(),
            Pending::Discard => std::mem::take(&mut queue.jobs),
        };
        drop(queue);
        self.wake.notify_all();
        for job in discarded {
            match job {
                Job::Task(task) => self.runner.discard([task]),
                Job::Turn(turns) => turns.discard(),
            }
        }
    }
}
