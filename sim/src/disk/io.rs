//! Reads and writes of open files, and the space that they take.
//!
//! Model: an operation takes effect whole when it is called; a write may do a part of what was asked, by a fault or for
//! want of space. Not modelled: reads that race with writes, writes that land while they are called.

use std::io::IoSlice;
use std::ops::Range;

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::errno::Errno;
use super::fault::{Effect, FaultPoint};
use super::handle::Handle;
use super::inode::{Inode, InodeId, Node};
use super::page::{FILE_LEN_MAX, PAGE, SECTOR, page_count};
use super::{Disk, op};
use crate::context::Context;

impl Disk {
    /// Reads up to `bytes.len()` bytes; 0 only at the end of the file.
    pub fn read_at(
        &mut self,
        ctx: &mut Context,
        handle: Handle,
        bytes: &mut [u8],
        offset: u64,
    ) -> Result<usize, Errno> {
        let id = self.handles.get(handle)?.inode;
        let outcome = self.try_read(ctx, handle, id, bytes, offset);
        let actor = self.inode(id).actor;
        self.note(ctx, actor, op::READ, [offset, bytes.len() as u64], outcome.map(|n| n as u64));
        outcome
    }

    fn try_read(
        &mut self,
        ctx: &mut Context,
        handle: Handle,
        id: InodeId,
        bytes: &mut [u8],
        offset: u64,
    ) -> Result<usize, Errno> {
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > i64::MAX as u64) {
            return Err(Errno::EINVAL);
        }
        let Node::File(file) = &self.inode(id).node else { return Err(Errno::EISDIR) };
        let mut count = file.visible.len.saturating_sub(offset).min(bytes.len() as u64) as usize;
        if let Some(strike) = self.strike(ctx, FaultPoint::Read, Some(handle)) {
            match strike.effect {
                Effect::Error(errno) => {
                    if strike.sticky && count > 0 {
                        self.spoil(ctx, id, offset, count as u64);
                    }
                    return Err(errno);
                }
                _ => count = strike.shortened(ctx, self.inode(id).actor, count),
            }
        }
        let file = self.file(id);
        if !file.bad_sectors.is_empty() && count > 0 {
            let sectors = offset / SECTOR as u64..(offset + count as u64).div_ceil(SECTOR as u64);
            if file.bad_sectors.range(sectors).next().is_some() {
                return Err(Errno::EIO);
            }
        }
        file.read(&mut bytes[..count], offset);
        Ok(count)
    }

    /// Writes a prefix of `bytes`, at least one byte of a non-empty slice, extending the file where it must.
    pub fn write_at(&mut self, ctx: &mut Context, handle: Handle, bytes: &[u8], offset: u64) -> Result<usize, Errno> {
        self.write_slices(ctx, handle, &[IoSlice::new(bytes)], offset)
    }

    /// As [`Disk::write_at`], from several slices.
    pub fn write_vectored(
        &mut self,
        ctx: &mut Context,
        handle: Handle,
        slices: &[IoSlice<'_>],
        offset: u64,
    ) -> Result<usize, Errno> {
        self.write_slices(ctx, handle, slices, offset)
    }

    fn write_slices(
        &mut self,
        ctx: &mut Context,
        handle: Handle,
        slices: &[IoSlice<'_>],
        offset: u64,
    ) -> Result<usize, Errno> {
        let id = self.write_target(handle, offset)?;
        let len: usize = slices.iter().map(|slice| slice.len()).sum();
        let outcome = self.try_write(ctx, handle, id, slices, len, offset);
        let actor = self.inode(id).actor;
        let result = outcome.map(|count| content_hash(slices, count));
        self.note(ctx, actor, op::WRITE, [offset, len as u64], result);
        outcome
    }

    /// The inode that a write at `offset` goes to. A negative offset is noticed before a handle that only reads.
    fn write_target(&self, handle: Handle, offset: u64) -> Result<InodeId, Errno> {
        self.handles.get(handle)?;
        if offset > i64::MAX as u64 { Err(Errno::EINVAL) } else { self.handles.writable(handle) }
    }

    fn try_write(
        &mut self,
        ctx: &mut Context,
        handle: Handle,
        id: InodeId,
        slices: &[IoSlice<'_>],
        len: usize,
        offset: u64,
    ) -> Result<usize, Errno> {
        if offset.checked_add(len as u64).is_none_or(|end| end > i64::MAX as u64) {
            return Err(Errno::EINVAL);
        }
        if len == 0 {
            return Ok(0);
        }
        if offset >= FILE_LEN_MAX {
            return Err(Errno::EFBIG);
        }
        let mut count = len.min((FILE_LEN_MAX - offset) as usize);
        let mut failure = None;
        if let Some(strike) = self.strike(ctx, FaultPoint::Write, Some(handle)) {
            let actor = self.inode(id).actor;
            match strike.effect {
                Effect::Error(errno) => {
                    count = strike.part_done(ctx, actor, count as u64) as usize;
                    failure = Some(errno);
                }
                _ => count = strike.shortened(ctx, actor, count),
            }
        }
        if count > 0 {
            let allowed = self.allocate(ctx, handle, id, offset, count as u64)?;
            count = allowed as usize;
            self.overwrite_bad_sectors(id, offset, count as u64)?;
            self.put(ctx, id, slices, count, offset);
        }
        failure.map_or(Ok(count), Err)
    }

    fn put(&mut self, ctx: &Context, id: InodeId, slices: &[IoSlice<'_>], count: usize, offset: u64) {
        self.seq += 1;
        let (seq, modified_ms) = (self.seq, self.civil_ms(ctx));
        let file = self.file_mut(id);
        file.visible.modified_ms = modified_ms;
        match slices {
            [one] => file.write(seq, offset, &one[..count], false),
            _ => {
                let mut gathered = Vec::with_capacity(count);
                for slice in slices {
                    gathered.extend_from_slice(&slice[..slice.len().min(count - gathered.len())]);
                }
                file.write(seq, offset, &gathered, false);
            }
        }
    }

    /// Allocates what a write of `[offset, offset + len)` needs; gives how many bytes of it there is space for.
    pub(super) fn allocate(
        &mut self,
        ctx: &mut Context,
        handle: Handle,
        id: InodeId,
        offset: u64,
        len: u64,
    ) -> Result<u64, Errno> {
        let pages = (offset / PAGE as u64) as u32..page_count(offset + len);
        let missing = self.file(id).blocks.missing(&pages);
        if missing == 0 {
            return Ok(len);
        }
        if let Some(strike) = self.strike(ctx, FaultPoint::Space, Some(handle)) {
            return Err(strike.errno_or(Errno::ENOSPC));
        }
        let free = self.free_blocks();
        let end = if missing <= free { pages.end } else { self.file(id).blocks.fitting(&pages, free) };
        if end == pages.start {
            return Err(Errno::ENOSPC);
        }
        self.take_blocks(id, pages.start..end);
        Ok(len.min(u64::from(end) * PAGE as u64 - offset))
    }

    pub(super) fn take_blocks(&mut self, id: InodeId, pages: Range<u32>) {
        let blocks = &mut self.file_mut(id).blocks;
        let missing = blocks.missing(&pages);
        blocks.add(pages);
        self.used_blocks += missing;
    }

    /// A whole sector that is overwritten can be read again; a part of one needs the rest, and that cannot be read.
    fn overwrite_bad_sectors(&mut self, id: InodeId, offset: u64, len: u64) -> Result<(), Errno> {
        let file = self.file_mut(id);
        if file.bad_sectors.is_empty() {
            return Ok(());
        }
        let end = offset + len;
        let touched = offset / SECTOR as u64..end.div_ceil(SECTOR as u64);
        let whole = offset.div_ceil(SECTOR as u64)..end / SECTOR as u64;
        if file.bad_sectors.range(touched).any(|sector| !whole.contains(sector)) {
            return Err(Errno::EIO);
        }
        file.bad_sectors.retain(|sector| !whole.contains(sector));
        Ok(())
    }

    /// Writes zeros over `[offset, offset + len)`, extending the file where it must.
    pub fn zero_range(&mut self, ctx: &mut Context, handle: Handle, offset: u64, len: u64) -> Result<(), Errno> {
        let id = self.write_target(handle, offset)?;
        let outcome = self.try_zero_range(ctx, handle, id, offset, len);
        let actor = self.inode(id).actor;
        self.note(ctx, actor, op::ZERO_RANGE, [offset, len], outcome.map(|()| 0));
        outcome
    }

    fn try_zero_range(
        &mut self,
        ctx: &mut Context,
        handle: Handle,
        id: InodeId,
        offset: u64,
        len: u64,
    ) -> Result<(), Errno> {
        if len == 0 {
            return Ok(());
        }
        let end = offset.checked_add(len).filter(|end| *end <= i64::MAX as u64).ok_or(Errno::EINVAL)?;
        if end > FILE_LEN_MAX {
            return Err(Errno::EFBIG);
        }
        let mut done = len;
        let mut failure = None;
        if let Some(strike) = self.strike(ctx, FaultPoint::Write, Some(handle)) {
            let actor = self.inode(id).actor;
            // What is written in pieces has no short result: only errors count.
            if let Effect::Error(errno) = strike.effect {
                done = strike.part_done(ctx, actor, len);
                failure = Some(errno);
            }
        }
        if done > 0 {
            let allowed = self.allocate(ctx, handle, id, offset, done)?;
            self.overwrite_bad_sectors(id, offset, allowed)?;
            self.seq += 1;
            let (seq, modified_ms) = (self.seq, self.civil_ms(ctx));
            let file = self.file_mut(id);
            file.visible.modified_ms = modified_ms;
            file.zero(seq, offset, allowed);
            if allowed < done {
                return Err(Errno::ENOSPC);
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Reserves space for `[0, len)` and extends the file to `len` if it is shorter.
    pub fn preallocate(&mut self, ctx: &mut Context, handle: Handle, len: u64) -> Result<(), Errno> {
        let id = self.handles.writable(handle)?;
        let outcome = self.try_preallocate(ctx, handle, id, len);
        let actor = self.inode(id).actor;
        self.note(ctx, actor, op::PREALLOCATE, [0, len], outcome.map(|()| 0));
        outcome
    }

    fn try_preallocate(&mut self, ctx: &mut Context, handle: Handle, id: InodeId, len: u64) -> Result<(), Errno> {
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        if len > FILE_LEN_MAX {
            return Err(Errno::EFBIG);
        }
        if let Some(strike) = self.strike(ctx, FaultPoint::Space, Some(handle)) {
            return Err(strike.errno_or(Errno::ENOSPC));
        }
        let pages = 0..page_count(len);
        if self.file(id).blocks.missing(&pages) > self.free_blocks() {
            return Err(Errno::ENOSPC);
        }
        self.take_blocks(id, pages);
        self.seq += 1;
        let (seq, modified_ms) = (self.seq, self.civil_ms(ctx));
        let file = self.file_mut(id);
        file.visible.modified_ms = modified_ms;
        file.grow(seq, len);
        Ok(())
    }

    /// Sets the length.
    pub fn set_len(&mut self, ctx: &mut Context, handle: Handle, len: u64) -> Result<(), Errno> {
        let open = self.handles.get(handle)?;
        let (id, write) = (open.inode, open.write);
        let outcome = if !write {
            Err(Errno::EINVAL)
        } else if len > FILE_LEN_MAX {
            Err(if len > i64::MAX as u64 { Errno::EINVAL } else { Errno::EFBIG })
        } else {
            match self.strike(ctx, FaultPoint::SetLen, Some(handle)) {
                Some(strike) => Err(strike.errno_or(Errno::EIO)),
                None => {
                    self.change_len(ctx, id, len);
                    Ok(())
                }
            }
        };
        let actor = self.inode(id).actor;
        self.note(ctx, actor, op::SET_LEN, [len, 0], outcome.map(|()| 0));
        outcome
    }

    pub(super) fn change_len(&mut self, ctx: &Context, id: InodeId, len: u64) {
        self.seq += 1;
        let (seq, modified_ms) = (self.seq, self.civil_ms(ctx));
        let Some(Inode { node: Node::File(file), .. }) = &mut self.inodes[id.index()] else {
            unreachable!("a file's length is set");
        };
        let before = file.blocks.count();
        if len < file.visible.len {
            self.reuse.free(file.freed_pages(page_count(len)).cloned());
            file.bad_sectors.retain(|sector| sector * (SECTOR as u64) < len);
        }
        file.visible.modified_ms = modified_ms;
        file.set_len(seq, len);
        file.blocks.cut(page_count(len));
        self.used_blocks -= before - file.blocks.count();
    }
}

fn content_hash(slices: &[IoSlice<'_>], count: usize) -> u64 {
    match slices {
        [one] => xxh3_64(&one[..count]),
        _ => {
            let mut hash = Xxh3Default::new();
            let mut left = count;
            for slice in slices {
                let part = slice.len().min(left);
                hash.update(&slice[..part]);
                left -= part;
            }
            hash.digest()
        }
    }
}
