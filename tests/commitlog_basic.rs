//! The commit log on the real env: messages at every level, rolls, batches, and opening again after a clean stop and
//! after a crash.

use std::path::Path;
use std::sync::Arc;

use stormlog::codec::{Host, MessageRef, PropertiesRef, RecordHeader, SysFlag, batch};
use stormlog::commitlog::{CommitLog, CommitLogOptions, FlushDiskType, OpenError, Outcome, RecoveryReport};
use stormlog::env::real::RealEnv;
use stormlog::log::{Level, WrittenBy};

type Store = CommitLog<RealEnv>;

fn options(flush_disk_type: FlushDiskType, written_by: WrittenBy) -> CommitLogOptions {
    CommitLogOptions { mapped_file_size_commit_log: 4096, flush_disk_type, written_by, ..CommitLogOptions::default() }
}

fn open(root: &Path, options: &CommitLogOptions) -> (Store, RecoveryReport) {
    CommitLog::open(RealEnv, root, options.clone()).expect("the store opens")
}

fn header(topic: &str) -> RecordHeader<'_> {
    RecordHeader {
        topic,
        queue_id: 0,
        sys_flag: SysFlag(0),
        born_timestamp_ms: 1,
        born_host: Host::new([127, 0, 0, 1].into(), 1),
        store_host: Host::new([127, 0, 0, 1].into(), 2),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
    }
}

fn message(body: &[u8]) -> MessageRef<'_> {
    MessageRef { flag: 0, body, properties: PropertiesRef(b"") }
}

fn bodies(store: &Store) -> Vec<Vec<u8>> {
    store.records(0).map(|record| record.expect("the record reads").view().body().to_vec()).collect()
}

#[test]
fn messages_survive_a_clean_stop_and_a_crash_at_every_level() {
    for flush in [FlushDiskType::SyncFlush, FlushDiskType::AsyncFlush] {
        for written_by in [WrittenBy::Region, WrittenBy::Write] {
            let root = tempfile::tempdir().unwrap();
            let options = options(flush, written_by);
            let mut wanted: Vec<Vec<u8>> = Vec::new();
            for round in 0..4 {
                let (store, report) = open(root.path(), &options);
                assert!(report.is_whole() && report.cut.is_none(), "{report}");
                assert_eq!(report.records, wanted.len() as u64, "{report}");
                for n in 0..40 {
                    let body = format!("{round}-{n}-{}", "x".repeat(n * 7));
                    let level = [Level::Staged, Level::Written, Level::Durable][n % 3];
                    let appended = store.append(&header("T"), message(body.as_bytes()), level).unwrap();
                    assert_eq!(appended.queue_offset, wanted.len() as i64);
                    assert_eq!(store.wait(&appended), Ok(level));
                    wanted.push(body.into_bytes());
                }
                store.sync().unwrap();
                assert_eq!(bodies(&store), wanted);
                if round % 2 == 0 {
                    store.close().unwrap();
                    assert!(!root.path().join("abort").exists());
                } else {
                    drop(store);
                }
            }
            let (store, report) = open(root.path(), &options);
            assert!(!report.was_closed);
            assert_eq!(bodies(&store), wanted);
        }
    }
}

#[test]
fn a_batch_is_one_record_per_message_in_consecutive_places() {
    let root = tempfile::tempdir().unwrap();
    let options = options(FlushDiskType::SyncFlush, WrittenBy::Write);
    let (store, _) = open(root.path(), &options);
    let messages = [message(b"one"), message(b"two"), message(b"three")];
    let encoded = batch::encode(&messages).unwrap();
    for round in 0..20 {
        let appended = store.append_batch(&header("T"), &encoded, Level::Durable).unwrap();
        assert_eq!((appended.queue_offset, appended.count), (round * 3, 3));
        store.wait(&appended).unwrap();
    }
    let read: Vec<_> = store.records(0).map(Result::unwrap).collect();
    assert_eq!(read.len(), 60);
    for (n, record) in read.iter().enumerate() {
        assert_eq!(record.view().queue_offset(), n as i64);
        assert_eq!(record.view().body(), messages[n % 3].body);
        assert_eq!(store.read_by_id(record.view().message_id()).unwrap(), *record);
    }
    store.close().unwrap();
}

#[test]
fn a_second_opening_is_refused_until_the_first_is_closed() {
    let root = tempfile::tempdir().unwrap();
    let options = options(FlushDiskType::SyncFlush, WrittenBy::Write);
    let (store, _) = open(root.path(), &options);
    let second = CommitLog::open(RealEnv, root.path(), options.clone());
    assert!(matches!(second.err(), Some(OpenError::Locked { .. })));
    store.close().unwrap();
    open(root.path(), &options).0.close().unwrap();
}

#[test]
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test's own threads")]
fn many_producers_share_syncs() {
    let root = tempfile::tempdir().unwrap();
    let options = CommitLogOptions {
        mapped_file_size_commit_log: 1 << 16,
        ..options(FlushDiskType::SyncFlush, WrittenBy::Write)
    };
    let (store, _) = open(root.path(), &options);
    std::thread::scope(|scope| {
        for producer in 0..16 {
            let store = &store;
            scope.spawn(move || {
                let topic = format!("T{producer}");
                for n in 0..50i64 {
                    assert_eq!(store.next_queue_offset(&topic, 0), n);
                    assert_eq!(store.put(&header(&topic), message(b"body")), Outcome::Acknowledged(Level::Durable));
                }
            });
        }
    });
    assert_eq!(bodies(&store).len(), 16 * 50);
    store.close().unwrap();
}

#[test]
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test's own threads")]
fn a_callback_runs_once_and_may_append() {
    let root = tempfile::tempdir().unwrap();
    let (store, _) = open(root.path(), &options(FlushDiskType::SyncFlush, WrittenBy::Write));
    let store = Arc::new(store);
    let (done, results) = std::sync::mpsc::channel();
    for n in 0..10u8 {
        let appended = store.append(&header("T"), message(&[n]), Level::Durable).unwrap();
        let (weak, done) = (Arc::downgrade(&store), done.clone());
        let callback = move |outcome| {
            let store = weak.upgrade().expect("the store is open");
            let appended = store.append(&header("U"), message(&[n]), Level::Durable).unwrap();
            store.on_settled(&appended, Box::new(move |second| done.send((n, outcome, second)).unwrap()));
        };
        store.on_settled(&appended, Box::new(callback));
    }
    drop(done);
    let settled: Vec<_> = results.iter().collect();
    let wanted: Vec<_> = (0..10).map(|n| (n, Ok(Level::Durable), Ok(Level::Durable))).collect();
    assert_eq!(settled, wanted);
    while Arc::strong_count(&store) > 1 {
        std::thread::yield_now();
    }
    Arc::into_inner(store).unwrap().close().unwrap();
}
