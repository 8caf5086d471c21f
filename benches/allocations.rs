//! How often encoding and checking allocate. Prints a table and exits 1 where a number is exceeded: these are counts, the
//! same on every machine.
#![allow(clippy::disallowed_macros, reason = "counts what one host thread allocates")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::process::ExitCode;

use bytes::Bytes;
use stormlog::codec::{
    Assigned, CheckOptions, Host, Message, Outcome, Properties, PropertyCrc, RecordHeader, RecordOptions,
    RecordScanner, RecordTemplate, ScanOptions, SysFlag, batch, check, record,
};
use stormlog::commitlog::{CommitLog, CommitLogOptions};
use stormlog::env::real::RealEnv;
use stormlog::env::{Env, OpenOptions};
use stormlog::log::{Level, WrittenBy};

std::thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; the counter is a plain cell of the calling thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often `work` allocates.
fn allocations<R>(work: impl FnOnce() -> R) -> u64 {
    let before = ALLOCATIONS.get();
    black_box(work());
    ALLOCATIONS.get() - before
}

fn messages() -> Vec<Message> {
    let mut properties = Properties::new();
    properties.insert("TAGS", "TagA").expect("a plain property");
    properties.insert("KEYS", "k1 k2").expect("a plain property");
    let body = Bytes::from(vec![7; 1024]);
    vec![Message { topic: "T".to_owned(), flag: 0, body, properties }; 100]
}

/// How often 1 000 appends allocate, each waited for, on a store that has seen as many.
fn append_allocations(header: &RecordHeader<'_>, message: &Message, level: Level, written_by: WrittenBy) -> u64 {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let options = CommitLogOptions { mapped_file_size_commit_log: 64 << 20, written_by, ..CommitLogOptions::default() };
    let root = directory.path().join("store");
    let (log, _) = CommitLog::open(RealEnv, &root, options).expect("a new store opens");
    let append = || {
        for _ in 0..1000 {
            let appended = log.append(header, message.into(), level).expect("a plain message is taken");
            log.wait(&appended).expect("it reaches its level");
        }
    };
    append();
    let count = allocations(append);
    log.close().expect("a healthy store closes");
    count
}

fn main() -> ExitCode {
    let messages = messages();
    let header = RecordHeader {
        topic: "BenchmarkTopic",
        queue_id: 3,
        sys_flag: SysFlag(0),
        born_timestamp_ms: 1,
        born_host: Host::new([127, 0, 0, 1].into(), 40000),
        store_host: Host::new([10, 0, 0, 1].into(), 10911),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
    };
    let options = RecordOptions { append_property_crc: true, ..RecordOptions::default() };
    let template = RecordTemplate::new(&header, &options).expect("a plain header");
    let encoded = batch::encode(&messages).expect("plain messages");
    let first = Assigned { queue_offset: 0, physical_offset: 0, store_timestamp_ms: 1 };
    let mut buffer = Vec::with_capacity(1 << 20);
    let mut rows = Vec::new();

    rows.push(("encode a batch of 100", 1, allocations(|| batch::encode(&messages))));
    rows.push(("encode it into a buffer", 0, allocations(|| batch::encode_into(&messages, &mut buffer))));
    buffer.clear();
    rows.push(("encode 100 records, one by one, and assign", 0, {
        allocations(|| {
            for message in &messages {
                template.encode_into(message.into(), &mut buffer).expect("a plain message");
            }
            record::assign(&mut buffer, first, true)
        })
    }));
    buffer.clear();
    rows.push(("encode 100 records from a batch, and assign", 0, {
        allocations(|| {
            template.encode_batch_into(&encoded, &mut buffer).expect("a plain batch");
            record::assign(&mut buffer, first, true)
        })
    }));
    rows.push(("check 100 records", 0, {
        let options = CheckOptions { property_crc: PropertyCrc::Require, ..CheckOptions::STRICT };
        allocations(|| {
            let mut at = 0;
            while at < buffer.len() {
                match check(&buffer[at..], at as i64, &options) {
                    Outcome::Record(record) => at += record.bytes().len(),
                    other => panic!("refused: {other:?}"),
                }
            }
        })
    }));
    rows.push(("scan a file of 100 records again", 0, {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::io::Write::write_all(&mut file.as_file(), &buffer).expect("a file takes the records");
        let file = RealEnv.open(file.path(), OpenOptions::READ).expect("the file is there");
        let mut scanner = RecordScanner::new(ScanOptions { window_len: 4 << 10, ..ScanOptions::default() });
        let mut scan = || {
            let (mut scan, mut count) = (scanner.scan(&file, 0, 0, buffer.len() as u64), 0);
            while let Some(found) = scan.next().expect("the file can be read") {
                assert!(matches!(found.outcome, Outcome::Record(_)), "refused: {found:?}");
                count += 1;
            }
            assert_eq!(count, 100);
        };
        scan();
        allocations(scan)
    }));
    for (work, level, written_by) in [
        ("append 1 000 and wait until written (region)", Level::Written, WrittenBy::Region),
        ("append 1 000 and wait until written (write)", Level::Written, WrittenBy::Write),
        ("append 1 000 and wait until durable", Level::Durable, WrittenBy::Write),
    ] {
        rows.push((work, 0, append_allocations(&header, &messages[0], level, written_by)));
    }
    rows.push(("refuse a record", 0, allocations(|| check(&buffer[1..], 1, &CheckOptions::STRICT))));
    rows.push(("read a batch of 100", 0, allocations(|| batch::BatchReader::new(&encoded).count())));

    println!("{:<46}{:>12}{:>8}", "work", "allocations", "limit");
    for (work, limit, count) in &rows {
        println!("{work:<46}{count:>12}{limit:>8}");
    }
    ExitCode::from(u8::from(rows.iter().any(|(_, limit, count)| count > limit)))
}
