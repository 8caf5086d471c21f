//! Finding records by walking a file from its first byte on.
//!
//! The file is read in windows; a record that lies in one is checked there, without a copy. What is left of a window is
//! moved to its front before the next read, and the window grows to hold a larger record, up to
//! `max_check_reuse_buffer`; a record beyond that gets a buffer of its own which is dropped with it. Nothing is reserved
//! for a total size that is negative, below the smallest record, or beyond what remains. (apache/rocketmq #10640)
//!
//! Not modelled: where to go on behind a damaged record; that is recovery's decision.

use std::io;

use super::check::check_within;
use super::layout::{Magic, SMALLEST_RECORD_LEN, at, i32_at};
use super::{CheckOptions, Outcome};
use crate::env::File;
use crate::planted;

/// How to walk a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanOptions {
    /// Bytes to read at a time.
    pub window_len: usize,
    /// Largest buffer in bytes that is kept for the next record (`maxCheckMessageReuseBufferSize`).
    pub max_check_reuse_buffer: usize,
    /// What to check.
    pub check: CheckOptions,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self { window_len: 256 << 10, max_check_reuse_buffer: (4 << 20) + (64 << 10), check: CheckOptions::STRICT }
    }
}

/// A file could not be read.
#[derive(Debug, thiserror::Error)]
#[error("reading {needed} bytes at offset {at} of the log: {source}")]
pub struct ScanError {
    /// Offset in the log.
    pub at: i64,
    /// How many bytes were needed there.
    pub needed: usize,
    /// Why it failed; the file's early end is `UnexpectedEof`.
    pub source: io::Error,
}

/// What was found at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scanned<'a> {
    /// Offset in the log.
    pub at: i64,
    /// What stands there.
    pub outcome: Outcome<'a>,
}

/// Walks files; keeps its buffer from one to the next.
#[derive(Debug)]
pub struct RecordScanner {
    options: ScanOptions,
    window: Vec<u8>,
}

impl RecordScanner {
    /// Makes a scanner; it reserves nothing yet.
    pub const fn new(options: ScanOptions) -> Self {
        Self { options, window: Vec::new() }
    }

    /// Bytes kept for the next record.
    pub const fn retained_len(&self) -> usize {
        self.window.len()
    }

    /// Walks `file` from offset `start` in it up to `end`. Its first byte is at `file_base` of the log.
    pub fn scan<'s, F: File>(&'s mut self, file: &'s F, file_base: i64, start: u64, end: u64) -> Scan<'s, F> {
        Scan { scanner: self, file, file_base, at: start, end, window_at: start, filled: 0, one_off: Vec::new() }
    }
}

/// A walk through one file.
#[derive(Debug)]
pub struct Scan<'s, F> {
    scanner: &'s mut RecordScanner,
    file: &'s F,
    file_base: i64,
    at: u64,
    end: u64,
    /// Where in the file the window starts, and how much of it holds the file's bytes.
    window_at: u64,
    filled: usize,
    one_off: Vec<u8>,
}

