//! A file: what reads see, what is durable, and every change in between.
//!
//! Model: two images and a log. A change is applied to the visible image when it is issued and kept in the log until a
//! sync that covers it has ended; that sync applies the covered changes to the durable image, in order. So any version
//! that a sector had since its last sync can be made again from the log, a sync costs what is dirty, and a change costs
//! the same however many are unsynced. The two images are built apart, and the checksums compare them.
//!
//! Bytes behind the length of an image are zeros.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use super::checksum;
use super::page::{FILE_LEN_MAX, PAGE, Page, PageMap, SECTOR, SECTORS, page_count, pieces, sector_mask};
use super::space::Blocks;

/// Bytes and length of a file.
#[derive(Clone, Default)]
pub(super) struct Image {
    pub pages: PageMap,
    pub len: u64,
    pub modified_ms: i64,
}

impl Image {
    /// Copies out; bytes behind the end are left alone.
    pub fn read(&self, bytes: &mut [u8], offset: u64) {
        let mut done = 0;
        for (index, range) in pieces(offset, bytes.len() as u64) {
            let target = &mut bytes[done..done + range.len()];
            done += range.len();
            match self.pages.get(index) {
                Some(page) => target.copy_from_slice(&page.bytes[range]),
                None => target.fill(0),
            }
        }
    }

    /// Sets the length; what is cut off reads as zeros if the file grows again. Gives the sectors of the last page that
    /// were cut, if that page is there.
    pub fn set_len(&mut self, len: u64) -> Option<(u32, u8)> {
        let shrinks = len < self.len;
        self.len = len;
        if !shrinks {
            return None;
        }
        self.pages.clear(page_count(len)..u32::MAX);
        let low = (len % PAGE as u64) as usize;
        let index = (len / PAGE as u64) as u32;
        if low == 0 {
            return None;
        }
        let page = self.pages.get_mut(index)?;
        page.bytes[low..].fill(0);
        Some((index, sector_mask(low, PAGE)))
    }
}

/// A change of a file that no completed sync covers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    /// Its place among all changes of the disk, names included.
    pub seq: u64,
    pub offset: u64,
    /// Bytes changed; of a change of length the new length.
    pub len: u64,
    pub kind: ChangeKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeKind {
    /// Bytes, kept at this place of [`FileState::bytes`].
    Write { at: usize },
    /// Bytes that came through a region.
    Mapped { at: usize },
    /// Zeros.
    Zero,
    /// The length, if that is longer.
    Grow,
    /// The length.
    SetLen,
}

impl Change {
    pub fn end(&self) -> u64 {
        self.offset + self.len
    }

    /// The length of a file of length `len` after this change.
    pub fn len_after(&self, len: u64) -> u64 {
        match self.kind {
            ChangeKind::SetLen => self.len,
            ChangeKind::Grow => len.max(self.len),
            _ => len.max(self.end()),
        }
    }

    /// The range that it left zeros in; a truncation's has no end.
    fn zeroed(&self) -> Option<Range<u64>> {
        match self.kind {
            ChangeKind::Zero => Some(self.offset..self.end()),
            ChangeKind::SetLen if self.len < FILE_LEN_MAX => Some(self.len..FILE_LEN_MAX),
            _ => None,
        }
    }

    /// The bytes, if it has any of its own.
    pub fn bytes<'a>(&self, arena: &'a [u8]) -> Option<&'a [u8]> {
        match self.kind {
            ChangeKind::Write { at } | ChangeKind::Mapped { at } => Some(&arena[at..at + self.len as usize]),
            _ => None,
        }
    }
}

