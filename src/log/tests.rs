//! The log over a layout that is not RocketMQ's: a header in every segment, and nothing that closes one.
#![allow(clippy::disallowed_methods, reason = "a test looks at files behind the log's back")]

use std::fs;

use super::*;
use crate::env::real::RealEnv;
use crate::planted::Planted;

struct Numbered;

const HEADER: &[u8] = b"header of ";
const SEGMENT: u64 = 256;
const FIRST: u64 = 18;

impl Layout for Numbered {
    /// How many appends there were.
    type Tail = u64;

    fn segment_bytes(&self) -> u64 {
        SEGMENT
    }

    fn file_name(&self, base: u64) -> String {
        format!("{}.seg", base / SEGMENT)
    }

    fn base_of(&self, file_name: &str) -> Option<u64> {
        file_name.strip_suffix(".seg")?.parse::<u64>().ok()?.checked_mul(SEGMENT)
    }

    fn header(&self, base: u64) -> Vec<u8> {
        [HEADER, &base.to_be_bytes()].concat()
    }
}

fn open(root: &std::path::Path, options: LogOptions) -> Log<RealEnv, Numbered> {
    let directory = root.join("log");
    fs::create_dir(&directory).unwrap();
    let start = LogStart {
        directory,
        preparing: root.join("preparing"),
        mark: DurableMark::create(&RealEnv, &root.join("durable")).unwrap(),
        segments: Vec::new(),
        end: 0,
        ends_in_zeros: true,
        tail: 0,
    };
    Log::open(&RealEnv, "test", Numbered, options, start).unwrap()
}

fn append(log: &Log<RealEnv, Numbered>, bytes: &[u8], level: Level) -> Result<(Receipt, u64), RefusedError> {
    log.append(bytes.len(), level, |count, _, place| {
        place.copy_from_slice(bytes);
        *count += 1;
        *count
    })
}

#[test]
fn every_segment_has_its_header_and_records_behind_it() {
    for written_by in [WrittenBy::Write, WrittenBy::Region] {
        let root = tempfile::tempdir().unwrap();
        let log = open(root.path(), LogOptions { written_by, ..LogOptions::default() });
        let mut receipts = Vec::new();
        for n in 0..20u8 {
            let level = if n % 4 == 0 { Level::Durable } else { Level::Written };
            let (receipt, count) = append(&log, &[n; 60], level).unwrap();
            assert_eq!(log.wait(&receipt, None), Ok(level));
            assert_eq!((count, receipt.position % SEGMENT % 60), (u64::from(n) + 1, FIRST));
            receipts.push(receipt);
        }
        for (n, receipt) in receipts.iter().enumerate() {
            let mut bytes = [0; 60];
            log.segment_at(receipt.position).unwrap().read(receipt.position, &mut bytes).unwrap();
            assert_eq!(bytes, [n as u8; 60]);
        }
        log.close().unwrap();
        let mut files: Vec<_> =
            fs::read_dir(root.path().join("log")).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        assert_eq!(files.len(), 7, "the segment made ahead of need is gone");
        for path in files {
            let bytes = fs::read(&path).unwrap();
            let base = Numbered.base_of(path.file_name().unwrap().to_str().unwrap()).unwrap();
            assert_eq!((bytes.len() as u64, &bytes[..FIRST as usize]), (SEGMENT, &Numbered.header(base)[..]));
        }
        assert!(!root.path().join("preparing").exists());
    }
}

#[test]
fn what_fits_into_no_segment_is_refused_and_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), LogOptions::default());
    let limit = SEGMENT - FIRST;
    let refused = append(&log, &[1; SEGMENT as usize], Level::Written).unwrap_err();
    assert_eq!(refused, RefusedError::TooLarge { bytes: SEGMENT, limit });
    assert_eq!(log.with_tail(|count| *count), 0);
    let (receipt, count) = append(&log, &vec![1; limit as usize], Level::Durable).unwrap();
    assert_eq!((receipt.position, receipt.end, count), (FIRST, SEGMENT, 1));
    log.wait(&receipt, None).unwrap();
    log.close().unwrap();
}

#[test]
fn a_segment_that_cannot_be_made_is_a_refusal_until_it_can() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), LogOptions::default());
    let (receipt, _) = append(&log, &[1; 100], Level::Durable).unwrap();
    log.wait(&receipt, None).unwrap();
    // A directory in the way of the file.
    fs::create_dir(root.path().join("preparing")).unwrap();
    let refused = append(&log, &[2; 200], Level::Durable).unwrap_err();
    let RefusedError::NoSegment(failure) = refused else { panic!("{refused}") };
    assert_eq!(failure.path, root.path().join("preparing"));
    let (small, count) = append(&log, &[3; 10], Level::Durable).unwrap();
    assert_eq!((small.position, count), (receipt.end, 2), "what fits goes on");
    fs::remove_dir(root.path().join("preparing")).unwrap();
    let (large, count) = append(&log, &[2; 200], Level::Durable).unwrap();
    assert_eq!((large.position, count), (SEGMENT + FIRST, 3));
    log.wait(&large, None).unwrap();
    log.close().unwrap();
}

#[test]
fn what_nobody_waits_for_is_synced_by_and_by() {
    for written_by in [WrittenBy::Write, WrittenBy::Region] {
        let root = tempfile::tempdir().unwrap();
        let options = LogOptions { written_by, flush_interval_ms: 1, planted: Planted::NONE, ..LogOptions::default() };
        let log = open(root.path(), options);
        for n in 0..10 {
            append(&log, &[n; 60], Level::Staged).unwrap();
        }
        while log.durable_end() < log.end() {
            RealEnv.sleep_ns(100_000);
        }
        log.close().unwrap();
    }
}
