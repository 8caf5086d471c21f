//! Damage: what media and the outside world do to bytes that were durable.
//!
//! Model: damage strikes the durable image, and what reads see where they see the same. It stays the same however often
//! it is read. Every case is listed, so that an oracle can excuse exactly those bytes. Not modelled: damage of names and of
//! lengths by the medium; stale and duplicated writes.

use super::file::{Change, ChangeKind, FileState, Touched, apply};
use super::inode::{InodeId, Node, ROOT};
use super::page::{FILE_LEN_MAX, SECTOR, SECTORS, page_count};
use super::pick::per_million;
use super::{Disk, Errno, checksum, op};
use crate::choices::{Actor, Family};
use crate::context::Context;
use xxhash_rust::xxh3::xxh3_64;

/// Bits that rot in one sector, at most.
const ROT_BITS_MAX: u64 = 32;

/// Durable bytes that are not what was made durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// How it came.
    pub kind: DamageKind,
    /// A path of the file when it was struck, without a leading slash; empty if it had no name.
    pub path: String,
    /// First byte that may be concerned.
    pub offset: u64,
    /// Bytes that may be concerned.
    pub len: u64,
}

/// How damage came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DamageKind {
    /// Bits flipped.
    Rot,
    /// A sector cannot be read.
    LatentError,
    /// A write was acknowledged and did not happen.
    LostWrite,
    /// A write happened elsewhere: once for the place that it should have gone to, once for where it went.
    MisdirectedWrite,
    /// A sync was acknowledged and did not happen (also by ext4 with `data=journal`, whose error comes a sync late).
    LyingSync,
    /// Somebody else changed the file.
    Outside,
}

