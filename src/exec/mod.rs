//! Executors on top of `env`: a [`Pool`] of workers, [`Ordered`] (serial) executors on a pool, and a [`Timer`].
//!
//! Model: a task is a closure that runs once, on a named thread, and costs one [`Step::RunTask`] beside its own work. A
//! task that panics ends alone: it is counted, its [`TaskPanic`] goes to the executor's handler, and the thread goes on.
//! Closing is explicit and waits for the threads; an executor that is dropped instead leaves its threads waiting, as
//! in a process that is about to die. An executor must not be closed from one of its own tasks.
//!
//! Not modelled: results of tasks, priorities, threads that come and go with the load.

mod ordered;
mod pool;
mod runner;
mod timer;

pub use ordered::{Ordered, OrderedOptions};
pub use pool::{Pending, Pool, PoolHandle, PoolOptions};
pub use runner::TaskCounts;
pub use timer::{Timer, TimerHandle, TimerKey};

#[cfg(doc)]
use crate::env::{Step, TaskPanic};

type Task = Box<dyn FnOnce() + Send>;

/// Why an executor did not take a task. The task was dropped, unrun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The queue is full.
    #[error("the queue holds its limit of {limit} tasks")]
    Full {
        /// The queue's limit, in tasks.
        limit: usize,
    },
    /// The executor is closed or closing.
    #[error("the executor is closed")]
    Closed,
}
