//! What a power loss keeps of one file.
//!
//! Model: the length is that of some moment ([`super::history`]). Each sector holds its version of some moment, which the length's moment bounds only
//! where a truncation lies between: a kept truncation took what was behind it, a lost one never made room for what was
//! written behind it later. A profile may also bound it from below ([`super::profile::LengthOrder`], [`super::profile::RenameOrder`]).
//!
//! Large zeroed ranges are decided in runs, not sector by sector; a sector in them that was written otherwise is decided by
//! itself. Not modelled: that a page cache page is written back whole, so that sectors of one page share a moment more often
//! than here.

use super::checksum;
use super::file::{Change, ChangeKind, FileState, Image, Touched, apply};
use super::history::{History, LargeZero, Length};
use super::page::{FILE_LEN_MAX, PAGE, SECTOR, SECTORS};
use super::pick::Picks;
use super::profile::{DiskProfile, GrowthFill, LengthOrder};
use super::reuse::Reuse;

/// What survives of the whole disk.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scope {
    /// What was done up to the change of that number.
    Until(u64),
    /// Whatever each file's own choices say.
    Each,
}

/// Pages of a lost zeroed range that show old bytes, at most.
const STALE_PAGES_MAX: u64 = 16;

/// Chances of a fill: zeros, old bytes, garbage.
const FILL_WEIGHTS: [u32; 3] = [2, 1, 1];

/// The state of a file after a power loss. What is in the log up to change `floor_seq` is kept in any case.
pub(super) fn survive(
    file: &FileState,
    scope: Scope,
    floor_seq: u64,
    profile: &DiskProfile,
    reuse: &Reuse,
    picks: &mut dyn Picks,
) -> Image {
    if file.log.is_empty() {
        return file.durable.clone();
    }
    let fate = Fate::draw(file, scope, profile, picks);
    let history = History::of(file);
    let length = fate.length(&history, file.covered(floor_seq), picks);
    Survival { file, profile, reuse, floor: file.covered(floor_seq), fate, history, length, fill: None }.image(picks)
}

/// How the moments of a file's parts are chosen.
enum Fate {
    /// One for all.
    Moment(usize),
    /// Each sector's by itself.
    Mix,
    /// Neighbouring sectors' together.
    Runs,
    /// Each change is kept or not: a sector's is the last kept one that touches it.
    Writes(Vec<bool>),
}

impl Fate {
    fn draw(file: &FileState, scope: Scope, profile: &DiskProfile, picks: &mut dyn Picks) -> Fate {
        let count = file.log.len();
        match scope {
            Scope::Until(seq) => Fate::Moment(file.covered(seq)),
            Scope::Each if picks.exhaustive() => Fate::Mix,
            Scope::Each => match picks.weighted(&profile.crash.file_weights) {
                0 => Fate::Moment(count),
                1 => Fate::Moment(0),
                2 => Fate::Moment(count - picks.below(count as u64 + 1) as usize),
                3 => Fate::Mix,
                4 => Fate::Runs,
                _ => Fate::Writes(file.log.iter().map(|_| picks.below(2) == 0).collect()),
            },
        }
    }

