//! Walking records, and finding where to go on behind what is no record.
//!
//! Model: from a place that is known to begin a record the walk goes from record to record and over blanks. A record whose
//! contents are damaged, but whose lengths, at its exact offset, add up, costs itself alone. Where the walk finds something
//! else, below the proved bound, the log goes on at the first place from which an unbroken chain of all these leads to the
//! bound: bytes in a body that look like a record are taken for one only if they are part of such a chain.

use std::ops::ControlFlow;

use crate::codec::record::BLANK_LEN;
use crate::codec::scan::ScanError;
use crate::codec::{Magic, Outcome, RecordScanner, RecordView, Rejection, SMALLEST_RECORD_LEN, ScanOptions};
use crate::env::{Env, File};
use crate::log::Segment;

use super::report::Flaw;

/// Bytes searched at a time.
const BLOCK_BYTES: usize = 64 << 10;
/// The unit in which a disk gives bytes back or does not.
const SECTOR_BYTES: usize = 512;
/// Total size, magic, and what stands between them and the physical offset, and that.
const FRAME_BYTES: usize = 36;

/// How a walk ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// At or behind where it was to end.
    Reached,
    /// At the segment's end, without a blank.
    Limit,
    /// At a blank, which fills the rest of the segment.
    Blank,
    /// At something else.
    Bad(Flaw),
    /// The visitor had enough.
    Stopped,
}

/// Where a chain leads.
enum Chain {
    /// To where it should.
    Reaches,
    /// Not there; the first place at which something is wrong, and the whole records before it.
    Breaks { at: u64, records: u64 },
}

/// Reads the records of a log's segments, in order of their bases.
pub(super) struct Walker<'s, E: Env> {
    segments: &'s [Segment<E>],
    scanner: RecordScanner,
    /// Reads one record at a time and no byte behind it, for where the disk does not give everything back.
    careful: RecordScanner,
}

impl<'s, E: Env> Walker<'s, E> {
    pub fn new(segments: &'s [Segment<E>], options: ScanOptions) -> Self {
        let careful = ScanOptions { window_len: 2 * FRAME_BYTES, ..options };
        assert!(careful.window_len < SMALLEST_RECORD_LEN, "a careful read stays inside of the record");
        Self { segments, scanner: RecordScanner::new(options), careful: RecordScanner::new(careful) }
    }

    /// The segment that holds `position`.
    pub fn segment_at(&self, position: u64) -> Option<&'s Segment<E>> {
        let index = self.segments.partition_point(|segment| segment.base <= position).checked_sub(1)?;
        Some(&self.segments[index]).filter(|segment| position < segment.limit)
    }

    /// Walks one segment, from `position` up to `until` at most. Returns where the walk ended, and why.
    pub fn walk(
        &mut self,
        segment: &Segment<E>,
        position: u64,
        until: u64,
        mut visit: impl FnMut(&RecordView<'_>) -> ControlFlow<()>,
    ) -> (u64, Ended) {
        let (position, ended) = walk_with(&mut self.scanner, segment, position, until, &mut visit);
        match ended {
            Ok(ended) => (position, ended),
            Err(_) => match walk_with(&mut self.careful, segment, position, until, &mut visit) {
                (position, Ok(ended)) => (position, ended),
                (position, Err(error)) => (position, Ended::Bad(Flaw::Unreadable { reason: error.source.to_string() })),
            },
        }
    }

    /// Where the log goes on behind the bad place `position`, which is below `bound`: at most at `bound`. Counts the
    /// whole records in between that nothing vouches for.
    pub fn resume(&mut self, position: u64, bound: u64) -> (u64, u64) {
        let (mut unproved, mut from) = (0, position + 1);
        while let Some((candidate, _)) = self.find_record(from, bound) {
            match self.chain(candidate, bound) {
                Chain::Reaches => return (candidate, unproved),
                Chain::Breaks { at, records } => {
                    unproved += records;
                    from = at.max(candidate) + 1;
                }
            }
        }
        (bound, unproved)
    }

    /// Where the record at `position` ends if only its contents are damaged: magic, physical offset and all lengths are
    /// what they are in a whole record.
    pub fn sound_end(&self, position: u64, flaw: &Flaw) -> Option<u64> {
        let Flaw::Rejected(Rejection::BodyCrc { .. } | Rejection::PropertyCrc { .. } | Rejection::PropertyCrcMissing) =
            flaw
        else {
            return None;
        };
        let segment = self.segment_at(position)?;
        let mut frame = [0; FRAME_BYTES];
        segment.read(position, &mut frame).ok()?;
        let (total_size, rest) = frame.split_first_chunk()?;
        let end = position + u64::try_from(i32::from_be_bytes(*total_size)).ok()?;
        let stated_offset = i64::from_be_bytes(*rest.last_chunk()?);
        (stated_offset == position as i64 && end + BLANK_LEN as u64 <= segment.limit).then_some(end)
    }

    fn chain(&mut self, from: u64, to: u64) -> Chain {
        let (mut position, mut records, mut first_bad) = (from, 0, None);
        while position < to {
            let Some(segment) = self.segment_at(position) else {
                return Chain::Breaks { at: first_bad.unwrap_or(position), records };
            };
            let (at, ended) = self.walk(segment, position, to, |_| {
                records += u64::from(first_bad.is_none());
                ControlFlow::Continue(())
            });
            position = match ended {
                Ended::Reached => at,
                Ended::Limit | Ended::Blank => segment.limit,
                Ended::Bad(flaw) => match self.sound_end(at, &flaw) {
                    Some(next) => {
                        first_bad.get_or_insert(at);
                        next
                    }
                    None => return Chain::Breaks { at: first_bad.unwrap_or(at), records },
                },
                Ended::Stopped => unreachable!("the visitor goes on"),
            };
        }
        if position == to { Chain::Reaches } else { Chain::Breaks { at: first_bad.unwrap_or(from), records } }
    }

    /// The first whole record that begins in `[from, to)`, and its length.
    pub fn find_record(&mut self, from: u64, to: u64) -> Option<(u64, u64)> {
        for segment in self.segments.iter().filter(|segment| segment.base < to && from < segment.limit) {
            let (mut at, end) = (from.max(segment.base), to.min(segment.limit));
            while at < end {
                let Some(found) = find_magic(segment, at, end) else { break };
                if let Some(len) = self.record_at(segment, found) {
                    return Some((found, len));
                }
                at = found + 1;
            }
        }
        None
    }

    fn record_at(&mut self, segment: &Segment<E>, position: u64) -> Option<u64> {
        let mut len = None;
        self.walk(segment, position, position + 1, |record| {
            len = Some(record.bytes().len() as u64);
            ControlFlow::Break(())
        });
        len
    }
}

