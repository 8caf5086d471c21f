//! Recovery: what of a directory is the log, and bringing it into the state in which it takes appends.
//!
//! Two policies, [`safe`] and [`compatible`]; both in bounded memory, both the same when done twice, also when the first
//! was cut short. Consume queues and index come with a later issue: the end of the newest queue entry will be a third
//! proof of what was durable.

mod compatible;
mod load;
mod repair;
mod report;
mod safe;
mod walk;

use crate::env::Env;
use crate::log::{DurableMark, Segment};

use super::directory::{Directory, exists};
use super::error::OpenError;
use super::layout::CommitLogLayout;
use super::options::{CommitLogOptions, RecoveryPolicy};
use super::queues::QueueOffsets;

pub use report::{Cut, CutRecord, Flaw, Hole, Proof, Proved, RecoveryReport, Removed, RocketMqView};

/// A log that is ready to be opened.
pub(super) struct Recovered<E: Env> {
    pub segments: Vec<Segment<E>>,
    pub end: u64,
    /// Behind the end there are only zeros.
    pub ends_in_zeros: bool,
    pub tail: QueueOffsets,
    pub mark: DurableMark<E>,
    pub report: RecoveryReport,
}

pub(super) fn recover<E: Env>(
    env: &E,
    layout: &CommitLogLayout,
    directory: &Directory,
    options: &CommitLogOptions,
) -> Result<Recovered<E>, OpenError> {
    let was_closed = !exists(env, &directory.abort)?;
    let loaded = load::load(env, layout, directory, options.recovery_policy)?;
    match options.recovery_policy {
        RecoveryPolicy::Safe => safe::recover(env, directory, options, loaded, was_closed),
        RecoveryPolicy::Compatible => compatible::recover(env, directory, options, loaded, was_closed),
    }
}
