//! Pages: the bytes of one image of a file, sparse and shared.
//!
//! Model: 4 KiB pages of eight 512-byte sectors; a page that is absent reads as zeros. Pages, and chunks of pages, are
//! shared by reference count and copied when written, so that a copy of an image costs its number of chunks, not its
//! bytes. Every sector that is durable carries a checksum: see [`super::checksum`].

use std::ops::Range;
use std::rc::Rc;

use super::checksum::{self, Sum};

/// Bytes of a sector: what a device writes whole or not at all, unless a profile tears it.
pub const SECTOR: usize = 512;
/// Bytes of a page: what the page cache dirties, and what is allocated.
pub const PAGE: usize = 4096;
/// Sectors of a page.
pub(super) const SECTORS: usize = PAGE / SECTOR;
/// The longest file, as on ext4 with 4 KiB blocks.
pub(super) const FILE_LEN_MAX: u64 = (1 << 44) - PAGE as u64;

const CHUNK: u32 = 32;

/// One page of an image.
#[derive(Clone)]
pub(super) struct Page {
    pub bytes: [u8; PAGE],
    /// In a durable image: the checksum of each sector. In a visible one: what a clean sector's must be.
    pub sums: [Sum; SECTORS],
    /// In a visible image: the sectors that may differ from the durable image, a bit each.
    pub dirty: u8,
}

impl Page {
    const ZERO: Page = Page { bytes: [0; PAGE], sums: [checksum::ZEROS; SECTORS], dirty: 0 };

    pub fn sector(&self, sector: usize) -> &[u8] {
        &self.bytes[sector * SECTOR..(sector + 1) * SECTOR]
    }
}

#[derive(Clone)]
struct Chunk {
    pages: [Option<Rc<Page>>; CHUNK as usize],
}

/// The pages of an image by index.
#[derive(Clone, Default)]
pub(super) struct PageMap {
    chunks: Vec<(u32, Rc<Chunk>)>,
}

impl PageMap {
    #[inline]
    fn locate(&self, key: u32) -> Result<usize, usize> {
        // Appending touches the last chunk.
        match self.chunks.last() {
            Some((last, _)) if *last == key => Ok(self.chunks.len() - 1),
            Some((last, _)) if *last > key => self.chunks.binary_search_by_key(&key, |(index, _)| *index),
            _ => Err(self.chunks.len()),
        }
    }

    #[inline]
    pub fn get(&self, index: u32) -> Option<&Rc<Page>> {
        let at = self.locate(index / CHUNK).ok()?;
        self.chunks[at].1.pages[(index % CHUNK) as usize].as_ref()
    }

    /// The page, to be written, if it is there.
    #[inline]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut Page> {
        let at = self.locate(index / CHUNK).ok()?;
        Rc::make_mut(&mut self.chunks[at].1).pages[(index % CHUNK) as usize].as_mut().map(Rc::make_mut)
    }

    /// The page, to be written; made of zeros if it is absent.
    #[inline]
    pub fn make(&mut self, index: u32) -> &mut Page {
        let at = match self.locate(index / CHUNK) {
            Ok(at) => at,
            Err(at) => {
                let chunk = Rc::new(Chunk { pages: [const { None }; CHUNK as usize] });
                self.chunks.insert(at, (index / CHUNK, chunk));
                at
            }
        };
        let slot = &mut Rc::make_mut(&mut self.chunks[at].1).pages[(index % CHUNK) as usize];
        Rc::make_mut(slot.get_or_insert_with(|| Rc::new(Page::ZERO)))
    }

    /// Makes a range of pages absent: zeros.
    pub fn clear(&mut self, pages: Range<u32>) {
        if pages.is_empty() {
            return;
        }
        let first = self.chunks.partition_point(|(index, _)| *index < pages.start / CHUNK);
        let end = self.chunks.partition_point(|(index, _)| *index <= (pages.end - 1) / CHUNK);
        for (index, chunk) in &mut self.chunks[first..end] {
            let base = *index * CHUNK;
            let (low, high) = (pages.start.max(base) - base, pages.end.min(base + CHUNK) - base);
            if chunk.pages[low as usize..high as usize].iter().any(Option::is_some) {
                Rc::make_mut(chunk).pages[low as usize..high as usize].fill(None);
            }
        }
        self.chunks
            .retain(|(index, chunk)| !pages.contains(&(index * CHUNK)) || chunk.pages.iter().any(Option::is_some));
    }

    /// The pages that are there within a range, in order.
    pub fn present(&self, pages: Range<u32>) -> impl Iterator<Item = (u32, &Rc<Page>)> {
        let first = self.chunks.partition_point(|(index, _)| *index < pages.start / CHUNK);
        self.chunks[first..]
            .iter()
            .take_while({
                let end = pages.end;
                move |(index, _)| index * CHUNK < end
            })
            .flat_map(|(index, chunk)| {
                chunk
                    .pages
                    .iter()
                    .enumerate()
                    .filter_map(move |(n, page)| page.as_ref().map(|page| (index * CHUNK + n as u32, page)))
            })
            .filter(move |(index, _)| pages.contains(index))
    }
}

/// The sectors of a page that `[low, high)` of its bytes touches, a bit each.
#[inline]
pub(super) fn sector_mask(low: usize, high: usize) -> u8 {
    debug_assert!(low < high && high <= PAGE, "a part of a page");
    let (first, last) = (low / SECTOR, (high - 1) / SECTOR);
    (0xFFu8 >> (SECTORS - 1 - (last - first))) << first
}

/// Cuts `[offset, offset + len)` at page borders: page index, and the range within the page.
#[inline]
pub(super) fn pieces(offset: u64, len: u64) -> impl Iterator<Item = (u32, Range<usize>)> {
    let end = offset + len;
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let low = (at % PAGE as u64) as usize;
        let high = PAGE.min(low + (end - at) as usize);
        let index = (at / PAGE as u64) as u32;
        at += (high - low) as u64;
        Some((index, low..high))
    })
}

/// Pages that hold `len` bytes.
pub(super) fn page_count(len: u64) -> u32 {
    u32::try_from(len.div_ceil(PAGE as u64)).expect("a file is no longer than FILE_LEN_MAX")
}
