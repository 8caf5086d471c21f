//! Lock files, held as the JVM's `FileChannel.lock` holds them.
//!
//! Model: exclusive, of a whole file, by inode. Unlike POSIX `fcntl`, a second lock in the same process is refused too, as
//! the JVM and the real env do with a table of their own.

use std::collections::BTreeMap;

use super::errno::Errno;
use super::handle::Owner;
use super::inode::InodeId;
use super::{Disk, Node, op};
use crate::context::Context;

/// A held lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId(u64);

#[derive(Default)]
pub(super) struct Locks {
    held: BTreeMap<LockId, (Owner, InodeId)>,
    next: u64,
}

impl Locks {
    pub fn take_of(&mut self, owner: Owner) -> Vec<InodeId> {
        let gone = self.held.extract_if(.., |_, (holder, _)| *holder == owner);
        gone.map(|(_, (_, id))| id).collect()
    }

    pub fn renew(&self) -> Self {
        Self { held: BTreeMap::new(), next: self.next }
    }
}

impl Disk {
    /// Takes the exclusive lock of a file, made if missing. `None` if it is held.
    pub fn lock_file(&mut self, ctx: &mut Context, owner: Owner, path: &str) -> Result<Option<LockId>, Errno> {
        let outcome = self.try_lock_file(ctx, owner, path);
        let result = outcome.map(|lock| lock.map_or(0, |LockId(number)| number + 1));
        self.note_path(ctx, op::LOCK, [path, ""], result);
        outcome
    }

    fn try_lock_file(&mut self, ctx: &mut Context, owner: Owner, path: &str) -> Result<Option<LockId>, Errno> {
        let id = self.find_or_create(ctx, path, true, false)?;
        if matches!(self.inode(id).node, Node::Dir(_)) {
            return Err(Errno::EISDIR);
        }
        if self.locks.held.values().any(|(_, held)| *held == id) {
            return Ok(None);
        }
        let lock = LockId(self.locks.next);
        self.locks.next += 1;
        self.locks.held.insert(lock, (owner, id));
        self.retain(id, true);
        Ok(Some(lock))
    }

    /// Gives a lock back. One that is gone already (its process died) is no error.
    pub fn unlock(&mut self, ctx: &mut Context, lock: LockId) {
        if let Some((owner, id)) = self.locks.held.remove(&lock) {
            let actor = self.inode(id).actor;
            self.release(id, true);
            self.note(ctx, actor, op::UNLOCK, [lock.0, owner.0], Ok(0));
        }
    }
}
