//! Names: directories, paths, and changes of names that no sync covers yet.
//!
//! Model: a name points to an inode. Every directory has what a process sees and what is durable. A change of names is a
//! *unit*, one or two names set or removed together; a sync of a directory makes the units that touch it durable, with
//! those that they build on. The file system's profile says which sets of units a power loss may keep
//! ([`super::profile::NameOrder`], [`super::profile::RenameOrder`]). An inode lives as long as a name (visible, durable or in between), a handle, a region
//! or a lock refers to it, so that an unlinked file stays usable and may come back.
//!
//! Not modelled: hard and symbolic links, permissions, owners, special files, other mounts.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use stormlog::env::DirEntry;

use super::errno::Errno;
use super::fault::FaultPoint;
use super::inode::{Inode, InodeId, Node, ROOT};
use super::profile::{NameOrder, RenameOrder};
use super::{Disk, op};
use crate::context::Context;

const NAME_LEN_MAX: usize = 255;
const PATH_LEN_MAX: usize = 4095;

/// A directory: names to inodes.
#[derive(Clone, Default)]
pub(super) struct DirState {
    pub visible: BTreeMap<Rc<str>, InodeId>,
    pub durable: BTreeMap<Rc<str>, InodeId>,
    pub parent: InodeId,
}

/// A name in a directory.
pub(super) type NameKey = (InodeId, Rc<str>);

/// Names that change together.
#[derive(Debug, Clone)]
pub(super) struct NameUnit {
    pub seq: u64,
    pub sets: Vec<(NameKey, Option<InodeId>)>,
    /// It moved a directory: such units become durable in order, else a directory could end up inside itself.
    pub moves_dir: bool,
    /// The empty directory that it removed: what emptied that one becomes durable first.
    pub removes_dir: Option<InodeId>,
    /// It replaced a file, and the file system writes the replacement's bytes first.
    pub flushes: Option<InodeId>,
}

impl NameUnit {
    fn new(sets: Vec<(NameKey, Option<InodeId>)>) -> Self {
        Self { seq: 0, sets, moves_dir: false, removes_dir: None, flushes: None }
    }
}

/// Where a path leads.
struct Place {
    dir: InodeId,
    name: Rc<str>,
    /// Where the last name leads; `EBUSY` if it is none (`.`, `..`, the root). Looked at last, as both directories of a
    /// rename come first.
    found: Result<Option<InodeId>, Errno>,
}

impl Disk {
    /// Walks to a path's inode.
    pub(super) fn find(&self, path: &str) -> Result<InodeId, Errno> {
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        if path.len() > PATH_LEN_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        path.split('/').try_fold(ROOT, |at, name| self.step(at, name)?.ok_or(Errno::ENOENT))
    }

    fn step(&self, at: InodeId, name: &str) -> Result<Option<InodeId>, Errno> {
        let dir = self.dir(at)?;
        match name {
            "" | "." => Ok(Some(at)),
            ".." => Ok(Some(dir.parent)),
            _ if name.len() > NAME_LEN_MAX => Err(Errno::ENAMETOOLONG),
            _ => Ok(dir.visible.get(name).copied()),
        }
    }

    /// Walks to the directory of a path's last name.
    fn place(&self, path: &str) -> Result<Place, Errno> {
        let trimmed = path.trim_end_matches('/');
        let (parent, name) = match trimmed.rsplit_once('/') {
            Some(("", name)) => ("/", name),
            Some((parent, name)) => (parent, name),
            None if path.is_empty() => return Err(Errno::ENOENT),
            None => ("/", trimmed),
        };
        let dir = self.find(parent)?;
        self.dir(dir)?;
        let found = if matches!(name, "" | "." | "..") { Err(Errno::EBUSY) } else { self.step(dir, name) };
        Ok(Place { dir, name: name.into(), found })
    }

    pub(super) fn dir(&self, id: InodeId) -> Result<&DirState, Errno> {
        match &self.inode(id).node {
            Node::Dir(dir) => Ok(dir),
            Node::File(_) => Err(Errno::ENOTDIR),
        }
    }

