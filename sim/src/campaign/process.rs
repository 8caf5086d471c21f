//! A worker process, seen from outside: started, given orders, listened to, and buried.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "host threads that stand outside of any run")]

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use rustix::process::Signal;

use super::job::Judged;
use super::judge::ALLOCATION;
use super::protocol::{Order, Reply};
use crate::alloc;
use crate::scenarios::Registry;

/// Oracle of a run that ended its process.
pub const PROCESS_DIED: &str = "process-died";
/// Oracle of a run that came to no end.
pub const NO_PROGRESS: &str = "no-progress";

/// How a worker is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCommand {
    program: PathBuf,
    args: Vec<OsString>,
    elsewhere: bool,
}

impl WorkerCommand {
    /// Workers of `program`, which is a build of the command line.
    pub fn new(program: impl Into<PathBuf>, registry: Registry) -> Self {
        let hidden = (registry == Registry::Selftest).then_some("--selftest");
        let args = hidden.into_iter().chain(["worker"]).map(OsString::from).collect();
        Self { program: program.into(), args, elsewhere: false }
    }

    /// Workers of the running program, even if its file has been replaced since.
    pub fn this_program(registry: Registry) -> io::Result<Self> {
        let linux = cfg!(target_os = "linux");
        let program = if linux { PathBuf::from("/proc/self/exe") } else { std::env::current_exe()? };
        Ok(Self::new(program, registry))
    }

    /// The same, in another directory and with other, larger environment variables, so that a run that depends on
    /// either, or on where its stack lies, differs.
    #[must_use]
    pub fn elsewhere(mut self) -> Self {
        self.elsewhere = true;
        self
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // A group of its own: Ctrl-C on the terminal is for the campaign to act on.
        command.arg0("stormlog").args(&self.args).process_group(0);
        if self.elsewhere {
            command.env_clear().current_dir("/");
            for (name, value) in [("TZ", "Pacific/Kiritimati"), ("LC_ALL", "tr_TR.UTF-8"), ("HOME", "/nonexistent")] {
                command.env(name, value);
            }
            command.env("STORMLOG_PADDING", "x".repeat(10_007));
        }
        command
    }
}

/// What is heard of a worker.
#[derive(Debug)]
pub enum Message {
    /// It says something.
    Reply(Reply),
    /// It says something that is no reply.
    Garbled(String),
    /// It says nothing more.
    Closed,
}

/// A running worker.
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    stderr: JoinHandle<String>,
}

/// How much of a worker's standard error is kept, in bytes: its end.
const STDERR_MAX: usize = 16 << 10;

impl Process {
    /// Starts a worker whose messages go to `to`, marked with `id`. Call it on a thread that outlives the worker.
    pub fn start(command: &WorkerCommand, id: u64, to: Sender<(u64, Message)>) -> io::Result<Self> {
        let mut command = command.command();
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|error| {
                let program = command.get_program().to_string_lossy();
                io::Error::new(error.kind(), format!("cannot start a worker process ({program}): {error}"))
            })?;
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let stderr = child.stderr.take().expect("piped");
        let stdin = child.stdin.take();
        // The receiver is gone once nobody cares for this worker.
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message =
                    serde_json::from_str(&line).map(Message::Reply).unwrap_or_else(|_| Message::Garbled(line));
                if to.send((id, message)).is_err() {
                    return;
                }
            }
            let _ = to.send((id, Message::Closed));
        });
        let stderr = std::thread::spawn(move || tail(stderr));
        Ok(Self { child, stdin, stderr })
    }

    /// Gives an order. A worker that is gone cannot be told: that it [closed](Message::Closed) says so.
    pub fn order(&mut self, order: &Order) {
        let mut line = serde_json::to_vec(order).expect("an order is plain data");
        line.push(b'\n');
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(&line);
        }
    }

    /// Ends the worker whatever it does. Its [`Message::Closed`] still comes.
    pub fn kill(&mut self) {
        // It fails only for one that has ended.
        let _ = self.child.kill();
    }

    /// Waits for the end of a worker that has closed or was killed.
    pub fn bury(mut self) -> io::Result<Death> {
        drop(self.stdin.take());
        let status = self.child.wait()?;
        let stderr = self.stderr.join().unwrap_or_else(|_| "(its standard error could not be read)".to_owned());
        Ok(Death { status, stderr })
    }
}

fn tail(mut stderr: impl Read) -> String {
    let mut kept = Vec::new();
    let mut chunk = [0; 4096];
    while let Ok(n @ 1..) = stderr.read(&mut chunk) {
        kept.extend_from_slice(&chunk[..n]);
        let excess = kept.len().saturating_sub(STDERR_MAX);
        kept.drain(..excess);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// How a worker ended.
#[derive(Debug)]
pub struct Death {
    status: ExitStatus,
    stderr: String,
}

impl Death {
    /// Whether it was killed, by [`Process::kill`] or another who may.
    pub fn by_kill(&self) -> bool {
        self.status.signal() == Some(Signal::KILL.as_raw())
    }

    /// The finding of the seed that was in progress.
    pub fn judged(&self) -> Judged {
        if let Some(line) = self.stderr.lines().find(|line| line.starts_with(alloc::REFUSED)) {
            return Judged::cut_short(ALLOCATION, line[alloc::REFUSED.len()..].trim().to_owned());
        }
        Judged::cut_short(PROCESS_DIED, self.to_string())
    }
}

impl std::fmt::Display for Death {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.status.signal(), self.status.code()) {
            (Some(signal), _) => write!(f, "the process was ended by {}", signal_name(signal))?,
            (None, Some(code)) => write!(f, "the process exited with status {code}")?,
            (None, None) => write!(f, "the process ended")?,
        }
        let said = self.stderr.trim_end();
        if said.is_empty() { Ok(()) } else { write!(f, "; its standard error ends:\n{said}") }
    }
}

fn signal_name(number: i32) -> String {
    let named = [
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::ILL, "SIGILL"),
        (Signal::INT, "SIGINT"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::TERM, "SIGTERM"),
        (Signal::TRAP, "SIGTRAP"),
    ];
    let name = named.iter().find(|(signal, _)| signal.as_raw() == number).map(|(_, name)| (*name).to_owned());
    name.unwrap_or_else(|| format!("signal {number}"))
}
