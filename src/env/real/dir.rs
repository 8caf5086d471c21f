//! Directories and the file system that holds them.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags, fsync, statvfs};
use rustix::io::{Errno, retry_on_intr};

use crate::env::{DirEntry, DiskUsage};

pub(super) fn list(path: &Path) -> io::Result<Vec<DirEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        // A symbolic link counts as what it leads to; one that leads nowhere, as itself.
        let metadata = match fs::metadata(entry.path()).or_else(|_| entry.metadata()) {
            Ok(metadata) => metadata,
            // Removed since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let is_dir = metadata.is_dir();
        let len = if is_dir { 0 } else { metadata.len() };
        entries.push(DirEntry { name: entry.file_name().to_string_lossy().into_owned(), is_dir, len });
    }
    entries.sort_unstable();
    Ok(entries)
}

pub(super) fn exists(path: &Path) -> io::Result<bool> {
    match rustix::fs::lstat(path) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn sync(path: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))?;
    Ok(retry_on_intr(|| fsync(&dir))?)
}

pub(super) fn disk_usage(path: &Path) -> io::Result<DiskUsage> {
    let stat = retry_on_intr(|| statvfs(path))?;
    Ok(DiskUsage {
        total: stat.f_blocks.saturating_mul(stat.f_frsize),
        available: stat.f_bavail.saturating_mul(stat.f_frsize),
    })
}
