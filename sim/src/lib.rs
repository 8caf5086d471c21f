//! The deterministic simulation testbed of Stormlog.
//!
//! A person begins with [`campaign`] (the command line), [`scenarios`] (what is run and what judges it), [`disk`] (what can
//! happen to bytes), [`determinism`], [`case`] (what replays a find) and [`vectors`]; a programmer with [`mod@env`],
//! [`machine`], [`choices`] and [`scenario`].

#![allow(
    clippy::disallowed_macros,
    reason = "the lint cannot be allowed for less than a crate; machine/host.rs and machine/stack.rs keep what is the host thread's"
)]

pub mod alloc;
pub mod campaign;
pub mod case;
pub mod choices;
pub mod cli;
pub mod conformance;
pub mod context;
pub mod determinism;
pub mod disk;
pub mod env;
pub mod hash;
pub mod history;
pub mod limits;
pub mod machine;
pub mod oracles;
pub mod record;
pub mod scenario;
pub mod scenarios;
pub mod shrink;
pub mod vectors;
