//! Campaigns: many seeds, run in processes of their own, and what is done with what they find.
//!
//! Model: a [`Job`](job::Job) is one seed of a scenario and a [`Judged`](job::Judged) what came of it.
//! [`judge`](judge::judge) runs one here; [`pool`] and [`isolated`](runner::Isolated) run them in worker processes
//! ([`worker`] inside, [`process`] outside), so that a run that aborts, hangs or devours memory is a finding and not the
//! end of the campaign. [`fuzz`] and [`hunt`] are the campaigns, [`finds`] is where their finds are saved.
//!
//! Not modelled: campaigns over several machines.
//!
#![doc = include_str!("../../docs/campaigns.md")]

pub mod finds;
pub mod fuzz;
pub mod hunt;
pub mod job;
pub mod judge;
pub mod panics;
pub mod parameters;
pub mod pool;
pub mod process;
pub mod protocol;
pub mod runner;
pub mod target;
pub mod worker;
