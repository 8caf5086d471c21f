//! Which fault strikes an operation.
//!
//! Model: rules in order, the first that strikes decides, and each counts whichever of them strikes; then the rates. With
//! neither nothing is looked at, and a rate of zero draws nothing.

use std::rc::Rc;

use super::{Effect, FaultPoint, FaultRule};
use crate::choices::{Actor, Family};
use crate::context::Context;
use crate::disk::errno::Errno;
use crate::disk::handle::Handle;
use crate::disk::inode::{InodeId, ROOT, inode_actor};
use crate::disk::pick::per_million;
use crate::disk::profile::{DiskProfile, FaultRates, SyncFailure};
use crate::disk::{Disk, op};

/// The rules in force, with how often each one's operation was met.
#[derive(Clone)]
pub(in crate::disk) struct FaultState {
    rules: Vec<(Rc<FaultRule>, u64)>,
    /// Nothing can strike.
    quiet: bool,
    /// Something has, since the faults were set.
    struck: bool,
}

impl FaultState {
    pub fn new(profile: &DiskProfile) -> Self {
        let rules: Vec<_> = profile.faults.iter().map(|rule| (Rc::new(rule.clone()), 0)).collect();
        let quiet = rules.is_empty() && profile.rates == FaultRates::default();
        Self { rules, quiet, struck: false }
    }
}

/// A fault that strikes an operation.
#[derive(Debug, Clone, Copy)]
pub(in crate::disk) struct Strike {
    pub effect: Effect,
    pub profile: Option<SyncFailure>,
    /// How much is done all the same: given by a rule.
    pub partial: Option<u64>,
    pub sticky: bool,
    /// By a rule, which says what happens; what a rate does is drawn.
    placed: bool,
}

impl Strike {
    fn by_rate(effect: Effect) -> Self {
        Self { effect, profile: None, partial: None, sticky: false, placed: false }
    }

    /// How much of a failing write of `len` bytes is done.
    pub fn part_done(&self, ctx: &mut Context, actor: Actor, len: u64) -> u64 {
        if self.placed {
            return self.partial.unwrap_or(0).min(len);
        }
        let stream = ctx.stream(Family::Fault, actor);
        ctx.below(stream, len + 1)
    }

    /// How many of `count` bytes a short read or write moves: at least one.
    pub fn shortened(&self, ctx: &mut Context, actor: Actor, count: usize) -> usize {
        if count < 2 {
            return count;
        }
        if self.placed {
            return self.partial.map_or(count / 2, |partial| (partial as usize).clamp(1, count));
        }
        let stream = ctx.stream(Family::Fault, actor);
        count - ctx.below(stream, count as u64) as usize
    }

    /// The error of an operation that does all or nothing.
    pub fn errno_or(&self, other: Errno) -> Errno {
        match self.effect {
            Effect::Error(errno) => errno,
            _ => other,
        }
    }
}

impl Disk {
    /// Places a fault; it counts from now.
    pub fn place_fault(&mut self, rule: FaultRule) {
        self.faults.rules.push((Rc::new(rule), 0));
        self.faults.quiet = false;
    }

    /// Takes all placed faults away, and sets the rates.
    pub fn reset_faults(&mut self, rates: FaultRates) {
        Rc::make_mut(&mut self.profile).rates = rates;
        self.faults = FaultState { rules: Vec::new(), quiet: rates == FaultRates::default(), struck: false };
    }

    /// Whether a fault has struck since they were set.
    pub fn has_failed(&self) -> bool {
        self.faults.struck
    }

    /// Whether a fault strikes an operation on an open file.
    #[inline]
    pub(in crate::disk) fn strike(
        &mut self,
        ctx: &mut Context,
        point: FaultPoint,
        handle: Option<Handle>,
    ) -> Option<Strike> {
        if self.faults.quiet {
            return None;
        }
        let open = self.handles.get(handle?).ok()?;
        let (inode, path) = (open.inode, open.path.clone());
        self.strike_loud(ctx, point, &path, inode)
    }

