//! What several parts of the suite need.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use rustix::io::Errno;
use stormlog::env::{Env, File as _, JoinHandle as _, OpenOptions, Word as _};

/// Starts `count` threads, gives each its number, and waits for all.
pub(super) fn on_threads<E: Env>(env: &E, count: usize, body: impl Fn(usize) + Clone + Send + 'static) {
    let threads: Vec<_> = (0..count)
        .map(|n| {
            let body = body.clone();
            env.spawn(&format!("conformance-{n}"), move || body(n)).expect("a thread")
        })
        .collect();
    for thread in threads {
        thread.join().expect("a thread that does not panic");
    }
}

/// Closed until it is opened, once.
pub(super) struct Gate<E: Env>(Arc<E::Word>);

impl<E: Env> Clone for Gate<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<E: Env> Gate<E> {
    pub(super) fn new(env: &E) -> Self {
        Self(Arc::new(env.word("conformance.gate", 0)))
    }

    pub(super) fn open(&self) {
        self.0.store(1, SeqCst);
        self.0.wake_all();
    }

    pub(super) fn is_open(&self) -> bool {
        self.0.load(SeqCst) == 1
    }

    pub(super) fn pass(&self) {
        while !self.is_open() {
            self.0.wait(0, None);
        }
    }
}

#[track_caller]
pub(super) fn assert_errno<T: Debug>(result: io::Result<T>, want: Errno) {
    match result {
        Ok(value) => panic!("want {want:?}, got {value:?}"),
        Err(error) => assert_eq!(error.raw_os_error(), Some(want.raw_os_error()), "want {want:?}, got {error}"),
    }
}

/// As [`assert_errno`], for values that cannot be shown.
#[track_caller]
pub(super) fn assert_refused<T>(result: io::Result<T>, want: Errno) {
    assert_errno(result.map(drop), want);
}

/// Makes a file with that content.
pub(super) fn file_with<E: Env>(env: &E, path: &Path, content: &[u8]) -> E::File {
    let file = env.open(path, OpenOptions::CREATE_EMPTY).expect("a new file");
    file.write_all_at(content, 0).expect("to write");
    file
}

/// All of a file, read to its end.
#[track_caller]
pub(super) fn content<E: Env>(file: &E::File) -> Vec<u8> {
    let len = file.len().expect("a length") as usize;
    let mut bytes = vec![0xAA; len];
    file.read_exact_at(&mut bytes, 0).expect("to read up to the length");
    assert_eq!(file.read_at(&mut [0], len as u64).expect("to read at the end"), 0, "bytes behind the length");
    bytes
}

/// All of the file of that name.
#[track_caller]
pub(super) fn content_at<E: Env>(env: &E, path: &Path) -> Vec<u8> {
    content::<E>(&env.open(path, OpenOptions::READ).expect("the file"))
}
