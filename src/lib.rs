//! Stormlog: a message store compatible with RocketMQ's commit log and Artemis's paging, written so that the same
//! compiled code runs on real disks and inside a deterministic simulation.
//!
//! The store knows nothing of the simulation: it asks the world for time, threads, locks and files through [`mod@env`].

pub mod codec;
pub mod commitlog;
pub mod env;
pub mod exec;
pub mod log;
pub mod planted;