    /// Whether a fault strikes an operation on a path.
    #[inline]
    pub(in crate::disk) fn strike_path(&mut self, ctx: &mut Context, point: FaultPoint, path: &str) -> Option<Strike> {
        if self.faults.quiet {
            return None;
        }
        self.strike_loud(ctx, point, path, ROOT)
    }

    /// Fails an operation that does all or nothing.
    pub(in crate::disk) fn fail_by_fault(
        &mut self,
        ctx: &mut Context,
        point: FaultPoint,
        path: &str,
    ) -> Result<(), Errno> {
        self.strike_path(ctx, point, path).map_or(Ok(()), |strike| Err(strike.errno_or(Errno::EIO)))
    }

    #[cold]
    fn strike_loud(&mut self, ctx: &mut Context, point: FaultPoint, path: &str, inode: InodeId) -> Option<Strike> {
        let actor = inode_actor(inode);
        let mut found = None;
        for (index, (rule, count)) in self.faults.rules.iter_mut().enumerate() {
            if rule.on != point || rule.path.as_ref().is_some_and(|pattern| !pattern.matches(path)) {
                continue;
            }
            // Every rule counts, whichever of them strikes.
            *count += 1;
            if found.is_none() && rule.when.strikes(*count) {
                let FaultRule { effect, profile, partial, sticky, .. } = **rule;
                found = Some((index as u64, Strike { effect, profile, partial, sticky, placed: true }));
            }
        }
        let (by, strike) = match found {
            Some(found) => found,
            None => (u64::MAX, self.strike_by_rate(ctx, point, actor)?),
        };
        let result = match strike.effect {
            Effect::Error(errno) => errno.code(),
            Effect::Short => 1,
            Effect::Lie => 2,
            Effect::Lose => 3,
            Effect::Misdirect => 4,
        };
        self.faults.struck = true;
        self.note(ctx, actor, op::FAULT, [point as u64, by], Ok(result));
        Some(strike)
    }

    fn strike_by_rate(&self, ctx: &mut Context, point: FaultPoint, actor: Actor) -> Option<Strike> {
        let rates = &self.profile.rates;
        let eio = Effect::Error(Errno::EIO);
        let chances: &[(u32, Effect)] = match point {
            FaultPoint::Open => &[(rates.open_error_ppm, eio)],
            FaultPoint::Create
            | FaultPoint::Rename
            | FaultPoint::RemoveFile
            | FaultPoint::CreateDir
            | FaultPoint::RemoveDir => &[(rates.name_error_ppm, eio)],
            FaultPoint::Read => &[(rates.read_error_ppm, eio), (rates.read_short_ppm, Effect::Short)],
            FaultPoint::Write => &[(rates.write_error_ppm, eio), (rates.write_short_ppm, Effect::Short)],
            FaultPoint::Sync => &[
                (rates.sync_error_ppm, eio),
                (rates.lying_sync_ppm, Effect::Lie),
                (rates.lost_write_ppm, Effect::Lose),
                (rates.misdirected_write_ppm, Effect::Misdirect),
            ],
            FaultPoint::DirSync => &[(rates.dir_sync_error_ppm, eio)],
            FaultPoint::Space => &[(rates.no_space_ppm, Effect::Error(Errno::ENOSPC))],
            FaultPoint::SetLen | FaultPoint::Map | FaultPoint::List => &[],
        };
        let latent_ppm = if point == FaultPoint::Read { rates.latent_error_ppm } else { 0 };
        if latent_ppm == 0 && chances.iter().all(|(ppm, _)| *ppm == 0) {
            return None;
        }
        let stream = ctx.stream(Family::Fault, actor);
        if ctx.chance(stream, per_million(latent_ppm)) {
            return Some(Strike { sticky: true, ..Strike::by_rate(eio) });
        }
        let struck = chances.iter().find(|(ppm, _)| ctx.chance(stream, per_million(*ppm)));
        struck.map(|(_, effect)| Strike::by_rate(*effect))
    }
}
