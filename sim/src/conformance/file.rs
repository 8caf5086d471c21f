//! Files: opening, positioned I/O, lengths.

use std::io::{ErrorKind, IoSlice};
use std::path::Path;

use rustix::io::Errno;
use stormlog::env::{Env, File as _, OpenOptions};

use super::tools::{assert_errno, assert_refused, content, content_at, file_with};

super::list_cases!("file":
    opens_as_asked,
    refuses_to_open_what_it_cannot,
    refuses_to_write_through_a_reader,
    reads_end_at_the_end,
    writing_extends_and_leaves_holes_of_zeros,
    vectored_writing_is_one_write,
    cut_bytes_do_not_come_back,
    preallocating_extends_and_keeps,
    zeroing_overwrites_and_extends,
    handles_see_each_others_writes,
    threads_write_side_by_side,
    syncing_succeeds,
    writing_moves_the_time_of_change,
);

fn opens_as_asked<E: Env>(env: &E, root: &Path) {
    let path = root.join("file");
    assert!(!env.exists(&path).expect("an answer"));
    let file = env.open(&path, OpenOptions::CREATE_NEW).expect("a new file");
    assert!(env.exists(&path).expect("an answer"));
    assert_eq!(content::<E>(&file), b"");
    file.write_all_at(b"kept", 0).expect("to write");
    for options in [OpenOptions::READ, OpenOptions::READ_WRITE, OpenOptions::CREATE] {
        assert_eq!(content::<E>(&env.open(&path, options).expect("the file")), b"kept", "{options:?}");
    }
    assert_eq!(content::<E>(&env.open(&path, OpenOptions::CREATE_EMPTY).expect("the file")), b"");
    assert_eq!(content::<E>(&file), b"", "emptied for all");
    env.open(&root.join("other"), OpenOptions::CREATE).expect("a new file");
    env.open(&root.join("third"), OpenOptions::CREATE_EMPTY).expect("a new file");
}

fn refuses_to_open_what_it_cannot<E: Env>(env: &E, root: &Path) {
    let path = root.join("file");
    file_with(env, &path, b"kept");
    assert_refused(env.open(&path, OpenOptions::CREATE_NEW), Errno::EXIST);
    for options in [OpenOptions::READ, OpenOptions::READ_WRITE] {
        assert_refused(env.open(&root.join("missing"), options), Errno::NOENT);
    }
    for options in [OpenOptions::READ, OpenOptions::CREATE, OpenOptions::CREATE_NEW] {
        assert_refused(env.open(&root.join("missing/file"), options), Errno::NOENT);
        assert_refused(env.open(&path.join("file"), options), Errno::NOTDIR);
    }
    for options in [OpenOptions::READ_WRITE, OpenOptions::CREATE, OpenOptions::CREATE_EMPTY] {
        assert_refused(env.open(root, options), Errno::ISDIR);
    }
    assert_refused(env.open(root, OpenOptions::CREATE_NEW), Errno::EXIST);
    assert_eq!(content_at(env, &path), b"kept");
}

fn refuses_to_write_through_a_reader<E: Env>(env: &E, root: &Path) {
    let path = root.join("file");
    file_with(env, &path, b"kept");
    let reader = env.open(&path, OpenOptions::READ).expect("the file");
    assert_errno(reader.write_at(b"x", 0), Errno::BADF);
    assert_errno(reader.write_vectored_at(&[IoSlice::new(b"x")], 0), Errno::BADF);
    assert_errno(reader.zero_range(0, 1), Errno::BADF);
    assert_errno(reader.preallocate(9), Errno::BADF);
    assert_errno(reader.set_len(1), Errno::INVAL);
    assert_eq!(content::<E>(&reader), b"kept");
}

fn reads_end_at_the_end<E: Env>(env: &E, root: &Path) {
    let file = file_with(env, &root.join("file"), b"0123456789");
    let mut bytes = [0xAA; 8];
    assert_eq!(file.read_at(&mut bytes, 6).expect("to read"), 4);
    assert_eq!(bytes, *b"6789\xAA\xAA\xAA\xAA");
    for offset in [10, 11, 1 << 40] {
        assert_eq!(file.read_at(&mut bytes, offset).expect("to read"), 0, "at {offset}");
    }
    assert_eq!(file.read_at(&mut [], 3).expect("to read nothing"), 0);
    let past = file.read_exact_at(&mut bytes, 6).expect_err("the end");
    assert_eq!(past.kind(), ErrorKind::UnexpectedEof);
    file.read_exact_at(&mut bytes, 2).expect("to read");
    assert_eq!(bytes, *b"23456789");
}

fn writing_extends_and_leaves_holes_of_zeros<E: Env>(env: &E, root: &Path) {
    let file = file_with(env, &root.join("file"), b"start");
    assert_eq!(file.write_at(b"", 9000).expect("to write nothing"), 0);
    assert_eq!(file.len().expect("a length"), 5, "nothing was written");
    file.write_all_at(b"end", 9000).expect("to write");
    let mut want = vec![0; 9003];
    want[..5].copy_from_slice(b"start");
    want[9000..].copy_from_slice(b"end");
    assert_eq!(content::<E>(&file), want);
    file.write_all_at(b"MID", 4).expect("to write");
    want[4..7].copy_from_slice(b"MID");
    assert_eq!(content::<E>(&file), want);
}

