//! The state of a simulated machine, and how a thread of it gives way.
//!
//! Every env operation begins with [`CoreRef::point`]: the place where a thread can be preempted, where a run can be
//! stopped, and where a dead or unwinding thread learns that it has no say any more.

use std::cell::{Ref, RefCell, RefMut};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::rc::Rc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, Yielder};
use slab::Slab;
use stormlog::env::{Step, TaskPanic};

use super::lock_order::LockOrder;
use super::profile::{Profile, QUANTILE_STEPS};
use super::schedule::{PriorityState, SchedulePolicy};
use super::sync::{LockRecord, WaitQueue};
use super::{host, stack};
use crate::choices::{Actor, Family, Stream};
use crate::context::Context;
use crate::disk::{Disk, Owner};
use crate::record::Op;
use crate::scenario::Finding;

/// A thread of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadId(u32);

impl ThreadId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A process of a machine. A restarted program is another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessId(u32);

impl ProcessId {
    pub(super) fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("few processes"))
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    /// Its number on its machine, from 0.
    pub fn number(self) -> u32 {
        self.0
    }

    /// Who it is to the disk, as an owner of handles and locks.
    pub fn owner(self) -> Owner {
        Owner(u64::from(self.0))
    }
}

pub(super) type Fiber = Coroutine<(), (), (), DefaultStack>;

/// What giving way takes: a system call. If it took nothing, a thread that gives way until something happens would keep
/// time from going on.
const YIELD_NS: u64 = 500;

/// What a blocked thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocked {
    Lock(usize),
    Condvar(usize),
    Word(usize),
    Join(ThreadId),
    Sleep,
    Io,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadState {
    /// In the ready queue.
    Ready,
    /// On a core, running or charged for.
    OnCore,
    /// Waits.
    Blocked(Blocked),
    /// Woken, and not yet able to run.
    Waking,
    Finished,
}

pub(super) struct Thread {
    pub(super) name: String,
    pub(super) actor: Actor,
    pub(super) process: ProcessId,
    pub(super) state: ThreadState,
    pub(super) fiber: Option<Fiber>,
    yielder: *const Yielder<(), ()>,
    /// Counts the thread's waits; an event that is meant for an earlier wait is stale.
    pub(super) wait: u64,
    pub(super) timed_out: bool,
    until_preempt: u64,
    pub(super) preempt_stream: Stream,
    latency_stream: Stream,
    /// CPU work that was charged and has not yet taken time.
    debt_ps: u64,
    /// Locks held, in the order of their taking.
    pub(super) held: Vec<usize>,
    /// A mutex that was handed over before the thread asks for it.
    pub(super) handed: Option<usize>,
    pub(super) priority: i64,
    pub(super) result: Option<Result<(), TaskPanic>>,
    joiners: Vec<ThreadId>,
    children: BTreeMap<String, u64>,
    is_main: bool,
}

pub(super) struct Process {
    pub(super) name: String,
    pub(super) actor: Actor,
    pub(super) dead: bool,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    at_ns: u64,
    number: u64,
    thread: ThreadId,
    wait: u64,
    kind: TimerKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TimerKind {
    /// The thread, woken before, can run.
    Runnable,
    /// What the thread waited for took this long: an I/O, a sleep, or the time it gave a wait.
    Elapsed,
    /// Charged CPU work is done.
    Charged,
}

/// Classes of I/O that have a latency of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IoClass {
    Read,
    Write,
    Sync,
    Name,
}

