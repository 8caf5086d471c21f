//! The simulated world, behind the same face as [`stormlog::env::real`].
//!
//! Every operation starts at a point where its thread can be preempted and the run stopped (see [`crate::machine`]).
//! In a dead process, and in a thread that unwinds, operations return at once and do nothing: I/O fails with `EIO`, locks
//! are granted, waits end.

mod atomic;
mod file;
mod lock;
mod region;
mod word;

use std::io;
use std::path::Path;

use stormlog::env::{DirEntry, DiskUsage, Env, JoinHandle, OpenOptions, Step, TaskPanic};

pub use self::atomic::SimAtomic;
pub use self::file::{SimFile, SimLockFile};
pub use self::lock::{SimCondvar, SimRawMutex, SimRawRwLock};
pub use self::region::SimRegion;
pub use self::word::SimWord;
use crate::choices::Family;
use crate::disk::{Errno, SyncKind};
use crate::machine::{CoreRef, IoClass, ProcessId, ThreadId};
use crate::record::Op;

const MARK: Op = Op::new("mark");

/// A handle to the simulated world, of one process of one machine.
#[derive(Clone)]
pub struct SimEnv {
    core: CoreRef,
    process: ProcessId,
}

impl SimEnv {
    pub(crate) fn new(core: CoreRef, process: ProcessId) -> Self {
        Self { core, process }
    }

    /// The process that the handle belongs to.
    pub fn process(&self) -> ProcessId {
        self.process
    }

    /// Runs `body` with the run's context: how a workload inside the machine draws its choices. The simulation does not
    /// notice.
    pub fn with_context<R>(&self, body: impl FnOnce(&mut crate::context::Context) -> R) -> R {
        body(self.core.get_mut().ctx())
    }

    /// Gives the disk another size, as an operator who frees space or takes it does.
    pub fn set_disk_capacity(&self, capacity_bytes: u64) {
        self.core.get_mut().disk.set_capacity(capacity_bytes);
    }

    fn disk_io<R>(
        &self,
        class: IoClass,
        body: impl FnOnce(&mut crate::disk::Disk, &mut crate::context::Context) -> Result<R, Errno>,
    ) -> io::Result<R> {
        let done = self.core.io(self.process, class, |core| {
            let (disk, ctx) = core.disk_and_ctx();
            body(disk, ctx)
        });
        match done {
            Some(result) => result.map_err(io::Error::from),
            None => Err(io::Error::from(Errno::EIO)),
        }
    }
}

fn text(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| io::Error::from(Errno::EINVAL))
}

/// A simulated thread.
pub struct SimThread {
    env: SimEnv,
    thread: ThreadId,
}

impl JoinHandle for SimThread {
    fn join(self) -> Result<(), TaskPanic> {
        self.env.core.join(self.env.process, self.thread)
    }

    fn is_finished(&self) -> bool {
        self.env.core.point(self.env.process);
        self.env.core.is_finished(self.thread)
    }
}

impl Env for SimEnv {
    type RawMutex = SimRawMutex;
    type RawRwLock = SimRawRwLock;
    type Condvar = SimCondvar;
    type Word = SimWord;
    type AtomicBool = SimAtomic<bool>;
    type AtomicU32 = SimAtomic<u32>;
    type AtomicU64 = SimAtomic<u64>;
    type AtomicI64 = SimAtomic<i64>;
    type AtomicUsize = SimAtomic<usize>;
    type Thread = SimThread;
    type File = SimFile;
    type Region = SimRegion;
    type LockFile = SimLockFile;

    fn now_ns(&self) -> u64 {
        self.core.point(self.process);
        self.core.get_mut().ctx().now_ns
    }

    fn sleep_ns(&self, duration_ns: u64) {
        self.core.sleep(self.process, duration_ns);
    }

    fn civil_ms(&self) -> i64 {
        self.core.point(self.process);
        let mut core = self.core.get_mut();
        let (disk, ctx) = core.disk_and_ctx();
        disk.civil_ms(ctx)
    }

    fn civil_offset_s(&self, _at_civil_ms: i64) -> i32 {
        0
    }

    fn spawn<F>(&self, name: &str, body: F) -> io::Result<SimThread>
    where
        F: FnOnce() + Send + 'static,
    {
        if self.core.point(self.process).is_none() {
            return Err(Errno::EAGAIN.into());
        }
        let thread = self.core.spawn(self.process, name, false, body);
        Ok(SimThread { env: self.clone(), thread })
    }

    fn yield_now(&self) {
        self.core.yield_now(self.process);
    }

    fn run_task<R>(&self, task: impl FnOnce() -> R) -> Result<R, TaskPanic> {
        self.core.run_task(self.process, task)
    }

