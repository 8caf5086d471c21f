//! Simulated locks and wait queues.
//!
//! Model: a lock is held by one writer or by readers; who waits does so in one queue, in order of arrival. *Fair*: giving
//! a lock up hands it to the head of the queue. *Barging*: giving it up makes it free and wakes the head, which stays at
//! its place until it has the lock; whoever asks meanwhile takes it, but a reader queues where a writer heads the queue
//! (Java's non-fair `ReentrantReadWriteLock`).
//!
//! Not modelled: spinning before parking; a barging thread's advantage comes from the wake-up time of the waiter.

use std::collections::VecDeque;

use super::core::{Blocked, Core, CoreRef, ProcessId, ThreadId, ThreadState};
use crate::record::Op;

const LOCK: Op = Op::new("lock");
const UNLOCK: Op = Op::new("unlock");
const NOTIFY: Op = Op::new("notify");
const WAIT: Op = Op::new("wait");

/// How a lock is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Exclusive,
    Shared,
}

pub(super) struct LockRecord {
    pub(super) name: &'static str,
    pub(super) writer: Option<ThreadId>,
    pub(super) readers: Vec<ThreadId>,
    waiters: VecDeque<(ThreadId, Mode)>,
}

impl LockRecord {
    fn is_free_for(&self, mode: Mode) -> bool {
        self.writer.is_none() && (mode == Mode::Shared || self.readers.is_empty())
    }
}

pub(super) struct WaitQueue {
    pub(super) name: &'static str,
    pub(super) waiters: VecDeque<ThreadId>,
}

impl Core {
    pub(crate) fn add_lock(&mut self, name: &'static str) -> usize {
        self.locks.insert(LockRecord { name, writer: None, readers: Vec::new(), waiters: VecDeque::new() })
    }

    pub(crate) fn remove_lock(&mut self, lock: usize) {
        self.locks.remove(lock);
    }

    pub(crate) fn add_queue(&mut self, name: &'static str) -> usize {
        self.queues.insert(WaitQueue { name, waiters: VecDeque::new() })
    }

    pub(crate) fn remove_queue(&mut self, queue: usize) {
        self.queues.remove(queue);
    }

    pub(crate) fn is_locked(&self, lock: usize, mode: Mode) -> bool {
        let record = &self.locks[lock];
        record.writer.is_some() || (mode == Mode::Shared && !record.readers.is_empty())
    }

    fn own(&mut self, lock: usize, mode: Mode, thread: ThreadId) {
        let record = &mut self.locks[lock];
        match mode {
            Mode::Exclusive => record.writer = Some(thread),
            Mode::Shared => record.readers.push(thread),
        }
        let name = record.name;
        let held = std::mem::take(&mut self.threads[thread.index()].held);
        for before in &held {
            if let Some(cycle) = self.lock_order.nest(self.locks[*before].name, name) {
                let thread = self.threads[thread.index()].name.clone();
                self.find("lock-order", format!("thread {thread} closes a cycle of locks: {}", cycle.join(" -> ")));
            }
        }
        self.threads[thread.index()].held = held;
        self.threads[thread.index()].held.push(lock);
        self.record(thread, LOCK, [lock as u64, mode as u64], 0);
    }

    /// Takes the lock if it is free and, unless the thread heads the queue, nobody who goes first waits for it.
    fn take_if_free(&mut self, lock: usize, mode: Mode, me: ThreadId) -> bool {
        let record = &mut self.locks[lock];
        let position = record.waiters.iter().position(|(waiter, _)| *waiter == me);
        let writer_heads = matches!(record.waiters.front(), Some((head, Mode::Exclusive)) if *head != me);
        if !record.is_free_for(mode) || (mode == Mode::Shared && writer_heads) {
            return false;
        }
        if let Some(position) = position {
            record.waiters.remove(position);
        }
        self.own(lock, mode, me);
        true
    }

    fn give_up(&mut self, lock: usize, mode: Mode, me: ThreadId) {
        let record = &mut self.locks[lock];
        match mode {
            Mode::Exclusive => {
                assert_eq!(record.writer.take(), Some(me), "lock {} is given up by its holder", record.name);
            }
            Mode::Shared => {
                let position = record.readers.iter().position(|reader| *reader == me);
                record.readers.swap_remove(position.expect("a lock is given up by one of its holders"));
            }
        }
        let held = &mut self.threads[me.index()].held;
        let position = held.iter().rposition(|held| *held == lock).expect("what is given up is held");
        held.remove(position);
        self.record(me, UNLOCK, [lock as u64, mode as u64], 0);
        self.pass_on(lock);
    }

