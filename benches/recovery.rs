//! Opening a store again, with every record checked, beside limits measured in the same run: reading the same files, and
//! reading them and taking the CRC of the same bodies. The files are in the page cache.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a bench has its own files and clock")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use stormlog::codec::{Host, MessageRef, PropertiesRef, RecordHeader, SysFlag};
use stormlog::commitlog::{CommitLog, CommitLogOptions};
use stormlog::env::real::RealEnv;
use stormlog::log::Level;

const SEGMENT: u64 = 64 << 20;
const LOG: u64 = 512 << 20;
const BLOCK: usize = 1 << 20;

fn options() -> CommitLogOptions {
    CommitLogOptions { mapped_file_size_commit_log: SEGMENT, ..CommitLogOptions::default() }
}

fn fill(root: &Path, body: &[u8]) {
    let header = RecordHeader {
        topic: "BenchmarkTopic",
        queue_id: 3,
        sys_flag: SysFlag(0),
        born_timestamp_ms: 1_700_000_000_000,
        born_host: Host::new([127, 0, 0, 1].into(), 40000),
        store_host: Host::new([10, 0, 0, 1].into(), 10911),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
    };
    let (store, _) = CommitLog::open(RealEnv, root, options()).expect("it opens");
    let message = MessageRef { flag: 0, body, properties: PropertiesRef(b"TAGS\x01TagA\x02") };
    while store.end() < LOG {
        store.append(&header, message, Level::Staged).expect("taken");
    }
    store.close().expect("it closes");
}

/// Reads all segments in blocks and shows each to `look`.
fn read(root: &Path, mut look: impl FnMut(&[u8])) {
    let mut block = vec![0; BLOCK];
    for entry in std::fs::read_dir(root.join("commitlog")).expect("it lists") {
        let file = File::open(entry.expect("an entry").path()).expect("it opens");
        for offset in (0..SEGMENT).step_by(BLOCK) {
            file.read_exact_at(&mut block, offset).expect("it reads");
            look(&block);
        }
    }
}

fn open(root: &Path, blocks: u64) -> Duration {
    let mut total = Duration::ZERO;
    for _ in 0..blocks {
        let start = Instant::now();
        let (store, report) = CommitLog::open(RealEnv, root, options()).expect("it opens");
        total += start.elapsed();
        assert!(report.was_closed && report.is_whole(), "{report}");
        store.close().expect("it closes");
    }
    total
}

fn recovery(criterion: &mut Criterion) {
    for body_len in [128, 1024, 2048] {
        let root = tempfile::tempdir().expect("a directory");
        fill(root.path(), &vec![0xA5; body_len]);
        let mut group = criterion.benchmark_group(format!("recovery/{body_len}"));
        group.sample_size(10).sampling_mode(SamplingMode::Flat).warm_up_time(Duration::from_millis(500));
        group.throughput(Throughput::Bytes(LOG));
        group.bench_function("limit_read", |bench| bench.iter(|| read(root.path(), |_| {})));
        group.bench_function("limit_read_crc", |bench| {
            bench.iter(|| {
                let mut crc = 0;
                read(root.path(), |block| {
                    crc = block.chunks(body_len).fold(crc, |crc, body| crc ^ crc32fast::hash(body));
                });
                crc
            });
        });
        group.bench_function("open", |bench| bench.iter_custom(|blocks| open(root.path(), blocks)));
    }
}

criterion_group!(benches, recovery);
criterion_main!(benches);
