//! The simulated disk: a file system in memory in which every legal crash state can be reached, and no illegal one.
//!
//! A pure state machine: no threads, no host I/O, no time of its own; whoever drives it gives time and choices through
//! [`Context`]. An operation takes effect when it is called. A sync is two calls, [`Disk::sync_begin`] and
//! [`Disk::sync_end`]: a crash between them is a sync in flight, which promises nothing yet.
//!
//! # What is promised
//!
//! * **Reads** see every write at once.
//! * **[`Disk::kill`]** (a process dies) keeps what reads see. Its handles, regions and locks go.
//! * **[`Disk::power_loss`]** keeps what completed syncs cover, and of the rest what the choices say:
//!   * each 512-byte sector written since its last completed sync holds any version that it had since then, or the one
//!     before (`survive`): by itself, together with its neighbours, by whole writes, or as of one moment;
//!   * a length is any that the file had since its last completed sync, apart from the data; what a kept length covers and
//!     lost data leaves open reads as zeros, garbage, or the old bytes of reused space (`reuse`);
//!   * a truncation that is kept takes the bytes behind it along, one that is lost brings none of what was written behind
//!     it later;
//!   * names made, removed or changed since the last completed sync of their directory are each there or not
//!     (`namespace`); a directory that is lost takes along what is in it; an unlinked file may come back;
//!   * sectors are torn inside only where the profile says so ([`profile::CrashProfile`]).
//! * **Faults** come by rate or are placed ([`fault`]); what a failed sync leaves behind is the profile's
//!   [`profile::SyncFailure`]. Media faults and damage from outside are listed in [`Disk::damage`], so that an oracle can
//!   excuse exactly those bytes.
//!
//! # Not modelled, and where it would go
//!
//! Order of metadata of different kinds within one journal: names and lengths are each in order, not with each other
//! (`crash`). Writing back before a sync, with errors of its own (`sync`). Device write cache apart from the page cache,
//! `sync_file_range`, `O_DSYNC`, `O_APPEND`, atomic writes of more than a sector (`file`). Collateral damage in the rest of
//! a sector that is being overwritten (`survive`). A remount as read-only after an error, close that fails, quota per user
//! (`fault`). More than one device (a `Disk` each). Latency, stalls and dead disks: the driver's, when it ends an operation.
//!
//! # Cost
//!
//! A write costs its bytes; a sync and a crash state cost what is dirty; pages are shared between a disk and its crash
//! images. A zeroed range costs its present pages. The disk checks itself: see `checksum`.

mod checksum;
mod crash;
mod damage;
mod enumerate;
mod errno;
pub mod fault;
mod file;
mod handle;
mod inode;
mod lock;
mod namespace;
mod op;
mod page;
mod pick;
pub mod profile;
mod region;
mod reuse;
mod space;
mod survive;
mod sync;

use std::io::IoSlice;
use std::ops::Range;
use std::rc::Rc;

use stormlog::env::{DiskUsage, OpenOptions};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use self::fault::{Effect, FaultPoint, FaultState};
use self::handle::Handles;
use self::inode::{Inode, InodeId, Node};
use self::lock::Locks;
use self::namespace::{DirState, NameUnit};
use self::page::{FILE_LEN_MAX, PAGE, SECTOR, page_count};
use self::region::Regions;
use self::reuse::Reuse;
use crate::choices::Actor;
use crate::context::Context;
use crate::record::Op;

pub use self::damage::{Damage, DamageKind};
pub use self::errno::{Errno, ErrnoNameError};
pub use self::handle::{Handle, Owner};
pub use self::lock::LockId;
pub use self::page::{PAGE as PAGE_BYTES, SECTOR as SECTOR_BYTES};
pub use self::profile::DiskProfile;
pub use self::region::RegionId;
pub use self::sync::{SyncKind, SyncTicket};

/// 2026-01-01T00:00:00Z: where the civil time of simulated machines begins.
const CIVIL_EPOCH_MS: i64 = 1_767_225_600_000;

/// A simulated disk. See the module's documentation for what it promises.
pub struct Disk {
    profile: Rc<DiskProfile>,
    inodes: Vec<Option<Inode>>,
    handles: Handles,
    regions: Regions,
    locks: Locks,
    /// Changes of names that no sync covers yet, in order.
    pending: Vec<NameUnit>,
    /// Counts all changes.
    seq: u64,
    /// Counts power losses, so that a ticket of before is known.
    era: u32,
    used_blocks: u64,
    capacity_blocks: u64,
    reuse: Reuse,
    faults: FaultState,
    damage: Vec<Damage>,
    civil_offset_ms: i64,
}

impl Disk {
    /// An empty disk.
    pub fn new(profile: DiskProfile) -> Self {
        let capacity_blocks = profile.capacity_bytes / PAGE as u64;
        let faults = FaultState::new(&profile);
        let mut disk = Self {
            profile: Rc::new(profile),
            inodes: Vec::new(),
            handles: Handles::default(),
            regions: Regions::default(),
            locks: Locks::default(),
            pending: Vec::new(),
            seq: 0,
            era: 0,
            used_blocks: 0,
            capacity_blocks,
            reuse: Reuse::default(),
            faults,
            damage: Vec::new(),
            civil_offset_ms: CIVIL_EPOCH_MS,
        };
        let root = disk.make_inode(Node::Dir(DirState::default()));
        disk.retain(root, true);
        disk
    }

    /// The disk's profile.
    pub fn profile(&self) -> &DiskProfile {
        &self.profile
    }

