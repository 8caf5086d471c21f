//! Many seeds over several worker processes.
//!
//! Model: each worker holds at most two orders of consecutive seeds, sized to take some 50 ms, and answers seed by
//! seed. A worker that ends, or answers nothing for the pool's patience, is a finding of the seed it was at; it
//! is replaced, and the rest of its orders is handed out again. Answers are passed on in the order of their seeds, so
//! that a campaign tells the same story whatever the number of workers.
//!
//! Not modelled: a worker that is slow because the host is. Its patience is host time.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "host time and channels, outside of any run")]

use std::collections::{BTreeMap, VecDeque};
use std::ops::{ControlFlow, Range};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::job::{Job, Judged};
use super::process::{Message, Process, WorkerCommand};
use super::protocol::{Order, Reply};
use super::runner::{RunError, START_PATIENCE, no_progress};

const ORDER_TIME: Duration = Duration::from_millis(50);
const ORDER_SEEDS_MAX: u64 = 256;
const ORDERS_PER_WORKER: usize = 2;
/// How often the listener is asked whether to go on when nothing is heard.
const TICK: Duration = Duration::from_millis(100);
/// How long the last seeds may take once the campaign is told to stop.
const GRACE: Duration = Duration::from_millis(1500);

/// Hears what comes of seeds.
pub trait Listener {
    /// A seed is done. Seeds come in order.
    fn judged(&mut self, seed: u64, judged: Judged) -> ControlFlow<()>;
    /// Called some ten times a second; `done` counts seeds that are done, passed on or not.
    fn tick(&mut self, done: u64) -> ControlFlow<()>;
}

/// How a range of seeds was gone through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Seeds that were begun when the campaign stopped and came to no end in time.
    pub unfinished: Vec<u64>,
    /// Workers that had to be replaced.
    pub replaced: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Killed {
    /// The seed took longer than the pool's patience.
    Impatient,
    /// The campaign stopped, and the seed did not end in the time of grace.
    Stopped,
}

struct Worker {
    id: u64,
    process: Process,
    ready: bool,
    orders: VecDeque<Range<u64>>,
    last_heard: Instant,
    killed: Option<Killed>,
}

impl Worker {
    fn current(&self) -> Option<u64> {
        self.orders.front().map(|order| order.start)
    }

    fn answered(&mut self, seed: u64) {
        let order = self.orders.front_mut().expect("a worker answers what it was told to run");
        assert_eq!(order.start, seed, "a worker answers in order");
        order.start += 1;
        if order.is_empty() {
            self.orders.pop_front();
        }
        self.last_heard = Instant::now();
    }

    fn kill(&mut self, why: Killed) {
        self.killed = Some(why);
        self.process.kill();
    }
}

/// Worker processes that go through seeds.
pub struct Pool {
    command: WorkerCommand,
    jobs: usize,
    patience: Duration,
    next_id: u64,
    workers: Vec<Worker>,
    to: Sender<(u64, Message)>,
    from: Receiver<(u64, Message)>,
}

/// One [`Pool::run`].
struct Round<'a> {
    job: &'a Job,
    left: VecDeque<Range<u64>>,
    began: Instant,
    ticked: Instant,
    stopped: Option<Instant>,
    done: u64,
    /// Done, but a lower seed is not.
    waiting: BTreeMap<u64, Judged>,
    /// The lowest seed that is not passed on.
    next: u64,
    coverage: Coverage,
}

impl Pool {
    /// `jobs` workers, started when first needed; `patience` is what one seed may take.
    pub fn new(command: WorkerCommand, jobs: usize, patience: Duration) -> Self {
        assert!(jobs > 0, "somebody must do the work");
        let (to, from) = channel();
        Self { command, jobs, patience, next_id: 0, workers: Vec::new(), to, from }
    }

    /// Runs `seeds` of `job`, until they are through or the listener breaks.
    pub fn run(&mut self, job: &Job, seeds: Range<u64>, listener: &mut dyn Listener) -> Result<Coverage, RunError> {
        let now = Instant::now();
        let mut round = Round {
            job,
            next: seeds.start,
            left: VecDeque::from([seeds]),
            began: now,
            ticked: now,
            stopped: None,
            done: 0,
            waiting: BTreeMap::new(),
            coverage: Coverage::default(),
        };
        loop {
            self.hand_out(&mut round)?;
            if self.workers.iter().all(|worker| worker.orders.is_empty()) {
                break;
            }
            let mut flow = ControlFlow::Continue(());
            if let Ok((id, message)) = self.from.recv_timeout(TICK) {
                self.hear(id, message, &mut round)?;
                flow = round.pass_on(listener);
            }
            if flow.is_continue() && round.ticked.elapsed() >= TICK {
                round.ticked = Instant::now();
                self.watch(&round);
                flow = listener.tick(round.done);
            }
            if flow.is_break() && round.stopped.is_none() {
                round.stopped = Some(Instant::now());
                round.left.clear();
            }
        }
        for (seed, judged) in std::mem::take(&mut round.waiting) {
            // Whether to go on is no longer the question.
            let _ = listener.judged(seed, judged);
        }
        Ok(round.coverage)
    }

