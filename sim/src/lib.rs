//! The deterministic simulation testbed of Stormlog.

pub mod alloc;
pub mod campaign;
pub mod case;
pub mod choices;
pub mod conformance;
pub mod context;
pub mod disk;
pub mod env;
pub mod hash;
pub mod machine;
pub mod cli;
pub mod context;
pub mod determinism;
pub mod hash;
pub mod limits;
pub mod record;
pub mod scenario;
pub mod scenarios;
pub mod shrink;
