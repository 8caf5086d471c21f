//! Syncs, and what is left when one fails.
//!
//! Model: a sync covers the changes made before it began; they are durable once it has ended. Errors are told as Linux tells
//! them: once to every handle that was open at the failure, and if nobody was told, to the next one opened. A failed sync of
//! a file leaves what [`SyncFailure`] says; a failed sync of a directory leaves its names unsynced.
//!
//! Not modelled: writing back before a sync (a crash may keep any change, so that it shows only in errors that no sync
//! caused), a journal that aborts and remounts read-only.

use super::damage::{Damage, DamageKind};
use super::errno::Errno;
use super::fault::{Effect, FaultPoint, Strike};
use super::file::{Change, ChangeKind, FileState, Touched, Writeback, apply};
use super::handle::Handle;
use super::inode::{Inode, InodeId, Node};
use super::page::{SECTOR, SECTORS, page_count};
use super::profile::SyncFailure;
use super::{Disk, checksum, op};
use crate::choices::{Actor, Family};
use crate::context::Context;

/// What a sync of a file covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncKind {
    /// Bytes and length (`fdatasync`).
    Data,
    /// Bytes and all metadata (`fsync`).
    All,
}

/// A sync in flight. If it is dropped, the sync promises nothing.
#[derive(Debug)]
#[must_use = "a sync makes nothing durable before it ends"]
pub struct SyncTicket {
    inode: InodeId,
    /// `None` for a directory synced by its path.
    handle: Option<Handle>,
    kind: SyncKind,
    upto: u64,
    era: u32,
    strike: Option<Strike>,
}

impl Disk {
    /// Begins the sync of an open file.
    pub fn sync_begin(&mut self, ctx: &mut Context, handle: Handle, kind: SyncKind) -> Result<SyncTicket, Errno> {
        let inode = self.handles.get(handle)?.inode;
        let is_dir = matches!(self.inode(inode).node, Node::Dir(_));
        let point = if is_dir { FaultPoint::DirSync } else { FaultPoint::Sync };
        let strike = self.strike(ctx, point, Some(handle));
        Ok(self.issue(ctx, inode, Some(handle), kind, strike))
    }

    /// Begins the sync of a directory.
    pub fn sync_dir_begin(&mut self, ctx: &mut Context, path: &str) -> Result<SyncTicket, Errno> {
        let found = self.find(path).and_then(|inode| self.dir(inode).map(|_| inode));
        match found {
            Ok(inode) => {
                let strike = self.strike_path(ctx, FaultPoint::DirSync, path);
                Ok(self.issue(ctx, inode, None, SyncKind::All, strike))
            }
            Err(errno) => {
                self.note_path(ctx, op::SYNC_BEGIN, [path, ""], Err(errno));
                Err(errno)
            }
        }
    }

    fn issue(
        &mut self,
        ctx: &mut Context,
        inode: InodeId,
        handle: Option<Handle>,
        kind: SyncKind,
        strike: Option<Strike>,
    ) -> SyncTicket {
        let actor = self.inode(inode).actor;
        self.note(ctx, actor, op::SYNC_BEGIN, [self.seq, kind as u64], Ok(0));
        SyncTicket { inode, handle, kind, upto: self.seq, era: self.era, strike }
    }

    /// Ends a sync: what it covers is durable, or it has failed. `EBADF` if power was lost since it began.
    pub fn sync_end(&mut self, ctx: &mut Context, ticket: SyncTicket) -> Result<(), Errno> {
        if ticket.era != self.era {
            return Err(Errno::EBADF);
        }
        let Some(Inode { actor, node, .. }) = &self.inodes[ticket.inode.index()] else { return Ok(()) };
        let actor = *actor;
        let outcome = match node {
            Node::Dir(_) => self.end_dir_sync(&ticket),
            Node::File(_) => self.end_file_sync(ctx, actor, &ticket),
        };
        self.note(ctx, actor, op::SYNC_END, [ticket.upto, ticket.kind as u64], outcome.map(|()| 0));
        outcome
    }

    fn end_dir_sync(&mut self, ticket: &SyncTicket) -> Result<(), Errno> {
        if let Some(Effect::Error(errno)) = ticket.strike.as_ref().map(|strike| strike.effect) {
            return Err(errno);
        }
        self.make_names_durable(ticket.upto, |unit| unit.sets.iter().any(|((dir, _), _)| *dir == ticket.inode));
        Ok(())
    }

    fn end_file_sync(&mut self, ctx: &mut Context, actor: Actor, ticket: &SyncTicket) -> Result<(), Errno> {
        let SyncTicket { inode, upto, .. } = *ticket;
        if let Some(strike) = &ticket.strike {
            match strike.effect {
                Effect::Error(errno) => return self.fail_sync(ctx, actor, ticket, strike, errno),
                Effect::Lie => {
                    self.tell_damage(ctx, ticket, DamageKind::LyingSync, None);
                    return self.tell_error(ticket);
                }
                Effect::Lose => self.lose_write(ctx, actor, ticket),
                Effect::Misdirect => self.misdirect_write(ctx, actor, ticket),
                Effect::Short => {}
            }
        }
        self.file_mut(inode).make_durable(upto);
        if ticket.kind == SyncKind::All {
            let file = self.file_mut(inode);
            file.durable.modified_ms = file.visible.modified_ms;
        }
        if self.profile.file_system.sync_covers_name && !self.pending.is_empty() {
            self.make_names_durable(upto, |unit| unit.sets.iter().any(|(_, to)| *to == Some(inode)));
        }
        self.tell_error(ticket)
    }