/// A file.
#[derive(Clone, Default)]
pub(super) struct FileState {
    pub visible: Image,
    pub durable: Image,
    /// Unsynced changes in order.
    pub log: Vec<Change>,
    /// The bytes of unsynced writes.
    pub bytes: Vec<u8>,
    /// Sectors that differ from the durable image although no change is unsynced: the disk failed a sync of them, or put
    /// other bytes there. A write to their page dirties them again.
    pub diverged: BTreeMap<u32, u8>,
    pub blocks: Blocks,
    /// Sectors that cannot be read until they are overwritten.
    pub bad_sectors: BTreeSet<u64>,
    pub writeback: Writeback,
}

/// Errors of writing back, told once to every handle that was open, else to the next one opened.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Writeback {
    pub errors: u32,
    pub told: bool,
}

impl FileState {
    /// A file of which reads see what is durable.
    pub fn settled(image: Image, mut blocks: Blocks) -> Self {
        blocks.cut(page_count(image.len));
        Self { visible: image.clone(), durable: image, blocks, ..Self::default() }
    }

    pub fn read(&self, bytes: &mut [u8], offset: u64) {
        let mut done = 0;
        for (index, range) in pieces(offset, bytes.len() as u64) {
            let target = &mut bytes[done..done + range.len()];
            done += range.len();
            match self.visible.pages.get(index) {
                Some(page) => {
                    checksum::verify(page, index, sector_mask(range.start, range.end) & !page.dirty);
                    target.copy_from_slice(&page.bytes[range]);
                }
                None => target.fill(0),
            }
        }
    }

    pub fn write(&mut self, seq: u64, offset: u64, bytes: &[u8], mapped: bool) {
        self.redirty(seq, offset, bytes.len() as u64);
        let at = self.bytes.len();
        let kind = if mapped { ChangeKind::Mapped { at } } else { ChangeKind::Write { at } };
        self.bytes.extend_from_slice(bytes);
        let mut rest = bytes;
        for (index, range) in pieces(offset, bytes.len() as u64) {
            let page = self.visible.pages.make(index);
            page.dirty |= sector_mask(range.start, range.end);
            let (here, behind) = rest.split_at(range.len());
            page.bytes[range].copy_from_slice(here);
            rest = behind;
        }
        self.push(Change { seq, offset, len: bytes.len() as u64, kind });
    }

    /// Zeros over a range. Whole pages become absent, so that a large range costs its present pages.
    pub fn zero(&mut self, seq: u64, offset: u64, len: u64) {
        self.redirty(seq, offset, len);
        let end = offset + len;
        let whole = page_count(offset)..(end / PAGE as u64) as u32;
        let edges = if whole.is_empty() {
            [offset..end, end..end]
        } else {
            [offset..u64::from(whole.start) * PAGE as u64, u64::from(whole.end) * PAGE as u64..end]
        };
        for edge in edges {
            for (index, range) in pieces(edge.start, edge.end - edge.start) {
                let page = self.visible.pages.make(index);
                page.dirty |= sector_mask(range.start, range.end);
                page.bytes[range].fill(0);
            }
        }
        self.visible.pages.clear(whole);
        self.push(Change { seq, offset, len, kind: ChangeKind::Zero });
    }

    /// Extends the file, if it is shorter.
    pub fn grow(&mut self, seq: u64, len: u64) {
        if len > self.visible.len {
            self.push(Change { seq, offset: 0, len, kind: ChangeKind::Grow });
        }
    }

    pub fn set_len(&mut self, seq: u64, len: u64) {
        if len < self.visible.len {
            if let Some((index, mask)) = self.visible.set_len(len) {
                self.visible.pages.get_mut(index).expect("was cut").dirty |= mask;
            }
            let first_sector = len.div_ceil(SECTOR as u64);
            self.diverged.retain(|page, mask| {
                let before = first_sector.saturating_sub(u64::from(*page) * SECTORS as u64).min(SECTORS as u64);
                *mask &= ((1u32 << before) - 1) as u8;
                *mask != 0
            });
        }
        self.push(Change { seq, offset: 0, len, kind: ChangeKind::SetLen });
    }

    fn push(&mut self, change: Change) {
        self.visible.len = change.len_after(self.visible.len);
        self.log.push(change);
    }