impl Disk {
    /// All damage so far, oldest first.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    pub(super) fn push_damage(&mut self, ctx: &mut Context, damage: Damage) {
        let args = [xxh3_64(damage.path.as_bytes()), damage.offset];
        self.note(ctx, Actor::RUN, op::DAMAGE, args, Ok(damage.len << 8 | damage.kind as u64));
        self.damage.push(damage);
    }

    /// Flips 1 to 32 bits of one durable sector below the directory `under`, chosen by the damage choices of `actor`.
    /// `None` if no file there has a durable byte.
    pub fn rot(&mut self, ctx: &mut Context, actor: Actor, under: &str) -> Result<Option<Damage>, Errno> {
        let top = self.find(under)?;
        let mut files = Vec::new();
        self.files_below(top, &mut files);
        let total: u64 = files.iter().map(|id| self.file(*id).durable.len.div_ceil(SECTOR as u64)).sum();
        if total == 0 {
            return Ok(None);
        }
        let stream = ctx.stream(Family::Damage, actor);
        let mut sector = ctx.below(stream, total);
        let id = files.into_iter().find(|id| {
            let sectors = self.file(*id).durable.len.div_ceil(SECTOR as u64);
            let here = sector < sectors;
            sector -= if here { 0 } else { sectors };
            here
        });
        let id = id.expect("the draw is below the total");
        let start = sector * SECTOR as u64;
        let len = (self.file(id).durable.len - start).min(SECTOR as u64);
        let mut bytes = vec![0; len as usize];
        self.file(id).durable.read(&mut bytes, start);
        let (mut first, mut last) = (len, 0);
        for _ in 0..ctx.range(stream, 1, ROT_BITS_MAX) {
            let bit = ctx.below(stream, len * 8);
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            (first, last) = (first.min(bit / 8), last.max(bit / 8));
        }
        self.file_mut(id).damage_bytes(start, &bytes);
        let damage =
            Damage { kind: DamageKind::Rot, path: self.path_of(id), offset: start + first, len: last + 1 - first };
        self.push_damage(ctx, damage.clone());
        Ok(Some(damage))
    }

    pub(super) fn rot_by_rate(&mut self, ctx: &mut Context, actor: Actor) {
        let ppm = self.profile.rates.rot_ppm;
        if ppm > 0 {
            let stream = ctx.stream(Family::Damage, actor);
            if ctx.chance(stream, per_million(ppm)) {
                self.rot(ctx, actor, "/").expect("the root is a directory");
            }
        }
    }

    /// One sector of a range cannot be read from now on, until it is overwritten.
    pub(super) fn spoil(&mut self, ctx: &mut Context, id: InodeId, offset: u64, len: u64) {
        let (first, end) = (offset / SECTOR as u64, (offset + len).div_ceil(SECTOR as u64));
        let actor = self.inode(id).actor;
        let stream = ctx.stream(Family::Damage, actor);
        let sector = first + ctx.below(stream, end - first);
        self.file_mut(id).bad_sectors.insert(sector);
        let (offset, path) = (sector * SECTOR as u64, self.path_of(id));
        self.push_damage(ctx, Damage { kind: DamageKind::LatentError, path, offset, len: SECTOR as u64 });
    }

    /// Somebody overwrites bytes of a file, durably; what is behind its end is left out.
    pub fn poke(&mut self, ctx: &mut Context, path: &str, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        let id = self.find_file(path)?;
        let file = self.file_mut(id);
        file.damage_bytes(offset, bytes);
        self.push_damage(
            ctx,
            Damage { kind: DamageKind::Outside, path: self.path_of(id), offset, len: bytes.len() as u64 },
        );
        Ok(())
    }

    /// Reads what is durable, without a trace: for oracles and tests. Bytes behind the end are left alone.
    pub fn peek(&self, path: &str, offset: u64, bytes: &mut [u8]) -> Result<u64, Errno> {
        let id = self.find_file(path)?;
        let image = &self.file(id).durable;
        let len = image.len.saturating_sub(offset).min(bytes.len() as u64);
        image.read(&mut bytes[..len as usize], offset);
        Ok(len)
    }

    /// Somebody cuts or extends a file, durably.
    pub fn damage_len(&mut self, ctx: &mut Context, path: &str, len: u64) -> Result<(), Errno> {
        let id = self.find_file(path)?;
        if len > FILE_LEN_MAX {
            return Err(Errno::EFBIG);
        }
        let before = self.file(id).visible.len;
        self.change_len(ctx, id, len);
        let upto = self.seq;
        self.file_mut(id).make_durable(upto);
        let (offset, len) = (before.min(len), before.max(len) - before.min(len));
        self.push_damage(ctx, Damage { kind: DamageKind::Outside, path: self.path_of(id), offset, len });
        Ok(())
    }

    /// Somebody removes a file, durably.
    pub fn damage_remove(&mut self, ctx: &mut Context, path: &str) -> Result<(), Errno> {
        let len = self.file(self.find_file(path)?).visible.len;
        self.remove_file(ctx, path)?;
        let upto = self.seq;
        self.make_names_durable(upto, |_| true);
        let path = path.trim_matches('/').to_owned();
        self.push_damage(ctx, Damage { kind: DamageKind::Outside, path, offset: 0, len });
        Ok(())
    }

    /// Somebody puts other bytes in a file's place, or a new file, durably: an older copy, an unknown file.
    pub fn damage_replace(&mut self, ctx: &mut Context, path: &str, bytes: &[u8]) -> Result<(), Errno> {
        let id = self.find_or_create(ctx, path, true, false)?;
        if matches!(self.inode(id).node, Node::Dir(_)) {
            return Err(Errno::EISDIR);
        }
        let before = self.file(id).visible.len;
        self.change_len(ctx, id, 0);
        self.take_blocks(id, 0..page_count(bytes.len() as u64));
        self.seq += 1;
        let upto = self.seq;
        let file = self.file_mut(id);
        file.write(upto, 0, bytes, false);
        file.make_durable(upto);
        self.make_names_durable(upto, |_| true);
        let len = before.max(bytes.len() as u64);
        self.push_damage(ctx, Damage { kind: DamageKind::Outside, path: self.path_of(id), offset: 0, len });
        Ok(())
    }

    /// Pages that differ from the disk are evicted from the cache: reads see what a failed sync left on the disk.
    pub fn evict(&mut self, ctx: &mut Context, path: &str) -> Result<(), Errno> {
        let id = self.find_file(path)?;
        self.evict_pages(ctx, id);
        Ok(())
    }

    fn evict_pages(&mut self, ctx: &mut Context, id: InodeId) {
        let count = self.file(id).diverged.len() as u64;
        self.file_mut(id).evict();
        let actor = self.inode(id).actor;
        self.note(ctx, actor, op::EVICT, [count, 0], Ok(0));
    }

    pub(super) fn evict_by_rate(&mut self, ctx: &mut Context, id: InodeId) {
        let ppm = self.profile.rates.evict_ppm;
        if ppm > 0 && !self.file(id).diverged.is_empty() {
            let stream = ctx.stream(Family::Fault, self.inode(id).actor);
            if ctx.chance(stream, per_million(ppm)) {
                self.evict_pages(ctx, id);
            }
        }
    }

    fn find_file(&self, path: &str) -> Result<InodeId, Errno> {
        let id = self.find(path)?;
        match &self.inode(id).node {
            Node::File(_) => Ok(id),
            Node::Dir(_) => Err(Errno::EISDIR),
        }
    }

    fn files_below(&self, id: InodeId, files: &mut Vec<InodeId>) {
        match &self.inode(id).node {
            Node::File(_) => files.push(id),
            Node::Dir(dir) => dir.visible.values().for_each(|child| self.files_below(*child, files)),
        }
    }

    /// A path of an inode, without a leading slash; empty if it has no name.
    pub(super) fn path_of(&self, id: InodeId) -> String {
        self.path_below(ROOT, id).unwrap_or_default()
    }

    fn path_below(&self, dir: InodeId, id: InodeId) -> Option<String> {
        let names = &self.dir(dir).ok()?.visible;
        names.iter().find_map(|(name, child)| {
            if *child == id {
                return Some(name.to_string());
            }
            self.path_below(*child, id).map(|rest| format!("{name}/{rest}"))
        })
    }
}

impl FileState {
    /// Changes durable bytes, and what reads see where that is the same; takes the new sums knowingly.
    fn damage_bytes(&mut self, offset: u64, bytes: &[u8]) {
        let len = self.durable.len.saturating_sub(offset).min(bytes.len() as u64);
        if len == 0 {
            return;
        }
        let change = Change { seq: 0, offset, len, kind: ChangeKind::Write { at: 0 } };
        let mut touched = Touched::default();
        apply(&change, bytes, &mut self.durable, &mut touched);
        for (index, mask) in &touched.pages {
            checksum::take(self.durable.pages.make(*index), *mask);
            let dirty = self.visible.pages.get(*index).map_or(0, |page| page.dirty);
            let durable = self.durable.pages.get(*index).expect("was just written").clone();
            for sector in checksum::bits(mask & !dirty) {
                let start = u64::from(*index) * SECTORS as u64 + sector as u64;
                if start * SECTOR as u64 >= self.visible.len {
                    continue;
                }
                let page = self.visible.pages.make(*index);
                page.bytes[sector * SECTOR..(sector + 1) * SECTOR].copy_from_slice(durable.sector(sector));
                page.sums[sector] = durable.sums[sector];
            }
        }
    }
}
