//! Handles: open files of processes.
//!
//! Model: a handle keeps its inode usable whatever happens to the name; it carries no cursor. Not modelled: handles shared
//! between processes, limits per process.

use std::rc::Rc;

use super::errno::Errno;
use super::inode::InodeId;

/// A process: who holds handles, regions and locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u64);

/// An open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle {
    slot: u32,
    generation: u32,
}

impl Handle {
    pub(super) fn number(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }
}

#[derive(Debug)]
pub(super) struct OpenFile {
    pub owner: Owner,
    pub inode: InodeId,
    pub write: bool,
    /// The path it was opened by: what placed faults are matched with.
    pub path: Rc<str>,
    /// How many errors of writing back were told to this handle, or came before it.
    pub errors_seen: u32,
}

#[derive(Default)]
pub(super) struct Handles {
    slots: Vec<(u32, Option<OpenFile>)>,
    free: Vec<u32>,
}

impl Handles {
    pub fn count(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    pub fn insert(&mut self, owner: Owner, inode: InodeId, write: bool, path: &str, errors_seen: u32) -> Handle {
        let open = Some(OpenFile { owner, inode, write, path: path.into(), errors_seen });
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize].1 = open;
                Handle { slot, generation: self.slots[slot as usize].0 }
            }
            None => {
                self.slots.push((0, open));
                Handle { slot: self.slots.len() as u32 - 1, generation: 0 }
            }
        }
    }

    #[inline]
    pub fn get(&self, handle: Handle) -> Result<&OpenFile, Errno> {
        match self.slots.get(handle.slot as usize) {
            Some((generation, Some(open))) if *generation == handle.generation => Ok(open),
            _ => Err(Errno::EBADF),
        }
    }

    pub fn get_mut(&mut self, handle: Handle) -> Result<&mut OpenFile, Errno> {
        match self.slots.get_mut(handle.slot as usize) {
            Some((generation, Some(open))) if *generation == handle.generation => Ok(open),
            _ => Err(Errno::EBADF),
        }
    }

    #[inline]
    pub fn writable(&self, handle: Handle) -> Result<InodeId, Errno> {
        let open = self.get(handle)?;
        if open.write { Ok(open.inode) } else { Err(Errno::EBADF) }
    }

    pub fn remove(&mut self, handle: Handle) -> Option<OpenFile> {
        self.get(handle).ok()?;
        self.take(handle.slot)
    }

    fn take(&mut self, slot: u32) -> Option<OpenFile> {
        let (generation, open) = &mut self.slots[slot as usize];
        let open = open.take()?;
        *generation += 1;
        self.free.push(slot);
        Some(open)
    }

    /// Closes all of a process's.
    pub fn take_of(&mut self, owner: Owner) -> Vec<InodeId> {
        let of_owner = |open: &OpenFile| open.owner == owner;
        let slots: Vec<u32> = (0..self.slots.len() as u32)
            .filter(|slot| self.slots[*slot as usize].1.as_ref().is_some_and(of_owner))
            .collect();
        slots.into_iter().filter_map(|slot| self.take(slot)).map(|open| open.inode).collect()
    }

    /// Closes all, so that no handle of before is ever taken for a new one.
    pub fn renew(&self) -> Self {
        let slots =
            self.slots.iter().map(|(generation, open)| (generation + u32::from(open.is_some()), None)).collect();
        Self { slots, free: (0..self.slots.len() as u32).rev().collect() }
    }
}
