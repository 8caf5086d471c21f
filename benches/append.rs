//! Appending on the real disk, per message: every level, by one and by several producers, beside limits measured in the
//! same run: a copy of the same bytes in memory, one positioned write a record, and one write and sync of a batch into a
//! file that was filled with zeros and synced.
//!
//! One iteration is a block of messages, so that starting the producers weighs little. A store is opened anew before its
//! segment is half full, outside of the measured time, so that no roll is measured.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a bench has its own threads, files and clock")]

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
    measurement::WallTime,
};
use stormlog::codec::{Host, MessageRef, PropertiesRef, RecordHeader, SysFlag};
use stormlog::commitlog::{CommitLog, CommitLogOptions, FlushDiskType};
use stormlog::env::real::RealEnv;
use stormlog::log::{Level, WrittenBy};

const BODIES: [usize; 3] = [128, 1024, 2048];
const SEGMENT: u64 = 512 << 20;
const OVERHEAD: usize = 150;

fn header() -> RecordHeader<'static> {
    RecordHeader {
        topic: "BenchmarkTopic",
        queue_id: 3,
        sys_flag: SysFlag(0),
        born_timestamp_ms: 1_700_000_000_000,
        born_host: Host::new([127, 0, 0, 1].into(), 40000),
        store_host: Host::new([10, 0, 0, 1].into(), 10911),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
    }
}

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31) as u8).collect()
}

fn options(level: Level, written_by: WrittenBy) -> CommitLogOptions {
    let flush_disk_type = if level == Level::Durable { FlushDiskType::SyncFlush } else { FlushDiskType::AsyncFlush };
    CommitLogOptions { mapped_file_size_commit_log: SEGMENT, flush_disk_type, written_by, ..Default::default() }
}

/// A store that is thrown away when most of the first half of its segment is full: the second half has the next one made.
struct Stores {
    level: Level,
    written_by: WrittenBy,
    open: Option<(tempfile::TempDir, CommitLog<RealEnv>)>,
}

impl Stores {
    fn new(level: Level, written_by: WrittenBy) -> Self {
        let mut stores = Self { level, written_by, open: None };
        stores.with_room(0);
        stores
    }

    /// A store that takes `bytes` more.
    fn with_room(&mut self, bytes: u64) -> &CommitLog<RealEnv> {
        if self.open.as_ref().is_some_and(|(_, store)| store.end() + bytes > SEGMENT * 3 / 8) {
            self.open = None;
        }
        let (level, written_by) = (self.level, self.written_by);
        let open = self.open.get_or_insert_with(|| {
            let root = tempfile::tempdir().expect("a directory");
            let (store, _) = CommitLog::open(RealEnv, root.path(), options(level, written_by)).expect("it opens");
            // The first message makes the segment.
            let warm =
                store.append(&header(), MessageRef { flag: 0, body: b"", properties: PropertiesRef(b"") }, level);
            store.wait(&warm.expect("taken")).expect("stored");
            (root, store)
        });
        &open.1
    }
}

fn run(store: &CommitLog<RealEnv>, level: Level, producers: u64, body: &[u8], count: u64) -> Duration {
    let produce = |count: u64| {
        let message = MessageRef { flag: 0, body, properties: PropertiesRef(b"TAGS\x01TagA\x02") };
        for _ in 0..count {
            let appended = store.append(&header(), message, level).expect("taken");
            store.wait(&appended).expect("stored");
        }
    };
    let start = Instant::now();
    if producers == 1 {
        produce(count);
    } else {
        std::thread::scope(|scope| {
            for n in 0..producers {
                let share = count / producers + u64::from(n < count % producers);
                scope.spawn(move || produce(share));
            }
        });
    }
    start.elapsed()
}

fn group<'c>(criterion: &'c mut Criterion, name: &str, body: usize) -> BenchmarkGroup<'c, WallTime> {
    let mut group = criterion.benchmark_group(format!("{name}/{body}"));
    group
        .sample_size(10)
        .sampling_mode(SamplingMode::Flat)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3));
    group.throughput(Throughput::Elements(1));
    group
}

fn limits(criterion: &mut Criterion) {
    for len in BODIES {
        let record = body(len + OVERHEAD);
        let mut group = group(criterion, "limit", len);
        group.bench_function("memcpy", |bench| {
            let mut log = Vec::with_capacity(64 << 20);
            bench.iter(|| {
                if log.len() + record.len() > log.capacity() {
                    log.clear();
                }
                log.extend_from_slice(black_box(&record));
            });
        });
        let file = zero_filled(64 << 20);
        let mut offset = 0;
        let mut next = |len: usize| {
            offset = if offset + len as u64 > 64 << 20 { 0 } else { offset };
            offset += len as u64;
            offset - len as u64
        };
        group.bench_function("pwrite", |bench| {
            bench.iter(|| file.write_all_at(black_box(&record), next(record.len())).expect("it writes"));
        });
        for batch in [1, 4, 32] {
            let records = record.repeat(batch);
            let id = BenchmarkId::new("pwrite_fdatasync", batch);
            group.throughput(Throughput::Elements(batch as u64));
            group.bench_function(id, |bench| {
                bench.iter(|| {
                    file.write_all_at(&records, next(records.len())).expect("it writes");
                    file.sync_data().expect("it syncs");
                });
            });
        }
    }
}

fn zero_filled(len: usize) -> File {
    let file = tempfile::tempfile().expect("a file");
    file.write_all_at(&vec![0; len], 0).expect("it writes");
    file.sync_data().expect("it syncs");
    file
}

fn appends(criterion: &mut Criterion) {
    for len in BODIES {
        let body = body(len);
        let mut group = group(criterion, "append", len);
        for (name, level, written_by, producers, block) in [
            ("staged", Level::Staged, WrittenBy::Region, &[1, 4][..], 20_000),
            ("written_region", Level::Written, WrittenBy::Region, &[1, 4], 20_000),
            ("written_write", Level::Written, WrittenBy::Write, &[1, 4], 20_000),
            ("durable", Level::Durable, WrittenBy::Write, &[1, 4, 32], 500),
        ] {
            for producers in producers {
                let count = if level == Level::Durable { block * producers } else { block };
                let mut stores = Stores::new(level, written_by);
                group.throughput(Throughput::Elements(count));
                group.bench_function(BenchmarkId::new(name, producers), |bench| {
                    bench.iter_custom(|blocks| {
                        let bytes = count * (len + OVERHEAD) as u64;
                        (0..blocks).map(|_| run(stores.with_room(bytes), level, *producers, &body, count)).sum()
                    });
                });
            }
        }
    }
}

criterion_group!(benches, limits, appends);
criterion_main!(benches);
