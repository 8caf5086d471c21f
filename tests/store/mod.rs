//! A commit log on the real disk for tests: opened, filled, copied, and damaged.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test damages files behind the store's back")]

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use stormlog::codec::{Host, MessageRef, PropertiesRef, RecordHeader, SysFlag};
use stormlog::commitlog::{CommitLog, CommitLogOptions, FlushDiskType, OpenError, RecoveryPolicy, RecoveryReport};
use stormlog::env::real::RealEnv;
use stormlog::log::WrittenBy;

pub type Store = CommitLog<RealEnv>;

pub const SEGMENT: u64 = 4096;

pub fn options() -> CommitLogOptions {
    CommitLogOptions {
        mapped_file_size_commit_log: SEGMENT,
        flush_disk_type: FlushDiskType::SyncFlush,
        written_by: WrittenBy::Write,
        ..CommitLogOptions::default()
    }
}

pub fn compatible() -> CommitLogOptions {
    CommitLogOptions { recovery_policy: RecoveryPolicy::Compatible, ..options() }
}

pub fn try_open(root: &Path, options: &CommitLogOptions) -> Result<(Store, RecoveryReport), OpenError> {
    CommitLog::open(RealEnv, root, options.clone())
}

pub fn open(root: &Path, options: &CommitLogOptions) -> (Store, RecoveryReport) {
    try_open(root, options).expect("the store opens")
}

pub fn header(topic: &str) -> RecordHeader<'_> {
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

pub fn message(body: &[u8]) -> MessageRef<'_> {
    MessageRef { flag: 0, body, properties: PropertiesRef(b"") }
}

/// Bodies of all records that are served, in order.
pub fn bodies(store: &Store) -> Vec<Vec<u8>> {
    store.records(store.visible().start).map(|record| record.expect("it reads").view().body().to_vec()).collect()
}

/// A cleanly closed store of equally long messages in three segments, which is copied for each test.
pub struct Original {
    root: tempfile::TempDir,
    /// Where each record begins.
    pub positions: Vec<u64>,
    /// Length of each record.
    pub len: u64,
    /// End of the log.
    pub end: u64,
}

impl Original {
    pub const COUNT: usize = 100;

    pub fn make() -> Self {
        let root = tempfile::tempdir().unwrap();
        let (store, _) = open(&root.path().join("store"), &options());
        let appended: Vec<_> = (0..Self::COUNT)
            .map(|n| {
                let level = store.level_for(PropertiesRef(b""));
                let appended = store.append(&header("T"), message(&Self::body(n)), level).unwrap();
                store.wait(&appended).unwrap();
                appended
            })
            .collect();
        let positions: Vec<_> = appended.iter().map(|appended| appended.receipt.position).collect();
        let receipt = appended[0].receipt;
        let end = store.end();
        store.close().unwrap();
        assert_eq!(fs::read_dir(root.path().join("store/commitlog")).unwrap().count(), 3);
        Self { root, positions, len: receipt.end - receipt.position, end }
    }

    pub fn body(n: usize) -> Vec<u8> {
        format!("body {n:04}").into_bytes()
    }

    pub fn bodies(numbers: impl IntoIterator<Item = usize>) -> Vec<Vec<u8>> {
        numbers.into_iter().map(Self::body).collect()
    }

    /// A copy of the store.
    pub fn copy(&self) -> Copy {
        let copy = Copy { root: tempfile::tempdir().unwrap() };
        copy_dir(&self.root.path().join("store"), copy.path());
        copy
    }

    /// A copy of the store as a crash of the process would have left it.
    pub fn crashed(&self) -> Copy {
        let copy = self.copy();
        fs::write(copy.path().join("abort"), "1").unwrap();
        copy
    }

    /// A crashed copy that RocketMQ might have written: nothing says what was durable.
    pub fn foreign(&self) -> Copy {
        let copy = self.crashed();
        fs::remove_file(copy.path().join("durable")).unwrap();
        copy
    }
}

/// A store to damage.
pub struct Copy {
    root: tempfile::TempDir,
}

impl Copy {
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    pub fn segment(&self, base: u64) -> PathBuf {
        self.path().join(format!("commitlog/{base:020}"))
    }

    fn file(&self, position: u64) -> (fs::File, u64) {
        let file = fs::OpenOptions::new().read(true).write(true).open(self.segment(position / SEGMENT * SEGMENT));
        (file.unwrap(), position % SEGMENT)
    }

    pub fn write(&self, position: u64, bytes: &[u8]) {
        let (file, offset) = self.file(position);
        file.write_all_at(bytes, offset).unwrap();
    }

    pub fn read(&self, position: u64, len: usize) -> Vec<u8> {
        let (file, offset) = self.file(position);
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, offset).unwrap();
        bytes
    }

    pub fn flip(&self, position: u64) {
        let byte = self.read(position, 1)[0];
        self.write(position, &[byte ^ 0x40]);
    }

    pub fn open(&self, options: &CommitLogOptions) -> (Store, RecoveryReport) {
        open(self.path(), options)
    }
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &to.join(entry.file_name()));
        } else {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}
