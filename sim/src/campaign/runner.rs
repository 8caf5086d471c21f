//! Runs one job at a time: in this process, or in one that may die of it.

#![allow(clippy::disallowed_types, reason = "host time and channels, outside of any run")]

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::job::{Job, Judged};
use super::judge::{JobError, judge};
use super::process::{Message, NO_PROGRESS, Process, WorkerCommand};
use super::protocol::{Order, Reply};
use crate::scenarios::Registry;

/// A job that could not be run, which says nothing about its seed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It cannot be run.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A worker process cannot be started or waited for.
    #[error(transparent)]
    Worker(#[from] io::Error),
    /// A worker speaks something else than the protocol.
    #[error("a worker process answered with {0:?}")]
    Garbled(String),
    /// A worker ended before it was ready.
    #[error("a worker process ended before it was ready: {0}")]
    Stillborn(String),
}

/// Runs jobs.
pub trait Runner {
    /// Runs a job and judges it. One that takes longer than `patience` is a finding, where it can be stopped.
    fn run(&mut self, job: &Job, patience: Duration) -> Result<Judged, RunError>;
}

/// Runs jobs in this process, on this thread: a run that hangs or aborts is not survived.
#[derive(Debug, Clone, Copy)]
pub struct InProcess(pub Registry);

impl Runner for InProcess {
    fn run(&mut self, job: &Job, _patience: Duration) -> Result<Judged, RunError> {
        Ok(judge(self.0, job)?)
    }
}

/// Runs jobs in a worker process, which is replaced when it dies.
pub struct Isolated {
    command: WorkerCommand,
    worker: Option<Process>,
    id: u64,
    to: Sender<(u64, Message)>,
    from: Receiver<(u64, Message)>,
}

impl Isolated {
    /// Starts the worker at the first job.
    pub fn new(command: WorkerCommand) -> Self {
        let (to, from) = channel();
        Self { command, worker: None, id: 0, to, from }
    }

    /// The next message of the present worker; none in time is [`None`].
    fn listen(&self, patience: Duration) -> Option<Message> {
        loop {
            match self.from.recv_timeout(patience) {
                Ok((id, message)) if id == self.id => return Some(message),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => unreachable!("a sender is kept"),
            }
        }
    }

    fn start(&mut self) -> Result<(), RunError> {
        self.id += 1;
        self.worker = Some(Process::start(&self.command, self.id, self.to.clone())?);
        match self.listen(START_PATIENCE) {
            Some(Message::Reply(Reply::Ready)) => Ok(()),
            Some(Message::Garbled(text)) => Err(RunError::Garbled(text)),
            Some(Message::Reply(reply)) => Err(RunError::Garbled(format!("{reply:?}"))),
            Some(Message::Closed) | None => {
                let death = self.replace().expect("a worker was started")?;
                Err(RunError::Stillborn(death.to_string()))
            }
        }
    }

    fn replace(&mut self) -> Option<io::Result<super::process::Death>> {
        self.worker.take().map(|mut worker| {
            worker.kill();
            worker.bury()
        })
    }
}

/// How long a worker may take to start.
pub const START_PATIENCE: Duration = Duration::from_secs(60);

impl Runner for Isolated {
    fn run(&mut self, job: &Job, patience: Duration) -> Result<Judged, RunError> {
        if self.worker.is_none() {
            self.start()?;
        }
        let worker = self.worker.as_mut().expect("started");
        worker.order(&Order { job: job.clone(), count: 1 });
        match self.listen(patience) {
            Some(Message::Reply(Reply::Judged { judged, .. })) => Ok(*judged),
            Some(Message::Reply(Reply::Refused(error))) => Err(error.into()),
            Some(Message::Reply(Reply::Ready)) => Err(RunError::Garbled("ready, twice".to_owned())),
            Some(Message::Garbled(text)) => Err(RunError::Garbled(text)),
            Some(Message::Closed) => Ok(self.worker.take().expect("it closed").bury()?.judged()),
            None => {
                self.replace().transpose()?;
                Ok(no_progress(patience))
            }
        }
    }
}

impl Drop for Isolated {
    fn drop(&mut self) {
        // Nobody is left to be told how it ended.
        let _ = self.replace();
    }
}

/// What came of a seed that came to no end in time.
pub fn no_progress(patience: Duration) -> Judged {
    let message = format!("the run came to no end in {}", humantime::format_duration(patience));
    Judged::cut_short(NO_PROGRESS, message)
}
