//! Space: which pages of a file are allocated.
//!
//! Model: 4 KiB blocks, one to a page; a hole takes none. Not modelled: blocks of metadata, a reserve, delayed allocation
//! whose failure shows only in a sync.

use std::collections::BTreeMap;
use std::ops::Range;

/// Allocated pages of one file.
#[derive(Clone, Default)]
pub(super) struct Blocks {
    /// Pages `[0, head)` are allocated: all that a file without holes needs.
    head: u32,
    /// Ranges behind `head` by their start, apart from each other.
    rest: BTreeMap<u32, u32>,
}

impl Blocks {
    /// Allocated pages.
    pub fn count(&self) -> u64 {
        u64::from(self.head) + self.rest.iter().map(|(start, end)| u64::from(end - start)).sum::<u64>()
    }

    /// How many pages of `pages` are not allocated yet.
    #[inline]
    pub fn missing(&self, pages: &Range<u32>) -> u64 {
        let start = pages.start.max(self.head);
        if start >= pages.end {
            return 0;
        }
        let held: u64 = self
            .rest
            .range(..pages.end)
            .map(|(low, high)| u64::from((*high).min(pages.end)).saturating_sub(u64::from((*low).max(start))))
            .sum();
        u64::from(pages.end - start) - held
    }

    /// Where `pages` must end for at most `free` of them to be missing.
    pub fn fitting(&self, pages: &Range<u32>, free: u64) -> u32 {
        let mut end = pages.start;
        let mut left = free;
        while end < pages.end {
            let missing = self.missing(&(end..end + 1));
            if missing > left {
                break;
            }
            left -= missing;
            end += 1;
        }
        end
    }

    /// Allocates `pages`.
    #[inline]
    pub fn add(&mut self, pages: Range<u32>) {
        if pages.end <= self.head || pages.is_empty() {
            return;
        }
        let (mut start, mut end) = (pages.start, pages.end);
        while let Some((low, high)) = self.rest.range(..=end).next_back().map(|(low, high)| (*low, *high)) {
            if high < start {
                break;
            }
            (start, end) = (start.min(low), end.max(high));
            self.rest.remove(&low);
        }
        if start <= self.head {
            self.head = end;
        } else {
            self.rest.insert(start, end);
        }
    }

    /// Frees all pages from `first` on.
    pub fn cut(&mut self, first: u32) {
        self.head = self.head.min(first);
        self.rest.retain(|low, _| *low < first);
        if let Some((_, high)) = self.rest.iter_mut().next_back() {
            *high = (*high).min(first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_as_a_set_of_pages_does() {
        let mut blocks = Blocks::default();
        let mut set = std::collections::BTreeSet::new();
        let mut word = 7u32;
        for _ in 0..20_000 {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (start, len) = (word >> 8 & 63, word >> 16 & 7);
            if word >> 28 == 0 {
                blocks.cut(start);
                set.retain(|page| *page < start);
            } else {
                let missing = (start..start + len).filter(|page| !set.contains(page)).count() as u64;
                assert_eq!(blocks.missing(&(start..start + len)), missing);
                assert_eq!(blocks.fitting(&(start..start + len), missing), start + len);
                blocks.add(start..start + len);
                set.extend(start..start + len);
            }
            assert_eq!(blocks.count(), set.len() as u64);
        }
    }
}
