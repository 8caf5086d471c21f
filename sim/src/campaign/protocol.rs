//! What goes over a worker's pipes: one JSON document a line.
//!
//! Model: an [`Order`] names its seeds before any of them runs, and the worker answers each, in order, the moment it is
//! done. So the first seed of an order without an answer is the one in progress, whatever becomes of the worker.

use serde::{Deserialize, Serialize};

use super::job::{Job, Judged};
use super::judge::JobError;

/// To a worker, on its standard input: run `count` seeds, from that of the job upwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The first seed, and all that is the same for the others.
    pub job: Job,
    /// How many.
    pub count: u64,
}

/// From a worker, on its standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Once, before all else.
    Ready,
    /// A seed is done.
    Judged {
        /// Which.
        seed: u64,
        /// What came of it.
        judged: Box<Judged>,
    },
    /// The order cannot be carried out.
    Refused(JobError),
}