    /// A page is written back whole: sectors of it that differ from the disk become unsynced again.
    fn redirty(&mut self, seq: u64, offset: u64, len: u64) {
        if self.diverged.is_empty() || len == 0 {
            return;
        }
        let pages = (offset / PAGE as u64) as u32..page_count(offset + len);
        let again: Vec<(u32, u8)> = self.diverged.range(pages).map(|(page, mask)| (*page, *mask)).collect();
        for (index, mask) in again {
            self.diverged.remove(&index);
            for sector in checksum::bits(mask) {
                let offset = u64::from(index) * PAGE as u64 + (sector * SECTOR) as u64;
                let len = (SECTOR as u64).min(self.visible.len.saturating_sub(offset));
                if len == 0 {
                    continue;
                }
                let at = self.bytes.len();
                match self.visible.pages.get(index) {
                    Some(page) => self.bytes.extend_from_slice(page.sector(sector)),
                    None => self.bytes.resize(at + SECTOR, 0),
                }
                self.push(Change { seq, offset, len, kind: ChangeKind::Write { at } });
            }
        }
    }

    /// How many unsynced changes are covered by a sync that began at `upto`.
    pub fn covered(&self, upto: u64) -> usize {
        self.log.partition_point(|change| change.seq <= upto)
    }

    /// A sync that began at `upto` has ended: what it covers is durable.
    pub fn make_durable(&mut self, upto: u64) {
        let covered = self.covered(upto);
        if covered == 0 {
            return;
        }
        let mut touched = Touched::default();
        for change in &self.log[..covered] {
            apply(change, &self.bytes, &mut self.durable, &mut touched);
            self.touch_zeroed(change, &mut touched);
        }
        self.forget(covered);
        touched.merge();
        self.seal(&touched);
    }

    /// Takes the sums of durable sectors, and marks them clean.
    pub fn seal(&mut self, touched: &Touched) {
        for (index, mask) in &touched.pages {
            let mut sums = [checksum::ZEROS; SECTORS];
            if let Some(page) = self.durable.pages.get_mut(*index) {
                checksum::take(page, *mask);
                sums = page.sums;
            }
            if let Some(page) = self.visible.pages.get_mut(*index) {
                page.dirty &= !mask;
                for sector in checksum::bits(*mask) {
                    page.sums[sector] = sums[sector];
                }
            }
        }
        self.mark_dirty();
    }

    /// Drops the first changes of the log.
    pub fn forget(&mut self, count: usize) {
        if count == self.log.len() {
            self.log.clear();
            self.bytes.clear();
            return;
        }
        self.log.drain(..count);
        let first = self.log.iter().find_map(|change| match change.kind {
            ChangeKind::Write { at } | ChangeKind::Mapped { at } => Some(at),
            _ => None,
        });
        let cut = first.unwrap_or(self.bytes.len());
        self.bytes.drain(..cut);
        for change in &mut self.log {
            if let ChangeKind::Write { at } | ChangeKind::Mapped { at } = &mut change.kind {
                *at -= cut;
            }
        }
    }

    /// Pages that reads see where a change left zeros: a sync of it touches them, whatever was durable there.
    pub fn touch_zeroed(&self, change: &Change, touched: &mut Touched) {
        if let Some(zeroed) = change.zeroed() {
            for (index, _) in self.visible.pages.present(pages_of(&zeroed)) {
                touched.add(index, sectors_within(index, &zeroed));
            }
        }
    }

    /// Marks the sectors that unsynced changes and divergence touch.
    fn mark_dirty(&mut self) {
        let mut touched = Touched::default();
        for change in &self.log {
            self.touch_zeroed(change, &mut touched);
            if change.bytes(&self.bytes).is_some() {
                for (index, range) in pieces(change.offset, change.len) {
                    touched.add(index, sector_mask(range.start, range.end));
                }
            }
        }
        for (index, mask) in &touched.pages {
            if let Some(page) = self.visible.pages.get_mut(*index) {
                page.dirty |= mask;
            }
        }
        for (index, mask) in &self.diverged {
            if let Some(page) = self.visible.pages.get_mut(*index) {
                page.dirty |= mask;
            }
        }
    }

