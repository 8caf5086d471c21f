//! Which of the threads that can run goes next, and when a running one is preempted.

use serde::{Deserialize, Serialize};

use super::core::{Core, ThreadId, ThreadState};
use crate::choices::Family;

/// How the next thread is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulePolicy {
    /// By cost: first come, first served, preempted by the quantum alone. Starvation is judged under this one only.
    Timed,
    /// Any thread that can run, and preemption about once in so many env operations of a thread (0: never).
    Random {
        /// Mean number of env operations of a thread between two preemptions.
        preempt_every: u32,
    },
    /// Probabilistic concurrency testing (Burckhardt et al., ASPLOS 2010): random priorities, lowered at a few random
    /// operations; the thread of the highest priority that can run runs.
    Priorities {
        /// In how many operations the change points lie.
        operations: u64,
        /// How many change points there are.
        changes: u32,
    },
}

/// Priorities of one run under [`SchedulePolicy::Priorities`].
#[derive(Default)]
pub(super) struct PriorityState {
    /// Operation numbers at which the running thread's priority falls to the bottom, ascending.
    pub(super) change_at: Vec<u64>,
    next_low: i64,
}

impl Core {
    pub(super) fn prepare_schedule(&mut self) {
        if let SchedulePolicy::Priorities { operations, changes } = self.policy {
            let stream = self.schedule_stream;
            let mut points: Vec<u64> =
                (0..changes).map(|_| self.ctx().below(stream, operations.max(1))).filter(|at| *at > 0).collect();
            points.sort_unstable();
            self.priorities.change_at = points;
        }
    }

    /// The priority of a new thread.
    pub(super) fn draw_priority(&mut self, actor: crate::choices::Actor) -> i64 {
        match self.policy {
            SchedulePolicy::Priorities { .. } => {
                let stream = self.ctx().stream(Family::Schedule, actor);
                self.ctx().below(stream, 1 << 20) as i64
            }
            SchedulePolicy::Timed | SchedulePolicy::Random { .. } => 0,
        }
    }

    /// How many operations a thread makes before it is preempted next. 0 drawn (benign): many.
    pub(super) fn draw_until_preempt(&mut self, thread: ThreadId) -> u64 {
        match self.policy {
            SchedulePolicy::Random { preempt_every } if preempt_every > 0 => {
                let stream = self.threads[thread.index()].preempt_stream;
                let bound = 2 * u64::from(preempt_every) + 1;
                match self.ctx().below(stream, bound) {
                    0 => 2 * bound,
                    gap => gap,
                }
            }
            _ => u64::MAX,
        }
    }

    /// Whether the running thread must make room now, under [`SchedulePolicy::Priorities`].
    pub(super) fn priority_changes(&mut self, thread: ThreadId) -> bool {
        if self.priorities.change_at.first().is_some_and(|at| *at <= self.operations) {
            self.priorities.change_at.remove(0);
            self.priorities.next_low -= 1;
            self.threads[thread.index()].priority = self.priorities.next_low;
            return true;
        }
        false
    }

    /// Takes the thread to run next out of the ready queue.
    pub(super) fn pick_ready(&mut self) -> Option<ThreadId> {
        let position = match (self.ready.len(), self.policy) {
            (0, _) => return None,
            (1, _) | (_, SchedulePolicy::Timed) => 0,
            (len, SchedulePolicy::Random { .. }) => {
                let stream = self.schedule_stream;
                self.ctx().below(stream, len as u64) as usize
            }
            (_, SchedulePolicy::Priorities { .. }) => {
                let priority = |thread: &ThreadId| self.threads[thread.index()].priority;
                let best = self.ready.iter().map(priority).max().expect("the queue is not empty");
                self.ready.iter().position(|t| priority(t) == best).expect("the maximum is one of them")
            }
        };
        let thread = self.ready.remove(position).expect("the position is in the queue");
        debug_assert_eq!(self.threads[thread.index()].state, ThreadState::Ready);
        Some(thread)
    }
}
