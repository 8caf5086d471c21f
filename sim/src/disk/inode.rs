//! Inodes: what names and handles refer to, by creation order.

use super::Disk;
use super::file::FileState;
use super::namespace::DirState;
use super::reuse::KEPT_PAGES;
use crate::choices::Actor;

/// An inode, by creation order. Never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct InodeId(pub u32);

impl InodeId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The root directory.
pub(super) const ROOT: InodeId = InodeId(0);

pub(super) enum Node {
    File(Box<FileState>),
    Dir(DirState),
}

pub(super) struct Inode {
    pub actor: Actor,
    pub node: Node,
    /// Names (visible, durable and pending), handles, regions and locks that refer to it.
    pub refs: u32,
    /// Those of them that a process can reach: visible names, handles, regions and locks.
    pub live: u32,
}

impl Disk {
    pub(super) fn make_inode(&mut self, node: Node) -> InodeId {
        let id = InodeId(u32::try_from(self.inodes.len()).expect("fewer than 2^32 inodes"));
        self.inodes.push(Some(Inode { actor: inode_actor(id), node, refs: 0, live: 0 }));
        id
    }

    /// # Panics
    /// If it is gone: whoever holds an id holds a reference.
    pub(super) fn inode(&self, id: InodeId) -> &Inode {
        self.inodes[id.index()].as_ref().expect("a referenced inode lives")
    }

    pub(super) fn inode_mut(&mut self, id: InodeId) -> &mut Inode {
        self.inodes[id.index()].as_mut().expect("a referenced inode lives")
    }

    /// # Panics
    /// If it is a directory.
    pub(super) fn file(&self, id: InodeId) -> &FileState {
        match &self.inode(id).node {
            Node::File(file) => file,
            Node::Dir(_) => unreachable!("was checked to be a file"),
        }
    }

    pub(super) fn file_mut(&mut self, id: InodeId) -> &mut FileState {
        match &mut self.inode_mut(id).node {
            Node::File(file) => file,
            Node::Dir(_) => unreachable!("was checked to be a file"),
        }
    }

    pub(super) fn retain(&mut self, id: InodeId, live: bool) {
        let inode = self.inode_mut(id);
        inode.refs += 1;
        inode.live += u32::from(live);
    }

    pub(super) fn release(&mut self, id: InodeId, live: bool) {
        let inode = self.inode_mut(id);
        inode.refs -= 1;
        inode.live -= u32::from(live);
        let (refs, unreachable) = (inode.refs, live && inode.live == 0);
        if unreachable && let Node::File(file) = &self.inode(id).node {
            let blocks = file.blocks.count();
            let freed: Vec<_> = file.freed_pages(0).take(KEPT_PAGES).cloned().collect();
            self.used_blocks -= blocks;
            self.reuse.free(freed);
        }
        if refs == 0 {
            let childless = self.dir_is_durably_empty(id);
            assert!(childless, "simulator bug: a directory went away before its names did");
            self.inodes[id.index()] = None;
        }
    }

    fn dir_is_durably_empty(&self, id: InodeId) -> bool {
        match &self.inode(id).node {
            Node::Dir(dir) => dir.durable.is_empty(),
            Node::File(_) => true,
        }
    }

    /// The files that live, in creation order.
    pub(super) fn files(&self) -> impl Iterator<Item = (InodeId, &FileState)> {
        self.inodes.iter().enumerate().filter_map(|(index, inode)| match inode {
            Some(Inode { node: Node::File(file), .. }) => Some((InodeId(index as u32), &**file)),
            _ => None,
        })
    }
}

/// The actor of an inode: by creation order.
pub(super) fn inode_actor(id: InodeId) -> Actor {
    Actor::RUN.child("inode", u64::from(id.0))
}
