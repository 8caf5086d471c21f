//! A commit log with several producers, each with a topic of its own, so that a message's queue offset counts what its
//! producer appended.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use stormlog::codec::{Host, MessageRef, PropertiesRef, RecordHeader, SysFlag};
use stormlog::commitlog::{CommitLog, CommitLogOptions};
use stormlog::env::real::RealEnv;
use stormlog::log::{Level, WrittenBy};

use super::{Acknowledged, Subject, acknowledge, random_below};

const PRODUCERS: [Level; 5] = [Level::Staged, Level::Written, Level::Written, Level::Durable, Level::Durable];

/// A commit log.
pub struct Messages;

impl Subject for Messages {
    fn append_for_ever(root: &Path) -> ! {
        let log = open(root);
        std::thread::scope(|scope| {
            for (producer, level) in PRODUCERS.into_iter().enumerate() {
                let log = &log;
                scope.spawn(move || produce(log, producer, level));
            }
        });
        unreachable!("producers append until they are killed")
    }

    fn check(root: &Path, acknowledged: &Acknowledged) {
        let log = open(root);
        let mut found = [0u64; PRODUCERS.len()];
        for record in log.records(log.visible().start) {
            let record = record.expect("a whole record");
            let message = record.view();
            let producer = (0..PRODUCERS.len()).find(|n| message.topic() == topic(*n).as_bytes()).expect("our topic");
            let n = found[producer];
            assert_eq!(message.queue_offset(), n as i64, "the queue of producer {producer} has a gap");
            assert!(message.body() == body(producer, n), "message {n} of producer {producer} is another");
            found[producer] += 1;
        }
        for (producer, count) in acknowledged {
            let level = PRODUCERS[*producer];
            assert!(found[*producer] >= *count, "{level}: {count} acknowledged, {} are there", found[*producer]);
        }
        if random_below(2) == 0 {
            log.close().expect("to close");
        }
    }
}

/// Opens it in any of the ways that promise the same.
fn open(root: &Path) -> CommitLog<RealEnv> {
    let options = CommitLogOptions {
        mapped_file_size_commit_log: 64 << 10,
        sync_flush_timeout: 60_000,
        flush_interval_commit_log: 1 + random_below(20),
        written_by: if random_below(2) == 0 { WrittenBy::Region } else { WrittenBy::Write },
        ..CommitLogOptions::default()
    };
    let (log, report) = CommitLog::open(RealEnv, &root.join("store"), options).expect("a store");
    assert!(report.holes.is_empty(), "a kill damages nothing: {report:?}");
    log
}

fn produce(log: &CommitLog<RealEnv>, producer: usize, level: Level) {
    let store = Host::new(Ipv4Addr::LOCALHOST.into(), 10911);
    let topic = topic(producer);
    let header = RecordHeader {
        topic: &topic,
        queue_id: 0,
        sys_flag: SysFlag(0),
        born_timestamp_ms: 0,
        born_host: store,
        store_host: store,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
    };
    loop {
        let body = body(producer, log.next_queue_offset(&topic, 0) as u64);
        let message = MessageRef { flag: 0, body: &body, properties: PropertiesRef(&[]) };
        let appended = log.append(&header, message, level).expect("room");
        log.wait(&appended).expect("an acknowledgement");
        if level > Level::Staged {
            acknowledge(producer, appended.queue_offset as u64 + 1);
        }
        // So that the slow ones get to say something too before the kill.
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn topic(producer: usize) -> String {
    format!("producer-{producer}")
}

/// Of 0 to 2999 bytes.
fn body(producer: usize, n: u64) -> Vec<u8> {
    let seed = n.wrapping_mul(7919).wrapping_add(producer as u64);
    (0..seed % 3000).map(|at| (seed.wrapping_mul(31) ^ at.wrapping_mul(131)) as u8).collect()
}
