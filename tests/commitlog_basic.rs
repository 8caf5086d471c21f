//! The commit log on the real env: messages at every level, rolls, batches, and opening again after a clean stop and
//! after a crash.

mod store;

use std::sync::Arc;

use store::{SEGMENT, bodies, header, message, open, try_open};
use stormlog::codec::{EncodeError, MessageId, PropertiesRef, RecordHeader, SysFlag, batch};
use stormlog::commitlog::{AppendError, CommitLogOptions, FlushDiskType, OpenError, Outcome, ReadError};
use stormlog::log::{Level, RangeError, WrittenBy};

fn options(flush_disk_type: FlushDiskType, written_by: WrittenBy) -> CommitLogOptions {
    CommitLogOptions { flush_disk_type, written_by, ..store::options() }
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
    let refused = try_open(root.path(), &options).err();
    assert_eq!(refused, Some(OpenError::Locked { path: root.path().join("lock") }));
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

#[test]
fn a_refused_message_takes_no_queue_offset() {
    let root = tempfile::tempdir().unwrap();
    let (store, _) = open(root.path(), &CommitLogOptions { max_message_size: 1000, ..store::options() });
    let long_topic = "t".repeat(40_000);
    let properties = vec![b'p'; 40_000];
    let mut queue_offset = 0;
    for round in 0..30 {
        let refused = match round % 3 {
            0 => store.append(&header("T"), message(&[0; 1001]), Level::Durable),
            1 => {
                let message = stormlog::codec::MessageRef { properties: PropertiesRef(&properties), ..message(b"") };
                store.append(&header("T"), message, Level::Durable)
            }
            _ => store.append(&header(&long_topic), message(b""), Level::Durable),
        };
        assert!(matches!(refused, Err(AppendError::Encode(_))), "{refused:?}");
        let appended = store.append(&header("T"), message(b"body"), Level::Durable).unwrap();
        assert_eq!(appended.queue_offset, queue_offset);
        queue_offset += 1;
    }
    assert_eq!(store.append_batch(&header("T"), b"", Level::Durable), Err(AppendError::EmptyBatch));
    let garbled = store.append_batch(&header("T"), &[0xFF; 40], Level::Durable);
    assert!(matches!(garbled, Err(AppendError::Encode(EncodeError::Batch(_)))), "{garbled:?}");
    assert_eq!(store.next_queue_offset("T", 0), queue_offset);
    store.close().unwrap();
}

#[test]
fn prepared_and_rolled_back_messages_have_no_place_in_a_queue() {
    let root = tempfile::tempdir().unwrap();
    let (store, _) = open(root.path(), &store::options());
    for (bits, queue_offset) in [(0x0, 0), (0x4, 0), (0x8, 1), (0xC, 0), (0x0, 2)] {
        let header = RecordHeader { sys_flag: SysFlag(bits), ..header("T") };
        let appended = store.append(&header, message(b"body"), Level::Durable).unwrap();
        assert_eq!(appended.queue_offset, queue_offset, "{bits:x}");
        store.wait(&appended).unwrap();
        assert_eq!(store.read(appended.receipt.position).unwrap().view().queue_offset(), queue_offset);
    }
    drop(store);
    assert_eq!(open(root.path(), &store::options()).0.next_queue_offset("T", 0), 3);
}

#[test]
fn a_message_says_whether_it_waits_for_the_disk() {
    let levels = |flush| {
        let root = tempfile::tempdir().unwrap();
        let (store, _) = open(root.path(), &options(flush, WrittenBy::Write));
        let properties =
            ["", "WAIT\x01true\x02", "WAIT\x01TRUE\x02", "WAIT\x01false\x02", "WAIT\x01yes\x02", "WAIT\x01\x02"];
        properties.map(|properties| store.level_for(PropertiesRef(properties.as_bytes())))
    };
    let (durable, written) = (Level::Durable, Level::Written);
    assert_eq!(levels(FlushDiskType::SyncFlush), [durable, durable, durable, written, written, durable]);
    assert_eq!(levels(FlushDiskType::AsyncFlush), [written; 6]);
}

#[test]
fn reading_elsewhere_is_an_error_that_says_why() {
    let root = tempfile::tempdir().unwrap();
    let (store, _) = open(root.path(), &store::options());
    let appended: Vec<_> = (0..50)
        .map(|_| {
            let appended = store.append(&header("T"), message(b"body"), Level::Durable).unwrap();
            store.wait(&appended).unwrap();
            appended
        })
        .collect();
    let end = store.end();
    for position in [end, u64::MAX] {
        let outside = RangeError::Outside { position, begin: 0, end };
        assert_eq!(store.read(position), Err(ReadError::Range(outside)));
    }
    for position in [1, 50, appended[1].receipt.position + 4] {
        assert!(matches!(store.read(position), Err(ReadError::Rejected { position: at, .. }) if at == position));
    }
    let blank = appended.iter().rfind(|appended| appended.receipt.end <= SEGMENT).unwrap().receipt.end;
    assert_eq!(store.read(blank), Err(ReadError::Blank { position: blank, next: SEGMENT }));
    let found = appended[3].message_id();
    let wanted = MessageId { store_host: header("T").born_host, ..found };
    assert_eq!(store.read_by_id(wanted), Err(ReadError::OtherId { wanted, found }));
    let nowhere = MessageId { physical_offset: -1, ..found };
    assert!(matches!(store.read_by_id(nowhere), Err(ReadError::Range(_))));
}

#[test]
fn options_that_are_of_no_use_are_refused() {
    let root = tempfile::tempdir().unwrap();
    for mapped_file_size_commit_log in [0, 8, 1 << 31, u64::MAX] {
        let options = CommitLogOptions { mapped_file_size_commit_log, ..store::options() };
        assert!(matches!(try_open(root.path(), &options).err(), Some(OpenError::Option(_))));
    }
    assert!(!root.path().join("commitlog").exists());
}
