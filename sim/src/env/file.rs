//! Simulated files: operations on the machine's disk that take the time its profile says.

use std::io::{self, IoSlice};

use stormlog::env::File;

use super::SimEnv;
use crate::disk::{Handle, LockId, SyncKind};
use crate::machine::IoClass;

/// An open file of the simulated world.
pub struct SimFile {
    env: SimEnv,
    handle: Handle,
}

impl SimFile {
    pub(super) fn new(env: SimEnv, handle: Handle) -> Self {
        Self { env, handle }
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        // A dead process's handles are gone already.
        if self.env.core.get().is_alive(self.env.process) {
            let mut core = self.env.core.get_mut();
            let (disk, ctx) = core.disk_and_ctx();
            disk.close(ctx, self.handle);
        }
    }
}

impl File for SimFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.env.disk_io(IoClass::Read, |disk, ctx| disk.read_at(ctx, self.handle, bytes, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.env.disk_io(IoClass::Write, |disk, ctx| disk.write_at(ctx, self.handle, bytes, offset))
    }

    fn write_vectored_at(&self, slices: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        self.env.disk_io(IoClass::Write, |disk, ctx| disk.write_vectored(ctx, self.handle, slices, offset))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.env.sync_file(self.handle, SyncKind::Data)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.env.sync_file(self.handle, SyncKind::All)
    }

    fn preallocate(&self, len: u64) -> io::Result<()> {
        self.env.disk_io(IoClass::Name, |disk, ctx| disk.preallocate(ctx, self.handle, len))
    }

    fn zero_range(&self, offset: u64, len: u64) -> io::Result<()> {
        self.env.disk_io(IoClass::Write, |disk, ctx| disk.zero_range(ctx, self.handle, offset, len))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.env.disk_io(IoClass::Name, |disk, ctx| disk.set_len(ctx, self.handle, len))
    }

    fn len(&self) -> io::Result<u64> {
        self.env.disk_io(IoClass::Name, |disk, _| disk.len(self.handle))
    }

    fn modified_ms(&self) -> io::Result<i64> {
        self.env.disk_io(IoClass::Name, |disk, _| disk.modified_ms(self.handle))
    }
}

/// A held lock file of the simulated world.
pub struct SimLockFile {
    env: SimEnv,
    lock: LockId,
}

impl SimLockFile {
    pub(super) fn new(env: SimEnv, lock: LockId) -> Self {
        Self { env, lock }
    }
}

impl Drop for SimLockFile {
    fn drop(&mut self) {
        if self.env.core.get().is_alive(self.env.process) {
            let mut core = self.env.core.get_mut();
            let (disk, ctx) = core.disk_and_ctx();
            disk.unlock(ctx, self.lock);
        }
    }
}