fn vectored_writing_is_one_write<E: Env>(env: &E, root: &Path) {
    let file = env.open(&root.join("file"), OpenOptions::CREATE).expect("a file");
    let parts: [&[u8]; 4] = [b"one", b"", b"two", b"three"];
    let want = parts.concat();
    let slices = parts.map(IoSlice::new);
    let written = file.write_vectored_at(&slices, 100).expect("to write");
    assert!((1..=want.len()).contains(&written), "{written} of {} bytes", want.len());
    assert_eq!(content::<E>(&file)[100..], want[..written]);
    assert_eq!(file.write_vectored_at(&[], 0).expect("to write nothing"), 0);
    // More slices than the kernel takes in one call: some are written.
    let many = [IoSlice::new(b"x"); 3000];
    assert!(file.write_vectored_at(&many, 0).expect("to write") >= 1);
}

fn cut_bytes_do_not_come_back<E: Env>(env: &E, root: &Path) {
    let file = file_with(env, &root.join("file"), &[7; 10_000]);
    file.set_len(5000).expect("to shrink");
    assert_eq!(content::<E>(&file), [7; 5000]);
    file.set_len(8000).expect("to grow");
    let mut want = vec![0; 8000];
    want[..5000].fill(7);
    assert_eq!(content::<E>(&file), want);
    file.set_len(10).expect("to shrink");
    file.write_all_at(b"x", 20).expect("to write");
    assert_eq!(content::<E>(&file), [&[7; 10][..], &[0; 10], b"x"].concat());
    file.set_len(0).expect("to empty");
    assert_eq!(content::<E>(&file), b"");
}

fn preallocating_extends_and_keeps<E: Env>(env: &E, root: &Path) {
    let file = file_with(env, &root.join("file"), b"kept");
    file.preallocate(10_000).expect("space");
    let mut want = vec![0; 10_000];
    want[..4].copy_from_slice(b"kept");
    assert_eq!(content::<E>(&file), want);
    file.preallocate(5000).expect("space that is there");
    assert_errno(file.preallocate(0), Errno::INVAL);
    assert_eq!(content::<E>(&file), want);
}

fn zeroing_overwrites_and_extends<E: Env>(env: &E, root: &Path) {
    const LEN: usize = 3 << 20;
    let file = file_with(env, &root.join("file"), &[7; LEN]);
    file.zero_range(10, 5).expect("to zero");
    file.zero_range(5001, (2 << 20) + 12_345).expect("to zero");
    file.zero_range(100, 0).expect("to zero nothing");
    let mut want = vec![7; LEN];
    want[10..15].fill(0);
    want[5001..][..(2 << 20) + 12_345].fill(0);
    assert!(content::<E>(&file) == want, "other bytes than those asked for");
    file.zero_range(LEN as u64 - 1, 101).expect("to zero");
    file.zero_range(1 << 30, 0).expect("to zero nothing");
    want[LEN - 1] = 0;
    want.resize(LEN + 100, 0);
    assert!(content::<E>(&file) == want, "other bytes than those asked for");
    assert!(file.zero_range(u64::MAX, 2).is_err(), "zeros beyond any file");
}

fn handles_see_each_others_writes<E: Env>(env: &E, root: &Path) {
    let path = root.join("file");
    let first = env.open(&path, OpenOptions::CREATE_NEW).expect("a new file");
    let second = env.open(&path, OpenOptions::READ_WRITE).expect("the file");
    first.write_all_at(b"first", 0).expect("to write");
    assert_eq!(content::<E>(&second), b"first");
    second.write_all_at(b"second", 3).expect("to write");
    assert_eq!(content::<E>(&first), b"firsecond");
    second.set_len(4).expect("to cut");
    assert_eq!(content::<E>(&first), b"firs");
    drop(first);
    assert_eq!(content::<E>(&second), b"firs");
}

fn threads_write_side_by_side<E: Env>(env: &E, root: &Path) {
    let file = std::sync::Arc::new(file_with(env, &root.join("file"), b""));
    let inner = file.clone();
    super::tools::on_threads(env, 4, move |n| {
        for at in 0..50 {
            inner.write_all_at(&[n as u8 + 1; 100], (at * 4 + n as u64) * 100).expect("to write");
        }
    });
    let want: Vec<u8> = (0..200 * 100).map(|at| (at / 100 % 4) as u8 + 1).collect();
    assert_eq!(content::<E>(&file), want);
}

fn syncing_succeeds<E: Env>(env: &E, root: &Path) {
    let path = root.join("file");
    let file = env.open(&path, OpenOptions::CREATE_NEW).expect("a new file");
    env.sync_dir(root).expect("to sync the directory");
    file.write_all_at(b"bytes", 0).expect("to write");
    file.sync_data().expect("to sync");
    file.sync_data().expect("to sync nothing new");
    file.sync_all().expect("to sync");
    let reader = env.open(&path, OpenOptions::READ).expect("the file");
    reader.sync_all().expect("to sync through a reader");
    env.remove_file(&path).expect("to remove");
    file.sync_all().expect("to sync a file without a name");
    assert_eq!(content::<E>(&file), b"bytes");
}

fn writing_moves_the_time_of_change<E: Env>(env: &E, root: &Path) {
    let path = root.join("file");
    let file = file_with(env, &path, b"first");
    let first_ms = file.modified_ms().expect("a time");
    // Longer than a tick of the kernel's coarse clock.
    env.sleep_ns(50_000_000);
    assert_eq!(content::<E>(&file), b"first");
    assert_eq!(file.modified_ms().expect("a time"), first_ms, "reading is no change");
    file.write_all_at(b"second", 0).expect("to write");
    let second_ms = file.modified_ms().expect("a time");
    assert!(second_ms > first_ms, "{second_ms} is not after {first_ms}");
    let other = env.open(&path, OpenOptions::READ).expect("the file");
    assert_eq!(other.modified_ms().expect("a time"), second_ms);
}