    fn length(&self, history: &History, floor: usize, picks: &mut dyn Picks) -> Length {
        let lengths = &history.lengths;
        let at_moment = |moment: usize| lengths.partition_point(|length| length.moment <= moment) - 1;
        let first = at_moment(floor);
        let chosen = match self {
            Fate::Moment(moment) => at_moment(*moment).max(first),
            _ => lengths.len() - 1 - picks.below((lengths.len() - first) as u64) as usize,
        };
        lengths[chosen]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fill {
    Zeros,
    /// Old bytes, from that kept page on.
    Stale(usize),
    Garbage,
}

struct Survival<'a> {
    file: &'a FileState,
    profile: &'a DiskProfile,
    reuse: &'a Reuse,
    /// Changes up to this moment are kept.
    floor: usize,
    fate: Fate,
    history: History,
    length: Length,
    /// Drawn when first needed.
    fill: Option<Fill>,
}

/// A run of neighbouring sectors with one fate.
#[derive(Default)]
struct Run {
    next: u64,
    left: u64,
    moment: usize,
}

impl Survival<'_> {
    fn image(mut self, picks: &mut dyn Picks) -> Image {
        let mut image = self.file.durable.clone();
        let mut touched = Touched::default();
        for cut in self.history.cuts.iter().filter(|cut| cut.moment <= self.length.moment) {
            let cut_page = image.set_len(cut.len);
            touched.pages.extend(cut_page);
        }
        for zero in std::mem::take(&mut self.history.large_zeros) {
            self.large_zero(zero, &mut image, &mut touched, picks);
            self.history.large_zeros.push(zero);
        }
        let changes = std::mem::take(&mut self.history.changes);
        let mut run = Run::default();
        for of_sector in changes.chunk_by(|a, b| a.0 == b.0) {
            self.sector(of_sector, &mut run, &mut image, &mut touched, picks);
        }
        image.len = FILE_LEN_MAX;
        touched.pages.extend(image.set_len(self.length.len));
        if self.length.moment == self.history.lengths.last().expect("the durable one is first").moment {
            image.modified_ms = self.file.visible.modified_ms;
        }
        touched.merge();
        for (index, mask) in &touched.pages {
            if image.pages.get(*index).is_some() {
                checksum::take(image.pages.make(*index), *mask);
            }
        }
        image
    }

    /// The moments between which a sector's version may be chosen.
    fn bounds(&self, sector: u64) -> (usize, usize) {
        let (start, end) = (sector * SECTOR as u64, (sector + 1) * SECTOR as u64);
        let (mut low, mut high) = (self.floor, self.file.log.len());
        for cut in &self.history.cuts {
            if cut.moment <= self.length.moment {
                if cut.len < end {
                    low = low.max(cut.moment);
                }
            } else if cut.len <= start {
                high = high.min(cut.moment - 1);
            }
        }
        let grew = end > self.file.durable.len && start < self.length.len;
        if grew && self.profile.file_system.length == LengthOrder::AfterData {
            low = low.max(self.length.moment);
        }
        debug_assert!(low <= high, "a kept change lies behind no lost truncation");
        (low, high)
    }

    /// All moments that changed a sector.
    fn versions(&self, of_sector: &[(u64, usize)]) -> Vec<usize> {
        let sector = of_sector[0].0;
        let mut moments: Vec<usize> = of_sector.iter().map(|(_, moment)| *moment).collect();
        let zeros = self.history.large_zeros.iter().filter(|zero| (zero.first..zero.end).contains(&sector));
        moments.extend(zeros.map(|zero| zero.moment));
        let cuts = self.history.cuts.iter().filter(|cut| cut.len <= sector * SECTOR as u64);
        moments.extend(cuts.map(|cut| cut.moment));
        moments.sort_unstable();
        moments.dedup();
        moments
    }

    fn sector(
        &mut self,
        of_sector: &[(u64, usize)],
        run: &mut Run,
        image: &mut Image,
        touched: &mut Touched,
        picks: &mut dyn Picks,
    ) {
        let sector = of_sector[0].0;
        let start = sector * SECTOR as u64;
        let (low, high) = self.bounds(sector);
        let versions = self.versions(of_sector);
        // Version 0 is the durable one; version v is that of moment `versions[v - 1]`.
        let version_at = |moment: usize| versions.partition_point(|version| *version <= moment);
        let (oldest, newest) = (version_at(low), version_at(high));
        let chosen = match &self.fate {
            Fate::Moment(moment) => version_at(*moment).clamp(oldest, newest),
            Fate::Mix => newest - picks.below((newest - oldest) as u64 + 1) as usize,
            Fate::Runs => version_at(self.run_moment(sector, run, picks)).clamp(oldest, newest),
            Fate::Writes(kept) => {
                (oldest + 1..=newest).rev().find(|version| kept[versions[version - 1] - 1]).unwrap_or(oldest)
            }
        };
        if start >= self.length.len {
            return;
        }
        let mut bytes = self.version(sector, &versions[..chosen]);
        if chosen > oldest {
            let of_region = matches!(self.file.log[versions[chosen - 1] - 1].kind, ChangeKind::Mapped { .. });
            let crash = &self.profile.crash;
            let torn_ppm =
                if of_region { crash.torn_region_ppm.max(crash.torn_sector_ppm) } else { crash.torn_sector_ppm };
            if picks.chance(torn_ppm) {
                let other = chosen - 1 - picks.below((chosen - oldest) as u64) as usize;
                let other = self.version(sector, &versions[..other]);
                let split = 1 + picks.below(SECTOR as u64 - 1) as usize;
                let side = if picks.below(2) == 0 { split..SECTOR } else { 0..split };
                bytes[side.clone()].copy_from_slice(&other[side]);
            }
        }
        if newest > oldest && picks.chance(self.profile.crash.garbage_sector_ppm) {
            let mut garbage = [0; SECTOR];
            picks.fill(&mut garbage);
            let changed = self.coverage(sector, &versions[oldest..newest]);
            for (byte, _) in changed.iter().enumerate().filter(|(_, changed)| **changed) {
                bytes[byte] = garbage[byte];
            }
        }
        if chosen < newest {
            self.fill_growth(sector, &versions[..chosen], &mut bytes, picks);
        }
        let (index, within) = ((sector / SECTORS as u64) as u32, (sector % SECTORS as u64) as usize);
        image.pages.make(index).bytes[within * SECTOR..(within + 1) * SECTOR].copy_from_slice(&bytes);
        touched.add(index, 1 << within);
    }

