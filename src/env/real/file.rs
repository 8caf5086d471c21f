//! Files: positioned system calls on a descriptor.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, fdatasync, fstat, fsync, ftruncate};
use rustix::io::{Errno, pread, pwrite, pwritev, retry_on_intr};

use crate::env::{File, OpenOptions};

const ZERO_BLOCK_LEN: usize = 64 << 10;
const ZERO_BLOCKS_PER_CALL: usize = 16;
static ZERO_BLOCK: [u8; ZERO_BLOCK_LEN] = [0; ZERO_BLOCK_LEN];

/// An open file.
#[derive(Debug)]
pub struct RealFile(OwnedFd);

impl RealFile {
    pub(super) fn open(path: &Path, options: OpenOptions) -> io::Result<Self> {
        let mut flags = OFlags::CLOEXEC;
        flags |= if options.write { OFlags::RDWR } else { OFlags::RDONLY };
        flags.set(OFlags::CREATE, options.create || options.create_new);
        flags.set(OFlags::EXCL, options.create_new);
        flags.set(OFlags::TRUNC, options.truncate);
        Ok(Self(retry_on_intr(|| rustix::fs::open(path, flags, Mode::from_raw_mode(0o666)))?))
    }
}

impl AsFd for RealFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl File for RealFile {
    #[inline]
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(retry_on_intr(|| pread(&self.0, &mut *bytes, offset))?)
    }

    #[inline]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        Ok(retry_on_intr(|| pwrite(&self.0, bytes, offset))?)
    }

    #[inline]
    fn write_vectored_at(&self, slices: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        Ok(retry_on_intr(|| pwritev(&self.0, slices, offset))?)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| fdatasync(&self.0))?)
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| fsync(&self.0))?)
    }

    fn preallocate(&self, len: u64) -> io::Result<()> {
        let len = libc::off64_t::try_from(len).map_err(|_| Errno::FBIG)?;
        loop {
            // SAFETY: takes no pointer, and the descriptor is open for as long as `self` lives.
            match unsafe { libc::posix_fallocate64(self.0.as_raw_fd(), 0, len) } {
                0 => return Ok(()),
                libc::EINTR => {}
                errno => return Err(io::Error::from_raw_os_error(errno)),
            }
        }
    }

    fn zero_range(&self, offset: u64, len: u64) -> io::Result<()> {
        let slices = [IoSlice::new(&ZERO_BLOCK); ZERO_BLOCKS_PER_CALL];
        let end = offset.checked_add(len).ok_or(Errno::FBIG)?;
        let mut at = offset;
        while at < end {
            let left = end - at;
            let written = if left >= ZERO_BLOCK_LEN as u64 {
                let whole_blocks = (left / ZERO_BLOCK_LEN as u64).min(ZERO_BLOCKS_PER_CALL as u64);
                self.write_vectored_at(&slices[..whole_blocks as usize], at)?
            } else {
                self.write_at(&ZERO_BLOCK[..left as usize], at)?
            };
            if written == 0 {
                return Err(Errno::IO.into());
            }
            at += written as u64;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Ok(retry_on_intr(|| ftruncate(&self.0, len))?)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(fstat(&self.0)?.st_size as u64)
    }

    fn modified_ms(&self) -> io::Result<i64> {
        let stat = fstat(&self.0)?;
        Ok(stat.st_mtime * 1000 + stat.st_mtime_nsec as i64 / 1_000_000)
    }
}
