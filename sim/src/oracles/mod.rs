//! Oracles: pure functions of what clients were told and what a store serves.
//!
//! Each has a name, which is the class of what it finds; each is proven by a [planted fault](mod@stormlog::planted).

mod log;

pub use log::{ServedMessage, View, judge, torn};
