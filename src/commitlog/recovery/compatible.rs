//! The compatible policy: what RocketMQ does with a directory (`CommitLog.recoverNormally`, `recoverAbnormally`).
//!
//! Model: after a clean stop the walk begins at the first segment, as upstream's does without consume queues; after a crash
//! at the last segment that the checkpoint vouches for. The log ends at the first thing that is not a
//! record, segments behind it are deleted, and the bytes behind it in its own segment are left as they are.

use std::ops::ControlFlow;

use crate::env::{Env, Step};
use crate::log::{Context, DurableMark, Marked, Operation, Segment};

use super::super::checkpoint::Checkpoint;
use super::super::directory::{Directory, sync_dir};
use super::super::error::OpenError;
use super::super::options::CommitLogOptions;
use super::super::queues::QueueOffsets;
use super::Recovered;
use super::load::Loaded;
use super::report::{Proof, Proved, RecoveryReport, Removed, RocketMqView};
use super::walk::{Ended, Walker};

pub(super) fn recover<E: Env>(
    env: &E,
    directory: &Directory,
    options: &CommitLogOptions,
    loaded: Loaded<E>,
    was_closed: bool,
) -> Result<Recovered<E>, OpenError> {
    let Loaded { mut segments, ignored } = loaded;
    let begin = segments.first().map_or(0, |first| first.base);
    let found_mark = DurableMark::open(env, &directory.durable)?;
    let is_ours = found_mark.is_some();
    let mut walker = Walker::new(&segments, options.scan_options(options.rocketmq_check()));
    let start = match Checkpoint::read(env, &directory.checkpoint)? {
        Some(checkpoint) if !was_closed => first_to_recover(&mut walker, &segments, &checkpoint),
        _ => 0,
    };
    let (mut tail, mut records) = (QueueOffsets::default(), 0);
    // Upstream has the queue offsets of segments before that from the consume queues.
    for segment in &segments[..start] {
        walk_one(env, &mut walker, segment, &mut tail, &mut records);
    }
    let end = walk_all(env, &mut walker, &segments[start..], begin, &mut tail, &mut records);

    let behind = segments.partition_point(|segment| segment.base <= end);
    let mut removed = Vec::new();
    for Segment { path, .. } in segments.drain(behind..) {
        env.remove_file(&path).context(Operation::Remove, &path, None)?;
        removed.push(Removed { path, kept_as: None });
    }
    if !removed.is_empty() {
        sync_dir(env, &directory.commitlog)?;
    }
    for segment in &segments {
        segment.sync()?;
    }
    let mut mark = match found_mark {
        Some(mark) => mark,
        None => DurableMark::create(env, &directory.durable)?,
    };
    let is_self_checked = options.enabled_append_prop_crc;
    mark.write(Marked { begin, durable_end: end, is_closed: false, is_self_checked })?;
    mark.sync()?;
    directory.mark_open(env)?;
    let report = RecoveryReport {
        policy: options.recovery_policy,
        was_closed,
        is_ours,
        proved: Proved { bound: begin, by: Proof::Nothing },
        begin,
        end,
        segments: segments.len(),
        records,
        holes: Vec::new(),
        cut: None,
        removed,
        ignored,
        rocketmq: None,
    };
    Ok(Recovered { segments, end, tail, mark, report })
}

/// What RocketMQ would make of the segments, all of which are whole up to `position`.
pub(super) fn view<E: Env>(
    segments: &[Segment<E>],
    options: &CommitLogOptions,
    begin: u64,
    position: u64,
) -> RocketMqView {
    let mut walker = Walker::new(segments, options.scan_options(options.rocketmq_check()));
    let mut end = position.max(begin);
    let first = segments.partition_point(|segment| segment.limit <= end);
    for segment in &segments[first..] {
        let (at, ended) = walker.walk(segment, end.max(segment.base), segment.limit, |_| ControlFlow::Continue(()));
        end = at;
        if ended != Ended::Blank {
            break;
        }
    }
    RocketMqView::new(segments, end)
}

/// Where RocketMQ 5.5.1 begins after a crash: at the last segment that begins at or before what the consume queues are known
/// to cover, by offset, or by store timestamp where the checkpoint has no offset. It looks at the last few segments only
/// (`commitLogRecoverMaxNum`).
fn first_to_recover<E: Env>(walker: &mut Walker<'_, E>, segments: &[Segment<E>], checkpoint: &Checkpoint) -> usize {
    const LOOKED_AT: usize = 10;
    let mut is_covered = |segment: &Segment<E>| {
        let mut first = None;
        walker.walk(segment, segment.base, segment.base + 1, |record| {
            first = Some((record.physical_offset(), record.store_timestamp_ms()));
            ControlFlow::Break(())
        });
        first.is_some_and(|(offset, stored_ms)| match checkpoint.logics_physical_offset {
            ..=0 => stored_ms != 0 && stored_ms <= checkpoint.logics_msg_timestamp,
            covered => offset <= covered,
        })
    };
    let earliest = segments.len().saturating_sub(LOOKED_AT);
    (earliest..segments.len()).rev().find(|index| is_covered(&segments[*index])).unwrap_or(earliest)
}

/// Walks segments one after the other. Returns where the log ends.
fn walk_all<E: Env>(
    env: &E,
    walker: &mut Walker<'_, E>,
    segments: &[Segment<E>],
    begin: u64,
    tail: &mut QueueOffsets,
    records: &mut u64,
) -> u64 {
    let mut end = begin;
    for segment in segments {
        let (at, ended) = walk_one(env, walker, segment, tail, records);
        end = at;
        if ended != Ended::Blank {
            break;
        }
    }
    end
}

fn walk_one<E: Env>(
    env: &E,
    walker: &mut Walker<'_, E>,
    segment: &Segment<E>,
    tail: &mut QueueOffsets,
    records: &mut u64,
) -> (u64, Ended) {
    let before = *records;
    let walked = walker.walk(segment, segment.base, segment.limit, |record| {
        tail.observe(record);
        *records += 1;
        ControlFlow::Continue(())
    });
    env.charge(Step::CheckRecord, *records - before);
    walked
}
