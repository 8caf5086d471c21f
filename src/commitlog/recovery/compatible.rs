//! The compatible policy: what RocketMQ does with a directory (`CommitLog.recoverNormally`, `recoverAbnormally`).
//!
//! Model: after a clean stop the walk begins at the first segment, as upstream's does without consume queues; after a crash
//! at the last segment that the checkpoint vouches for. The log ends at the first thing that is not a
//! record, segments behind it are deleted, and the bytes behind it in its own segment are left as they are. The report says what
//! that cost; the durable mark of such a log never says that it was closed.

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
use super::report::{Flaw, RecoveryReport, Removed, RocketMqView};
use super::safe::{prove, survey};
use super::walk::{Ended, Walker, content_end};

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
    let mark_is_unreadable = found_mark.as_ref().is_some_and(DurableMark::is_unreadable);
    let proved = prove(&segments, begin, found_mark.as_ref().map(DurableMark::marked));
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
    let (end, flaw) = walk_all(env, &mut walker, &segments[start..], begin, &mut tail, &mut records);
    let cut = walker.segment_at(end).zip(flaw).and_then(|(segment, flaw)| survey(&mut walker, segment, end, flaw));
    // Upstream takes up a blank at its end again; that is no zero, and no loss either.
    let ends_in_zeros = walker.segment_at(end).is_none_or(|last| content_end(last, end, last.limit).is_none());

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
        proved,
        mark_is_unreadable,
        begin,
        end,
        segments: segments.len(),
        records,
        holes: Vec::new(),
        cut,
        removed,
        ignored,
        rocketmq: None,
    };
    Ok(Recovered { segments, end, ends_in_zeros, tail, mark, report })
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

/// Walks segments one after the other. Returns where the log ends, and what is wrong there.
fn walk_all<E: Env>(
    env: &E,
    walker: &mut Walker<'_, E>,
    segments: &[Segment<E>],
    begin: u64,
    tail: &mut QueueOffsets,
    records: &mut u64,
) -> (u64, Option<Flaw>) {
    let mut end = begin;
    for segment in segments {
        let (at, ended) = walk_one(env, walker, segment, tail, records);
        end = at;
        match ended {
            Ended::Blank => {}
            Ended::Bad(flaw) => return (end, Some(flaw)),
            Ended::Reached | Ended::Limit | Ended::Stopped => break,
        }
    }
    (end, None)
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
