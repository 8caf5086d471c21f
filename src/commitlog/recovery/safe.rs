//! The safe policy: what is proved durable is served or reported lost; what is not ends at the first record that does not
//! check.

use std::ops::ControlFlow;

use crate::codec::{PropertyCrc, Rejection};
use crate::env::{Env, Step};
use crate::log::{DurableMark, Marked, Segment};
use crate::planted;

use super::super::directory::{Directory, sync_dir};
use super::super::error::OpenError;
use super::super::options::CommitLogOptions;
use super::super::queues::QueueOffsets;
use super::load::Loaded;
use super::report::{Cut, CutRecord, Flaw, Hole, Proof, Proved, RecoveryReport, RocketMqView};
use super::walk::{Ended, Walker, content_end};
use super::{Recovered, compatible, repair};

/// Where the log ends, and what was found on the way.
struct Scan {
    tail: QueueOffsets,
    records: u64,
    holes: Vec<Hole>,
    end: u64,
    /// What is wrong at the end, if it is not a segment that is still to be made.
    flaw: Option<Flaw>,
    last_record: u64,
}

pub(super) fn recover<E: Env>(
    env: &E,
    directory: &Directory,
    options: &CommitLogOptions,
    loaded: Loaded<E>,
    was_closed: bool,
) -> Result<Recovered<E>, OpenError> {
    let Loaded { mut segments, ignored } = loaded;
    let found_mark = DurableMark::open(env, &directory.durable)?;
    let marked = found_mark.as_ref().map(DurableMark::marked);
    let mark_is_unreadable = found_mark.as_ref().is_some_and(DurableMark::is_unreadable);
    let was_closed = was_closed && marked.is_none_or(|marked| marked.is_closed);
    let begin = begin_of(&segments, marked);
    let proved = prove(&segments, begin, marked);
    // What the last life wrote behind the mark carries property CRCs, or it does not: the mark knows, the options of today
    // do not.
    let self_checked_from = marked.filter(|marked| marked.is_self_checked).map(|marked| marked.durable_end);
    let mut check = options.recovery_check();
    if self_checked_from.is_some() {
        check.property_crc = PropertyCrc::WherePresent;
    }
    let mut walker = Walker::new(&segments, options.scan_options(check));
    let scan = scan(env, &mut walker, begin, proved.bound, self_checked_from, options);
    let Scan { tail, records, holes, end, flaw, .. } = scan;
    let first_bad = holes.first().map_or(end, |hole| hole.begin);

    let is_ours = found_mark.is_some();
    // After a clean stop everything is as the mark says. Otherwise anything may be behind the end.
    let is_settled = was_closed && marked.is_some_and(|marked| marked.durable_end == end);
    let mut cut = None;
    if !is_settled && let Some((segment, flaw)) = walker.segment_at(end).zip(flaw) {
        cut = survey(&mut walker, segment, end, flaw);
    }
    let rocketmq = (!holes.is_empty() || cut.is_some())
        .then(|| compatible::view(&segments, options, begin, first_bad))
        .filter(|view| !holes.is_empty() || view.end != end);

    directory.mark_open(env)?;
    let mut removed = Vec::new();
    if !is_settled {
        if let Some(cut) = cut.as_mut().filter(|cut| cut.record_count > 0) {
            let segment = walker.segment_at(end).expect("a cut is in a segment");
            cut.kept_as = Some(repair::keep_cut(env, directory, segment, cut)?);
        }
        for segment in segments.iter().filter(|segment| proved.bound < segment.limit && segment.base <= end) {
            // What RocketMQ has closed is on the disk as far as the kernel knows.
            if !was_closed {
                repair::rewrite(segment, proved.bound.max(segment.base), end.min(segment.limit))?;
            }
            if end < segment.limit {
                segment.zero(end, segment.limit)?;
            }
            segment.sync()?;
        }
        let behind = segments.partition_point(|segment| segment.base <= end);
        for segment in segments.drain(behind..) {
            removed.push(repair::remove(env, directory, &segment)?);
        }
        if !removed.is_empty() {
            sync_dir(env, &directory.commitlog)?;
        }
    }
    let mut mark = match found_mark {
        Some(mark) => mark,
        None => DurableMark::create(env, &directory.durable)?,
    };
    let is_self_checked = options.enabled_append_prop_crc;
    mark.write(Marked { begin, durable_end: end, is_closed: false, is_self_checked })?;
    mark.sync()?;
    if !is_ours {
        sync_dir(env, &directory.root)?;
    }
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
        holes,
        cut,
        removed,
        ignored,
        rocketmq,
    };
    report_marks(env, &report);
    Ok(Recovered { segments, end, ends_in_zeros: true, tail, mark, report })
}

/// Where the log begins. A segment that is missing before the first one is told by the mark alone.
fn begin_of<E: Env>(segments: &[Segment<E>], marked: Option<Marked>) -> u64 {
    let first = segments.first().map(|first| first.base);
    let marked = marked.filter(|marked| *marked != Marked::default()).map(|marked| marked.begin);
    first.into_iter().chain(marked).min().unwrap_or(0)
}

