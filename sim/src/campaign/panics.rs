//! What a panic said, and where.
//!
//! Model: a panic hook keeps the place (and on request the backtrace) of the last panic of the host thread, and prints
//! nothing: what is caught at the boundary of a run becomes a finding, and what is caught inside a simulation is that
//! simulation's to report.

#![allow(clippy::disallowed_macros, reason = "what is kept is the host thread's")]

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::panic::PanicHookInfo;

use stormlog::env::TaskPanic;

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
    static WITH_BACKTRACE: Cell<bool> = const { Cell::new(false) };
}

/// Keeps panics instead of printing them, from now on.
pub fn install() {
    std::panic::set_hook(Box::new(keep));
}

/// Forgets earlier panics of this thread, and says whether the next is to be kept with its backtrace.
pub fn expect(with_backtrace: bool) {
    LAST.set(None);
    WITH_BACKTRACE.set(with_backtrace);
}

/// Says what a caught panic was: its message, and if [`install`]ed its place.
pub fn describe(payload: &(dyn Any + Send)) -> String {
    let TaskPanic { message } = TaskPanic::from_payload(payload);
    match LAST.take() {
        Some(place) => format!("{message}, {place}"),
        None => message,
    }
}

fn keep(info: &PanicHookInfo<'_>) {
    let mut place = info.location().map(|at| format!("at {}:{}", at.file(), at.line())).unwrap_or_default();
    if WITH_BACKTRACE.get() {
        place.push('\n');
        place.push_str(&Backtrace::force_capture().to_string());
    }
    LAST.set(Some(place));
}
