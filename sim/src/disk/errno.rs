//! Error numbers of the simulated disk: Linux's, on every host, so that a run's record means the same everywhere.

use std::fmt;
use std::str::FromStr;

/// A Linux `errno`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(pub i32);

macro_rules! errnos {
    ($($name:ident = $value:literal, $about:literal;)*) => {
        impl Errno {
            $(#[doc = $about] pub const $name: Errno = Errno($value);)*

            const NAMED: &'static [(Errno, &'static str, &'static str)] =
                &[$((Errno::$name, stringify!($name), $about),)*];
        }
    };
}

errnos! {
    ENOENT = 2, "no such file or directory";
    EINTR = 4, "interrupted";
    EIO = 5, "input/output error";
    EBADF = 9, "bad file descriptor";
    EAGAIN = 11, "try again";
    ENOMEM = 12, "out of memory";
    EACCES = 13, "permission denied";
    EFAULT = 14, "bad address";
    EBUSY = 16, "busy";
    EEXIST = 17, "exists already";
    ENOTDIR = 20, "not a directory";
    EISDIR = 21, "is a directory";
    EINVAL = 22, "invalid argument";
    ENFILE = 23, "too many open files in the system";
    EMFILE = 24, "too many open files";
    EFBIG = 27, "file too large";
    ENOSPC = 28, "no space left on device";
    EROFS = 30, "read-only file system";
    ENAMETOOLONG = 36, "name too long";
    ENOTEMPTY = 39, "directory not empty";
    EDQUOT = 122, "disk quota exceeded";
}

impl Errno {
    /// The value that stands for this error in a record: no length and no likely hash.
    pub(super) fn code(self) -> u64 {
        (-i64::from(self.0)) as u64
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMED.iter().find(|(errno, ..)| errno == self) {
            Some((_, name, _)) => f.write_str(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Errno {}

/// A name that is no errno of the simulated disk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not an error number: want one of {}", Errno::NAMED.iter().map(|(_, name, _)| *name).collect::<Vec<_>>().join(", "))]
pub struct ErrnoNameError {
    /// The name.
    pub name: String,
}

impl FromStr for Errno {
    type Err = ErrnoNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::NAMED.iter().find(|(_, known, _)| *known == name);
        found.map(|(errno, ..)| *errno).ok_or_else(|| ErrnoNameError { name: name.to_owned() })
    }
}

impl From<Errno> for std::io::Error {
    fn from(errno: Errno) -> Self {
        std::io::Error::from_raw_os_error(errno.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_back() {
        for (errno, name, _) in Errno::NAMED {
            assert_eq!((name.parse(), errno.to_string().as_str()), (Ok(*errno), *name));
        }
        assert!("EWHAT".parse::<Errno>().unwrap_err().to_string().contains("ENOSPC"));
    }
}