    fn hand_out(&mut self, round: &mut Round<'_>) -> Result<(), RunError> {
        while !round.left.is_empty() {
            if let Some(at) = self.workers.iter().position(|worker| worker.orders.is_empty()) {
                self.hand_to(at, round);
            } else if self.workers.len() < self.jobs {
                let id = self.next_id;
                self.next_id += 1;
                let process = Process::start(&self.command, id, self.to.clone())?;
                let (orders, last_heard) = (VecDeque::new(), Instant::now());
                self.workers.push(Worker { id, process, ready: false, orders, last_heard, killed: None });
            } else if let Some(at) = self.workers.iter().position(|worker| worker.orders.len() < ORDERS_PER_WORKER) {
                self.hand_to(at, round);
            } else {
                break;
            }
        }
        Ok(())
    }

    fn hand_to(&mut self, at: usize, round: &mut Round<'_>) {
        let worker = &mut self.workers[at];
        let seeds = round.take_order(self.jobs);
        if worker.orders.is_empty() {
            worker.last_heard = Instant::now();
        }
        worker
            .process
            .order(&Order { job: Job { seed: seeds.start, ..round.job.clone() }, count: seeds.end - seeds.start });
        worker.orders.push_back(seeds);
    }

    fn hear(&mut self, id: u64, message: Message, round: &mut Round<'_>) -> Result<(), RunError> {
        let Some(at) = self.workers.iter().position(|worker| worker.id == id) else { return Ok(()) };
        let worker = &mut self.workers[at];
        match message {
            Message::Reply(Reply::Ready) => {
                worker.ready = true;
                worker.last_heard = Instant::now();
            }
            Message::Reply(Reply::Judged { seed, judged }) => {
                worker.answered(seed);
                round.absorb(seed, *judged);
            }
            Message::Reply(Reply::Refused(error)) => return Err(error.into()),
            Message::Garbled(text) => return Err(RunError::Garbled(text)),
            Message::Closed => {
                let worker = self.workers.swap_remove(at);
                self.lose(worker, round)?;
            }
        }
        Ok(())
    }

    /// Blames the seed that a worker was at for its end, and hands its other seeds back.
    fn lose(&mut self, worker: Worker, round: &mut Round<'_>) -> Result<(), RunError> {
        let Worker { process, ready, orders, killed, .. } = worker;
        let death = process.bury()?;
        if !ready {
            return Err(RunError::Stillborn(death.to_string()));
        }
        round.coverage.replaced += 1;
        let mut orders = orders.into_iter();
        let Some(Range { start: seed, end }) = orders.next() else { return Ok(()) };
        match killed {
            None => round.absorb(seed, death.judged()),
            // It died in the moment in which it was given up.
            Some(_) if !death.by_kill() => round.absorb(seed, death.judged()),
            Some(Killed::Impatient) => round.absorb(seed, no_progress(self.patience)),
            Some(Killed::Stopped) => round.coverage.unfinished.push(seed),
        }
        if round.stopped.is_none() {
            let rest = std::iter::once(seed + 1..end).chain(orders).filter(|order| !order.is_empty());
            for order in rest.collect::<Vec<_>>().into_iter().rev() {
                round.left.push_front(order);
            }
        }
        Ok(())
    }

    fn watch(&mut self, round: &Round<'_>) {
        let stopped = round.stopped.is_some_and(|at| at.elapsed() > GRACE);
        for worker in &mut self.workers {
            if worker.current().is_none() || worker.killed.is_some() {
                continue;
            }
            let patience = if worker.ready { self.patience } else { START_PATIENCE };
            if worker.last_heard.elapsed() > patience {
                worker.kill(Killed::Impatient);
            } else if stopped {
                worker.kill(Killed::Stopped);
            }
        }
    }
}

impl Round<'_> {
    fn take_order(&mut self, jobs: usize) -> Range<u64> {
        let seeds_per_s = self.done as f64 / self.began.elapsed().as_secs_f64() / jobs as f64;
        let count = ((seeds_per_s * ORDER_TIME.as_secs_f64()) as u64).clamp(1, ORDER_SEEDS_MAX);
        let range = self.left.front_mut().expect("there are seeds left");
        let order = range.start..range.end.min(range.start.saturating_add(count));
        range.start = order.end;
        if range.is_empty() {
            self.left.pop_front();
        }
        order
    }

    fn absorb(&mut self, seed: u64, judged: Judged) {
        self.done += 1;
        let twice = self.waiting.insert(seed, judged);
        assert!(twice.is_none() && seed >= self.next, "a seed is done once");
    }

    fn pass_on(&mut self, listener: &mut dyn Listener) -> ControlFlow<()> {
        while let Some(judged) = self.waiting.remove(&self.next) {
            let seed = self.next;
            self.next += 1;
            listener.judged(seed, judged)?;
        }
        ControlFlow::Continue(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for mut worker in self.workers.drain(..) {
            worker.process.kill();
            // Nobody is left to be told how it ended.
            let _ = worker.process.bury();
        }
    }
}
