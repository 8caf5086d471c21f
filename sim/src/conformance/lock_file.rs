//! The lock file.

use std::path::Path;

use rustix::io::Errno;
use stormlog::env::{Env, File as _, OpenOptions};

use super::tools::{assert_refused, content_at};

super::list_cases!("lock_file": has_one_owner_in_a_process, is_a_file_like_any_other, needs_its_directory);

fn has_one_owner_in_a_process<E: Env>(env: &E, root: &Path) {
    let path = root.join("lock");
    let first = env.lock_file(&path).expect("a lock file").expect("a free lock");
    assert!(env.lock_file(&path).expect("a lock file").is_none(), "two hold it");
    drop(env.open(&path, OpenOptions::READ_WRITE).expect("the lock file"));
    assert!(env.lock_file(&path).expect("a lock file").is_none(), "gone with another handle of the file");
    let other = env.lock_file(&root.join("other")).expect("a lock file").expect("a free lock");
    drop(first);
    drop(other);
    assert!(env.lock_file(&path).expect("a lock file").is_some(), "held by nobody");
}

fn is_a_file_like_any_other<E: Env>(env: &E, root: &Path) {
    let path = root.join("lock");
    let file = env.open(&path, OpenOptions::CREATE).expect("a file");
    file.write_all_at(b"lock", 0).expect("to write");
    let _held = env.lock_file(&path).expect("a lock file").expect("a free lock");
    assert_eq!(content_at(env, &path), b"lock");
}

fn needs_its_directory<E: Env>(env: &E, root: &Path) {
    assert_refused(env.lock_file(&root.join("missing/lock")), Errno::NOENT);
}
