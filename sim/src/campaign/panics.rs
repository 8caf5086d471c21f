//! What a panic said, and where.
//!
//! Model: a panic hook keeps the place (and on request the backtrace) of the last panic of the process, and prints
//! nothing: what is caught at the boundary of a run becomes a finding, and what is caught inside a simulation is that
//! simulation's to report. A worker process has one thread.

#![allow(clippy::disallowed_types, reason = "what the host's panic hook leaves, outside of any run")]

use std::any::Any;
use std::backtrace::Backtrace;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use stormlog::env::TaskPanic;

/// Below this frame there is the campaign, not the run.
const BOUNDARY: &str = "stormlog_sim::campaign::judge::";

static LAST: Mutex<Option<String>> = Mutex::new(None);
static WITH_BACKTRACE: AtomicBool = AtomicBool::new(false);

/// Keeps panics instead of printing them, from now on.
pub fn install() {
    std::panic::set_hook(Box::new(keep));
}

/// Forgets earlier panics, and says whether the next is to be kept with its backtrace.
pub fn expect(with_backtrace: bool) {
    replace_last(None);
    WITH_BACKTRACE.store(with_backtrace, Relaxed);
}

/// Says what a caught panic was: its message, and if [`install`]ed its place.
pub fn describe(payload: &(dyn Any + Send)) -> String {
    let TaskPanic { message } = TaskPanic::from_payload(payload);
    match replace_last(None) {
        Some(place) => format!("{message}, {place}"),
        None => message,
    }
}

fn keep(info: &PanicHookInfo<'_>) {
    let mut place = info.location().map(|at| format!("at {}:{}", at.file(), at.line())).unwrap_or_default();
    if WITH_BACKTRACE.load(Relaxed) {
        place.push('\n');
        place.push_str(&of_the_run(&Backtrace::force_capture().to_string()));
    }
    replace_last(Some(place));
}

/// The frames between the panic's own machinery and the boundary of the run.
fn of_the_run(backtrace: &str) -> String {
    let lines: Vec<&str> = backtrace.lines().collect();
    let is_frame = |line: &&&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let machinery =
        lines.iter().rposition(|line| line.contains(": core::panicking::") || line.contains(": core::result::unwrap"));
    let first = machinery.map_or(0, |at| at + 1);
    let first = first + lines[first..].iter().position(|line| is_frame(&line)).unwrap_or(0);
    let last = lines.iter().position(|line| line.contains(BOUNDARY)).filter(|last| *last > first);
    lines[first..last.unwrap_or(lines.len())].join("\n")
}

fn replace_last(place: Option<String>) -> Option<String> {
    std::mem::replace(&mut LAST.lock().unwrap_or_else(PoisonError::into_inner), place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_frames_of_the_run_are_shown() {
        let text = "   0: stormlog_sim::campaign::panics::keep\n             at ./panics.rs:1\n   1: core::panicking::panic_fmt\n\
             at /rustc/x\n   2: stormlog::log::append\n             at ./log.rs:2\n   3: \
            stormlog_sim::campaign::judge::judge::{closure#0}\n             at ./judge.rs:3";
        assert_eq!(of_the_run(text), "   2: stormlog::log::append\n             at ./log.rs:2");
        assert_eq!(of_the_run("nothing known"), "nothing known");
        assert_eq!(of_the_run(""), "");
    }
}
