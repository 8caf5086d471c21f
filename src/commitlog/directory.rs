//! The store's directory: where its files are, its lock, and the marker of an unclean stop.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::env::{Env, File, OpenOptions};
use crate::log::{Context, IoFailure, Operation};

/// Paths of a store.
#[derive(Debug, Clone)]
pub(super) struct Directory {
    pub root: PathBuf,
    /// The segments.
    pub commitlog: PathBuf,
    /// RocketMQ's checkpoint.
    pub checkpoint: PathBuf,
    /// There while the store is open, and after a crash.
    pub abort: PathBuf,
    /// RocketMQ's consume queues.
    pub consume_queues: PathBuf,
    /// Held while the store is open.
    pub lock: PathBuf,
    /// The durable mark.
    pub durable: PathBuf,
    /// A segment in the making.
    pub preparing: PathBuf,
    /// What recovery has cut.
    pub salvage: PathBuf,
}

impl Directory {
    pub fn new(root: &Path) -> Self {
        let path = |name| root.join(name);
        Self {
            root: root.to_owned(),
            commitlog: path("commitlog"),
            checkpoint: path("checkpoint"),
            abort: path("abort"),
            consume_queues: path("consumequeue"),
            lock: path("lock"),
            durable: path("durable"),
            preparing: path("preparing"),
            salvage: path("salvage"),
        }
    }

    /// Makes what is missing of the root and the segments' directory. The root's name and the segments' are durable after
    /// this, whoever made them: a killed process may have left names that no sync covers. Other names in the root are with
    /// [`Directory::mark_open`].
    pub fn make<E: Env>(&self, env: &E) -> Result<(), IoFailure> {
        make_dir(env, &self.root)?;
        match self.root.parent() {
            Some(parent) if parent != Path::new("") => sync_dir(env, parent)?,
            Some(_) => sync_dir(env, Path::new("."))?,
            None => {}
        }
        make_dir(env, &self.commitlog)?;
        sync_dir(env, &self.commitlog)
    }

    /// Leaves the marker that only a clean stop removes, durably. That it is there is all that counts: a full disk may
    /// keep the process id out of it.
    pub fn mark_open<E: Env>(&self, env: &E) -> Result<(), IoFailure> {
        let path = &self.abort;
        let file = env.open(path, OpenOptions::CREATE).context(Operation::Open, path, None)?;
        let pid = env.process_id().to_string();
        match file.write_all_at(pid.as_bytes(), 0) {
            Err(error) if error.kind() == ErrorKind::StorageFull => {}
            written => written.context(Operation::Write, path, 0)?,
        }
        file.sync_data().context(Operation::Sync, path, None)?;
        sync_dir(env, &self.root)
    }

    /// Removes the marker, durably.
    pub fn mark_closed<E: Env>(&self, env: &E) -> Result<(), IoFailure> {
        env.remove_file(&self.abort).context(Operation::Remove, &self.abort, None)?;
        sync_dir(env, &self.root)
    }
}

/// Makes a directory if it is missing.
pub(super) fn make_dir<E: Env>(env: &E, path: &Path) -> Result<(), IoFailure> {
    if !exists(env, path)? {
        env.create_dir(path).context(Operation::MakeDirectory, path, None)?;
    }
    Ok(())
}

pub(super) fn exists<E: Env>(env: &E, path: &Path) -> Result<bool, IoFailure> {
    env.exists(path).context(Operation::Open, path, None)
}

pub(super) fn sync_dir<E: Env>(env: &E, path: &Path) -> Result<(), IoFailure> {
    env.sync_dir(path).context(Operation::SyncDirectory, path, None)
}