    /// Evicts clean pages: reads see what the disk has.
    pub fn evict(&mut self) {
        for (index, mask) in std::mem::take(&mut self.diverged) {
            let durable = self.durable.pages.get(index).cloned();
            let page = self.visible.pages.make(index);
            for sector in checksum::bits(mask) {
                let range = sector * SECTOR..(sector + 1) * SECTOR;
                match &durable {
                    Some(durable) => {
                        page.bytes[range].copy_from_slice(durable.sector(sector));
                        page.sums[sector] = durable.sums[sector];
                    }
                    None => {
                        page.bytes[range].fill(0);
                        page.sums[sector] = checksum::ZEROS;
                    }
                }
            }
            page.dirty &= !mask;
        }
    }

    /// Marks a sector as different from the durable image, without a change that is unsynced.
    pub fn diverge(&mut self, sector: u64) {
        let (index, mask) = ((sector / SECTORS as u64) as u32, 1u8 << (sector % SECTORS as u64));
        *self.diverged.entry(index).or_insert(0) |= mask;
        self.visible.pages.make(index).dirty |= mask;
    }

    /// Checks all durable sectors.
    pub fn verify(&self) {
        for (index, page) in self.durable.pages.present(0..u32::MAX) {
            checksum::verify(page, index, 0xFF);
        }
        assert!(
            self.durable.pages.present(page_count(self.durable.len)..u32::MAX).next().is_none(),
            "simulator bug: bytes behind the end"
        );
    }

    /// The durable pages, for reuse by others once the file is gone.
    pub fn freed_pages(&self, from: u32) -> impl Iterator<Item = &Rc<Page>> {
        self.durable.pages.present(from..u32::MAX).map(|(_, page)| page)
    }
}

/// A zeroed range longer than this is never looked at sector by sector, in bytes.
pub(super) const ZERO_RANGE_LARGE: u64 = 32 * 1024;

fn pages_of(range: &Range<u64>) -> Range<u32> {
    (range.start / PAGE as u64) as u32..page_count(range.end)
}

/// The part of a page that a range covers, which it touches.
fn part_of_page(index: u32, range: &Range<u64>) -> Range<usize> {
    let base = u64::from(index) * PAGE as u64;
    (range.start.max(base) - base) as usize..(range.end.min(base + PAGE as u64) - base) as usize
}

/// The sectors of a page that a range touches.
fn sectors_within(index: u32, range: &Range<u64>) -> u8 {
    let part = part_of_page(index, range);
    sector_mask(part.start, part.end)
}

/// Sectors that a sync touched, by page.
#[derive(Default)]
pub(super) struct Touched {
    pub pages: Vec<(u32, u8)>,
}

impl Touched {
    #[inline]
    pub fn add(&mut self, index: u32, mask: u8) {
        match self.pages.last_mut() {
            Some((last, seen)) if *last == index => *seen |= mask,
            _ => self.pages.push((index, mask)),
        }
    }

    pub fn merge(&mut self) {
        if self.pages.len() < 2 || self.pages.is_sorted_by(|a, b| a.0 < b.0) {
            return;
        }
        self.pages.sort_unstable();
        self.pages.dedup_by(|from, into| {
            let same = from.0 == into.0;
            if same {
                into.1 |= from.1;
            }
            same
        });
    }
}