    fn run_moment(&self, sector: u64, run: &mut Run, picks: &mut dyn Picks) -> usize {
        if run.left == 0 || run.next != sector {
            run.left = 1 + picks.below(self.profile.crash.run_sectors_max.max(1));
            let count = self.file.log.len();
            run.moment = match picks.below(3) {
                0 => count,
                1 => 0,
                _ => count - picks.below(count as u64 + 1) as usize,
            };
        }
        run.left -= 1;
        run.next = sector + 1;
        run.moment
    }

    /// A sector's bytes after some of the moments that changed it.
    fn version(&self, sector: u64, moments: &[usize]) -> [u8; SECTOR] {
        let mut bytes = [0; SECTOR];
        self.file.durable.read(&mut bytes, sector * SECTOR as u64);
        for moment in moments {
            let change = &self.file.log[moment - 1];
            if let Some((range, from)) = within_sector(change, sector) {
                match change.bytes(&self.file.bytes) {
                    Some(written) => bytes[range.clone()].copy_from_slice(&written[from..from + range.len()]),
                    None => bytes[range].fill(0),
                }
            }
        }
        bytes
    }

    /// Which bytes of a sector some moments changed.
    fn coverage(&self, sector: u64, moments: &[usize]) -> [bool; SECTOR] {
        let mut covered = [false; SECTOR];
        for moment in moments {
            if let Some((range, _)) = within_sector(&self.file.log[moment - 1], sector) {
                covered[range].fill(true);
            }
        }
        covered
    }

    /// What is read where the length grew over bytes that were lost.
    fn fill_growth(&mut self, sector: u64, applied: &[usize], bytes: &mut [u8; SECTOR], picks: &mut dyn Picks) {
        let start = sector * SECTOR as u64;
        let low = self.file.durable.len.saturating_sub(start).min(SECTOR as u64) as usize;
        let high = self.length.len.saturating_sub(start).min(SECTOR as u64) as usize;
        if low >= high {
            return;
        }
        let mut filled = [0; SECTOR];
        match self.growth_fill(picks) {
            Fill::Zeros => return,
            Fill::Garbage => picks.fill(&mut filled),
            Fill::Stale(first) => {
                if let Some(page) = self.reuse.page(first, (sector / SECTORS as u64) as u32) {
                    filled.copy_from_slice(page.sector((sector % SECTORS as u64) as usize));
                }
            }
        }
        let covered = self.coverage(sector, applied);
        for byte in (low..high).filter(|byte| !covered[*byte]) {
            bytes[byte] = filled[byte];
        }
    }

    fn growth_fill(&mut self, picks: &mut dyn Picks) -> Fill {
        let (reuse, growth) = (self.reuse, self.profile.file_system.growth);
        *self.fill.get_or_insert_with(|| match growth {
            GrowthFill::Zeros => Fill::Zeros,
            GrowthFill::Anything => match picks.weighted(&FILL_WEIGHTS) {
                0 => Fill::Zeros,
                1 if reuse.len() > 0 => Fill::Stale(picks.below(reuse.len() as u64) as usize),
                _ => Fill::Garbage,
            },
        })
    }

