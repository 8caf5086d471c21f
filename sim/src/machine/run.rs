//! A machine from outside: starting processes, running, stopping, killing, cutting the power.

use std::rc::Rc;

use super::core::{Core, CoreRef, ProcessId, ThreadState};
use super::host;
use super::profile::{LockModel, Profile};
use super::schedule::SchedulePolicy;
use crate::choices::{Actor, Family};
use crate::context::Context;
use crate::disk::{Disk, DiskProfile};
use crate::env::SimEnv;
use crate::record::Op;
use crate::scenario::Finding;

const KILL: Op = Op::new("kill");
const POWER_LOSS: Op = Op::new("power-loss");

/// Why a run came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The main thread of every live process has ended.
    Ended,
    /// The next operation is the one to stop before.
    AtOperation,
    /// Nothing can happen any more, though a main thread has not ended: a finding says who waits for what.
    Deadlock,
    /// The run exceeded a limit: a finding says which.
    OverLimit,
    /// An oracle inside the machine found something: a panic, a cycle of locks.
    Finding,
}

/// Bounds of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Env operations.
    pub operations: u64,
    /// Virtual time.
    pub virtual_ns: u64,
}

/// A simulated machine.
pub struct Machine {
    core: CoreRef,
}

impl Machine {
    /// Makes a machine with that disk. `root` is the actor that its own actors descend from.
    pub fn new(
        mut context: Box<Context>,
        root: Actor,
        profile: Rc<Profile>,
        policy: SchedulePolicy,
        disk: Disk,
    ) -> Self {
        host::install_panic_hook();
        let fair_locks = match profile.lock_model {
            LockModel::Fair => true,
            LockModel::Barging => false,
            LockModel::Choice => {
                let stream = context.stream(Family::Option, root.child("lock-model", 0));
                context.below(stream, 2) == 0
            }
        };
        Self { core: CoreRef::new(Core::new(context, root, profile, policy, fair_locks, disk)) }
    }

    /// Starts a process whose main thread runs `main`.
    pub fn start(&mut self, name: &str, main: impl FnOnce(SimEnv) + 'static) -> ProcessId {
        let process = self.core.get_mut().add_process(name);
        let env = SimEnv::new(self.core.clone(), process);
        self.core.spawn(process, name, true, move || main(env));
        process
    }

    /// Runs until every main thread has ended, before the operation `stop_before` (counted from the machine's start),
    /// or to a finding.
    pub fn run(&mut self, stop_before: Option<u64>, limits: Limits) -> Stop {
        {
            let mut core = self.core.get_mut();
            core.stop_at = stop_before.unwrap_or(u64::MAX);
            core.stopping = false;
        }
        loop {
            let next = {
                let mut core = self.core.get_mut();
                if !core.findings.is_empty() {
                    return Stop::Finding;
                }
                if core.stopping {
                    core.stopping = false;
                    return Stop::AtOperation;
                }
                if core.mains_ended() {
                    return Stop::Ended;
                }
                if let Some(stop) = core.check_limits(limits) {
                    return stop;
                }
                core.due_events();
                match core.charged.take() {
                    Some(thread) => Some(thread),
                    None if core.cores_free > 0 => core.pick_ready().inspect(|thread| {
                        core.cores_free -= 1;
                        core.threads[thread.index()].state = ThreadState::OnCore;
                    }),
                    None => None,
                }
            };
            match next {
                Some(thread) => self.core.resume(thread),
                None if self.core.get_mut().next_event() => {}
                None => {
                    let mut core = self.core.get_mut();
                    let blocked = core.describe_blocked();
                    core.find("no-deadlock", format!("nothing can happen any more:{blocked}"));
                    return Stop::Deadlock;
                }
            }
        }
    }

    /// Kills a process, as `kill -9` does: its threads end where they are, and the disk keeps what reads see.
    pub fn kill(&mut self, process: ProcessId) {
        self.core.kill(process);
        let mut core = self.core.get_mut();
        let root = core.root;
        core.ctx().record(root, KILL, [u64::from(process.number()), 0], 0);
        let (disk, ctx) = core.disk_and_ctx();
        disk.kill(ctx, process.owner());
    }

