//! What the store asks of the world.
//!
//! Model: ordinary blocking code on named threads. Everything that may differ between two runs of a program (time,
//! scheduling, lock order, what a disk keeps, entropy) is reached through [`Env`] and through nothing else, so that the
//! same compiled store runs on [`real`] threads and disks, and on simulated ones.
//!
//! Not modelled: weak memory order (a simulated machine interleaves at env operations, sequentially consistent), signals,
//! sockets.
//!
//! Rules for code that is generic over `Env`:
//! * time, threads, locks, atomics, files and randomness come from here; `clippy.toml` refuses the std ones;
//! * no `Drop` does I/O, blocks or unwraps: a dropped store is a crashed store, closing is explicit;
//! * names of threads, locks, steps and marks are part of the store's face, as metrics are.

mod atomic;
mod file;
mod lock;
pub mod real;
mod step;
mod word;

use std::path::Path;

pub use atomic::{Atomic, AtomicInteger};
pub use file::{DirEntry, DiskUsage, File, OpenOptions, Region};
pub use lock::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use step::Step;
pub use word::{Wait, Word};

/// The world a store runs in. Cloning is cheap and gives another handle to the same process of the same world.
///
/// I/O errors are [`std::io::Error`]s made from a real `errno` (`raw_os_error()` is `Some`).
pub trait Env: Clone + Send + Sync + 'static {
    /// Raw mutex; use it through [`Mutex`] and [`Env::mutex`].
    type RawMutex: lock_api::RawMutex + Send + Sync + 'static;
    /// Raw reader-writer lock; use it through [`RwLock`] and [`Env::rw_lock`].
    type RawRwLock: lock_api::RawRwLock + Send + Sync + 'static;
    /// Condition variable for [`Mutex`].
    type Condvar: Condvar<Self::RawMutex>;
    /// A 32-bit word that threads can wait on (a futex).
    type Word: Word;
    /// Atomic `bool`.
    type AtomicBool: Atomic<bool>;
    /// Atomic `u32`.
    type AtomicU32: AtomicInteger<u32>;
    /// Atomic `u64`.
    type AtomicU64: AtomicInteger<u64>;
    /// Atomic `i64`.
    type AtomicI64: AtomicInteger<i64>;
    /// Atomic `usize`.
    type AtomicUsize: AtomicInteger<usize>;
    /// A started thread.
    type Thread: JoinHandle;
    /// An open file.
    type File: File;
    /// A mapping of a zero-filled part of a file.
    type Region: Region;
    /// A held lock file; released when dropped and when the process dies.
    type LockFile: Send + Sync + 'static;

    // Time ----------------------------------------------------------------------------------------------------------

    /// Monotonic time in nanoseconds since an arbitrary origin.
    fn now_ns(&self) -> u64;
    /// Blocks the calling thread for at least `duration_ns`.
    fn sleep_ns(&self, duration_ns: u64);
    /// Civil time: milliseconds since 1970-01-01T00:00:00Z. May jump in both directions.
    fn civil_ms(&self) -> i64;
    /// Offset of the local zone from UTC at a civil time, in seconds (east is positive).
    fn civil_offset_s(&self, at_civil_ms: i64) -> i32;

    // Threads -------------------------------------------------------------------------------------------------------

    /// Starts a named thread. A panic in `body` is the thread's end and comes out of [`JoinHandle::join`].
    fn spawn<F>(&self, name: &str, body: F) -> std::io::Result<Self::Thread>
    where
        F: FnOnce() + Send + 'static;
    /// Lets other runnable threads go first.
    fn yield_now(&self);
    /// Runs `task` and turns its panic into an error: the only place where a panic is caught.
    fn run_task<R>(&self, task: impl FnOnce() -> R) -> Result<R, TaskPanic>;

    // Locks ---------------------------------------------------------------------------------------------------------

    /// Makes the raw part of a mutex. `name` is the kind of the lock, shared by all locks of that kind.
    fn raw_mutex(&self, name: &'static str) -> Self::RawMutex;
    /// Makes the raw part of a reader-writer lock.
    fn raw_rw_lock(&self, name: &'static str) -> Self::RawRwLock;
    /// Makes a condition variable.
    fn condvar(&self, name: &'static str) -> Self::Condvar;
    /// Makes a word to wait on.
    fn word(&self, name: &'static str, value: u32) -> Self::Word;
    /// Makes a named mutex around `value`.
    fn mutex<T>(&self, name: &'static str, value: T) -> Mutex<Self, T> {
        lock_api::Mutex::from_raw(self.raw_mutex(name), value)
    }
    /// Makes a named reader-writer lock around `value`.
    fn rw_lock<T>(&self, name: &'static str, value: T) -> RwLock<Self, T> {
        lock_api::RwLock::from_raw(self.raw_rw_lock(name), value)
    }

    // Files and directories -----------------------------------------------------------------------------------------

    /// Opens a file. The name of a file made here is durable only after [`Env::sync_dir`] of its directory.
    fn open(&self, path: &Path, options: OpenOptions) -> std::io::Result<Self::File>;
    /// Makes one directory; its parent must exist. Durable after [`Env::sync_dir`] of the parent.
    fn create_dir(&self, path: &Path) -> std::io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> std::io::Result<()>;
    /// Renames a file or directory, replacing a file at `to`. Durable after [`Env::sync_dir`] of both directories.
    fn rename(&self, from: &Path, to: &Path) -> std::io::Result<()>;
    /// Removes a name. Durable after [`Env::sync_dir`]; open handles stay usable.
    fn remove_file(&self, path: &Path) -> std::io::Result<()>;
    /// Lists a directory, sorted by name (bytewise).
    fn list_dir(&self, path: &Path) -> std::io::Result<Vec<DirEntry>>;
    /// Whether a name exists.
    fn exists(&self, path: &Path) -> std::io::Result<bool>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> std::io::Result<()>;
    /// Space of the file system that holds `path`.
    fn disk_usage(&self, path: &Path) -> std::io::Result<DiskUsage>;
    /// Takes the exclusive lock that the JVM's `FileChannel.lock` takes (POSIX `fcntl`, whole file), creating the file
    /// if needed. `Ok(None)` when another process, or another owner in this process, holds it.
    fn lock_file(&self, path: &Path) -> std::io::Result<Option<Self::LockFile>>;
    /// Maps `[offset, offset + len)` of a file that is that long and zero-filled already. `EINVAL` if the file is shorter,
    /// `len` is 0, or `offset` is not a multiple of the page size (4096 will do).
    fn map_region(&self, file: &Self::File, offset: u64, len: u64) -> std::io::Result<Self::Region>;

    // Identity ------------------------------------------------------------------------------------------------------

    /// Fills `bytes` with entropy.
    fn fill_entropy(&self, bytes: &mut [u8]);
    /// The process's id.
    fn process_id(&self) -> u32;
    /// How many cores threads can run on.
    fn core_count(&self) -> usize;

    // Cost and marks ------------------------------------------------------------------------------------------------

    /// Says that the calling thread has done `n` units of a named step of CPU work. Costs nothing in the real world.
    fn charge(&self, step: Step, n: u64);
    /// Says that a place worth reaching was reached.
    fn mark(&self, name: &'static str);
}

/// A started thread.
pub trait JoinHandle: Send + 'static {
    /// Waits for the thread's end.
    fn join(self) -> Result<(), TaskPanic>;
    /// Whether the thread has ended.
    fn is_finished(&self) -> bool;
}

/// A task or thread that ended by a panic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("panicked: {message}")]
pub struct TaskPanic {
    /// The panic's message, or a placeholder where the payload was not text.
    pub message: String,
}

impl TaskPanic {
    /// Reads the message out of a caught panic's payload.
    pub fn from_payload(payload: &(dyn std::any::Any + Send)) -> Self {
        let message = payload
            .downcast_ref::<&str>()
            .map(|s| (*s).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a payload that is not text".to_owned());
        Self { message }
    }
}
