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
//!
#![doc = include_str!("../../docs/disk.md")]

mod checksum;
mod crash;
mod damage;
mod enumerate;
mod errno;
pub mod fault;
mod file;
mod handle;
mod history;
mod inode;
mod io;
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

use std::rc::Rc;

use stormlog::env::{DiskUsage, OpenOptions};
use xxhash_rust::xxh3::xxh3_64;

use self::fault::{FaultPoint, FaultState};
use self::handle::Handles;
use self::inode::{Inode, Node};
use self::lock::Locks;
use self::namespace::{DirState, NameUnit};
use self::page::PAGE;
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