/// Applies a change to an image.
pub(super) fn apply(change: &Change, arena: &[u8], image: &mut Image, touched: &mut Touched) {
    match change.kind {
        ChangeKind::Write { .. } | ChangeKind::Mapped { .. } => {
            let mut rest = change.bytes(arena).expect("a write has bytes");
            for (index, range) in pieces(change.offset, change.len) {
                touched.add(index, sector_mask(range.start, range.end));
                let (here, behind) = rest.split_at(range.len());
                image.pages.make(index).bytes[range].copy_from_slice(here);
                rest = behind;
            }
        }
        ChangeKind::Zero => {
            let zeroed = change.offset..change.end();
            let whole = page_count(change.offset)..(change.end() / PAGE as u64) as u32;
            let present: Vec<u32> = image.pages.present(pages_of(&zeroed)).map(|(index, _)| index).collect();
            for index in present {
                touched.add(index, sectors_within(index, &zeroed));
                if !whole.contains(&index) {
                    image.pages.make(index).bytes[part_of_page(index, &zeroed)].fill(0);
                }
            }
            image.pages.clear(whole);
        }
        ChangeKind::Grow => {}
        ChangeKind::SetLen => {
            if let Some((index, mask)) = image.set_len(change.len) {
                touched.add(index, mask);
            }
        }
    }
    image.len = change.len_after(image.len);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn synced() -> FileState {
        let mut file = FileState::default();
        file.write(1, 0, &[7; 1000], false);
        file.make_durable(1);
        file
    }

    #[test]
    #[should_panic(expected = "simulator bug: sector 1 changed by itself")]
    fn a_clean_sector_that_changes_by_itself_is_noticed_by_a_read() {
        let mut file = synced();
        file.visible.pages.make(0).bytes[600] ^= 1;
        file.read(&mut [0; 512], 0);
        file.read(&mut [0; 1], 512);
    }

    #[test]
    #[should_panic(expected = "simulator bug: sector 5 changed by itself")]
    fn zeros_that_change_by_themselves_are_noticed() {
        let mut file = synced();
        file.visible.pages.make(0).bytes[3000] = 1;
        file.visible.len = 4000;
        file.read(&mut [0; 4000], 0);
    }

    #[test]
    #[should_panic(expected = "simulator bug: sector 1 changed by itself")]
    fn a_durable_sector_that_changes_by_itself_is_noticed_by_a_crash() {
        let mut file = synced();
        file.durable.pages.make(0).bytes[600] ^= 1;
        file.verify();
    }

    #[test]
    fn a_dirty_sector_is_not_checked_and_a_clean_one_beside_it_is() {
        let mut file = synced();
        file.write(2, 0, &[8; 10], false);
        file.read(&mut [0; 1000], 0);
        assert_eq!(file.visible.pages.get(0).map(|page| page.dirty), Some(1));
        file.make_durable(2);
        assert_eq!(file.visible.pages.get(0).map(|page| page.dirty), Some(0));
        file.read(&mut [0; 1000], 0);
        file.verify();
    }

    #[test]
    fn what_is_written_during_a_sync_stays_in_the_log_with_its_bytes() {
        let mut file = FileState::default();
        for seq in 1..=6 {
            file.write(seq, seq * 100, &[seq as u8; 100], false);
        }
        file.make_durable(4);
        assert_eq!((file.log.len(), file.bytes.len()), (2, 200));
        assert_eq!(file.log[0].bytes(&file.bytes), Some(&[5; 100][..]));
        assert_eq!(file.durable.len, 500);
        file.make_durable(6);
        let mut bytes = [0; 700];
        file.durable.read(&mut bytes, 0);
        assert!((0..700).all(|n| bytes[n] as usize == n / 100));
    }

    #[test]
    fn a_zeroed_range_takes_one_change_and_no_pages() {
        let mut file = synced();
        file.zero(2, 0, 64 << 20);
        assert_eq!((file.log.len(), file.bytes.len()), (1, 0));
        assert_eq!(file.visible.pages.present(0..u32::MAX).count(), 0);
        file.make_durable(2);
        assert_eq!(file.durable.pages.present(0..u32::MAX).count(), 0);
    }
}