/// All of a machine's state.
pub(crate) struct Core {
    context: Option<Box<Context>>,
    pub(super) root: Actor,
    pub(super) profile: Rc<Profile>,
    step_ps: Vec<u64>,
    pub(super) fair_locks: bool,
    pub(super) policy: SchedulePolicy,
    pub(super) priorities: PriorityState,
    pub(super) schedule_stream: Stream,
    pub(crate) disk: Disk,
    pub(super) threads: Vec<Thread>,
    pub(super) processes: Vec<Process>,
    pub(super) locks: Slab<LockRecord>,
    pub(super) queues: Slab<WaitQueue>,
    pub(super) lock_order: LockOrder,
    pub(super) ready: VecDeque<ThreadId>,
    pub(super) cores_free: usize,
    pub(super) current: Option<ThreadId>,
    /// A thread whose charged work is done: it holds its core still, and goes on before any other.
    pub(super) charged: Option<ThreadId>,
    timers: BinaryHeap<Reverse<Timer>>,
    timer_count: u64,
    device_free_at_ns: u64,
    pub(crate) operations: u64,
    /// Stop before the operation of this number.
    pub(super) stop_at: u64,
    pub(super) stopping: bool,
    pub(crate) findings: Vec<Finding>,
}

pub(super) const SWITCH: Op = Op::new("switch");
const SPAWN: Op = Op::new("spawn");
const END: Op = Op::new("end");
const CHARGE: Op = Op::new("charge");
const STOP: Op = Op::new("stop");

/// A machine's state, shared by its handles.
#[derive(Clone)]
pub(crate) struct CoreRef(Rc<RefCell<Core>>);

// SAFETY: a simulation never leaves its host thread: machines are neither `Send` nor `Sync`, simulated threads are
// coroutines of the host thread that made them, and the handles inside them live and die with them. `Env` asks for the
// bounds because the real world's threads are the host's.
unsafe impl Send for CoreRef {}
// SAFETY: as for `Send`.
unsafe impl Sync for CoreRef {}

impl Core {
    pub(super) fn new(
        context: Box<Context>,
        root: Actor,
        profile: Rc<Profile>,
        policy: SchedulePolicy,
        fair_locks: bool,
        disk: Disk,
    ) -> Self {
        let mut context = context;
        let schedule_stream = context.stream(Family::Schedule, root);
        let mut core = Self {
            context: Some(context),
            root,
            step_ps: profile.step_table(),
            fair_locks,
            policy,
            priorities: PriorityState::default(),
            schedule_stream,
            disk,
            threads: Vec::new(),
            processes: Vec::new(),
            locks: Slab::new(),
            queues: Slab::new(),
            lock_order: LockOrder::default(),
            ready: VecDeque::new(),
            cores_free: profile.cores,
            current: None,
            charged: None,
            timers: BinaryHeap::new(),
            timer_count: 0,
            device_free_at_ns: 0,
            operations: 0,
            stop_at: u64::MAX,
            stopping: false,
            findings: Vec::new(),
            profile,
        };
        core.prepare_schedule();
        core
    }

    pub(crate) fn ctx(&mut self) -> &mut Context {
        self.context.as_mut().expect("the context is lent out only while no thread runs")
    }

    pub(super) fn lend_context(&mut self) -> Box<Context> {
        self.context.take().expect("the context is lent once")
    }

    pub(super) fn return_context(&mut self, context: Box<Context>) {
        assert!(self.context.replace(context).is_none(), "the context was lent");
    }

    /// The disk, and the context that it draws from.
    pub(crate) fn disk_and_ctx(&mut self) -> (&mut Disk, &mut Context) {
        (&mut self.disk, self.context.as_mut().expect("the context is lent out only while no thread runs"))
    }

    pub(crate) fn find(&mut self, oracle: &str, message: String) {
        self.findings.push(Finding { oracle: oracle.to_owned(), message });
    }

    pub(crate) fn record(&mut self, thread: ThreadId, op: Op, args: [u64; 2], result: u64) {
        let actor = self.threads[thread.index()].actor;
        self.ctx().record(actor, op, args, result);
    }

    pub(super) fn add_process(&mut self, name: &str) -> ProcessId {
        let id = ProcessId::from_index(self.processes.len());
        let actor = self.root.child(name, u64::from(id.0));
        self.processes.push(Process { name: name.to_owned(), actor, dead: false });
        id
    }

