//! Regions: shared mappings, written through and never read.
//!
//! Model: every page is faulted in when the region is made. Mapping the file's blocks cannot fail later as long as the
//! file was zero-filled (`zero_range`): what fails then is a page that was evicted and cannot be read back, or a file
//! cut short by someone else, and the kernel's answer to both is `SIGBUS`.

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
        let start = unsafe {
            mmap(
                ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                file,
                offset,
            )?
        };
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
