//! Reading records by their offset.

use std::ops::Range;

use bytes::Bytes;

use crate::codec::{CheckOptions, Host, MessageId, Outcome, RecordView, SMALLEST_RECORD_LEN, SysFlag, check};
use crate::env::{Env, Step};
use crate::log::RangeError;

use super::CommitLog;
use super::error::ReadError;

/// Read along with the head of a record, because most records are not longer.
const FIRST_READ_BYTES: u64 = 4096;
/// The most that a record can be longer than its body: fixed fields, two IPv6 hosts, topic, properties.
const MAX_OVERHEAD: i64 = 124 + 2 * i16::MAX as i64;

/// A record, read from the log and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    bytes: Bytes,
}

impl Record {
    /// The record's bytes, as they are in the log.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The record's fields.
    pub fn view(&self) -> RecordView<'_> {
        RecordView::parse(&self.bytes).expect("the record was checked when it was read")
    }

    /// Where the next record begins, or the blank of the segment.
    pub fn end(&self) -> u64 {
        self.view().physical_offset() as u64 + self.bytes.len() as u64
    }
}

impl<E: Env> CommitLog<E> {
    /// Reads the record at `position`.
    ///
    /// # Errors
    /// The position is outside of [`CommitLog::visible`], the disk does not give the bytes back, or they are no record
    /// that says it is there.
    pub fn read(&self, position: u64) -> Result<Record, ReadError> {
        let visible = self.visible();
        let outside = || RangeError::Outside { position, begin: visible.start, end: visible.end };
        if !visible.contains(&position) {
            return Err(outside().into());
        }
        let segment = self.log.segment_at(position).ok_or_else(outside)?;
        let end = visible.end.min(segment.limit);
        self.env.charge(Step::ReadRecord, 1);
        let mut bytes = vec![0; FIRST_READ_BYTES.min(end - position) as usize];
        segment.read(position, &mut bytes).map_err(RangeError::Io)?;
        let len = plausible_len(&bytes, end - position);
        if let Some(len) = len.filter(|len| *len > bytes.len()) {
            let first = bytes.len();
            bytes.resize(len, 0);
            segment.read(position + first as u64, &mut bytes[first..]).map_err(RangeError::Io)?;
        }
        // The check is told what remains by what it is given.
        let blank_len = len.is_none() && end == segment.limit && bytes.len() as u64 == end - position;
        let options = CheckOptions { blank_len, ..self.options.read_check() };
        match check(&bytes, position as i64, &options) {
            Outcome::Record(record) => {
                let len = record.bytes().len();
                self.env.charge(Step::CopyByte, len as u64);
                bytes.truncate(len);
                Ok(Record { bytes: bytes.into() })
            }
            Outcome::Blank { .. } => Err(ReadError::Blank { position, next: segment.limit }),
            Outcome::Rejected(rejection) => Err(ReadError::Rejected { position, rejection }),
        }
    }

    /// Reads the record that an id names.
    ///
    /// # Errors
    /// As [`CommitLog::read`], and if the record there has another id.
    pub fn read_by_id(&self, wanted: MessageId) -> Result<Record, ReadError> {
        let record = self.read(u64::try_from(wanted.physical_offset).unwrap_or(u64::MAX))?;
        let found = record.view().message_id();
        if found == wanted { Ok(record) } else { Err(ReadError::OtherId { wanted, found }) }
    }

    /// The records from `position` on, in order, up to what is visible when the iterator gets there. It goes over blanks
    /// and over the holes that recovery reported, and ends after the first error.
    pub fn records(&self, position: u64) -> Records<'_, E> {
        Records { log: self, position, is_over: false }
    }

    /// What may be read: with synchronous flush what is durable, otherwise what the kernel has. (apache/rocketmq #8239)
    pub fn visible(&self) -> Range<u64> {
        self.log.begin()..self.visible_end()
    }
}

/// The records of a log, in order.
pub struct Records<'l, E: Env> {
    log: &'l CommitLog<E>,
    position: u64,
    is_over: bool,
}

impl<E: Env> Iterator for Records<'_, E> {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            while let Some(hole) = self.log.hole_at(self.position) {
                self.position = hole.end;
            }
            if self.is_over || self.position >= self.log.visible_end() {
                return None;
            }
            match self.log.read(self.position) {
                Ok(record) => {
                    self.position += record.bytes.len() as u64;
                    return Some(Ok(record));
                }
                Err(ReadError::Blank { next, .. }) => self.position = next,
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// The total size of what begins with `head`, if a record can have it: it fits into the `remaining` bytes, and body and
/// total size agree. Nothing is reserved by one of them alone.
fn plausible_len(head: &[u8], remaining: u64) -> Option<usize> {
    let word = |at: usize| head.get(at..at + 4).map(|word| i32::from_be_bytes(word.try_into().expect("four bytes")));
    let total_size = word(0)?;
    let sys_flag = SysFlag(word(36)?);
    let host_len = |is_v6| if is_v6 { Host::V6_LEN } else { Host::V4_LEN };
    let body_len_at = 68 + host_len(sys_flag.is_born_host_v6()) + host_len(sys_flag.is_store_host_v6());
    let overhead = i64::from(total_size) - i64::from(word(body_len_at)?.max(0));
    let fits = total_size >= SMALLEST_RECORD_LEN as i32 && total_size as u64 <= remaining;
    (fits && (0..=MAX_OVERHEAD).contains(&overhead)).then_some(total_size as usize)
}
