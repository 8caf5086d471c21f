//! Power loss: the disk becomes one legal crash state, or such a state is made beside it.
//!
//! Model: names first, since a file that no name leads to is gone; then each file by itself ([`super::survive`]). Afterwards
//! reads see what is durable, and no handle, region or lock is left. A fault placed by count goes on counting.

use std::collections::BTreeMap;

use super::file::FileState;
use super::inode::{Inode, InodeId, Node, ROOT};
use super::namespace::{DirState, NameUnit, closed_under_order};
use super::page::page_count;
use super::pick::{Drawn, Picks};
use super::profile::NameOrder;
use super::survive::{Scope, survive};
use super::{Disk, op};
use crate::choices::Actor;
use crate::context::Context;

impl Disk {
    /// Power is lost: the disk becomes one legal crash state, chosen in the streams of `actor`, and is verified.
    pub fn power_loss(&mut self, ctx: &mut Context, actor: Actor) {
        for (_, file) in self.files() {
            file.verify();
        }
        let (changes, names) = self.unsynced();
        *self = self.crash_state(&mut Drawn::new(ctx, actor));
        self.note(ctx, actor, op::POWER_LOSS, [changes as u64, names as u64], Ok(0));
        self.rot_by_rate(ctx, actor);
    }

    /// A legal crash state beside the running disk, which goes on. Shares its pages.
    pub fn crash_image(&self, ctx: &mut Context, actor: Actor) -> Disk {
        let (changes, names) = self.unsynced();
        let mut image = self.crash_state(&mut Drawn::new(ctx, actor));
        self.note(ctx, actor, op::CRASH_IMAGE, [changes as u64, names as u64], Ok(0));
        image.rot_by_rate(ctx, actor);
        image
    }

    pub(super) fn crash_state(&self, picks: &mut dyn Picks) -> Disk {
        let scope = self.scope(picks);
        picks.turn_to("names", 0);
        let kept = self.surviving_names(scope, picks);
        let mut floors: BTreeMap<InodeId, u64> = BTreeMap::new();
        let mut names = self.durable_names();
        for unit in self.pending.iter().zip(&kept).filter_map(|(unit, kept)| kept.then_some(unit)) {
            if let Some(id) = unit.flushes {
                floors.insert(id, unit.seq);
            }
            for ((dir, name), to) in &unit.sets {
                let names = &mut names.entry(*dir).or_default().durable;
                match to {
                    Some(id) => names.insert(name.clone(), *id),
                    None => names.remove(name),
                };
            }
        }
        let mut state = self.without_inodes();
        state.settle_dir(self, ROOT, ROOT, &mut names);
        for index in 0..state.inodes.len() {
            let id = InodeId(index as u32);
            if let (Some(_), Some(Inode { node: Node::File(file), .. })) = (&state.inodes[index], &self.inodes[index]) {
                let floor = floors.get(&id).copied().unwrap_or(0);
                if !file.log.is_empty() {
                    picks.turn_to("file", u64::from(id.0));
                }
                let image = survive(file, scope, floor, &self.profile, &self.reuse, picks);
                let grown_back = image.len > file.visible.len;
                let mut blocks = file.blocks.clone();
                if grown_back {
                    blocks.add(0..page_count(image.len));
                }
                let mut settled = FileState::settled(image, blocks);
                settled.bad_sectors.clone_from(&file.bad_sectors);
                state.used_blocks += settled.blocks.count();
                *state.file_mut(id) = settled;
            }
        }
        state
    }

    fn scope(&self, picks: &mut dyn Picks) -> Scope {
        if picks.exhaustive() {
            return Scope::Each;
        }
        let crash = &self.profile.crash;
        match picks.weighted(&[crash.all_weight, crash.none_weight, crash.prefix_weight, crash.each_weight]) {
            0 => Scope::Until(self.seq),
            1 => Scope::Until(0),
            2 => {
                let first = |seq: Option<u64>| seq.unwrap_or(self.seq + 1);
                let of_files = self.files().map(|(_, file)| first(file.log.first().map(|change| change.seq))).min();
                let oldest = first(of_files).min(first(self.pending.first().map(|unit| unit.seq)));
                Scope::Until(self.seq - picks.below(self.seq + 2 - oldest))
            }
            _ => Scope::Each,
        }
    }

    fn surviving_names(&self, scope: Scope, picks: &mut dyn Picks) -> Vec<bool> {
        let count = self.pending.len();
        match (scope, self.profile.file_system.names) {
            (Scope::Until(seq), _) => self.pending.iter().map(|unit| unit.seq <= seq).collect(),
            (Scope::Each, NameOrder::Journal) => {
                let kept = count - picks.below(count as u64 + 1) as usize;
                (0..count).map(|index| index < kept).collect()
            }
            (Scope::Each, NameOrder::Any) => closed_under_order(&self.pending, &mut |_: &NameUnit| picks.below(2) == 0),
        }
    }

    fn durable_names(&self) -> BTreeMap<InodeId, DirState> {
        let dirs = self.inodes.iter().enumerate().filter_map(|(index, inode)| match inode {
            Some(Inode { node: Node::Dir(dir), .. }) => {
                Some((InodeId(index as u32), DirState { durable: dir.durable.clone(), ..DirState::default() }))
            }
            _ => None,
        });
        dirs.collect()
    }

    /// This disk without anything on it.
    fn without_inodes(&self) -> Disk {
        Disk {
            profile: self.profile.clone(),
            inodes: self.inodes.iter().map(|_| None).collect(),
            handles: self.handles.renew(),
            regions: self.regions.renew(),
            locks: self.locks.renew(),
            pending: Vec::new(),
            seq: self.seq,
            era: self.era + 1,
            used_blocks: 0,
            capacity_blocks: self.capacity_blocks,
            reuse: self.reuse.clone(),
            faults: self.faults.clone(),
            damage: self.damage.clone(),
            civil_offset_ms: self.civil_offset_ms,
        }
    }

    /// Puts a directory and everything below it, its names as given.
    fn settle_dir(&mut self, before: &Disk, id: InodeId, parent: InodeId, names: &mut BTreeMap<InodeId, DirState>) {
        let mut dir = names.remove(&id).unwrap_or_default();
        dir.visible.clone_from(&dir.durable);
        dir.parent = parent;
        let children: Vec<InodeId> = dir.durable.values().copied().collect();
        let actor = before.inode(id).actor;
        // A name each, visible and durable; the root has one that nobody sees.
        let inode = self.inodes[id.index()].get_or_insert_with(|| Inode {
            actor,
            node: Node::Dir(DirState::default()),
            refs: 1,
            live: 1,
        });
        inode.node = Node::Dir(dir);
        for child in children {
            let known = &before.inode(child);
            let is_dir = matches!(known.node, Node::Dir(_));
            let first_seen = self.inodes[child.index()].is_none();
            let inode = self.inodes[child.index()].get_or_insert_with(|| Inode {
                actor: known.actor,
                node: if is_dir { Node::Dir(DirState::default()) } else { Node::File(Box::default()) },
                refs: 0,
                live: 0,
            });
            inode.refs += 2;
            inode.live += 1;
            if is_dir && first_seen {
                self.settle_dir(before, child, id, names);
            }
        }
    }
}