/// Up to where the log was durable. A segment is synced before a byte of the next is written, by this store.
pub(super) fn prove<E: Env>(segments: &[Segment<E>], begin: u64, marked: Option<Marked>) -> Proved {
    let nothing = Proved { bound: begin, by: Proof::Nothing };
    let Some(marked) = marked else { return nothing };
    let marked = Proved { bound: marked.durable_end, by: Proof::DurableMark };
    let newest = segments
        .iter()
        .rev()
        .take_while(|segment| segment.base > marked.bound)
        .find(|segment| content_end(segment, segment.base, segment.limit).is_some())
        .map(|segment| Proved { bound: segment.base, by: Proof::NewestSegment });
    [Some(marked), newest]
        .into_iter()
        .flatten()
        .fold(nothing, |best, next| if next.bound > best.bound { next } else { best })
}

fn scan<E: Env>(
    env: &E,
    walker: &mut Walker<'_, E>,
    begin: u64,
    bound: u64,
    self_checked_from: Option<u64>,
    options: &CommitLogOptions,
) -> Scan {
    let mut scan = Scan {
        tail: QueueOffsets::default(),
        records: 0,
        holes: Vec::new(),
        end: begin,
        flaw: None,
        last_record: begin,
    };
    loop {
        let (flaw, position) = match walker.segment_at(scan.end) {
            None => (Flaw::MissingSegment, scan.end),
            Some(segment) => {
                let Scan { tail, records, last_record, end, .. } = &mut scan;
                let before = *records;
                let mut unchecked = None;
                let (position, ended) = walker.walk(segment, *end, segment.limit, |record| {
                    let at = record.physical_offset() as u64;
                    if self_checked_from.is_some_and(|from| from <= at) && record.property_crc().is_none() {
                        unchecked = Some(at);
                        return ControlFlow::Break(());
                    }
                    tail.observe(record);
                    *records += 1;
                    *last_record = at;
                    ControlFlow::Continue(())
                });
                let position = unchecked.unwrap_or(position);
                env.charge(Step::CheckRecord, *records - before);
                env.charge(Step::CopyByte, position - *end);
                match ended {
                    Ended::Reached | Ended::Limit | Ended::Blank => {
                        scan.end = segment.limit;
                        continue;
                    }
                    Ended::Bad(flaw) => (flaw, position),
                    Ended::Stopped => (Flaw::Rejected(Rejection::PropertyCrcMissing), position),
                }
            }
        };
        scan.end = position;
        if position >= bound {
            scan.flaw = Some(flaw).filter(|flaw| *flaw != Flaw::MissingSegment);
            if planted!(options.planted, TruncateWrongRecord) && scan.flaw.is_some() {
                scan.end = scan.last_record;
            }
            return scan;
        }
        let (end, unproved_records) = match walker.sound_end(position, &flaw) {
            Some(end) => (end, 0),
            None => walker.resume(position, bound),
        };
        // A log that ends in a segment that is not there goes on with the next.
        let segment_bytes = options.mapped_file_size_commit_log;
        let end = if walker.segment_at(end).is_some() { end } else { end.next_multiple_of(segment_bytes) };
        scan.holes.push(Hole { begin: position, end, flaw, unproved_records });
        scan.end = end;
    }
}

/// What is behind the end of the log, in its segment; `None` if nothing is.
pub(super) fn survey<E: Env>(
    walker: &mut Walker<'_, E>,
    segment: &Segment<E>,
    position: u64,
    flaw: Flaw,
) -> Option<Cut> {
    let content_end = content_end(segment, position, segment.limit)?;
    let mut cut = Cut { position, content_end, flaw, records: Vec::new(), record_count: 0, kept_as: None };
    let mut from = position;
    while let Some((found, len)) = walker.find_record(from, content_end) {
        cut.record_count += 1;
        if cut.records.len() < Cut::MAX_LISTED {
            walker.walk(segment, found, found + 1, |record| {
                cut.records.push(CutRecord {
                    position: found,
                    len,
                    topic: String::from_utf8_lossy(record.topic()).into_owned(),
                    queue_id: record.queue_id(),
                    queue_offset: record.queue_offset(),
                });
                ControlFlow::Break(())
            });
        }
        from = found + len;
        // A record may end in zeros.
        cut.content_end = cut.content_end.max(from);
    }
    Some(cut)
}

fn report_marks<E: Env>(env: &E, report: &RecoveryReport) {
    let marks = [
        (report.cut.is_some(), "recovery.torn-tail"),
        (report.cut.as_ref().is_some_and(|cut| cut.record_count > 0), "recovery.salvage"),
        (!report.holes.is_empty(), "recovery.hole"),
        (!report.removed.is_empty(), "recovery.segment-removed"),
        (!report.was_closed, "recovery.crash"),
        (report.proved.by == Proof::NewestSegment, "recovery.proved-by-segment"),
    ];
    for (_, name) in marks.into_iter().filter(|(reached, _)| *reached) {
        env.mark(name);
    }
}

impl RocketMqView {
    pub(super) fn new<E: Env>(segments: &[Segment<E>], end: u64) -> Self {
        Self { end, deleted_segments: segments.iter().filter(|segment| segment.base > end).count() }
    }
}