    /// Cuts the power: every process dies, and the disk keeps one of the states that its rules allow.
    pub fn power_loss(&mut self) {
        for process in self.live_processes() {
            self.core.kill(process);
        }
        let mut core = self.core.get_mut();
        let root = core.root;
        core.ctx().record(root, POWER_LOSS, [0, 0], 0);
        let (disk, ctx) = core.disk_and_ctx();
        disk.power_loss(ctx, root);
    }

    /// The processes that have not been killed.
    pub fn live_processes(&self) -> Vec<ProcessId> {
        let core = self.core.get();
        core.process_ids().filter(|process| !core.processes[process.index()].dead).collect()
    }

    /// Takes an image of what the disk could hold if the power went now. The run can go on.
    pub fn crash_image(&mut self, actor: Actor) -> Disk {
        let mut core = self.core.get_mut();
        let (disk, ctx) = core.disk_and_ctx();
        disk.crash_image(ctx, actor)
    }

    /// Runs `body` with the run's context, for nested machines and for choices of the scenario's own. Virtual time is the
    /// machine's own: what passes inside is taken back.
    pub fn with_context<R>(&mut self, body: impl FnOnce(Box<Context>) -> (Box<Context>, R)) -> R {
        let context = self.core.get_mut().lend_context();
        let now_ns = context.now_ns;
        let (mut context, result) = host::without_current(|| body(context));
        context.now_ns = now_ns;
        self.core.get_mut().return_context(context);
        result
    }

    /// Runs `body` with the disk and the context.
    pub fn with_disk<R>(&mut self, body: impl FnOnce(&mut Disk, &mut Context) -> R) -> R {
        let mut core = self.core.get_mut();
        let (disk, ctx) = core.disk_and_ctx();
        body(disk, ctx)
    }

    /// Moves civil time against monotonic time.
    pub fn shift_civil_time(&mut self, by_ms: i64) {
        self.core.get_mut().disk.shift_civil_time(by_ms);
    }

    /// Env operations made so far.
    pub fn operations(&self) -> u64 {
        self.core.get().operations
    }

    /// Virtual time.
    pub fn now_ns(&self) -> u64 {
        self.core.get_mut().ctx().now_ns
    }

    /// Takes what was found inside the machine so far.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.core.get_mut().findings)
    }

    /// Names of the actors of this machine's threads.
    pub fn actor_names(&self) -> Vec<(u64, String)> {
        let core = self.core.get();
        let name =
            |t: &super::core::Thread| (t.actor.0, format!("{}:{}", core.processes[t.process.index()].name, t.name));
        core.threads.iter().map(name).collect()
    }

    /// Ends the machine: every process dies. Gives back the context and the disk.
    pub fn end(self) -> (Box<Context>, Disk) {
        for process in self.live_processes() {
            self.core.kill(process);
        }
        let mut core = self.core.get_mut();
        let context = core.lend_context();
        (context, std::mem::replace(&mut core.disk, Disk::new(DiskProfile::default())))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for process in self.live_processes() {
            self.core.kill(process);
        }
    }
}

impl Core {
    fn check_limits(&mut self, limits: Limits) -> Option<Stop> {
        let now_ns = self.ctx().now_ns;
        if self.operations > limits.operations {
            let blocked = self.describe_blocked();
            self.find("bounded-work", format!("more than {} operations:{blocked}", limits.operations));
        } else if now_ns > limits.virtual_ns {
            let blocked = self.describe_blocked();
            self.find("bounded-time", format!("more than {} ns of virtual time:{blocked}", limits.virtual_ns));
        } else {
            return None;
        }
        Some(Stop::OverLimit)
    }

    fn process_ids(&self) -> impl Iterator<Item = ProcessId> + use<> {
        (0..self.processes.len()).map(ProcessId::from_index)
    }
}