    /// An error that this handle was not told yet.
    fn tell_error(&mut self, ticket: &SyncTicket) -> Result<(), Errno> {
        let file = self.file_mut(ticket.inode);
        let errors = file.writeback.errors;
        if errors == 0 {
            return Ok(());
        }
        let Some(Ok(open)) = ticket.handle.map(|handle| self.handles.get_mut(handle)) else { return Ok(()) };
        if open.errors_seen == errors {
            return Ok(());
        }
        open.errors_seen = errors;
        self.file_mut(ticket.inode).writeback.told = true;
        Err(Errno::EIO)
    }

    fn fail_sync(
        &mut self,
        ctx: &mut Context,
        actor: Actor,
        ticket: &SyncTicket,
        strike: &Strike,
        errno: Errno,
    ) -> Result<(), Errno> {
        let failure = strike.profile.unwrap_or(self.profile.file_system.sync_failure);
        if failure == SyncFailure::Polite {
            return Err(errno);
        }
        let stream = ctx.stream(Family::Fault, actor);
        let id = ticket.inode;
        let before = self.file(id).blocks.count();
        if failure == SyncFailure::Btrfs {
            self.file_mut(id).revert(ticket.upto);
        } else {
            let length_lands = self.file(id).cuts(ticket.upto) || ctx.below(stream, 2) == 0;
            // 0: all of it reached the disk and only the answer was lost.
            let mode = if strike.partial.is_some() { 3 } else { ctx.weighted(stream, &[1, 4, 3]) };
            let mut left = strike.partial.unwrap_or(0);
            self.file_mut(id).settle(ticket.upto, length_lands, &mut |_| match mode {
                0 => true,
                1 => false,
                2 => ctx.below(stream, 2) == 0,
                _ => {
                    let lands = left > 0;
                    left = left.saturating_sub(1);
                    lands
                }
            });
        }
        self.used_blocks -= before - self.file(id).blocks.count();
        let file = self.file_mut(id);
        file.writeback = Writeback { errors: file.writeback.errors + 1, told: false };
        if failure == SyncFailure::Ext4Data {
            self.tell_damage(ctx, ticket, DamageKind::LyingSync, None);
            return Ok(());
        }
        let errors = file.writeback.errors;
        file.writeback.told = true;
        if let Some(Ok(open)) = ticket.handle.map(|handle| self.handles.get_mut(handle)) {
            open.errors_seen = errors;
        }
        Err(errno)
    }

    /// One of the covered writes, by its place in the log.
    fn pick_write(&self, ctx: &mut Context, actor: Actor, ticket: &SyncTicket) -> Option<usize> {
        let file = self.file(ticket.inode);
        let is_write = |change: &&Change| matches!(change.kind, ChangeKind::Write { .. } | ChangeKind::Mapped { .. });
        let writes = file.log[..file.covered(ticket.upto)].iter().filter(is_write).count();
        if writes == 0 {
            return None;
        }
        let stream = ctx.stream(Family::Fault, actor);
        let nth = ctx.below(stream, writes as u64) as usize;
        let mut indices = file.log.iter().enumerate().filter(|(_, change)| is_write(change));
        indices.nth(nth).map(|(index, _)| index)
    }

    fn lose_write(&mut self, ctx: &mut Context, actor: Actor, ticket: &SyncTicket) {
        let Some(index) = self.pick_write(ctx, actor, ticket) else { return };
        let lost = self.file(ticket.inode).log[index];
        self.lose_sectors_of(ticket, &lost);
        self.tell_damage(ctx, ticket, DamageKind::LostWrite, Some((lost.offset, lost.len)));
    }

    /// The bytes land where another write should, or at some sector of the file if there is no other.
    fn misdirect_write(&mut self, ctx: &mut Context, actor: Actor, ticket: &SyncTicket) {
        let Some(index) = self.pick_write(ctx, actor, ticket) else { return };
        let Some(other) = self.pick_write(ctx, actor, ticket) else { return };
        let file = self.file(ticket.inode);
        let strayed = file.log[index];
        let bytes = strayed.bytes(&file.bytes).expect("a write has bytes").to_vec();
        let stream = ctx.stream(Family::Fault, actor);
        let target = if other == index {
            ctx.below(stream, file.visible.len.div_ceil(SECTOR as u64)) * SECTOR as u64
        } else {
            file.log[other].offset
        };
        self.lose_sectors_of(ticket, &strayed);
        self.tell_damage(ctx, ticket, DamageKind::MisdirectedWrite, Some((strayed.offset, strayed.len)));
        let landed = self.file_mut(ticket.inode).overwrite_durable(target, &bytes);
        self.tell_damage(ctx, ticket, DamageKind::MisdirectedWrite, Some((target, landed)));
    }

