//! What each acknowledgement promises, on a real disk, when the process is killed.
//!
//! Model: a child process appends and says on a pipe what was acknowledged; at a random moment it gets `SIGKILL`; the
//! parent opens what it left and looks for everything that was said. The next child goes on in the same directory.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test stands outside of any simulation")]

mod again;
#[path = "kill/bare_files.rs"]
mod bare_files;
#[path = "kill/commit_log.rs"]
mod commit_log;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use stormlog::env::Env as _;
use stormlog::env::real::RealEnv;

const KILLS: usize = 20;
const MAX_ACKS_PER_LIFE: u64 = 400;
const MAX_DELAY_US: u64 = 2_000;

/// How many appends of each writer were acknowledged, over all lives.
type Acknowledged = BTreeMap<usize, u64>;

/// What is killed.
trait Subject {
    /// Appends until it is killed, and says after each acknowledgement whose it was and how many that writer has now.
    fn append_for_ever(root: &Path) -> !;
    /// Opens what was left, and panics unless all that was acknowledged is there.
    fn check(root: &Path, acknowledged: &Acknowledged);
}

#[test]
fn acknowledged_messages_survive_a_kill() {
    kill_again_and_again::<commit_log::Messages>("acknowledged_messages_survive_a_kill");
}

#[test]
fn bytes_in_the_kernel_survive_a_kill() {
    kill_again_and_again::<bare_files::BareFiles>("bytes_in_the_kernel_survive_a_kill");
}

fn kill_again_and_again<S: Subject>(test: &str) {
    if let Some(root) = again::as_child() {
        die_of_any_panic();
        S::append_for_ever(&root);
    }
    let root = tempfile::tempdir().expect("a temporary directory");
    let mut acknowledged = Acknowledged::new();
    for _ in 0..KILLS {
        live_and_die(test, root.path(), &mut acknowledged);
        S::check(root.path(), &acknowledged);
    }
    assert!(acknowledged.len() > 1, "too few lived long enough to say anything: {acknowledged:?}");
    println!("acknowledged appends by writer after {KILLS} kills: {acknowledged:?}");
}

/// A panic on any thread ends the process, so that the parent sees it.
fn die_of_any_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        println!("{PANICKED}{panic}");
        report(panic);
        std::process::abort();
    }));
}

fn live_and_die(test: &str, root: &Path, acknowledged: &mut Acknowledged) {
    let mut child = again::command(&[], test, root).stdout(Stdio::piped()).spawn().expect("a child");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut acks = lines.filter_map(|line| heard(&line.expect("a line")));
    let mut note = |(writer, count)| {
        let before = acknowledged.insert(writer, count);
        assert!(before < Some(count), "writer {writer} went back from {before:?} to {count}");
    };
    acks.by_ref().take(random_below(MAX_ACKS_PER_LIFE) as usize).for_each(&mut note);
    std::thread::sleep(Duration::from_micros(random_below(MAX_DELAY_US)));
    child.kill().expect("to kill");
    acks.for_each(note);
    let status = child.wait().expect("an end");
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "the child ended by itself: {status}");
}

const ACK: &str = "ack ";
const PANICKED: &str = "panicked: ";

/// Says in one write that a writer has that many appends acknowledged.
fn acknowledge(writer: usize, count: u64) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{ACK}{writer} {count}\n").as_bytes()).expect("to tell the parent");
    out.flush().expect("to tell the parent");
}

/// What [`acknowledge`] said, on a line that the test harness may have begun.
fn heard(line: &str) -> Option<(usize, u64)> {
    assert!(!line.contains(PANICKED), "{line}");
    let (_, ack) = line.rsplit_once(ACK)?;
    let (writer, count) = ack.split_once(' ').expect("writer and count");
    Some((writer.parse().expect("a writer"), count.parse().expect("a count")))
}

fn random_below(bound: u64) -> u64 {
    let mut bytes = [0; 8];
    RealEnv.fill_entropy(&mut bytes);
    u64::from_le_bytes(bytes) % bound
}
