//! Store directories across the two implementations: what RocketMQ wrote reads back message by message, record by record
//! and through the commit log; and, where there is a Java, RocketMQ reads what we wrote.
#![allow(clippy::disallowed_methods, reason = "prepares directories on the real disk")]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use stormlog::codec::{
    CheckOptions, Host, Magic, MessageRef, Outcome, Properties, RecordHeader, RecordView, SysFlag, Transaction, batch,
    check,
};
use stormlog::commitlog::{CommitLog, CommitLogOptions, FlushDiskType, RecoveryPolicy};
use stormlog::env::real::RealEnv;
use stormlog::log::Level;

const SEGMENT_BYTES: u64 = 16 * 1024;
const LONGEST_BODY_SHOWN: usize = 256;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/stores/rocketmq-5.5.1-three-segments")
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn expected(name: &str) -> Vec<Value> {
    json_lines(&std::fs::read_to_string(fixture().join(name)).unwrap())
}

/// A record as the Java program prints it.
fn shown(record: &RecordView<'_>) -> Value {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("the fixture is UTF-8");
    let mut shown = json!({
        "version": if record.magic() == Magic::V2 { 2 } else { 1 },
        "topic": text(record.topic()),
        "queueId": record.queue_id(),
        "queueOffset": record.queue_offset(),
        "physicalOffset": record.physical_offset(),
        "size": record.bytes().len(),
        "flag": record.flag(),
        "sysFlag": record.sys_flag().0,
        "bornTimestamp": record.born_timestamp_ms(),
        "bornHost": java_host(record.born_host()),
        "storeTimestamp": record.store_timestamp_ms(),
        "storeHost": java_host(record.store_host()),
        "reconsumeTimes": record.reconsume_times(),
        "preparedTransactionOffset": record.prepared_transaction_offset(),
        "bodyCrc": record.body_crc(),
        "properties": text(record.properties().0),
    });
    if record.body().len() <= LONGEST_BODY_SHOWN {
        shown["body"] = hex::encode(record.body()).into();
    } else {
        shown["bodyLength"] = record.body().len().into();
        shown["bodySha256"] = hex::encode(Sha256::digest(record.body())).into();
    }
    shown
}

/// Java shortens no IPv6 address.
fn java_host(host: Host) -> String {
    match host.ip() {
        std::net::IpAddr::V4(ip) => format!("{ip}:{}", host.port),
        std::net::IpAddr::V6(ip) => {
            let groups: Vec<String> = ip.segments().iter().map(|group| format!("{group:x}")).collect();
            format!("[{}]:{}", groups.join(":"), host.port)
        }
    }
}

fn assert_same(got: &[Value], expected: &[Value]) {
    for (n, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert_eq!(got, expected, "message {n}");
    }
    assert_eq!(got.len(), expected.len());
}

fn segments(root: &Path) -> Vec<(i64, Vec<u8>)> {
    let mut names: Vec<_> = std::fs::read_dir(root.join("commitlog")).unwrap().map(|entry| entry.unwrap()).collect();
    names.sort_by_key(std::fs::DirEntry::file_name);
    names
        .iter()
        .map(|entry| {
            let base = entry.file_name().into_string().unwrap().parse().unwrap();
            (base, std::fs::read(entry.path()).unwrap())
        })
        .collect()
}

/// Walks segments by the strict record check; the bool says whether each ended with a blank.
fn walk(segments: &[(i64, Vec<u8>)]) -> (Vec<Value>, Vec<bool>) {
    let (mut records, mut blanks) = (Vec::new(), Vec::new());
    for (base, bytes) in segments {
        let mut at = 0;
        let end = loop {
            match check(&bytes[at..], base + at as i64, &CheckOptions::STRICT) {
                Outcome::Record(record) => {
                    records.push(shown(&record));
                    at += record.bytes().len();
                }
                end => break end,
            }
        };
        blanks.push(matches!(end, Outcome::Blank { .. }));
    }
    (records, blanks)
}

#[test]
fn the_record_check_walks_what_rocketmq_wrote() {
    let (records, blanks) = walk(&segments(&fixture().join("store")));
    assert_same(&records, &expected("expected.jsonl"));
    assert_eq!(blanks, [true, true, true, false]);
}

#[test]
fn a_changed_byte_of_the_directory_is_noticed() {
    let mut segments = segments(&fixture().join("store"));
    segments[1].1[100] ^= 1;
    assert_ne!(walk(&segments).0, expected("expected.jsonl"));
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn options(recovery_policy: RecoveryPolicy) -> CommitLogOptions {
    CommitLogOptions {
        mapped_file_size_commit_log: SEGMENT_BYTES,
        flush_disk_type: FlushDiskType::SyncFlush,
        recovery_policy,
        ..CommitLogOptions::default()
    }
}

fn messages(log: &CommitLog<RealEnv>) -> Vec<Value> {
    log.records(0).map(|record| shown(&record.expect("the record reads").view())).collect()
}

#[test]
fn the_commit_log_reads_what_rocketmq_wrote_message_by_message() {
    for policy in [RecoveryPolicy::Safe, RecoveryPolicy::Compatible] {
        for crashed in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().join("store");
            copy(&fixture().join("store"), &root);
            if crashed {
                std::fs::write(root.join("abort"), "1").unwrap();
            }
            let (log, report) = CommitLog::open(RealEnv, &root, options(policy)).unwrap();
            assert!(report.is_whole() && report.cut.is_none() && report.removed.is_empty(), "{report}");
            assert_eq!((report.was_closed, report.is_ours), (!crashed, false), "{report}");
            assert_same(&messages(&log), &expected("expected.jsonl"));
            for queue in expected("queues.jsonl") {
                let (topic, id) = (queue["topic"].as_str().unwrap(), queue["queueId"].as_i64().unwrap());
                assert_eq!(log.next_queue_offset(topic, id as i32), queue["maxOffset"], "{topic} {id}");
            }
            log.close().unwrap();
        }
    }
}

