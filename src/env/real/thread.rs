//! Threads: std's.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::io::Errno;

use crate::env::{JoinHandle, TaskPanic};

/// A started thread; dropping it lets the thread run on.
#[derive(Debug)]
pub struct RealThread(std::thread::JoinHandle<()>);

impl JoinHandle for RealThread {
    fn join(self) -> Result<(), TaskPanic> {
        self.0.join().map_err(|payload| TaskPanic::from_payload(&*payload))
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

pub(super) fn spawn<F>(name: &str, body: F) -> io::Result<RealThread>
where
    F: FnOnce() + Send + 'static,
{
    if name.contains('\0') {
        return Err(Errno::INVAL.into());
    }
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map(RealThread)
}

#[inline]
pub(super) fn run_task<R>(task: impl FnOnce() -> R) -> Result<R, TaskPanic> {
    catch_unwind(AssertUnwindSafe(task)).map_err(|payload| TaskPanic::from_payload(&*payload))
}
