//! Names and directories.

use std::path::Path;

use rustix::io::Errno;
use stormlog::env::{DirEntry, Env, File as _, OpenOptions};

use super::tools::{assert_errno, content, content_at, file_with};

super::list_cases!("dir":
    are_made_and_removed,
    refuse_what_they_cannot,
    list_what_they_hold,
    renaming_replaces,
    renaming_keeps_open_handles,
    renaming_moves_directories,
    renaming_refuses_what_it_cannot,
    removed_files_live_while_open,
    a_path_through_a_file_is_no_answer,
    usage_is_within_the_whole,
);

fn names<E: Env>(env: &E, path: &Path) -> Vec<String> {
    env.list_dir(path).expect("a list").into_iter().map(|entry| entry.name).collect()
}

fn are_made_and_removed<E: Env>(env: &E, root: &Path) {
    let dir = root.join("dir");
    env.create_dir(&dir).expect("a new directory");
    assert!(env.exists(&dir).expect("an answer"));
    assert_eq!(env.list_dir(&dir).expect("a list"), []);
    env.create_dir(&dir.join("inner")).expect("a new directory");
    env.sync_dir(&dir).expect("to sync");
    env.remove_dir(&dir.join("inner")).expect("to remove");
    env.remove_dir(&dir).expect("to remove");
    assert!(!env.exists(&dir).expect("an answer"));
    env.create_dir(&dir).expect("the name is free");
}

fn refuse_what_they_cannot<E: Env>(env: &E, root: &Path) {
    let (dir, file, missing) = (root.join("dir"), root.join("dir/file"), root.join("missing"));
    env.create_dir(&dir).expect("a new directory");
    file_with(env, &file, b"kept");
    assert_errno(env.create_dir(&dir), Errno::EXIST);
    assert_errno(env.create_dir(&file), Errno::EXIST);
    assert_errno(env.create_dir(&missing.join("dir")), Errno::NOENT);
    assert_errno(env.create_dir(&file.join("dir")), Errno::NOTDIR);
    assert_errno(env.remove_dir(&dir), Errno::NOTEMPTY);
    assert_errno(env.remove_dir(&file), Errno::NOTDIR);
    assert_errno(env.remove_dir(&missing), Errno::NOENT);
    assert_errno(env.remove_file(&dir), Errno::ISDIR);
    assert_errno(env.remove_file(&missing), Errno::NOENT);
    assert_errno(env.list_dir(&missing), Errno::NOENT);
    assert_errno(env.list_dir(&file), Errno::NOTDIR);
    assert_errno(env.sync_dir(&missing), Errno::NOENT);
    assert_errno(env.sync_dir(&file), Errno::NOTDIR);
    assert_eq!(content_at(env, &file), b"kept");
}

fn list_what_they_hold<E: Env>(env: &E, root: &Path) {
    // "a", "a.b" and "a/" would sort otherwise by path, and "B" and "ä" otherwise by the rules of a language.
    for name in ["b", "ä", "a", "B", "a.b", "10", "9"] {
        file_with(env, &root.join(name), name.as_bytes());
    }
    env.create_dir(&root.join("c")).expect("a new directory");
    file_with(env, &root.join("c/inner"), b"not listed");
    let entry = |name: &str, is_dir, len| DirEntry { name: name.to_owned(), is_dir, len };
    let want = [
        entry("10", false, 2),
        entry("9", false, 1),
        entry("B", false, 1),
        entry("a", false, 1),
        entry("a.b", false, 3),
        entry("b", false, 1),
        entry("c", true, 0),
        entry("ä", false, 2),
    ];
    assert_eq!(env.list_dir(root).expect("a list"), want);
    env.remove_file(&root.join("b")).expect("to remove");
    assert_eq!(env.list_dir(root).expect("a list").len(), want.len() - 1);
}