    fn lose_sectors_of(&mut self, ticket: &SyncTicket, lost: &Change) {
        let sectors = lost.offset / SECTOR as u64..lost.end().div_ceil(SECTOR as u64);
        self.file_mut(ticket.inode).settle(ticket.upto, true, &mut |sector| !sectors.contains(&sector));
    }

    fn tell_damage(&mut self, ctx: &mut Context, ticket: &SyncTicket, kind: DamageKind, range: Option<(u64, u64)>) {
        let file = self.file(ticket.inode);
        let (offset, len) = range.unwrap_or_else(|| file.log[..file.covered(ticket.upto)].iter().fold((0, 0), span));
        self.push_damage(ctx, Damage { kind, path: self.path_of(ticket.inode), offset, len });
    }
}

/// The smallest range around a range and a change's bytes.
fn span((offset, len): (u64, u64), change: &Change) -> (u64, u64) {
    if matches!(change.kind, ChangeKind::Grow | ChangeKind::SetLen) || change.len == 0 {
        return (offset, len);
    }
    if len == 0 {
        return (change.offset, change.len);
    }
    let first = offset.min(change.offset);
    (first, (offset + len).max(change.end()) - first)
}

impl FileState {
    /// Whether a covered change is a truncation.
    fn cuts(&self, upto: u64) -> bool {
        let mut len = self.durable.len;
        self.log[..self.covered(upto)].iter().any(|change| {
            let before = len;
            len = change.len_after(len);
            len < before
        })
    }

    /// A sync that went wrong: of what it covers only some sectors land, the others differ from now on from what reads
    /// see. A length that does not land stays unsynced, and no sector with bytes behind it lands.
    fn settle(&mut self, upto: u64, length_lands: bool, lands: &mut dyn FnMut(u64) -> bool) {
        let covered = self.covered(upto);
        let Some(last) = covered.checked_sub(1).map(|last| self.log[last]) else { return };
        let mut wanted = self.durable.clone();
        let mut touched = Touched::default();
        for change in &self.log[..covered] {
            apply(change, &self.bytes, &mut wanted, &mut touched);
            self.touch_zeroed(change, &mut touched);
            if length_lands {
                touched.pages.extend(self.durable.set_len(change.len_after(self.durable.len)));
            }
        }
        touched.pages.sort_unstable();
        touched.pages.dedup_by(|from, into| {
            from.0 == into.0 && {
                into.1 |= from.1;
                true
            }
        });
        self.forget(covered);
        if !length_lands && wanted.len > self.durable.len {
            self.log.insert(0, Change { seq: last.seq, offset: 0, len: wanted.len, kind: ChangeKind::Grow });
        }
        for (index, mask) in &touched.pages {
            for within in checksum::bits(*mask) {
                let sector = u64::from(*index) * SECTORS as u64 + within as u64;
                let mut bytes = [0; SECTOR];
                wanted.read(&mut bytes, sector * SECTOR as u64);
                let mut held = [0; SECTOR];
                self.durable.read(&mut held, sector * SECTOR as u64);
                if bytes == held {
                    continue;
                }
                let space = self.durable.len.saturating_sub(sector * SECTOR as u64).min(SECTOR as u64) as usize;
                let behind_the_end = bytes[space..].iter().any(|byte| *byte != 0);
                if !behind_the_end && lands(sector) {
                    let page = self.durable.pages.make(*index);
                    page.bytes[within * SECTOR..(within + 1) * SECTOR].copy_from_slice(&bytes);
                    continue;
                }
                self.diverge(sector);
            }
        }
        self.seal(&touched);
    }

    /// Reads see what is durable, and the changes since `upto`.
    fn revert(&mut self, upto: u64) {
        self.forget(self.covered(upto));
        self.visible = self.durable.clone();
        self.diverged.clear();
        let mut touched = Touched::default();
        for change in &self.log {
            apply(change, &self.bytes, &mut self.visible, &mut touched);
        }
        self.blocks.cut(page_count(self.visible.len.max(self.durable.len)));
        self.seal(&Touched::default());
    }

    /// The disk puts bytes where they do not belong. Gives how many there was place for.
    pub fn overwrite_durable(&mut self, offset: u64, bytes: &[u8]) -> u64 {
        let len = self.durable.len.saturating_sub(offset).min(bytes.len() as u64);
        if len == 0 {
            return 0;
        }
        let kind = ChangeKind::Write { at: 0 };
        let mut touched = Touched::default();
        apply(&Change { seq: 0, offset, len, kind }, bytes, &mut self.durable, &mut touched);
        for sector in offset / SECTOR as u64..(offset + len).div_ceil(SECTOR as u64) {
            self.diverge(sector);
        }
        self.seal(&touched);
        len
    }
}