    fn large_zero(&mut self, zero: LargeZero, image: &mut Image, touched: &mut Touched, picks: &mut dyn Picks) {
        let (start, end) = (zero.first * SECTOR as u64, zero.end * SECTOR as u64);
        let behind_lost_cut = self
            .history
            .cuts
            .iter()
            .any(|cut| cut.moment > self.length.moment && cut.moment < zero.moment && cut.len < end);
        if behind_lost_cut {
            return;
        }
        let grew = end > self.file.durable.len && start < self.length.len;
        let after_data = self.profile.file_system.length == LengthOrder::AfterData;
        let kept = zero.moment <= self.floor || (grew && after_data && zero.moment <= self.length.moment);
        let count = zero.end - zero.first;
        // Sectors that keep what they held, in order.
        let mut lost: Vec<(u64, u64)> = Vec::new();
        match &self.fate {
            _ if kept => {}
            Fate::Moment(moment) if zero.moment <= *moment => {}
            Fate::Moment(_) => lost.push((zero.first, zero.end)),
            Fate::Writes(kept) if kept[zero.moment - 1] => {}
            Fate::Writes(_) => lost.push((zero.first, zero.end)),
            _ => match picks.below(4) {
                0 => {}
                1 => lost.push((zero.first, zero.end)),
                2 => lost.push((zero.end - picks.below(count + 1), zero.end)),
                _ => {
                    let mut at = zero.first + picks.below(count + 1);
                    while at < zero.end {
                        let len = 1 + picks.below(zero.end - at);
                        lost.push((at, at + len));
                        at += len + picks.below(count + 1);
                    }
                }
            },
        }
        let mut at = zero.first;
        for (first, end) in &lost {
            zero_sectors(at, *first, image, touched);
            self.fill_lost_zeros(*first, *end, image, touched, picks);
            at = *end;
        }
        zero_sectors(at, zero.end, image, touched);
    }

    /// The old bytes of reused space show where a file grew by zeros that were lost.
    fn fill_lost_zeros(
        &mut self,
        first: u64,
        end: u64,
        image: &mut Image,
        touched: &mut Touched,
        picks: &mut dyn Picks,
    ) {
        let grown = self.file.durable.len.div_ceil(SECTOR as u64);
        let last = self.length.len / SECTOR as u64;
        let shown = first.max(grown)..end.min(last).min(first.max(grown) + STALE_PAGES_MAX * SECTORS as u64);
        for sector in shown {
            let mut bytes = [0; SECTOR];
            self.fill_growth(sector, &[], &mut bytes, picks);
            if bytes != [0; SECTOR] {
                let (index, within) = ((sector / SECTORS as u64) as u32, (sector % SECTORS as u64) as usize);
                image.pages.make(index).bytes[within * SECTOR..(within + 1) * SECTOR].copy_from_slice(&bytes);
                touched.add(index, 1 << within);
            }
        }
    }
}

/// The part of a sector that a change sets, and where that part begins in the change's bytes.
fn within_sector(change: &Change, sector: u64) -> Option<(std::ops::Range<usize>, usize)> {
    let (start, end) = (sector * SECTOR as u64, (sector + 1) * SECTOR as u64);
    let (low, high) = match change.kind {
        ChangeKind::Grow => return None,
        ChangeKind::SetLen => (change.len.max(start), end),
        _ => (change.offset.max(start), change.end().min(end)),
    };
    let from = if change.kind == ChangeKind::SetLen { 0 } else { low - change.offset };
    (low < high).then(|| ((low - start) as usize..(high - start) as usize, from as usize))
}

fn zero_sectors(first: u64, end: u64, image: &mut Image, touched: &mut Touched) {
    if first >= end {
        return;
    }
    let (first, end) = (first * SECTOR as u64, end * SECTOR as u64);
    let change = Change { seq: 0, offset: first, len: end - first, kind: ChangeKind::Zero };
    let len = image.len;
    apply(&change, &[], image, touched);
    image.len = len;
    debug_assert!(first.is_multiple_of(SECTOR as u64) && PAGE.is_multiple_of(SECTOR), "whole sectors");
}
