//! The real world: std threads, parking_lot locks, std atomics, the kernel's futexes and files (Linux, 64 bit).
//!
//! Model: each operation of [`Env`] is the system call or library call that it is named after; an interrupted call is
//! made again, nothing else is retried and nothing is buffered. Steps and marks cost nothing and are not counted.
//!
//! Not modelled: who waits for which lock; names of locks are dropped.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "this is what a simulated run is kept from reaching: the host itself"
)]

mod atomic;
mod dir;
mod file;
mod identity;
mod lock;
mod lock_file;
mod region;
mod thread;
mod time;
mod word;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize};

pub use file::RealFile;
pub use lock::RealCondvar;
pub use lock_file::RealLockFile;
pub use region::RealRegion;
pub use thread::RealThread;
pub use word::RealWord;

use super::{DirEntry, DiskUsage, Env, OpenOptions, Step, TaskPanic};

/// The real world.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealEnv;

impl Env for RealEnv {
    type RawMutex = parking_lot::RawMutex;
    type RawRwLock = parking_lot::RawRwLock;
    type Condvar = RealCondvar;
    type Word = RealWord;
    type AtomicBool = AtomicBool;
    type AtomicU32 = AtomicU32;
    type AtomicU64 = AtomicU64;
    type AtomicI64 = AtomicI64;
    type AtomicUsize = AtomicUsize;
    type Thread = RealThread;
    type File = RealFile;
    type Region = RealRegion;
    type LockFile = RealLockFile;

    #[inline]
    fn now_ns(&self) -> u64 {
        time::now_ns()
    }

    #[inline]
    fn sleep_ns(&self, duration_ns: u64) {
        time::sleep_ns(duration_ns);
    }

    #[inline]
    fn civil_ms(&self) -> i64 {
        time::civil_ms()
    }

    fn civil_offset_s(&self, at_civil_ms: i64) -> i32 {
        time::civil_offset_s(at_civil_ms)
    }

    fn spawn<F>(&self, name: &str, body: F) -> io::Result<RealThread>
    where
        F: FnOnce() + Send + 'static,
    {
        thread::spawn(name, body)
    }

    #[inline]
    fn yield_now(&self) {
        std::thread::yield_now();
    }

    #[inline]
    fn run_task<R>(&self, task: impl FnOnce() -> R) -> Result<R, TaskPanic> {
        thread::run_task(task)
    }

    #[inline]
    fn raw_mutex(&self, _name: &'static str) -> parking_lot::RawMutex {
        <parking_lot::RawMutex as lock_api::RawMutex>::INIT
    }

    #[inline]
    fn raw_rw_lock(&self, _name: &'static str) -> parking_lot::RawRwLock {
        <parking_lot::RawRwLock as lock_api::RawRwLock>::INIT
    }

    #[inline]
    fn condvar(&self, _name: &'static str) -> RealCondvar {
        RealCondvar::default()
    }

    #[inline]
    fn word(&self, _name: &'static str, value: u32) -> RealWord {
        RealWord::new(value)
    }

    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<RealFile> {
        RealFile::open(path, options)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        dir::list(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        dir::exists(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        dir::sync(path)
    }

    fn disk_usage(&self, path: &Path) -> io::Result<DiskUsage> {
        dir::disk_usage(path)
    }

    fn lock_file(&self, path: &Path) -> io::Result<Option<RealLockFile>> {
        RealLockFile::take(path)
    }

    fn map_region(&self, file: &RealFile, offset: u64, len: u64) -> io::Result<RealRegion> {
        RealRegion::map(file, offset, len)
    }

    fn fill_entropy(&self, bytes: &mut [u8]) {
        identity::fill_entropy(bytes);
    }

    #[inline]
    fn process_id(&self) -> u32 {
        std::process::id()
    }

    fn core_count(&self) -> usize {
        identity::core_count()
    }

    #[inline(always)]
    fn charge(&self, _step: Step, _n: u64) {}

    #[inline(always)]
    fn mark(&self, _name: &'static str) {}
}
