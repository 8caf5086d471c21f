//! Runs tasks, contains their panics and counts both.

use std::sync::atomic::Ordering::Relaxed;

use super::Task;
use crate::env::{Atomic, AtomicInteger, Env, Step, TaskPanic};

/// What became of the tasks that an executor took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskCounts {
    /// Tasks that ran, those that panicked included.
    pub ran: u64,
    /// Tasks, and calls of the panic handler, that panicked.
    pub panicked: u64,
    /// Tasks that were dropped unrun.
    pub discarded: u64,
}

pub(super) struct Runner<E: Env> {
    pub(super) env: E,
    on_panic: Box<dyn Fn(&TaskPanic) + Send + Sync>,
    ran: E::AtomicU64,
    panicked: E::AtomicU64,
    discarded: E::AtomicU64,
}

impl<E: Env> Runner<E> {
    pub(super) fn new(env: &E, on_panic: impl Fn(&TaskPanic) + Send + Sync + 'static) -> Self {
        Self {
            env: env.clone(),
            on_panic: Box::new(on_panic),
            ran: E::AtomicU64::new(0),
            panicked: E::AtomicU64::new(0),
            discarded: E::AtomicU64::new(0),
        }
    }

    pub(super) fn run(&self, task: Task) {
        self.env.charge(Step::RunTask, 1);
        let outcome = self.env.run_task(task);
        self.ran.fetch_add(1, Relaxed);
        if let Err(panic) = outcome {
            self.panicked.fetch_add(1, Relaxed);
            if self.env.run_task(|| (self.on_panic)(&panic)).is_err() {
                self.panicked.fetch_add(1, Relaxed);
            }
        }
    }

    pub(super) fn discard(&self, tasks: impl IntoIterator<Item = Task>) {
        for task in tasks {
            drop(task);
            self.discarded.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn counts(&self) -> TaskCounts {
        TaskCounts {
            ran: self.ran.load(Relaxed),
            panicked: self.panicked.load(Relaxed),
            discarded: self.discarded.load(Relaxed),
        }
    }
}
