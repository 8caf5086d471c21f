//! Regions.

use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;
use stormlog::env::{Env, File as _, JoinHandle as _, OpenOptions, Region as _};

use super::tools::{assert_refused, content, content_at, on_threads};

super::list_cases!("region":
    reads_see_what_was_copied_in,
    holds_no_more_than_it_has,
    outlives_the_handle_of_its_file,
    takes_copies_of_several_threads,
    must_lie_in_the_file,
);

const PAGE: u64 = 4096;

fn zeroed<E: Env>(env: &E, path: &Path, len: u64) -> E::File {
    let file = env.open(path, OpenOptions::CREATE_NEW).expect("a new file");
    file.zero_range(0, len).expect("to zero");
    file
}

fn reads_see_what_was_copied_in<E: Env>(env: &E, root: &Path) {
    let path = root.join("file");
    let file = zeroed(env, &path, 3 * PAGE);
    let region = env.map_region(&file, PAGE, PAGE).expect("a region");
    assert_eq!((region.len(), region.is_empty()), (PAGE, false));
    region.copy_in(0, b"first");
    region.copy_in(PAGE - 4, b"last");
    region.copy_in(7, b"");
    region.copy_in(PAGE, b"");
    let mut want = vec![0; 3 * PAGE as usize];
    want[PAGE as usize..][..5].copy_from_slice(b"first");
    want[2 * PAGE as usize - 4..][..4].copy_from_slice(b"last");
    assert_eq!(content::<E>(&file), want);
    assert_eq!(content_at(env, &path), want);

    file.write_all_at(b"FI", PAGE).expect("to write under a region");
    region.copy_in(4, b"T");
    want[PAGE as usize..][..5].copy_from_slice(b"FIrsT");
    file.sync_data().expect("to sync");
    drop(region);
    assert_eq!(content::<E>(&file), want);
}

fn holds_no_more_than_it_has<E: Env>(env: &E, root: &Path) {
    let file = zeroed(env, &root.join("file"), 2 * PAGE);
    let region = env.map_region(&file, 0, PAGE).expect("a region");
    let region = Arc::new(region);
    for (offset, len) in [(PAGE, 1), (PAGE - 1, 2), (u64::MAX, 1), (0, PAGE as usize + 1)] {
        let inner = region.clone();
        let thread = env.spawn("panics on purpose", move || inner.copy_in(offset, &vec![7; len])).expect("a thread");
        thread.join().expect_err("a copy beyond the region");
    }
    assert!(content::<E>(&file).iter().all(|byte| *byte == 0), "a part was copied in");
}

fn outlives_the_handle_of_its_file<E: Env>(env: &E, root: &Path) {
    let path = root.join("file");
    let file = zeroed(env, &path, PAGE);
    let region = env.map_region(&file, 0, PAGE).expect("a region");
    drop(file);
    region.copy_in(0, b"late");
    assert_eq!(content_at(env, &path)[..4], *b"late");
}

fn takes_copies_of_several_threads<E: Env>(env: &E, root: &Path) {
    let file = zeroed(env, &root.join("file"), PAGE);
    let region = Arc::new(env.map_region(&file, 0, PAGE).expect("a region"));
    on_threads(env, 8, move |n| {
        for at in 0..16 {
            region.copy_in((at * 8 + n as u64) * 32, &[n as u8 + 1; 32]);
        }
    });
    let want: Vec<u8> = (0..PAGE).map(|at| (at / 32 % 8) as u8 + 1).collect();
    assert_eq!(content::<E>(&file), want);
}

fn must_lie_in_the_file<E: Env>(env: &E, root: &Path) {
    let file = zeroed(env, &root.join("file"), 2 * PAGE);
    for (offset, len) in [(0, 2 * PAGE + 1), (2 * PAGE, 1), (PAGE, 0), (1, PAGE)] {
        assert_refused(env.map_region(&file, offset, len), Errno::INVAL);
    }
    assert!(env.map_region(&file, PAGE, u64::MAX).is_err(), "a region beyond any file");
}