    fn set_timer(&mut self, thread: ThreadId, kind: TimerKind, at_ns: u64) {
        let wait = self.threads[thread.index()].wait;
        self.timer_count += 1;
        self.timers.push(Reverse(Timer { at_ns, number: self.timer_count, thread, wait, kind }));
    }

    /// Blocks the running thread, for at most `timeout_ns`. The caller suspends next.
    pub(super) fn block(&mut self, me: ThreadId, on: Blocked, timeout_ns: Option<u64>) {
        let thread = &mut self.threads[me.index()];
        debug_assert_eq!(thread.state, ThreadState::OnCore);
        thread.state = ThreadState::Blocked(on);
        thread.wait += 1;
        thread.timed_out = false;
        self.cores_free += 1;
        if let Some(timeout_ns) = timeout_ns {
            let at_ns = self.ctx().now_ns.saturating_add(timeout_ns);
            self.set_timer(me, TimerKind::Elapsed, at_ns);
        }
    }

    /// Wakes a blocked thread: it can run after the profile's wake-up time.
    pub(super) fn wake(&mut self, thread: ThreadId) {
        let record = &mut self.threads[thread.index()];
        debug_assert!(matches!(record.state, ThreadState::Blocked(_)), "{} is {:?}", record.name, record.state);
        record.state = ThreadState::Waking;
        record.wait += 1;
        let at_ns = self.ctx().now_ns + self.profile.wake_ns;
        self.set_timer(thread, TimerKind::Runnable, at_ns);
    }

    pub(super) fn make_ready(&mut self, thread: ThreadId) {
        self.threads[thread.index()].state = ThreadState::Ready;
        self.ready.push_back(thread);
    }

    /// Lets everything happen that is due at the present time.
    pub(super) fn due_events(&mut self) {
        let now_ns = self.ctx().now_ns;
        while self.charged.is_none() && self.timers.peek().is_some_and(|Reverse(timer)| timer.at_ns <= now_ns) {
            let Reverse(timer) = self.timers.pop().expect("peeked");
            self.fire(&timer);
        }
    }

    /// Moves time to the next event and lets it happen. False if there is none.
    pub(super) fn next_event(&mut self) -> bool {
        while let Some(Reverse(timer)) = self.timers.pop() {
            if self.fire(&timer) {
                return true;
            }
        }
        false
    }

    /// Lets a timer's event happen, unless it was meant for a wait that is over.
    fn fire(&mut self, timer: &Timer) -> bool {
        let record = &self.threads[timer.thread.index()];
        if record.wait != timer.wait || record.state == ThreadState::Finished {
            return false;
        }
        let ctx = self.ctx();
        debug_assert!(timer.at_ns >= ctx.now_ns, "time goes forward");
        ctx.now_ns = timer.at_ns;
        match timer.kind {
            TimerKind::Runnable => self.make_ready(timer.thread),
            TimerKind::Charged => self.charged = Some(timer.thread),
            TimerKind::Elapsed => self.elapse(timer.thread),
        }
        true
    }

    fn elapse(&mut self, thread: ThreadId) {
        let ThreadState::Blocked(on) = self.threads[thread.index()].state else {
            unreachable!("only a blocked thread's time elapses");
        };
        match on {
            Blocked::Condvar(queue) | Blocked::Word(queue) => {
                self.queues[queue].waiters.retain(|waiter| *waiter != thread);
                self.threads[thread.index()].timed_out = true;
            }
            Blocked::Sleep | Blocked::Io => {}
            Blocked::Lock(_) | Blocked::Join(_) => unreachable!("these waits have no time limit"),
        }
        self.threads[thread.index()].wait += 1;
        self.make_ready(thread);
    }
}

/// A closure that another stack of the same host thread runs.
struct SameThread<F>(F);

// SAFETY: the parent stack belongs to the host thread that the coroutine runs on, since machines never leave it.
unsafe impl<F> Send for SameThread<F> {}

impl<F: FnOnce() -> R, R> SameThread<F> {
    fn call(self) -> R {
        (self.0)()
    }
}

