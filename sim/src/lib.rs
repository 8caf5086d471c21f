//! The deterministic simulation testbed of Stormlog.

pub mod choices;
pub mod conformance;
pub mod context;
pub mod disk;
pub mod env;
pub mod hash;
pub mod machine;
pub mod record;
pub mod scenario;
