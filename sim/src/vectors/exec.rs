//! Somebody else's codec: a program that the shell starts, asked over its standard input and output.
//!
//! Model: one line of JSON per question, one per answer, strictly in turn. A program that ends, does not answer in time,
//! or writes something that is no answer to the question fails that vector; it is stopped and started anew, until it has
//! failed [`MAX_FAILURES`] times. Lines go through threads of their own, so that a program that neither reads nor writes
//! holds up nobody; a line longer than [`MAX_LINE_LEN`] is no answer.
//!
//! It is not part of any simulation: real threads, real time, a real process.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "drives a real process from the command line, outside of any simulation"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::compare::clipped;
use super::{Answer, Codec, Mismatch, Op, Question, VectorError};

/// How long a program may take for one answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a program may fail before it is asked no more.
const MAX_FAILURES: u32 = 3;
/// Longest line of an answer in bytes.
const MAX_LINE_LEN: u64 = 16 << 20;

/// A codec behind a shell command.
#[derive(Debug)]
pub struct ExecCodec {
    command: String,
    timeout: Duration,
    running: Option<Running>,
    failures: u32,
}

#[derive(Debug)]
struct Running {
    child: Child,
    questions: SyncSender<Vec<u8>>,
    answers: Receiver<Line>,
}

/// What the program wrote, or `None` at its end.
type Line = Option<Vec<u8>>;

#[derive(Deserialize)]
struct AnswerLine {
    id: String,
    hex: Option<String>,
    #[serde(default, deserialize_with = "present")]
    output: Option<Value>,
    error: Option<String>,
}

/// `null` is an output.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl ExecCodec {
    /// Starts `command` through `sh -c`, in a process group of its own. Its standard error stays that of the caller.
    pub fn start(command: &str, timeout: Duration) -> Result<Self, VectorError> {
        let running = Running::start(command)?;
        Ok(Self { command: command.to_owned(), timeout, running: Some(running), failures: 0 })
    }

    fn ask(&mut self, question: &Question<'_>) -> Result<Answer, Mismatch> {
        let op = question.op;
        let running = match &mut self.running {
            Some(running) => running,
            empty => empty
                .insert(Running::start(&self.command).map_err(|error| Mismatch::Ended { op, how: error.to_string() })?),
        };
        let mut line = serde_json::to_vec(question).expect("a question is plain data");
        line.push(b'\n');
        // A program that has ended is noticed where its answer is missing.
        let _ = running.questions.try_send(line);
        match running.answers.recv_timeout(self.timeout) {
            Ok(Some(line)) => parse(question, &line),
            Ok(None) | Err(RecvTimeoutError::Disconnected) => Err(Mismatch::Ended { op, how: running.end() }),
            Err(RecvTimeoutError::Timeout) => Err(Mismatch::NoAnswer { op, seconds: self.timeout.as_secs() }),
        }
    }
}

impl Codec for ExecCodec {
    fn answer(&mut self, question: &Question<'_>) -> Result<Answer, Mismatch> {
        if self.failures == MAX_FAILURES {
            return Err(Mismatch::NotAsked { op: question.op, failures: MAX_FAILURES });
        }
        let answer = self.ask(question);
        if answer.is_err() {
            self.failures += 1;
            if let Some(running) = self.running.take() {
                running.kill();
            }
        }
        answer
    }
}

impl Drop for ExecCodec {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill();
        }
    }
}

impl Running {
    fn start(command: &str) -> Result<Self, VectorError> {
        let start = |source| VectorError::Start { command: command.to_owned(), source };
        let mut child = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(start)?;
        let stdin = child.stdin.take().expect("standard input is a pipe");
        let stdout = child.stdout.take().expect("standard output is a pipe");
        let (questions, to_write) = sync_channel(1);
        let (read, answers) = sync_channel(1);
        std::thread::spawn(move || write_lines(stdin, &to_write));
        std::thread::spawn(move || read_lines(stdout, &read));
        Ok(Self { child, questions, answers })
    }

    /// How the program ended. Its output has ended; it gets a moment to end itself.
    fn end(&mut self) -> String {
        for _ in 0..100 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.signal();
        self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }

    fn kill(mut self) {
        let _ = self.signal();
        let _ = self.child.wait();
    }

    /// Kills the shell and all that it started, unless it has gone already.
    fn signal(&mut self) -> std::io::Result<()> {
        if self.child.try_wait()?.is_none()
            && let Some(group) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw)
        {
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL)?;
        }
        Ok(())
    }
}

fn write_lines(mut stdin: ChildStdin, lines: &Receiver<Vec<u8>>) {
    while let Ok(line) = lines.recv() {
        if stdin.write_all(&line).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

fn read_lines(stdout: ChildStdout, lines: &SyncSender<Line>) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        let read = stdout.by_ref().take(MAX_LINE_LEN).read_until(b'\n', &mut line);
        let ended = !matches!(read, Ok(len) if len > 0);
        if lines.send((!ended).then_some(line)).is_err() || ended {
            return;
        }
    }
}

fn parse(question: &Question<'_>, line: &[u8]) -> Result<Answer, Mismatch> {
    let op: Op = question.op;
    let garbage = || Mismatch::Garbage { op, line: clipped(String::from_utf8_lossy(line).trim_end()) };
    match serde_json::from_slice(line).map_err(|_| garbage())? {
        AnswerLine { id, hex: Some(hex), output: None, error: None } if id == question.id => {
            hex::decode(hex).map(Answer::Bytes).map_err(|_| garbage())
        }
        AnswerLine { id, hex: None, output: Some(output), error: None } if id == question.id => {
            Ok(Answer::Output(output))
        }
        AnswerLine { id, hex: None, output: None, error: Some(error) } if id == question.id => {
            Ok(Answer::Refused(error))
        }
        _ => Err(garbage()),
    }
}