/// Appends messages of every sort: singles and batches, both versions, both address families, transactions.
fn fill(log: &CommitLog<RealEnv>, count: usize) {
    let long_topic = "stormlog-".repeat(15);
    for n in 0..count {
        let host = |v6: bool, port| Host::new(if v6 { "2001:db8::1" } else { "10.0.0.1" }.parse().unwrap(), port);
        let mut header = RecordHeader {
            topic: ["TopicTest", "stormlog", &long_topic][n % 3],
            queue_id: (n / 3 % 2) as i32,
            sys_flag: SysFlag(0),
            born_timestamp_ms: 1_700_000_000_000 + n as i64,
            born_host: host(n % 5 == 0, 40000),
            store_host: host(n % 7 == 0, 10911),
            reconsume_times: (n % 2) as i32,
            prepared_transaction_offset: 0,
        };
        let body: Vec<u8> = (0..n * 29 % 700).map(|at| (at * 7 + n) as u8).collect();
        let mut properties = Properties::new();
        properties.insert("TAGS", ["TagA", "TagB"][n % 2]).unwrap();
        properties.insert("KEYS", &format!("key-{n}")).unwrap();
        let message = MessageRef { flag: n as i32, body: &body, properties: properties.view() };
        let appended = if n % 8 == 7 {
            let messages = [message, message, message];
            log.append_batch(&header, &batch::encode(&messages).unwrap(), Level::Durable)
        } else {
            if n % 11 == 10 {
                header.sys_flag = SysFlag(0).with_transaction(Transaction::Prepared);
            } else if n % 11 == 0 {
                header.sys_flag = SysFlag(0).with_transaction(Transaction::Commit);
                header.prepared_transaction_offset = 77;
            }
            log.append(&header, message, Level::Durable)
        };
        log.wait(&appended.unwrap()).unwrap();
    }
}

/// Runs the Java program on a directory and gives what it prints.
fn java(command: &str, root: &Path) -> Vec<Value> {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/compat/run");
    let output = Command::new(run).args(["--java", command]).arg(root).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    json_lines(&String::from_utf8(output.stdout).unwrap())
}

/// What the consume queues have to be for these messages.
fn next_queue_offsets(messages: &[Value]) -> Vec<Value> {
    let mut queues = std::collections::BTreeMap::new();
    for message in messages {
        let transaction = SysFlag(message["sysFlag"].as_i64().unwrap() as i32);
        if transaction.is_queued() {
            let key = (message["topic"].to_string(), message["queueId"].as_i64().unwrap());
            *queues.entry(key).or_insert(0) += 1;
        }
    }
    queues.into_iter().map(|((topic, id), count)| json!([topic, id, count])).collect()
}

fn java_queue_offsets(root: &Path) -> Vec<Value> {
    let queues = java("read-queues", root);
    let mut queues: Vec<_> = queues
        .iter()
        .map(|queue| (queue["topic"].to_string(), queue["queueId"].as_i64().unwrap(), queue["maxOffset"].clone()))
        .collect();
    queues.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    queues.into_iter().map(|(topic, id, max)| json!([topic, id, max])).collect()
}

#[test]
fn the_abort_marker_stays_where_queues_lag() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    copy(&fixture().join("store"), &root);
    let open = || CommitLog::open(RealEnv, &root, options(RecoveryPolicy::Safe)).unwrap();
    let (log, _) = open();
    log.close().unwrap();
    assert!(!root.join("abort").exists(), "nothing was appended");
    let (log, _) = open();
    fill(&log, 3);
    let end = log.end();
    log.close().unwrap();
    assert!(root.join("abort").exists());
    let (log, report) = open();
    assert_eq!((log.end(), report.holes, report.cut), (end, vec![], None));
    log.close().unwrap();
    assert!(root.join("abort").exists(), "nobody has built the queues since");
}

#[test]
#[ignore = "needs Java and Maven: tests/compat/run runs it"]
fn rocketmq_reads_what_we_wrote() {
    for start_from_rocketmq in [true, false] {
        for clean in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().join("store");
            if start_from_rocketmq {
                copy(&fixture().join("store"), &root);
            }
            let (log, _) = CommitLog::open(RealEnv, &root, options(RecoveryPolicy::Safe)).unwrap();
            fill(&log, 150);
            let (ours, end) = (messages(&log), log.end());
            if clean {
                log.close().unwrap();
            } else {
                drop(log);
            }
            let case = format!("from RocketMQ's directory: {start_from_rocketmq}, closed: {clean}");
            assert_same(&java("read-store", &root), &ours);
            let recovered = java("recover", &root).remove(0);
            // With queues that do not know what we appended, RocketMQ is to recover as after a crash, and build them.
            assert_eq!(recovered["lastExitOk"], json!(clean && !start_from_rocketmq), "{case}");
            assert_eq!(recovered["maxOffset"], json!(end), "{case}");
            assert_eq!(java_queue_offsets(&root), next_queue_offsets(&ours), "{case}");
        }
    }
}