impl CoreRef {
    pub(super) fn new(core: Core) -> Self {
        Self(Rc::new(RefCell::new(core)))
    }

    pub(crate) fn get(&self) -> Ref<'_, Core> {
        self.0.borrow()
    }

    pub(crate) fn get_mut(&self) -> RefMut<'_, Core> {
        self.0.borrow_mut()
    }

    /// The point before an env operation of a thread of `process`. The thread may be preempted here, and the run
    /// stopped. `None` if the thread has no say any more: its process is dead, or it unwinds.
    #[inline]
    pub(crate) fn point(&self, process: ProcessId) -> Option<ThreadId> {
        if std::thread::panicking() {
            return None;
        }
        let (me, gives_way) = {
            let mut core = self.0.borrow_mut();
            let Some(me) = core.current else {
                assert!(core.processes[process.index()].dead, "env is used by simulated threads only");
                return None;
            };
            core.operations += 1;
            let thread = &mut core.threads[me.index()];
            assert_eq!(thread.process, process, "a handle is used in the process that it was made in");
            thread.until_preempt -= 1;
            (me, thread.until_preempt == 0 || core.operations >= core.stop_at || core.has_priority_change())
        };
        if gives_way {
            self.give_way(me);
        }
        Some(me)
    }

    /// The running thread, if it is one of `process` that has a say; without a point.
    pub(crate) fn running(&self, process: ProcessId) -> Option<ThreadId> {
        let core = self.0.borrow();
        core.current.filter(|me| !std::thread::panicking() && core.threads[me.index()].process == process)
    }

    /// The running thread, if the run will be stopped at its next point.
    pub(crate) fn stop_is_next(&self, process: ProcessId) -> Option<ThreadId> {
        let next = self.0.borrow().operations + 1;
        self.running(process).filter(|_| next >= self.0.borrow().stop_at)
    }

    /// As [`CoreRef::point`], for the process of the running thread. Outside of simulated threads there is none.
    #[inline]
    pub(crate) fn point_of_current(&self) {
        let current = self.0.borrow().current;
        if let Some(me) = current {
            let process = self.0.borrow().threads[me.index()].process;
            self.point(process);
        }
    }

    #[cold]
    fn give_way(&self, me: ThreadId) {
        let mut core = self.0.borrow_mut();
        if core.threads[me.index()].until_preempt == 0 {
            core.preempt(me);
        }
        if core.threads[me.index()].state == ThreadState::OnCore && core.priority_changes(me) {
            core.requeue(me);
        }
        if core.operations >= core.stop_at {
            core.stop_at = u64::MAX;
            core.stopping = true;
            let operations = core.operations;
            core.record(me, STOP, [operations, 0], 0);
            if core.threads[me.index()].state == ThreadState::OnCore {
                // It goes on first when the run does: being stopped changes nothing.
                core.charged = Some(me);
            }
        }
        let stays = core.threads[me.index()].state == ThreadState::OnCore && !core.stopping;
        drop(core);
        if !stays {
            self.suspend(me);
        }
    }

    /// Gives the CPU to the scheduler. Does not come back if the process is killed meanwhile: the stack unwinds.
    pub(super) fn suspend(&self, me: ThreadId) {
        let yielder = self.0.borrow().threads[me.index()].yielder;
        // SAFETY: the yielder is the running thread's own, set when its body began, and lives as long as its stack.
        unsafe { (*yielder).suspend(()) }
    }

    /// Blocks the running thread until it is woken or `timeout_ns` has passed. True if the time ran out.
    pub(super) fn block(&self, me: ThreadId, on: Blocked, timeout_ns: Option<u64>) -> bool {
        self.0.borrow_mut().block(me, on, timeout_ns);
        self.suspend(me);
        self.0.borrow().threads[me.index()].timed_out
    }

    /// Does an I/O: `body` at once, on the scheduler's stack, and then the time that it takes.
    pub(crate) fn io<R>(&self, process: ProcessId, class: IoClass, body: impl FnOnce(&mut Core) -> R) -> Option<R> {
        let me = self.point(process)?;
        let yielder = self.0.borrow().threads[me.index()].yielder;
        let on_scheduler = SameThread(|| body(&mut self.0.borrow_mut()));
        // SAFETY: as in `suspend`; `body` runs to its end before the thread goes on.
        let result = unsafe { (*yielder).on_parent_stack(move || on_scheduler.call()) };
        let latency_ns = self.0.borrow_mut().draw_latency(me, class);
        self.block(me, Blocked::Io, Some(latency_ns));
        Some(result)
    }

    /// Charges CPU work to the running thread.
    pub(crate) fn charge(&self, process: ProcessId, step: Step, n: u64) {
        if std::thread::panicking() {
            return;
        }
        let me = {
            let mut core = self.0.borrow_mut();
            let me = core.current.expect("env is used by simulated threads only");
            let cost_ps = core.step_ps[step as usize].saturating_mul(n);
            let grain_ps = core.profile.charge_grain_ns.saturating_mul(1000);
            core.record(me, CHARGE, [step as u64, n], 0);
            let thread = &mut core.threads[me.index()];
            assert_eq!(thread.process, process, "a handle is used in the process that it was made in");
            thread.debt_ps = thread.debt_ps.saturating_add(cost_ps);
            if thread.debt_ps < grain_ps.max(1000) {
                return;
            }
            me
        };
        self.work_off(me);
    }

    /// Holds the core for the CPU work charged so far, a quantum at a time.
    fn work_off(&self, me: ThreadId) {
        loop {
            let mut core = self.0.borrow_mut();
            let thread = &mut core.threads[me.index()];
            let left_ns = thread.debt_ps / 1000;
            if left_ns == 0 {
                return;
            }
            let quantum_ns = core.profile.quantum_ns;
            let slice_ns = left_ns.min(quantum_ns);
            let thread = &mut core.threads[me.index()];
            thread.debt_ps -= slice_ns * 1000;
            thread.wait += 1;
            let ends_at_ns = core.ctx().now_ns + slice_ns;
            core.set_timer(me, TimerKind::Charged, ends_at_ns);
            drop(core);
            self.suspend(me);
            let mut core = self.0.borrow_mut();
            if slice_ns == quantum_ns && !core.ready.is_empty() {
                core.requeue(me);
                drop(core);
                self.suspend(me);
            }
        }
    }

    pub(crate) fn yield_now(&self, process: ProcessId) {
        if let Some(me) = self.point(process) {
            self.0.borrow_mut().go_away(me, YIELD_NS);
            self.suspend(me);
        }
    }

    pub(crate) fn sleep(&self, process: ProcessId, duration_ns: u64) {
        if let Some(me) = self.point(process) {
            self.block(me, Blocked::Sleep, Some(duration_ns));
        }
    }

    /// Starts a thread of `process`.
    pub(crate) fn spawn(
        &self,
        process: ProcessId,
        name: &str,
        is_main: bool,
        body: impl FnOnce() + 'static,
    ) -> ThreadId {
        let core_ref = self.clone();
        let mut core = self.0.borrow_mut();
        let id = ThreadId(u32::try_from(core.threads.len()).expect("few threads"));
        let parent = core.current.filter(|_| !is_main);
        let actor = match parent {
            None => core.processes[process.index()].actor.child(name, 0),
            Some(parent) => {
                let thread = &mut core.threads[parent.index()];
                let nth = thread.children.entry(name.to_owned()).or_insert(0);
                *nth += 1;
                thread.actor.child(name, *nth)
            }
        };
        let fiber = Fiber::with_stack(stack::take(), move |yielder, ()| core_ref.thread_body(id, yielder, body));
        let preempt_stream = core.ctx().stream(Family::Preempt, actor);
        let latency_stream = core.ctx().stream(Family::Latency, actor);
        core.threads.push(Thread {
            name: name.to_owned(),
            actor,
            process,
            state: ThreadState::Waking,
            fiber: Some(fiber),
            yielder: std::ptr::null(),
            wait: 0,
            timed_out: false,
            until_preempt: u64::MAX,
            preempt_stream,
            latency_stream,
            debt_ps: 0,
            held: Vec::new(),
            handed: None,
            priority: 0,
            result: None,
            joiners: Vec::new(),
            children: BTreeMap::new(),
            is_main,
        });
        core.threads[id.index()].priority = core.draw_priority(actor);
        core.threads[id.index()].until_preempt = core.draw_until_preempt(id);
        core.record(id, SPAWN, [u64::from(id.0), u64::from(process.0)], 0);
        let at_ns = core.ctx().now_ns + core.profile.wake_ns;
        core.set_timer(id, TimerKind::Runnable, at_ns);
        id
    }

    fn thread_body(&self, id: ThreadId, yielder: &Yielder<(), ()>, body: impl FnOnce()) {
        let process = {
            let mut core = self.0.borrow_mut();
            core.threads[id.index()].yielder = yielder;
            core.threads[id.index()].process
        };
        let result = self.run_task(process, body);
        let mut core = self.0.borrow_mut();
        core.record(id, END, [u64::from(result.is_err()), 0], 0);
        core.threads[id.index()].result = Some(result);
        for joiner in std::mem::take(&mut core.threads[id.index()].joiners) {
            core.wake(joiner);
        }
    }

    /// Runs `task` and turns its panic into an error and a finding. The unwinding of a dead process's thread goes on.
    pub(crate) fn run_task<R>(&self, process: ProcessId, task: impl FnOnce() -> R) -> Result<R, TaskPanic> {
        #[allow(clippy::disallowed_methods, reason = "this is where simulated threads' panics are caught")]
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(task));
        result.map_err(|payload| {
            let mut core = self.0.borrow_mut();
            if core.processes[process.index()].dead {
                drop(core);
                std::panic::resume_unwind(payload);
            }
            let panic = TaskPanic::from_payload(&*payload);
            let thread = core.current.map_or_else(String::new, |me| core.threads[me.index()].name.clone());
            let message = match host::take_panic() {
                Some(caught) => {
                    format!("thread {thread} panicked at {}: {}\n{}", caught.place, caught.message, caught.backtrace)
                }
                None => format!("thread {thread} panicked: {}", panic.message),
            };
            core.find("no-panic", message);
            panic
        })
    }

    pub(crate) fn join(&self, process: ProcessId, thread: ThreadId) -> Result<(), TaskPanic> {
        let gone = || TaskPanic { message: "the joining thread unwinds".to_owned() };
        let me = self.point(process).ok_or_else(gone)?;
        let running = self.0.borrow().threads[thread.index()].result.is_none();
        if running {
            self.0.borrow_mut().threads[thread.index()].joiners.push(me);
            self.block(me, Blocked::Join(thread), None);
        }
        self.0.borrow_mut().threads[thread.index()].result.clone().expect("a joined thread has ended")
    }

    pub(crate) fn is_finished(&self, thread: ThreadId) -> bool {
        self.0.borrow().threads[thread.index()].result.is_some()
    }

    /// Lets `thread` run until it suspends or ends.
    pub(super) fn resume(&self, thread: ThreadId) {
        let mut fiber = {
            let mut core = self.0.borrow_mut();
            core.record(thread, SWITCH, [0, 0], 0);
            core.current = Some(thread);
            core.threads[thread.index()].fiber.take().expect("a suspended thread has its stack")
        };
        let ended = host::with_current(self, || fiber.resume(()).as_return().is_some());
        let mut core = self.0.borrow_mut();
        core.current = None;
        if ended {
            core.threads[thread.index()].state = ThreadState::Finished;
            core.cores_free += 1;
            drop(core);
            stack::give_back(fiber.into_stack());
        } else {
            core.threads[thread.index()].fiber = Some(fiber);
        }
    }

    /// Kills a process: it is dead, then its threads unwind, without effect, and its handles and locks are gone.
    pub(super) fn kill(&self, process: ProcessId) {
        let fibers = {
            let mut core = self.0.borrow_mut();
            let core = &mut *core;
            assert!(core.current.is_none(), "a process is killed by the scheduler, not by a thread");
            core.processes[process.index()].dead = true;
            let mut fibers = Vec::new();
            for thread in core.threads.iter_mut().filter(|t| t.process == process) {
                if thread.state == ThreadState::OnCore {
                    core.cores_free += 1;
                }
                thread.state = ThreadState::Finished;
                fibers.extend(thread.fiber.take());
            }
            let threads = &core.threads;
            core.ready.retain(|thread| threads[thread.index()].process != process);
            core.charged = core.charged.filter(|thread| threads[thread.index()].process != process);
            fibers
        };
        for mut fiber in fibers {
            host::with_current(self, || fiber.force_unwind());
            stack::give_back(fiber.into_stack());
        }
    }
}