    fn pass_on(&mut self, lock: usize) {
        if self.fair_locks {
            while let Some((waiter, mode)) = self.locks[lock].waiters.front().copied() {
                if !self.locks[lock].is_free_for(mode) {
                    break;
                }
                self.locks[lock].waiters.pop_front();
                self.own(lock, mode, waiter);
                self.wake(waiter);
            }
        } else {
            let record = &self.locks[lock];
            let Some((_, head_mode)) = record.waiters.front().copied() else { return };
            if !record.is_free_for(head_mode) {
                return;
            }
            let leading = match head_mode {
                Mode::Exclusive => 1,
                Mode::Shared => record.waiters.iter().take_while(|(_, mode)| *mode == Mode::Shared).count(),
            };
            let woken: Vec<_> = record.waiters.iter().take(leading).map(|(waiter, _)| *waiter).collect();
            for waiter in woken {
                if matches!(self.threads[waiter.index()].state, ThreadState::Blocked(_)) {
                    self.wake(waiter);
                }
            }
        }
    }
}

impl CoreRef {
    /// Takes a lock, waiting for it. A thread that has no say gets it at once, and has no use for it.
    pub(crate) fn lock(&self, process: ProcessId, lock: usize, mode: Mode) {
        if let Some(me) = self.own_handed(lock) {
            debug_assert_eq!(self.get().locks[lock].writer, Some(me));
            return;
        }
        if let Some(me) = self.point(process) {
            self.acquire(me, lock, mode);
        } else {
            self.lock_while_unwinding(process, lock, mode);
        }
    }

    /// Whether the lock was handed to the running thread before it asked: the end of a condition wait.
    fn own_handed(&self, lock: usize) -> Option<ThreadId> {
        let mut core = self.get_mut();
        let me = core.current?;
        core.threads[me.index()].handed.take_if(|handed| *handed == lock).map(|_| me)
    }

    /// A live thread that unwinds takes a lock only if it is free: it must not suspend.
    fn lock_while_unwinding(&self, process: ProcessId, lock: usize, mode: Mode) {
        let mut core = self.get_mut();
        if core.processes[process.index()].dead {
            return;
        }
        let me = core.current.expect("a live thread that unwinds is running");
        if !core.take_if_free(lock, mode, me) {
            let (thread, name) = (core.threads[me.index()].name.clone(), core.locks[lock].name);
            core.find("no-deadlock", format!("thread {thread} waits for lock {name} while it unwinds"));
        }
    }

    fn acquire(&self, me: ThreadId, lock: usize, mode: Mode) {
        if self.get_mut().take_if_free(lock, mode, me) {
            return;
        }
        let fair = {
            let mut core = self.get_mut();
            core.locks[lock].waiters.push_back((me, mode));
            core.fair_locks
        };
        loop {
            self.block(me, Blocked::Lock(lock), None);
            if fair || self.get_mut().take_if_free(lock, mode, me) {
                return;
            }
        }
    }

    pub(crate) fn try_lock(&self, process: ProcessId, lock: usize, mode: Mode) -> bool {
        match self.point(process) {
            Some(me) => self.get_mut().take_if_free(lock, mode, me),
            None => false,
        }
    }

    /// Gives a lock up. A panicking thread of a live process does so too; a dead one holds nothing.
    pub(crate) fn unlock(&self, process: ProcessId, lock: usize, mode: Mode) {
        if self.get().processes[process.index()].dead {
            return;
        }
        let mut core = self.get_mut();
        let Some(me) = core.current else { return };
        let record = &core.locks[lock];
        if record.writer == Some(me) || record.readers.contains(&me) {
            core.give_up(lock, mode, me);
        }
    }

    /// The inside of a condition wait: called with the mutex given up, returns with it handed to the running thread,
    /// so that taking it again cannot suspend. True if the time ran out.
    pub(crate) fn wait_on_condvar(&self, me: ThreadId, queue: usize, lock: usize, timeout_ns: Option<u64>) -> bool {
        let timed_out = self.block(me, Blocked::Condvar(queue), timeout_ns);
        self.acquire(me, lock, Mode::Exclusive);
        self.get_mut().threads[me.index()].handed = Some(lock);
        timed_out
    }

    /// Puts the running thread into a condition's queue, before it gives up the mutex.
    pub(crate) fn enqueue(&self, me: ThreadId, queue: usize) {
        let mut core = self.get_mut();
        core.record(me, WAIT, [queue as u64, 0], 0);
        core.queues[queue].waiters.push_back(me);
    }

    /// Waits on a word's queue. True if the time ran out.
    pub(crate) fn wait_on_word(&self, me: ThreadId, queue: usize, timeout_ns: Option<u64>) -> bool {
        self.enqueue(me, queue);
        self.block(me, Blocked::Word(queue), timeout_ns)
    }

    /// Wakes up to `count` of those that wait on a queue.
    pub(crate) fn notify(&self, process: ProcessId, queue: usize, count: usize) {
        if self.point(process).is_none() && self.get().processes[process.index()].dead {
            return;
        }
        let mut core = self.get_mut();
        let Some(me) = core.current else { return };
        for _ in 0..count {
            let Some(waiter) = core.queues[queue].waiters.pop_front() else { break };
            core.record(me, NOTIFY, [queue as u64, 0], 0);
            core.wake(waiter);
        }
    }
}
