//! Making a segment, so that it appears whole or not at all.
//!
//! Model: the file is made under a name outside the log's directory, reserved, zero-filled and synced there, and then
//! renamed into its place. A crash or a full disk on the way leaves nothing in the log's directory; what is left under the
//! other name is removed before the next try. It is removed, never truncated: after a rename that was torn by a crash the
//! name may still lead to a segment in use.

use std::path::Path;

use crate::env::{Env, File, OpenOptions};
use crate::planted;
use crate::planted::Planted;

use super::error::{Context, IoFailure, Operation};
use super::layout::Layout;
use super::segment::Segment;

/// Makes the segment at `base`: zero-filled, its header written, synced, and its name durable.
pub(super) fn make_segment<E: Env, L: Layout>(
    env: &E,
    layout: &L,
    directory: &Path,
    preparing: &Path,
    base: u64,
    planted: Planted,
) -> Result<Segment<E>, IoFailure> {
    let path = directory.join(layout.file_name(base));
    let made = prepare(env, layout, preparing, base).and_then(|file| {
        env.rename(preparing, &path).context(Operation::Rename, preparing, None)?;
        if !planted!(planted, NoDirectorySync) {
            for dir in [Some(directory), preparing.parent()].into_iter().flatten() {
                env.sync_dir(dir).context(Operation::SyncDirectory, dir, None)?;
            }
        }
        Ok(Segment { base, limit: base + layout.segment_bytes(), path: path.clone(), file })
    });
    if made.is_err() {
        // The first failure is the one to report; a name that stays is an empty segment, which recovery removes.
        let _ = remove_if_there(env, preparing);
        let _ = remove_if_there(env, &path);
    }
    made
}

fn prepare<E: Env, L: Layout>(env: &E, layout: &L, preparing: &Path, base: u64) -> Result<E::File, IoFailure> {
    remove_if_there(env, preparing)?;
    let len = layout.segment_bytes();
    let file = env.open(preparing, OpenOptions::CREATE_NEW).context(Operation::Open, preparing, None)?;
    file.preallocate(len).context(Operation::Preallocate, preparing, None)?;
    file.zero_range(0, len).context(Operation::Zero, preparing, 0)?;
    let header = layout.header(base);
    if !header.is_empty() {
        file.write_all_at(&header, 0).context(Operation::Write, preparing, 0)?;
    }
    file.sync_data().context(Operation::Sync, preparing, None)?;
    Ok(file)
}

/// Removes a name if it exists.
pub(super) fn remove_if_there<E: Env>(env: &E, path: &Path) -> Result<(), IoFailure> {
    match env.remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed.context(Operation::Remove, path, None),
    }
}
