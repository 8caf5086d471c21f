//! Files: positioned I/O, and the regions through which bytes reach the kernel without a system call.

use std::io::{self, IoSlice};

/// How to open a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Open for writing too.
    pub write: bool,
    /// Make the file if it is missing.
    pub create: bool,
    /// Make the file, and fail with `EEXIST` if it is there.
    pub create_new: bool,
    /// Cut the file to nothing.
    pub truncate: bool,
}

impl OpenOptions {
    /// Read only.
    pub const READ: Self = Self { write: false, create: false, create_new: false, truncate: false };
    /// Read and write a file that exists.
    pub const READ_WRITE: Self = Self { write: true, ..Self::READ };
    /// Read and write, made if missing.
    pub const CREATE: Self = Self { create: true, ..Self::READ_WRITE };
    /// Read and write a file that must be new.
    pub const CREATE_NEW: Self = Self { create_new: true, ..Self::READ_WRITE };
    /// Read and write, made if missing, emptied if there.
    pub const CREATE_EMPTY: Self = Self { truncate: true, ..Self::CREATE };
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The name, lossily decoded: no name that the store makes is anything but ASCII or a topic.
    pub name: String,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Length of a file in bytes; 0 for a directory.
    pub len: u64,
}

/// Space of a file system, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskUsage {
    /// All of it.
    pub total: u64,
    /// What an unprivileged process can still use.
    pub available: u64,
}

/// An open file. All I/O is positioned; handles have no cursor. Dropping it closes it and syncs nothing.
#[allow(clippy::len_without_is_empty, reason = "a file's length is a question to the kernel that may fail")]
pub trait File: Send + Sync + 'static {
    /// Reads up to `bytes.len()` bytes; 0 only at the end of the file.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes a prefix of `bytes`, at least one byte of a non-empty slice, extending the file where it must.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// As [`File::write_at`], from several slices in one call.
    fn write_vectored_at(&self, slices: &[IoSlice<'_>], offset: u64) -> io::Result<usize>;
    /// Makes the written bytes and the length durable (`fdatasync`).
    fn sync_data(&self) -> io::Result<()>;
    /// Makes bytes and all metadata durable (`fsync`), not the file's name.
    fn sync_all(&self) -> io::Result<()>;
    /// Reserves space for `[0, len)` and extends the file to `len` if it is shorter (`posix_fallocate`). `EINVAL` if
    /// `len` is 0.
    fn preallocate(&self, len: u64) -> io::Result<()>;
    /// Writes zeros over `[offset, offset + len)`, extending the file where it must; the blocks are written, not
    /// merely marked, so that a later sync of data in them changes no metadata.
    fn zero_range(&self, offset: u64, len: u64) -> io::Result<()>;
    /// Sets the length (`ftruncate`).
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Civil time of the last change, in milliseconds since 1970.
    fn modified_ms(&self) -> io::Result<i64>;

    /// Reads exactly `bytes.len()` bytes, or fails with `UnexpectedEof`.
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match self.read_at(&mut bytes[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Writes all of `bytes`. On an error any part of them may have been written.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match self.write_at(&bytes[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

/// A shared, writable mapping of part of a file. No slice of it leaves `env`: bytes go in, and come back through reads
/// of the file. What was copied in survives a kill of the process, not a power loss; a process killed inside
/// [`Region::copy_in`] leaves any part of the bytes, not always a prefix: memory copies of the C library store the head
/// of a long block last.
pub trait Region: Send + Sync + 'static {
    /// Copies `bytes` to `offset` of the region.
    ///
    /// # Panics
    /// If the bytes do not fit into the region: that is the caller's mistake.
    fn copy_in(&self, offset: u64, bytes: &[u8]);
    /// Length in bytes.
    fn len(&self) -> u64;
    /// Whether the region has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
