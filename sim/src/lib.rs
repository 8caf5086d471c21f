//! The deterministic simulation testbed of Stormlog.

pub mod choices;
pub mod conformance;
pub mod context;
pub mod hash;
pub mod record;
pub mod scenario;