    fn dir_mut(&mut self, id: InodeId) -> &mut DirState {
        match &mut self.inode_mut(id).node {
            Node::Dir(dir) => dir,
            Node::File(_) => unreachable!("names are set in directories"),
        }
    }

    /// Finds a file to open, or makes it.
    pub(super) fn find_or_create(
        &mut self,
        ctx: &mut Context,
        path: &str,
        create: bool,
        create_new: bool,
    ) -> Result<InodeId, Errno> {
        let place = self.place(path)?;
        let found = match place.found {
            Err(Errno::EBUSY) if create_new => return Err(Errno::EEXIST),
            Err(Errno::EBUSY) if create => return Err(Errno::EISDIR),
            Err(Errno::EBUSY) => return self.find(path),
            found => found?,
        };
        match found {
            Some(_) if create_new => Err(Errno::EEXIST),
            Some(id) => Ok(id),
            None if create || create_new => {
                self.fail_by_fault(ctx, FaultPoint::Create, path)?;
                let id = self.make_inode(Node::File(Box::default()));
                let modified_ms = self.civil_ms(ctx);
                self.file_mut(id).visible.modified_ms = modified_ms;
                self.set_names(NameUnit::new(vec![((place.dir, place.name), Some(id))]));
                Ok(id)
            }
            None => Err(Errno::ENOENT),
        }
    }

    /// Makes a directory.
    pub fn create_dir(&mut self, ctx: &mut Context, path: &str) -> Result<(), Errno> {
        let outcome = self.try_create_dir(ctx, path);
        self.note_names(ctx, op::CREATE_DIR, [path, ""], outcome)
    }

    fn try_create_dir(&mut self, ctx: &mut Context, path: &str) -> Result<(), Errno> {
        let place = self.place(path)?;
        match place.found {
            Ok(Some(_)) | Err(Errno::EBUSY) => return Err(Errno::EEXIST),
            found => found?,
        };
        self.fail_by_fault(ctx, FaultPoint::CreateDir, path)?;
        let id = self.make_inode(Node::Dir(DirState { parent: place.dir, ..DirState::default() }));
        self.set_names(NameUnit::new(vec![((place.dir, place.name), Some(id))]));
        Ok(())
    }

    /// Removes an empty directory.
    pub fn remove_dir(&mut self, ctx: &mut Context, path: &str) -> Result<(), Errno> {
        let outcome = self.try_remove_dir(ctx, path);
        self.note_names(ctx, op::REMOVE_DIR, [path, ""], outcome)
    }

    fn try_remove_dir(&mut self, ctx: &mut Context, path: &str) -> Result<(), Errno> {
        let place = self.place(path)?;
        let found = match (place.found, path.rsplit('/').next()) {
            (Err(Errno::EBUSY), Some(".")) => return Err(Errno::EINVAL),
            (Err(Errno::EBUSY), Some("..")) => return Err(Errno::ENOTEMPTY),
            (found, _) => found?.ok_or(Errno::ENOENT)?,
        };
        if !self.dir(found)?.visible.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.fail_by_fault(ctx, FaultPoint::RemoveDir, path)?;
        self.set_names(NameUnit { removes_dir: Some(found), ..NameUnit::new(vec![((place.dir, place.name), None)]) });
        Ok(())
    }

    /// Removes a file's name. Handles stay usable.
    pub fn remove_file(&mut self, ctx: &mut Context, path: &str) -> Result<(), Errno> {
        let outcome = self.try_remove_file(ctx, path);
        self.note_names(ctx, op::REMOVE_FILE, [path, ""], outcome)
    }

    fn try_remove_file(&mut self, ctx: &mut Context, path: &str) -> Result<(), Errno> {
        let place = self.place(path)?;
        let found = match place.found {
            Err(Errno::EBUSY) => return Err(Errno::EISDIR),
            found => found?.ok_or(Errno::ENOENT)?,
        };
        if self.dir(found).is_ok() {
            return Err(Errno::EISDIR);
        }
        self.fail_by_fault(ctx, FaultPoint::RemoveFile, path)?;
        self.set_names(NameUnit::new(vec![((place.dir, place.name), None)]));
        Ok(())
    }