fn renaming_replaces<E: Env>(env: &E, root: &Path) {
    let (from, to) = (root.join("from"), root.join("to"));
    file_with(env, &from, b"new");
    file_with(env, &to, b"old");
    env.rename(&from, &to).expect("to rename");
    assert_eq!(content_at(env, &to), b"new");
    assert_eq!(names(env, root), ["to"]);
    env.rename(&to, &to).expect("to rename to itself");
    assert_eq!(content_at(env, &to), b"new");
    env.create_dir(&root.join("dir")).expect("a new directory");
    env.rename(&to, &root.join("dir/moved")).expect("to rename");
    assert_eq!(content_at(env, &root.join("dir/moved")), b"new");
    assert_eq!(names(env, root), ["dir"]);
}

fn renaming_keeps_open_handles<E: Env>(env: &E, root: &Path) {
    let (from, to) = (root.join("from"), root.join("to"));
    let new = file_with(env, &from, b"new");
    let old = file_with(env, &to, b"old");
    env.rename(&from, &to).expect("to rename");
    new.write_all_at(b"er", 3).expect("to write");
    old.write_all_at(b"est", 3).expect("to write");
    assert_eq!(content::<E>(&old), b"oldest");
    assert_eq!(content_at(env, &to), b"newer");
}

fn renaming_moves_directories<E: Env>(env: &E, root: &Path) {
    let (from, to) = (root.join("from"), root.join("to"));
    env.create_dir(&from).expect("a new directory");
    let file = file_with(env, &from.join("file"), b"inner");
    env.rename(&from, &to).expect("to rename");
    assert_eq!(content_at(env, &to.join("file")), b"inner");
    assert!(!env.exists(&from).expect("an answer"));
    file.write_all_at(b"I", 0).expect("to write");
    assert_eq!(content_at(env, &to.join("file")), b"Inner");
    env.create_dir(&from).expect("a new directory");
    env.rename(&to, &from).expect("to replace an empty directory");
    assert_eq!(content_at(env, &from.join("file")), b"Inner");
}

fn renaming_refuses_what_it_cannot<E: Env>(env: &E, root: &Path) {
    let (dir, full, file) = (root.join("dir"), root.join("full"), root.join("file"));
    env.create_dir(&dir).expect("a new directory");
    env.create_dir(&full).expect("a new directory");
    file_with(env, &full.join("inner"), b"");
    file_with(env, &file, b"kept");
    assert_errno(env.rename(&root.join("missing"), &file), Errno::NOENT);
    assert_errno(env.rename(&file, &root.join("missing/file")), Errno::NOENT);
    assert_errno(env.rename(&file, &dir), Errno::ISDIR);
    assert_errno(env.rename(&dir, &file), Errno::NOTDIR);
    assert_errno(env.rename(&dir, &full), Errno::NOTEMPTY);
    assert_errno(env.rename(&dir, &dir.join("inner")), Errno::INVAL);
    assert_eq!(names(env, root), ["dir", "file", "full"]);
    assert_eq!(content_at(env, &file), b"kept");
}

fn removed_files_live_while_open<E: Env>(env: &E, root: &Path) {
    let path = root.join("file");
    let removed = file_with(env, &path, b"removed");
    env.remove_file(&path).expect("to remove");
    assert_eq!(names(env, root), [""; 0]);
    assert!(env.open(&path, OpenOptions::READ).is_err(), "opened what was removed");
    let new = env.open(&path, OpenOptions::CREATE_NEW).expect("the name is free");
    removed.write_all_at(b"R", 0).expect("to write");
    removed.set_len(3).expect("to cut");
    assert_eq!(content::<E>(&removed), b"Rem");
    assert_eq!(content::<E>(&new), b"");
}

fn a_path_through_a_file_is_no_answer<E: Env>(env: &E, root: &Path) {
    file_with(env, &root.join("file"), b"");
    assert!(!env.exists(&root.join("missing/file")).expect("an answer"));
    assert_errno(env.exists(&root.join("file/file")), Errno::NOTDIR);
}

fn usage_is_within_the_whole<E: Env>(env: &E, root: &Path) {
    let usage = env.disk_usage(root).expect("a usage");
    assert!(usage.total > 0 && usage.available <= usage.total, "{usage:?}");
    file_with(env, &root.join("file"), b"");
    assert_eq!(env.disk_usage(&root.join("file")).expect("a usage").total, usage.total);
    assert_errno(env.disk_usage(&root.join("missing")), Errno::NOENT);
}
