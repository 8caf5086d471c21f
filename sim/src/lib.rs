//! The deterministic simulation testbed of Stormlog.

pub mod choices;
pub mod context;
pub mod disk;
pub mod hash;
pub mod record;
pub mod scenario;
