//! Loading the segments of a directory.
//!
//! Model: upstream's rules (`MappedFileQueue.doLoad`): every file has the configured length, but the last in order of names
//! may be empty and is deleted then. A name that stands for no segment stops upstream; the safe policy leaves it alone and
//! says so.

use std::path::PathBuf;

use crate::env::Env;
use crate::log::{Context, Layout, Operation, Segment};

use super::super::directory::{Directory, sync_dir};
use super::super::error::OpenError;
use super::super::layout::CommitLogLayout;
use super::super::options::RecoveryPolicy;

/// What is in the segments' directory.
pub(super) struct Loaded<E: Env> {
    /// By base.
    pub segments: Vec<Segment<E>>,
    pub ignored: Vec<PathBuf>,
}

pub(super) fn load<E: Env>(
    env: &E,
    layout: &CommitLogLayout,
    directory: &Directory,
    policy: RecoveryPolicy,
) -> Result<Loaded<E>, OpenError> {
    let folder = &directory.commitlog;
    let mut files = env.list_dir(folder).context(Operation::List, folder, None)?;
    files.retain(|file| !file.is_dir);
    // Upstream deletes it whatever its name is.
    let is_deleted = |name: &str| policy == RecoveryPolicy::Compatible || layout.base_of(name).is_some();
    if let Some(last) = files.pop_if(|last| last.len == 0 && is_deleted(&last.name)) {
        let path = folder.join(&last.name);
        env.remove_file(&path).context(Operation::Remove, &path, None)?;
        sync_dir(env, folder)?;
    }
    let (mut segments, mut ignored) = (Vec::new(), Vec::new());
    for file in files {
        let path = folder.join(&file.name);
        match layout.base_of(&file.name) {
            None if policy == RecoveryPolicy::Safe => ignored.push(path),
            None => return Err(OpenError::SegmentName { path }),
            Some(_) if file.len != layout.segment_bytes() => {
                return Err(OpenError::SegmentLen { path, len: file.len, expected: layout.segment_bytes() });
            }
            Some(base) => segments.push(Segment::open(env, layout, folder, base)?),
        }
    }
    debug_assert!(segments.is_sorted_by_key(|segment| segment.base), "20 digits sort as numbers do");
    Ok(Loaded { segments, ignored })
}