    /// Renames a file or directory; replaces a file by a file, and an empty directory by a directory.
    pub fn rename(&mut self, ctx: &mut Context, from: &str, to: &str) -> Result<(), Errno> {
        let outcome = self.try_rename(ctx, from, to);
        self.note_names(ctx, op::RENAME, [from, to], outcome)
    }

    fn try_rename(&mut self, ctx: &mut Context, from: &str, to: &str) -> Result<(), Errno> {
        let (source, target) = (self.place(from)?, self.place(to)?);
        if source.found == Err(Errno::EBUSY) || target.found == Err(Errno::EBUSY) {
            return Err(Errno::EBUSY);
        }
        let moved = source.found?.ok_or(Errno::ENOENT)?;
        let replaced = target.found?;
        if self.is_within(target.dir, moved) {
            return Err(Errno::EINVAL);
        }
        if replaced.is_some_and(|replaced| self.is_within(source.dir, replaced)) {
            return Err(Errno::ENOTEMPTY);
        }
        if replaced == Some(moved) {
            return Ok(());
        }
        let moves_dir = self.dir(moved).is_ok();
        if let Some(replaced) = replaced {
            match (moves_dir, self.dir(replaced)) {
                (true, Err(_)) => return Err(Errno::ENOTDIR),
                (false, Ok(_)) => return Err(Errno::EISDIR),
                (true, Ok(dir)) if !dir.visible.is_empty() => return Err(Errno::ENOTEMPTY),
                _ => {}
            }
        }
        self.fail_by_fault(ctx, FaultPoint::Rename, from)?;
        let (from, to) = ((source.dir, source.name), (target.dir, target.name));
        let removes_dir = replaced.filter(|_| moves_dir);
        let unit = |sets| NameUnit { moves_dir, ..NameUnit::new(sets) };
        match self.profile.file_system.rename {
            // A directory with two names is on no disk, so its rename is never split.
            RenameOrder::Split if !moves_dir => {
                if replaced.is_some() {
                    self.set_names(unit(vec![(to.clone(), None)]));
                }
                self.set_names(unit(vec![(to, Some(moved))]));
                self.set_names(unit(vec![(from, None)]));
            }
            order => {
                let replaces_file = replaced.is_some() && !moves_dir;
                let flushes = (order == RenameOrder::Ordered && replaces_file).then_some(moved);
                // The new name first, so that the inode is never without one.
                let sets = vec![(to, Some(moved)), (from, None)];
                self.set_names(NameUnit { removes_dir, flushes, ..unit(sets) });
            }
        }
        if moves_dir {
            self.dir_mut(moved).parent = target.dir;
        }
        Ok(())
    }

    /// Whether `inner` is `outer` or below it.
    fn is_within(&self, inner: InodeId, outer: InodeId) -> bool {
        let mut at = inner;
        loop {
            if at == outer {
                return true;
            }
            if at == ROOT {
                return false;
            }
            at = self.dir(at).expect("parents are directories").parent;
        }
    }

    /// Lists a directory, sorted by name.
    pub fn list_dir(&mut self, ctx: &mut Context, path: &str) -> Result<Vec<DirEntry>, Errno> {
        let outcome = self.try_list_dir(ctx, path);
        let count = outcome.as_ref().map(|entries| entries.len() as u64).map_err(|errno| *errno);
        self.note_path(ctx, op::LIST_DIR, [path, ""], count);
        outcome
    }

    fn try_list_dir(&mut self, ctx: &mut Context, path: &str) -> Result<Vec<DirEntry>, Errno> {
        let id = self.find(path)?;
        self.dir(id)?;
        self.fail_by_fault(ctx, FaultPoint::List, path)?;
        let entries = self.dir(id)?.visible.iter().map(|(name, id)| match &self.inode(*id).node {
            Node::File(file) => DirEntry { name: name.to_string(), is_dir: false, len: file.visible.len },
            Node::Dir(_) => DirEntry { name: name.to_string(), is_dir: true, len: 0 },
        });
        Ok(entries.collect())
    }

