//! One suite of what the store relies on, generic over [`Env`], so that the real world and the simulated one are held to
//! the same.
//!
//! Model: a case gets an environment and an empty directory of its own, and panics where the environment breaks its
//! contract. A thread that panics because a case wants it to says "on purpose", in the message or in its name. What a case asks for holds on any machine at any speed: lower bounds and orders of time, never durations.
//!
//! Not covered: what a crash keeps (the kill loop and the reach suite do that), faults, random calls side by side.

mod atomic;
mod dir;
mod exec;
mod file;
mod identity;
mod lock;
mod lock_file;
mod region;
mod thread;
mod time;
mod tools;
mod word;

use std::path::Path;

use stormlog::env::Env;

/// One case of the suite.
pub struct Case<E> {
    /// `part::what_it_asks_for`.
    pub name: &'static str,
    /// Runs it in an empty directory; panics if the environment breaks its contract.
    pub run: fn(&E, &Path),
}

/// All cases, for one kind of environment.
pub fn cases<E: Env>() -> Vec<Case<E>> {
    [
        time::cases(),
        thread::cases(),
        lock::cases(),
        word::cases(),
        atomic::cases(),
        file::cases(),
        dir::cases(),
        region::cases(),
        lock_file::cases(),
        identity::cases(),
        exec::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// `list_cases!("part": name, …)` makes `cases()` of a part out of the names of its functions.
macro_rules! list_cases {
    ($part:literal: $($name:ident),* $(,)?) => {
        pub(super) fn cases<E: stormlog::env::Env>() -> Vec<super::Case<E>> {
            vec![$(super::Case { name: concat!($part, "::", stringify!($name)), run: $name::<E> }),*]
        }
    };
}
use list_cases;