impl<F: File> Scan<'_, F> {
    /// The next record, or what ends the walk: a blank or a rejection. `None` behind that and at the end.
    #[allow(clippy::should_implement_trait, reason = "what is found borrows the scanner's buffer")]
    pub fn next(&mut self) -> Result<Option<Scanned<'_>>, ScanError> {
        let remaining = self.end.saturating_sub(self.at);
        if remaining == 0 {
            return Ok(None);
        }
        self.one_off = Vec::new();
        let options = self.scanner.options;
        let needed = match self.plausible_len(remaining)? {
            Some(len) => len,
            None => remaining.min(options.window_len as u64) as usize,
        };
        let retained = options.max_check_reuse_buffer.max(options.window_len);
        let bytes = if needed > retained {
            self.read_one_off(needed)?;
            &self.one_off[..]
        } else {
            self.fill(needed)?;
            &self.scanner.window[(self.at - self.window_at) as usize..self.filled]
        };
        let at = self.file_base + self.at as i64;
        let outcome = check_within(bytes, remaining, at, &options.check);
        self.at = match outcome {
            Outcome::Record(record) => self.at + record.bytes().len() as u64,
            _ => self.end,
        };
        Ok(Some(Scanned { at, outcome }))
    }

    /// The total size of what stands here, if a record can have it.
    fn plausible_len(&mut self, remaining: u64) -> Result<Option<usize>, ScanError> {
        let needed = remaining.min(8) as usize;
        self.fill(needed)?;
        let head = &self.scanner.window[(self.at - self.window_at) as usize..self.filled];
        let magic = i32_at(head, at::MAGIC).and_then(Magic::from_code);
        let (Some(Magic::V1 | Magic::V2), Some(total_size)) = (magic, i32_at(head, at::TOTAL_SIZE)) else {
            return Ok(None);
        };
        let len = total_size as u32 as usize;
        let plausible = total_size >= SMALLEST_RECORD_LEN as i32 && len as u64 <= remaining
            || planted!(self.scanner.options.check.planted, SizeCheckSkipped);
        Ok(plausible.then_some(len))
    }

    /// Makes the window hold at least `needed` bytes from here on.
    fn fill(&mut self, needed: usize) -> Result<(), ScanError> {
        let window = &mut self.scanner.window;
        let skip = (self.at - self.window_at) as usize;
        if skip + needed <= self.filled {
            return Ok(());
        }
        let kept = self.filled.saturating_sub(skip);
        window.copy_within(self.filled - kept..self.filled, 0);
        self.window_at = self.at;
        self.filled = kept;
        let wanted = (self.end - self.at).min(self.scanner.options.window_len as u64) as usize;
        let wanted = wanted.max(needed);
        if window.len() < wanted {
            window.resize(wanted, 0);
        }
        while self.filled < needed {
            let read = self.file.read_at(&mut window[self.filled..wanted], self.at + self.filled as u64);
            match read {
                Ok(0) => return Err(self.error(needed, io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => self.filled += read,
                Err(source) if source.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(self.error(needed, source)),
            }
        }
        Ok(())
    }

    /// Reads a record that is too large for the window.
    fn read_one_off(&mut self, needed: usize) -> Result<(), ScanError> {
        let mut bytes = vec![0; needed];
        let result = self.file.read_exact_at(&mut bytes, self.at);
        self.one_off = bytes;
        result.map_err(|source| self.error(needed, source))
    }

    fn error(&self, needed: usize, source: io::Error) -> ScanError {
        ScanError { at: self.file_base + self.at as i64, needed, source }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, Result};

    use super::*;
    use crate::codec::{
        Assigned, Host, MessageRef, PropertiesRef, RecordHeader, RecordOptions, RecordTemplate, Rejection, SysFlag,
        check, record,
    };
    use crate::planted::Planted;

    /// A file that gives at most `max_read` bytes at a time.
    struct Bytes {
        bytes: Vec<u8>,
        max_read: usize,
    }

    impl File for Bytes {
        fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize> {
            let rest = self.bytes.get(offset as usize..).unwrap_or_default();
            let len = rest.len().min(bytes.len()).min(self.max_read);
            bytes[..len].copy_from_slice(&rest[..len]);
            Ok(len)
        }
        fn write_at(&self, _: &[u8], _: u64) -> Result<usize> {
            unreachable!("a scanner writes nothing")
        }
        fn write_vectored_at(&self, _: &[IoSlice<'_>], _: u64) -> Result<usize> {
            unreachable!("a scanner writes nothing")
        }
        fn sync_data(&self) -> Result<()> {
            unreachable!("a scanner syncs nothing")
        }
        fn sync_all(&self) -> Result<()> {
            unreachable!("a scanner syncs nothing")
        }
        fn preallocate(&self, _: u64) -> Result<()> {
            unreachable!("a scanner changes nothing")
        }
        fn zero_range(&self, _: u64, _: u64) -> Result<()> {
            unreachable!("a scanner changes nothing")
        }
        fn set_len(&self, _: u64) -> Result<()> {
            unreachable!("a scanner changes nothing")
        }
        fn len(&self) -> Result<u64> {
            Ok(self.bytes.len() as u64)
        }
        fn modified_ms(&self) -> Result<i64> {
            Ok(0)
        }
    }

    const BASE: i64 = 1 << 40;

    /// Records with bodies of the given lengths, at `BASE` of the log.
    fn records(body_lens: &[usize]) -> Vec<u8> {
        let host = Host::new("10.0.0.1".parse().unwrap(), 1);
        let header = RecordHeader {
            topic: "T",
            queue_id: 0,
            sys_flag: SysFlag(0),
            born_timestamp_ms: 0,
            born_host: host,
            store_host: host,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
        };
        let template = RecordTemplate::new(&header, &RecordOptions::default()).unwrap();
        let mut bytes = Vec::new();
        for &len in body_lens {
            let body = vec![len as u8; len];
            template
                .encode_into(MessageRef { flag: 0, body: &body, properties: PropertiesRef(b"") }, &mut bytes)
                .unwrap();
        }
        record::assign(&mut bytes, Assigned { queue_offset: 0, physical_offset: BASE, store_timestamp_ms: 0 }, false);
        bytes
    }

    fn scanner(window_len: usize, max_check_reuse_buffer: usize) -> RecordScanner {
        RecordScanner::new(ScanOptions { window_len, max_check_reuse_buffer, ..ScanOptions::default() })
    }

    /// Walks `bytes` and returns where records were, and what ended the walk.
    fn walk(scanner: &mut RecordScanner, bytes: Vec<u8>, max_read: usize) -> (Vec<i64>, Option<Rejection>, bool) {
        let file = Bytes { max_read, bytes };
        let (mut places, mut rejection, mut blank) = (Vec::new(), None, false);
        let mut scan = scanner.scan(&file, BASE, 0, file.bytes.len() as u64);
        while let Some(found) = scan.next().unwrap() {
            match found.outcome {
                Outcome::Record(record) => {
                    assert_eq!(record.bytes(), &file.bytes[(found.at - BASE) as usize..][..record.bytes().len()]);
                    places.push(found.at - BASE);
                }
                Outcome::Blank { .. } => blank = true,
                Outcome::Rejected(reason) => rejection = Some(reason),
            }
        }
        (places, rejection, blank)
    }

    #[test]
    fn records_are_found_however_the_windows_fall() {
        let lens = [0, 5, 100, 1, 40, 300, 0, 7];
        let mut bytes = records(&lens);
        let mut expected = Vec::new();
        let mut at = 0;
        for len in lens {
            expected.push(at);
            at += 92 + len as i64;
        }
        bytes.extend(record::blank(20, Planted::NONE));
        bytes.extend([0xAA; 12]);
        for window_len in 1..300 {
            for max_read in [1, 7, usize::MAX] {
                let found = walk(&mut scanner(window_len, 4096), bytes.clone(), max_read);
                assert_eq!(found, (expected.clone(), None, true), "window {window_len}, reads of {max_read}");
            }
        }
    }

    #[test]
    fn the_buffer_grows_up_to_its_bound_and_a_larger_record_is_not_kept() {
        let mut scanner = scanner(256, 4096);
        assert_eq!(scanner.retained_len(), 0);
        let mut retained = Vec::new();
        let lens = [10, 1000, 10, 5000, 4096 - 92, 10];
        let file = Bytes { bytes: records(&lens), max_read: usize::MAX };
        for count in 1..=lens.len() {
            let mut scan = scanner.scan(&file, BASE, 0, file.bytes.len() as u64);
            for _ in 0..count {
                assert!(matches!(scan.next(), Ok(Some(Scanned { outcome: Outcome::Record(_), .. }))));
            }
            retained.push(scanner.retained_len());
        }
        assert_eq!(retained, [256, 1092, 1092, 1092, 4096, 4096]);
    }

    #[test]
    fn nothing_is_reserved_for_an_impossible_size() {
        let good = records(&[10]);
        let remaining = 102 + 102;
        for total_size in [i32::MIN, -1, 0, 1, 90, remaining + 1, i32::MAX] {
            let mut bytes = [&good[..], &good[..]].concat();
            bytes[102..106].copy_from_slice(&total_size.to_be_bytes());
            let mut scanner = scanner(64, 1 << 20);
            let (places, rejection, _) = walk(&mut scanner, bytes, usize::MAX);
            assert_eq!(places, [0]);
            assert!(rejection.is_some(), "{total_size}");
            assert!(scanner.retained_len() <= 102, "{total_size} reserved {}", scanner.retained_len());
        }
    }

    #[test]
    fn a_stale_record_and_a_zeroed_tail_end_the_walk() {
        let good = records(&[10]);
        let stale = [&good[..], &good[..]].concat();
        let (places, rejection, _) = walk(&mut scanner(64, 4096), stale, usize::MAX);
        assert_eq!(places, [0]);
        assert_eq!(rejection, Some(Rejection::PhysicalOffset { stored: BASE, at: BASE + 102, total_size: 102 }));
        let zeros = [&good[..], &[0; 500]].concat();
        let (places, rejection, _) = walk(&mut scanner(64, 4096), zeros, usize::MAX);
        assert_eq!((places, rejection), (vec![0], Some(Rejection::UnknownMagic { magic: 0 })));
        for tail in 1..=4 {
            let cut = [&good[..], &[0; 4][..tail]].concat();
            let (_, rejection, _) = walk(&mut scanner(64, 4096), cut, usize::MAX);
            assert_eq!(rejection, Some(Rejection::TooShort { remaining: tail as u64 }));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_file_is_walked_as_the_check_of_its_bytes_says(
            lens in proptest::collection::vec(0..200usize, 0..6),
            edits in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), 0..=255u8), 0..4),
            tail in proptest::collection::vec(0..=255u8, 0..120),
            window_len in 1..400usize,
        ) {
            let mut bytes = [records(&lens), tail].concat();
            bytes.push(0);
            for (at, value) in edits {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            let file = Bytes { bytes, max_read: usize::MAX };
            let mut scanner = scanner(window_len, 256);
            let mut scan = scanner.scan(&file, BASE, 0, file.bytes.len() as u64);
            let mut at = 0;
            while let Some(found) = scan.next().unwrap() {
                assert_eq!(found.at, BASE + at as i64);
                let expected = check(&file.bytes[at..], found.at, &CheckOptions::STRICT);
                match (found.outcome, expected) {
                    (Outcome::Rejected(_), Outcome::Rejected(_)) => {}
                    (found, expected) => assert_eq!(found, expected),
                }
                at = match found.outcome {
                    Outcome::Record(record) => at + record.bytes().len(),
                    _ => file.bytes.len(),
                };
            }
            assert_eq!(at, file.bytes.len());
            assert!(scanner.retained_len() <= 400);
        }
    }

    #[test]
    fn a_file_that_ends_early_is_an_error_with_its_place() {
        let file = Bytes { bytes: records(&[10]), max_read: usize::MAX };
        let mut scanner = scanner(64, 4096);
        let mut scan = scanner.scan(&file, BASE, 0, 500);
        assert!(matches!(scan.next(), Ok(Some(_))));
        let error = scan.next().unwrap_err();
        assert_eq!((error.at, error.source.kind()), (BASE + 102, io::ErrorKind::UnexpectedEof));
    }

    #[cfg(feature = "planted-faults")]
    #[test]
    fn planted_an_impossible_size_is_believed() {
        use crate::planted::Fault;
        let mut bytes = records(&[10, 10]);
        bytes[3] -= 1;
        let check = CheckOptions { planted: Planted::one(Fault::SizeCheckSkipped), ..CheckOptions::STRICT };
        let mut faulty = RecordScanner::new(ScanOptions { check, ..ScanOptions::default() });
        let (places, rejection, _) = walk(&mut faulty, bytes.clone(), usize::MAX);
        assert_eq!((places, rejection.is_some()), (vec![0], true), "the record behind it is lost");
        let (places, ..) = walk(&mut scanner(64, 4096), bytes, usize::MAX);
        assert_eq!(places, []);
    }

    #[cfg(feature = "planted-faults")]
    #[test]
    fn planted_a_stale_record_is_accepted() {
        use crate::planted::Fault;
        let good = records(&[10]);
        let check = CheckOptions { planted: Planted::one(Fault::StaleRecordAccepted), ..CheckOptions::STRICT };
        let mut faulty = RecordScanner::new(ScanOptions { check, ..ScanOptions::default() });
        let (places, ..) = walk(&mut faulty, [&good[..], &good[..]].concat(), usize::MAX);
        assert_eq!(places, [0, 102]);
    }

    #[cfg(feature = "planted-faults")]
    #[test]
    fn planted_a_blank_has_no_length() {
        use crate::planted::Fault;
        let blank = record::blank(8, Planted::one(Fault::BlankWithoutLength)).to_vec();
        let (_, rejection, _) = walk(&mut scanner(64, 4096), blank, usize::MAX);
        assert_eq!(rejection, Some(Rejection::BlankLen { stated: 0, remaining: 8 }));
    }
}
