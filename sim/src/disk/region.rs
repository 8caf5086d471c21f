//! Regions: shared, writable mappings.
//!
//! Model: bytes copied in are a write that no system call made: unsynced, visible at once, and liable to reach the disk at
//! any time before the sync of the file, in the middle of the copy too ([`super::profile::CrashProfile::torn_region_ppm`]). A
//! process killed inside a copy leaves a part of it: the driver copies just that. Not modelled: mappings larger than the file,
//! page faults that allocate.

use super::errno::Errno;
use super::handle::{Handle, Owner};
use super::inode::{InodeId, Node};
use super::page::PAGE;
use super::{Disk, FaultPoint, op};
use crate::context::Context;
use xxhash_rust::xxh3::xxh3_64;

/// A mapping of part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegionId {
    slot: u32,
}

#[derive(Clone, Copy)]
struct Mapping {
    owner: Owner,
    inode: InodeId,
    offset: u64,
    len: u64,
}

/// Mappings by number. A number is never used again, so that one of before a power loss maps nothing.
#[derive(Default)]
pub(super) struct Regions {
    slots: Vec<Option<Mapping>>,
}

impl Regions {
    pub fn take_of(&mut self, owner: Owner) -> Vec<InodeId> {
        let of_owner = self.slots.iter_mut().filter(|slot| slot.is_some_and(|mapping| mapping.owner == owner));
        of_owner.filter_map(Option::take).map(|mapping| mapping.inode).collect()
    }

    pub fn renew(&self) -> Self {
        Self { slots: vec![None; self.slots.len()] }
    }
}

impl Disk {
    /// Maps `[offset, offset + len)` of a file that is that long. The mapping outlives the handle.
    pub fn region_open(&mut self, ctx: &mut Context, handle: Handle, offset: u64, len: u64) -> Result<RegionId, Errno> {
        let open = self.handles.get(handle)?;
        let (owner, inode, write) = (open.owner, open.inode, open.write);
        let actor = self.inode(inode).actor;
        let outcome = match &self.inode(inode).node {
            Node::Dir(_) => Err(Errno::EISDIR),
            Node::File(_) if !write => Err(Errno::EACCES),
            Node::File(_) if len == 0 || !offset.is_multiple_of(PAGE as u64) => Err(Errno::EINVAL),
            Node::File(file) if offset.checked_add(len).is_none_or(|end| end > file.visible.len) => Err(Errno::EINVAL),
            Node::File(_) => match self.strike(ctx, FaultPoint::Map, Some(handle)) {
                Some(strike) => Err(strike.errno_or(Errno::ENOMEM)),
                None => self
                    .allocate(ctx, handle, inode, offset, len)
                    .and_then(|allowed| if allowed < len { Err(Errno::ENOSPC) } else { Ok(()) }),
            },
        };
        let outcome = outcome.map(|()| {
            self.retain(inode, true);
            self.regions.slots.push(Some(Mapping { owner, inode, offset, len }));
            RegionId { slot: self.regions.slots.len() as u32 - 1 }
        });
        self.note(ctx, actor, op::REGION_OPEN, [offset, len], outcome.map(|region| u64::from(region.slot)));
        outcome
    }

    /// Copies bytes to an offset of a region. `EFAULT` stands for the signal that a mapping gives where the file was cut
    /// short, `EBADF` for a region that went with its process.
    ///
    /// # Panics
    /// If the bytes do not fit into the region.
    pub fn region_write(
        &mut self,
        ctx: &mut Context,
        region: RegionId,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), Errno> {
        let mapping = self.regions.slots.get(region.slot as usize).copied().flatten().ok_or(Errno::EBADF)?;
        let end = offset + bytes.len() as u64;
        assert!(end <= mapping.len, "a copy to {offset}..{end} of a region of {} bytes", mapping.len);
        let at = mapping.offset + offset;
        let mapped_end = mapping.offset + end;
        let outcome = if mapped_end > self.file(mapping.inode).visible.len {
            Err(Errno::EFAULT)
        } else {
            if !bytes.is_empty() {
                self.seq += 1;
                let (seq, modified_ms) = (self.seq, self.civil_ms(ctx));
                let file = self.file_mut(mapping.inode);
                file.visible.modified_ms = modified_ms;
                file.write(seq, at, bytes, true);
            }
            Ok(())
        };
        let actor = self.inode(mapping.inode).actor;
        self.note(ctx, actor, op::REGION_WRITE, [at, bytes.len() as u64], outcome.map(|()| xxh3_64(bytes)));
        outcome
    }

    /// Ends a mapping. One that is gone already is no error.
    pub fn region_close(&mut self, region: RegionId) {
        let slot = self.regions.slots.get_mut(region.slot as usize);
        if let Some(mapping) = slot.and_then(Option::take) {
            self.release(mapping.inode, true);
        }
    }
}