fn walk_with<E: Env>(
    scanner: &mut RecordScanner,
    segment: &Segment<E>,
    mut position: u64,
    until: u64,
    visit: &mut impl FnMut(&RecordView<'_>) -> ControlFlow<()>,
) -> (u64, Result<Ended, ScanError>) {
    let (start, end) = (position - segment.base, segment.limit - segment.base);
    let mut scan = scanner.scan(&segment.file, segment.base as i64, start, end);
    let ended = loop {
        if position >= until {
            break Ok(Ended::Reached);
        }
        match scan.next() {
            Ok(None) => break Ok(Ended::Limit),
            Ok(Some(scanned)) => match scanned.outcome {
                Outcome::Record(record) => {
                    position += record.bytes().len() as u64;
                    if visit(&record).is_break() {
                        break Ok(Ended::Stopped);
                    }
                }
                Outcome::Blank { .. } => break Ok(Ended::Blank),
                Outcome::Rejected(rejection) => break Ok(Ended::Bad(Flaw::Rejected(rejection))),
            },
            Err(error) => break Err(error),
        }
    };
    (position, ended)
}

/// The first place in `[from, to)` of a segment with a record's magic four bytes behind it.
fn find_magic<E: Env>(segment: &Segment<E>, from: u64, to: u64) -> Option<u64> {
    const MAGIC_AT: u64 = 4;
    let first = Magic::V1.code().to_be_bytes()[0];
    debug_assert_eq!(first, Magic::V2.code().to_be_bytes()[0]);
    let mut block = vec![0; BLOCK_BYTES];
    // Where a magic may begin; the last three bytes of a block are looked at again with the next.
    let (mut at, end) = (from + MAGIC_AT, (to + MAGIC_AT + 3).min(segment.limit));
    while at + 4 <= end {
        let len = BLOCK_BYTES.min((end - at) as usize);
        let block = &mut block[..len];
        read_what_can_be_read(segment, at, block);
        let is_magic = |word: &[u8]| {
            let code = i32::from_be_bytes(word.try_into().expect("four bytes"));
            matches!(Magic::from_code(code), Some(Magic::V1 | Magic::V2))
        };
        if block.contains(&first)
            && let Some(index) = block.windows(4).position(|word| word[0] == first && is_magic(word))
        {
            return Some(at + index as u64 - MAGIC_AT);
        }
        at += len as u64 - 3;
    }
    None
}

/// Behind the last byte of `[from, to)` that is not known to be zero; `None` if all are.
pub(super) fn content_end<E: Env>(segment: &Segment<E>, from: u64, to: u64) -> Option<u64> {
    let mut block = vec![0; BLOCK_BYTES];
    let (mut at, mut last) = (from, None);
    while at < to {
        let len = BLOCK_BYTES.min((to - at) as usize);
        let block = &mut block[..len];
        if !read_what_can_be_read(segment, at, block) {
            last = Some(at + len as u64);
        } else if block.chunks(32).any(|chunk| chunk.iter().fold(0, |all, byte| all | byte) != 0) {
            last = block.iter().rposition(|byte| *byte != 0).map(|index| at + index as u64 + 1);
        }
        at += len as u64;
    }
    last
}

/// Reads, with zeros for the sectors that the disk does not give back. False if there are any.
pub(super) fn read_what_can_be_read<E: Env>(segment: &Segment<E>, position: u64, bytes: &mut [u8]) -> bool {
    if segment.read(position, bytes).is_ok() {
        return true;
    }
    let mut is_whole = true;
    let mut done = 0;
    while done < bytes.len() {
        let offset = position - segment.base + done as u64;
        let len = (SECTOR_BYTES - offset as usize % SECTOR_BYTES).min(bytes.len() - done);
        let sector = &mut bytes[done..done + len];
        if segment.file.read_exact_at(sector, offset).is_err() {
            sector.fill(0);
            is_whole = false;
        }
        done += len;
    }
    is_whole
}