    /// Civil time is virtual time plus this: what a file's time of change is made of.
    pub fn shift_civil_time(&mut self, by_ms: i64) {
        self.civil_offset_ms += by_ms;
    }

    /// Sets how many bytes files can take: a quota that is reached, or raised again.
    pub fn set_capacity(&mut self, capacity_bytes: u64) {
        self.capacity_blocks = capacity_bytes / PAGE as u64;
    }

    /// Space of the disk.
    pub fn disk_usage(&self) -> DiskUsage {
        DiskUsage { total: self.capacity_blocks * PAGE as u64, available: self.free_blocks() * PAGE as u64 }
    }

    fn free_blocks(&self) -> u64 {
        self.capacity_blocks.saturating_sub(self.used_blocks)
    }

    /// How many changes of files no completed sync covers, and how many of names.
    pub fn unsynced(&self) -> (usize, usize) {
        (self.files().map(|(_, file)| file.log.len()).sum(), self.pending.len())
    }

    /// Opens a file for a process.
    pub fn open(&mut self, ctx: &mut Context, owner: Owner, path: &str, options: OpenOptions) -> Result<Handle, Errno> {
        let outcome = self.try_open(ctx, owner, path, options);
        let flags = [options.write, options.create, options.create_new, options.truncate];
        let flags = flags.iter().fold(0, |bits, flag| bits << 1 | u64::from(*flag));
        let result = outcome.map(|handle| xxh3_64(path.as_bytes()) ^ handle.number());
        self.note(ctx, Actor::RUN, op::OPEN, [owner.0, flags], result);
        outcome
    }

    fn try_open(&mut self, ctx: &mut Context, owner: Owner, path: &str, options: OpenOptions) -> Result<Handle, Errno> {
        let OpenOptions { write, create, create_new, truncate } = options;
        if !write && (create || create_new || truncate) {
            return Err(Errno::EINVAL);
        }
        self.fail_by_fault(ctx, FaultPoint::Open, path)?;
        if self.handles.count() >= self.profile.handles_max {
            return Err(Errno::ENFILE);
        }
        let id = self.find_or_create(ctx, path, create, create_new)?;
        let is_dir = matches!(self.inode(id).node, Node::Dir(_));
        if is_dir && write {
            return Err(Errno::EISDIR);
        }
        let mut errors_seen = 0;
        if !is_dir {
            if truncate && self.file(id).visible.len > 0 {
                self.change_len(ctx, id, 0);
            }
            self.evict_by_rate(ctx, id);
            let file = self.file_mut(id);
            errors_seen = file.writeback.errors - u32::from(file.writeback.errors > 0 && !file.writeback.told);
        }
        self.retain(id, true);
        Ok(self.handles.insert(owner, id, write, path, errors_seen))
    }

    /// Closes a handle. A handle that is gone already (its process died) is no error.
    pub fn close(&mut self, ctx: &mut Context, handle: Handle) {
        if let Some(open) = self.handles.remove(handle) {
            let actor = self.inode(open.inode).actor;
            self.release(open.inode, true);
            self.note(ctx, actor, op::CLOSE, [handle.number(), 0], Ok(0));
        }
    }

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
    fn allocate(
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

    fn take_blocks(&mut self, id: InodeId, pages: Range<u32>) {
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

    fn change_len(&mut self, ctx: &Context, id: InodeId, len: u64) {
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

    /// Length in bytes; 0 for a directory.
    pub fn len(&self, handle: Handle) -> Result<u64, Errno> {
        Ok(match &self.inode(self.handles.get(handle)?.inode).node {
            Node::File(file) => file.visible.len,
            Node::Dir(_) => 0,
        })
    }

    /// Civil time of the last change, in milliseconds since 1970; 0 for a directory.
    pub fn modified_ms(&self, handle: Handle) -> Result<i64, Errno> {
        Ok(match &self.inode(self.handles.get(handle)?.inode).node {
            Node::File(file) => file.visible.modified_ms,
            Node::Dir(_) => 0,
        })
    }

    /// A process dies: its handles, regions and locks go; what it wrote stays.
    pub fn kill(&mut self, ctx: &mut Context, owner: Owner) {
        let mut held = self.handles.take_of(owner);
        held.extend(self.regions.take_of(owner));
        held.extend(self.locks.take_of(owner));
        for id in &held {
            self.release(*id, true);
        }
        self.note(ctx, Actor::RUN, op::KILL, [owner.0, held.len() as u64], Ok(0));
    }

    /// Civil time of the machine that the disk is in, in milliseconds since 1970.
    pub fn civil_ms(&self, ctx: &Context) -> i64 {
        (ctx.now_ns / 1_000_000) as i64 + self.civil_offset_ms
    }

    #[inline]
    fn note(&self, ctx: &mut Context, actor: Actor, op: Op, args: [u64; 2], result: Result<u64, Errno>) {
        ctx.record(actor, op, args, result.unwrap_or_else(Errno::code));
    }

    fn note_path(&self, ctx: &mut Context, op: Op, paths: [&str; 2], result: Result<u64, Errno>) {
        let args = paths.map(|path| if path.is_empty() { 0 } else { xxh3_64(path.as_bytes()) });
        self.note(ctx, Actor::RUN, op, args, result);
    }

    fn note_names(&self, ctx: &mut Context, op: Op, paths: [&str; 2], outcome: Result<(), Errno>) -> Result<(), Errno> {
        self.note_path(ctx, op, paths, outcome.map(|()| 0));
        outcome
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
