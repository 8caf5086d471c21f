//! Ordered executors: the tasks of one run one at a time, in the order of submission, on any worker of a pool.
//!
//! Model: an ordered executor with something to do stands once in the pool's queue. When its turn comes it runs up to
//! [`OrderedOptions::tasks_per_turn`] tasks, and if there are more, goes to the end of the pool's queue, so that others
//! get the worker. Its own queue has no limit; the pool's limit counts it once.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::pool::{Job, PoolHandle, Shared};
use super::{Refused, Task};
use crate::env::{Env, Mutex};

/// How an ordered executor shares its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderedOptions {
    /// How many tasks it may run before others get the worker.
    pub tasks_per_turn: NonZeroUsize,
}

impl Default for OrderedOptions {
    fn default() -> Self {
        Self { tasks_per_turn: const { NonZeroUsize::new(128).unwrap() } }
    }
}

/// A serial executor on a pool; cloning gives another handle to the same one. Dropping it drops no task.
pub struct Ordered<E: Env> {
    turns: Arc<Turns<E>>,
}

pub(super) struct Turns<E: Env> {
    pool: Arc<Shared<E>>,
    options: OrderedOptions,
    queue: Mutex<E, Queue>,
}

struct Queue {
    tasks: VecDeque<Task>,
    /// Stands in the pool's queue, or has its turn.
    scheduled: bool,
}

impl<E: Env> Clone for Ordered<E> {
    fn clone(&self) -> Self {
        Self { turns: self.turns.clone() }
    }
}

impl<E: Env> Ordered<E> {
    /// Makes an ordered executor on a pool.
    pub fn new(pool: &PoolHandle<E>, options: OrderedOptions) -> Self {
        let pool = pool.shared.clone();
        let queue = pool.runner.env.mutex("ordered.queue", Queue { tasks: VecDeque::new(), scheduled: false });
        Self { turns: Arc::new(Turns { pool, options, queue }) }
    }

    /// Puts a task behind those submitted before.
    ///
    /// # Errors
    /// What the pool says, if the executor has to be put into the pool's queue for it.
    pub fn submit(&self, task: impl FnOnce() + Send + 'static) -> Result<(), Refused> {
        let mut queue = self.turns.queue.lock();
        if !queue.scheduled {
            assert!(queue.tasks.is_empty(), "an executor with tasks is scheduled");
            // Under the lock, so that nobody relies on a turn that the pool refuses.
            self.turns.pool.submit(Job::Turn(self.turns.clone()))?;
            queue.scheduled = true;
        }
        queue.tasks.push_back(Box::new(task));
        Ok(())
    }
}

impl<E: Env> Turns<E> {
    pub(super) fn take_turn(self: Arc<Self>) {
        for _ in 0..self.options.tasks_per_turn.get() {
            let Some(task) = self.next() else { return };
            self.pool.runner.run(task);
        }
        if !self.pool.requeue(&self) {
            self.discard();
        }
    }

    pub(super) fn discard(&self) {
        let mut queue = self.queue.lock();
        queue.scheduled = false;
        let tasks = std::mem::take(&mut queue.tasks);
        drop(queue);
        self.pool.runner.discard(tasks);
    }

    fn next(&self) -> Option<Task> {
        let mut queue = self.queue.lock();
        assert!(queue.scheduled, "only a scheduled executor has a turn");
        let task = queue.tasks.pop_front();
        queue.scheduled = task.is_some();
        task
    }
}