impl Core {
    fn has_priority_change(&self) -> bool {
        self.priorities.change_at.first().is_some_and(|at| *at <= self.operations)
    }

    /// The running thread gives up its core and queues up for one.
    fn requeue(&mut self, me: ThreadId) {
        self.cores_free += 1;
        self.make_ready(me);
    }

    /// Takes the core from the running thread, for nothing or for a while in which what the others wait for happens.
    fn preempt(&mut self, me: ThreadId) {
        self.threads[me.index()].until_preempt = self.draw_until_preempt(me);
        let stream = self.threads[me.index()].preempt_stream;
        let quantum_ns = self.profile.quantum_ns;
        let away_ns = match self.ctx().weighted(stream, &[2, 2, 1]) {
            0 => return self.requeue(me),
            1 => self.profile.wake_ns,
            _ => self.ctx().range(stream, quantum_ns, 10 * quantum_ns),
        };
        self.go_away(me, away_ns);
    }

    /// The running thread gives up its core and can run again after a while.
    fn go_away(&mut self, me: ThreadId, away_ns: u64) {
        self.cores_free += 1;
        self.threads[me.index()].state = ThreadState::Waking;
        self.threads[me.index()].wait += 1;
        let at_ns = self.ctx().now_ns + away_ns;
        self.set_timer(me, TimerKind::Runnable, at_ns);
    }