    fn raw_mutex(&self, name: &'static str) -> SimRawMutex {
        SimRawMutex::new(self.core.clone(), self.process, name)
    }

    fn raw_rw_lock(&self, name: &'static str) -> SimRawRwLock {
        SimRawRwLock::new(self.core.clone(), self.process, name)
    }

    fn condvar(&self, name: &'static str) -> SimCondvar {
        SimCondvar::new(self.core.clone(), self.process, name)
    }

    fn word(&self, name: &'static str, value: u32) -> SimWord {
        SimWord::new(self.core.clone(), self.process, name, value)
    }

    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<SimFile> {
        let path = text(path)?;
        let owner = self.process.owner();
        let handle = self.disk_io(IoClass::Name, |disk, ctx| disk.open(ctx, owner, path, options))?;
        Ok(SimFile::new(self.clone(), handle))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let path = text(path)?;
        self.disk_io(IoClass::Name, |disk, ctx| disk.create_dir(ctx, path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let path = text(path)?;
        self.disk_io(IoClass::Name, |disk, ctx| disk.remove_dir(ctx, path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (text(from)?, text(to)?);
        self.disk_io(IoClass::Name, |disk, ctx| disk.rename(ctx, from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let path = text(path)?;
        self.disk_io(IoClass::Name, |disk, ctx| disk.remove_file(ctx, path))
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let path = text(path)?;
        self.disk_io(IoClass::Name, |disk, ctx| disk.list_dir(ctx, path))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let path = text(path)?;
        self.disk_io(IoClass::Name, |disk, ctx| disk.exists(ctx, path))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let path = text(path)?;
        let ticket = self.disk_io(IoClass::Sync, |disk, ctx| disk.sync_dir_begin(ctx, path))?;
        self.end_sync(|disk, ctx| disk.sync_end(ctx, ticket))
    }

    fn disk_usage(&self, path: &Path) -> io::Result<DiskUsage> {
        let path = text(path)?;
        self.disk_io(
            IoClass::Name,
            |disk, ctx| {
                if disk.exists(ctx, path)? { Ok(disk.disk_usage()) } else { Err(Errno::ENOENT) }
            },
        )
    }

    fn lock_file(&self, path: &Path) -> io::Result<Option<SimLockFile>> {
        let path = text(path)?;
        let owner = self.process.owner();
        let lock = self.disk_io(IoClass::Name, |disk, ctx| disk.lock_file(ctx, owner, path))?;
        Ok(lock.map(|lock| SimLockFile::new(self.clone(), lock)))
    }

    fn map_region(&self, file: &SimFile, offset: u64, len: u64) -> io::Result<SimRegion> {
        let handle = file.handle();
        let region = self.disk_io(IoClass::Name, |disk, ctx| disk.region_open(ctx, handle, offset, len))?;
        Ok(SimRegion::new(self.clone(), region, len))
    }

    fn fill_entropy(&self, bytes: &mut [u8]) {
        if let Some(me) = self.core.point(self.process) {
            let mut core = self.core.get_mut();
            let actor = core.actor_of(me);
            let stream = core.ctx().stream(Family::Entropy, actor);
            core.ctx().fill(stream, bytes);
        }
    }

    fn process_id(&self) -> u32 {
        1000 + self.process.number()
    }

    fn core_count(&self) -> usize {
        self.core.get().core_count()
    }

    fn charge(&self, step: Step, n: u64) {
        self.core.charge(self.process, step, n);
    }

    fn mark(&self, name: &'static str) {
        if let Some(me) = self.core.point(self.process) {
            let mut core = self.core.get_mut();
            core.record(me, MARK, [0, 0], xxhash_rust::xxh3::xxh3_64(name.as_bytes()));
            core.ctx().mark(name);
        }
    }
}

impl SimEnv {
    /// The second half of a sync, when the time it took has passed. The run can be stopped before it: that is a crash
    /// with a sync in flight.
    fn end_sync(
        &self,
        body: impl FnOnce(&mut crate::disk::Disk, &mut crate::context::Context) -> Result<(), Errno>,
    ) -> io::Result<()> {
        self.core.point(self.process).ok_or(Errno::EIO)?;
        let mut core = self.core.get_mut();
        let (disk, ctx) = core.disk_and_ctx();
        body(disk, ctx).map_err(io::Error::from)
    }

    fn sync_file(&self, handle: crate::disk::Handle, kind: SyncKind) -> io::Result<()> {
        let ticket = self.disk_io(IoClass::Sync, |disk, ctx| disk.sync_begin(ctx, handle, kind))?;
        self.end_sync(|disk, ctx| disk.sync_end(ctx, ticket))
    }
}
