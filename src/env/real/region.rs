//! Regions: shared mappings, written through and never read.
//!
//! Model: a page is faulted in when it is first written, not before. Measured (Linux 6.18, ext4, a file that was just
//! zero-filled and synced), a copy of 1 KiB costs 0.12 µs that way, for one fault maps a whole large folio. After
//! `MAP_POPULATE` it costs 1.5 µs: pages mapped for reading take a fault each to become writable. `MADV_POPULATE_WRITE`
//! gives 0.07 µs, but makes the whole region dirty, so that the next sync writes all of it, after which a page costs
//! what it costs after `MAP_POPULATE`. (A `pwrite` costs 2.2 µs.)
//!
//! As long as the file was zero-filled (`zero_range`) no fault needs a new block. What can fail is a page that was
//! evicted and cannot be read back, and a file cut short by someone else; the kernel's answer to both is `SIGBUS`.

use std::ffi::c_void;
use std::io;
use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::RealFile;
use crate::env::{File, Region};

/// A shared mapping.
#[derive(Debug)]
pub struct RealRegion {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to no thread, and nobody reads through it.
unsafe impl Send for RealRegion {}
// SAFETY: as above. Bytes that two threads copy to the same place at once end up as some mix of both, which no one in
// this process can look at but through the kernel.
unsafe impl Sync for RealRegion {}

impl RealRegion {
    pub(super) fn map(file: &RealFile, offset: u64, len: u64) -> io::Result<Self> {
        let end = offset.checked_add(len).ok_or(Errno::OVERFLOW)?;
        if end > file.len()? {
            // A page behind the end of the file would be `SIGBUS` at the first touch.
            return Err(Errno::INVAL.into());
        }
        let len = usize::try_from(len).map_err(|_| Errno::NOMEM)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in use.
        let start =
            unsafe { mmap(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, offset)? };
        let start = NonNull::new(start.cast()).expect("the kernel maps nothing at address 0 unless told to");
        Ok(Self { start, len })
    }
}

impl Region for RealRegion {
    #[inline]
    fn copy_in(&self, offset: u64, bytes: &[u8]) {
        let end = offset.checked_add(bytes.len() as u64);
        assert!(
            end.is_some_and(|end| end <= self.len as u64),
            "{} bytes at {offset} do not fit into a region of {}",
            bytes.len(),
            self.len
        );
        // SAFETY: the target lies in the mapping, as just asserted; no Rust reference to the mapping exists, so that
        // `bytes` cannot overlap it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(offset as usize), bytes.len()) };
    }

    #[inline]
    fn len(&self) -> u64 {
        self.len as u64
    }
}

impl Drop for RealRegion {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `map`, and nothing points into it any more.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast::<c_void>(), self.len) };
        debug_assert!(unmapped.is_ok(), "a mapping of ours can be unmapped");
    }
}