    /// Whether a name exists.
    pub fn exists(&mut self, ctx: &mut Context, path: &str) -> Result<bool, Errno> {
        let outcome = match self.find(path) {
            Ok(_) => Ok(true),
            Err(Errno::ENOENT) => Ok(false),
            Err(errno) => Err(errno),
        };
        self.note_path(ctx, op::EXISTS, [path, ""], outcome.map(u64::from));
        outcome
    }

    /// Changes names together.
    fn set_names(&mut self, unit: NameUnit) {
        self.seq += 1;
        for ((dir, name), to) in &unit.sets {
            // The unit holds what it names, or that could vanish before it is durable.
            self.retain(*dir, false);
            if let Some(id) = to {
                self.retain(*id, true);
                self.retain(*id, false);
            }
            let names = &mut self.dir_mut(*dir).visible;
            let before = match to {
                Some(id) => names.insert(name.clone(), *id),
                None => names.remove(name),
            };
            if let Some(before) = before {
                self.release(before, true);
            }
        }
        self.pending.push(NameUnit { seq: self.seq, ..unit });
    }

    /// Makes durable the units that `wanted` names among those up to `upto`, with those that they build on.
    pub(super) fn make_names_durable(&mut self, upto: u64, wanted: impl Fn(&NameUnit) -> bool) {
        let covered = self.pending.partition_point(|unit| unit.seq <= upto);
        let mut chosen = vec![false; covered];
        match self.profile.file_system.names {
            NameOrder::Journal => {
                let count = self.pending[..covered].iter().rposition(&wanted).map_or(0, |last| last + 1);
                chosen[..count].fill(true);
            }
            NameOrder::Any => {
                let (mut needed, mut emptied) = (BTreeSet::new(), BTreeSet::new());
                let mut moves_needed = false;
                for (unit, chosen) in self.pending[..covered].iter().zip(&mut chosen).rev() {
                    let mut keys = unit.sets.iter().map(|(key, _)| key);
                    let built_on = keys.any(|key| needed.contains(key) || emptied.contains(&key.0));
                    if wanted(unit) || built_on || (moves_needed && unit.moves_dir) {
                        *chosen = true;
                        moves_needed |= unit.moves_dir;
                        emptied.extend(unit.removes_dir);
                        needed.extend(unit.sets.iter().map(|(key, _)| key.clone()));
                    }
                }
            }
        }
        let mut index = 0;
        let (settled, pending) = std::mem::take(&mut self.pending).into_iter().partition(|_| {
            index += 1;
            chosen.get(index - 1).copied().unwrap_or(false)
        });
        self.pending = pending;
        self.settle_names(settled);
    }

    fn settle_names(&mut self, settled: Vec<NameUnit>) {
        for unit in settled {
            if let Some(id) = unit.flushes {
                self.flush_for_rename(id, unit.seq);
            }
            for ((dir, name), to) in unit.sets {
                if let Some(id) = to {
                    self.retain(id, false);
                }
                let names = &mut self.dir_mut(dir).durable;
                let before = match to {
                    Some(id) => names.insert(name, id),
                    None => names.remove(&name),
                };
                for gone in [before, to].into_iter().flatten() {
                    self.release(gone, false);
                }
                self.release(dir, false);
            }
        }
    }

    fn flush_for_rename(&mut self, id: InodeId, seq: u64) {
        if let Some(Inode { node: Node::File(file), .. }) = &mut self.inodes[id.index()] {
            file.make_durable(seq);
        }
    }
}

/// Which of the pending units a power loss keeps, given which of them it would by itself: a unit survives only if what
/// it builds on does.
pub(super) fn closed_under_order(pending: &[NameUnit], keep: &mut dyn FnMut(&NameUnit) -> bool) -> Vec<bool> {
    let mut lost: BTreeSet<&NameKey> = BTreeSet::new();
    let mut lost_dir_move = false;
    let mut kept = Vec::with_capacity(pending.len());
    for unit in pending {
        let blocked = unit.sets.iter().any(|(key, _)| lost.contains(key)) || (lost_dir_move && unit.moves_dir);
        let survives = !blocked && keep(unit);
        if !survives {
            lost.extend(unit.sets.iter().map(|(key, _)| key));
            lost_dir_move |= unit.moves_dir;
        }
        kept.push(survives);
    }
    kept
}
