//! What recovery writes before the log takes appends: every step may be cut short by a crash and done again.
//!
//! Order: what is cut and holds records is copied aside, durably; what may be with the kernel only is written again and
//! synced, for after a failed sync the kernel may take it for clean; what is behind the end becomes zeros; segments behind
//! the end go away. The mark comes last: it says that all of this is done.

use std::path::{Path, PathBuf};

use crate::env::{Env, File, OpenOptions};
use crate::log::{Context, IoFailure, Operation, Segment};

use super::super::directory::{Directory, exists, make_dir, sync_dir};
use super::report::{Cut, Removed};
use super::walk::{content_end, read_what_can_be_read};

const BLOCK_BYTES: usize = 256 << 10;

/// Copies what is cut, from the cut to the last byte that is not zero, into a file of its own. Returns its path.
pub(super) fn keep_cut<E: Env>(
    env: &E,
    directory: &Directory,
    segment: &Segment<E>,
    cut: &Cut,
) -> Result<PathBuf, IoFailure> {
    let path = free_salvage_path(env, directory, &format!("{:020}", cut.position))?;
    let file = env.open(&path, OpenOptions::CREATE_NEW).context(Operation::Open, &path, None)?;
    let mut block = vec![0; BLOCK_BYTES];
    let mut at = cut.position;
    while at < cut.content_end {
        let len = BLOCK_BYTES.min((cut.content_end - at) as usize);
        read_what_can_be_read(segment, at, &mut block[..len]);
        let offset = at - cut.position;
        file.write_all_at(&block[..len], offset).context(Operation::Write, &path, offset)?;
        at += len as u64;
    }
    file.sync_data().context(Operation::Sync, &path, None)?;
    sync_dir(env, &directory.salvage)?;
    Ok(path)
}

/// Writes `[from, to)` of a segment again, as the kernel has it. Sectors that cannot be read are left as they are.
pub(super) fn rewrite<E: Env>(segment: &Segment<E>, from: u64, to: u64) -> Result<(), IoFailure> {
    let mut block = vec![0; BLOCK_BYTES];
    let mut at = from;
    while at < to {
        let len = BLOCK_BYTES.min((to - at) as usize);
        segment.read(at, &mut block[..len])?;
        segment.write(at, &block[..len])?;
        at += len as u64;
    }
    Ok(())
}

/// Removes a segment behind the log's end; one that holds anything is kept aside.
pub(super) fn remove<E: Env>(env: &E, directory: &Directory, segment: &Segment<E>) -> Result<Removed, IoFailure> {
    let path = segment.path.clone();
    if content_end(segment, segment.base, segment.limit).is_none() {
        env.remove_file(&path).context(Operation::Remove, &path, None)?;
        return Ok(Removed { path, kept_as: None });
    }
    let name = path.file_name().expect("a segment has a name").to_string_lossy();
    let kept = free_salvage_path(env, directory, &name)?;
    env.rename(&path, &kept).context(Operation::Rename, &path, None)?;
    sync_dir(env, &directory.salvage)?;
    Ok(Removed { path, kept_as: Some(kept) })
}

/// A path that is not taken, in the directory of what was cut. A file there may be the copy that an interrupted recovery
/// made, so none is ever written again.
fn free_salvage_path<E: Env>(env: &E, directory: &Directory, name: &str) -> Result<PathBuf, IoFailure> {
    let folder: &Path = &directory.salvage;
    make_dir(env, folder)?;
    sync_dir(env, &directory.root)?;
    let mut n = 0;
    loop {
        let path = folder.join(format!("{name}.{n}"));
        if !exists(env, &path)? {
            return Ok(path);
        }
        n += 1;
    }
}