    fn draw_latency(&mut self, me: ThreadId, class: IoClass) -> u64 {
        let stream = self.threads[me.index()].latency_stream;
        let position = self.ctx().below(stream, QUANTILE_STEPS);
        let debt_ns = self.threads[me.index()].debt_ps / 1000;
        self.threads[me.index()].debt_ps %= 1000;
        let tables = &self.profile.latency_ns;
        let latency_ns = match class {
            IoClass::Read => tables.read.at(position),
            IoClass::Write => tables.write.at(position),
            IoClass::Name => tables.name.at(position),
            IoClass::Sync => {
                let sync_ns = tables.sync.at(position);
                let now_ns = self.ctx().now_ns;
                self.device_free_at_ns = self.device_free_at_ns.max(now_ns) + sync_ns;
                self.device_free_at_ns - now_ns
            }
        };
        debt_ns + latency_ns
    }

    pub(crate) fn actor_of(&self, thread: ThreadId) -> Actor {
        self.threads[thread.index()].actor
    }

    pub(crate) fn is_alive(&self, process: ProcessId) -> bool {
        !self.processes[process.index()].dead
    }

    pub(crate) fn core_count(&self) -> usize {
        self.profile.cores
    }

    /// Whether the main thread of every live process has ended.
    pub(super) fn mains_ended(&self) -> bool {
        let running = |thread: &Thread| {
            thread.is_main && thread.state != ThreadState::Finished && !self.processes[thread.process.index()].dead
        };
        !self.threads.iter().any(running)
    }
}
