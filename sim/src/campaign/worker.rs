//! The inside of a worker process: `stormlog worker`.

use std::io::{self, BufRead as _, Write};
use std::os::fd::OwnedFd;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use super::judge::judge;
use super::panics;
use super::protocol::{Order, Reply};
use crate::scenarios::Registry;

/// Carries out orders from standard input until it ends.
pub fn serve(registry: Registry) -> io::Result<()> {
    // A worker that hangs must not outlive a campaign that was killed.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().is_none_or(|parent| parent.is_init()) {
        return Ok(());
    }
    panics::install();
    let mut replies = claim_stdout()?;
    send(&mut replies, &Reply::Ready)?;
    for line in io::stdin().lock().lines() {
        let order: Order = serde_json::from_str(&line?)?;
        let Order { mut job, count } = order;
        for seed in (job.seed..).take(usize::try_from(count).unwrap_or(usize::MAX)) {
            job.seed = seed;
            match judge(registry, &job) {
                Ok(judged) => send(&mut replies, &Reply::Judged { seed, judged: Box::new(judged) })?,
                Err(error) => {
                    send(&mut replies, &Reply::Refused(error))?;
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Keeps the pipe for replies alone: what a scenario prints goes to standard error.
#[allow(clippy::disallowed_types, reason = "a pipe of the host")]
fn claim_stdout() -> io::Result<std::fs::File> {
    let pipe: OwnedFd = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(pipe.into())
}

fn send(to: &mut impl Write, reply: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    to.write_all(&line)
}
