//! The lock file: a record lock of the whole file, owned by its open file description (`F_OFD_SETLK`).
//!
//! Model: such a lock and the `fcntl` lock that a JVM takes refuse each other, between processes and within one. Unlike
//! the JVM's it excludes a second owner in this process, and stays when another descriptor of the file is closed.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;

/// A held lock file.
#[derive(Debug)]
pub struct RealLockFile {
    _held_while_open: OwnedFd,
}

impl RealLockFile {
    pub(super) fn take(path: &Path) -> io::Result<Option<Self>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let fd = retry_on_intr(|| rustix::fs::open(path, flags, Mode::from_raw_mode(0o666)))?;
        let whole_file = libc::flock {
            l_type: libc::F_WRLCK as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        };
        // SAFETY: the descriptor is open, and the call reads one `flock` and keeps nothing of it.
        if unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLK, &whole_file) } == 0 {
            return Ok(Some(Self { _held_while_open: fd }));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EACCES) => Ok(None),
            _ => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::fs::{FlockOperation, fcntl_lock};

    use super::*;

    #[test]
    fn it_and_the_lock_of_a_jvm_refuse_each_other() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("lock");
        let as_a_jvm = File::create(&path).expect("a lock file");

        fcntl_lock(&as_a_jvm, FlockOperation::NonBlockingLockExclusive).expect("a free lock");
        assert!(RealLockFile::take(&path).expect("a lock file").is_none(), "taken beside a JVM's");
        fcntl_lock(&as_a_jvm, FlockOperation::NonBlockingUnlock).expect("our lock");

        let ours = RealLockFile::take(&path).expect("a lock file").expect("a free lock");
        fcntl_lock(&as_a_jvm, FlockOperation::NonBlockingLockExclusive).expect_err("a JVM's taken beside ours");
        drop(as_a_jvm);
        assert!(RealLockFile::take(&path).expect("a lock file").is_none(), "gone with another descriptor");
        drop(ours);
        assert!(RealLockFile::take(&path).expect("a lock file").is_some(), "still held");
    }
}
