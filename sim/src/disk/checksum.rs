//! The disk's check on itself: a checksum of every durable sector, so that a bug of the simulator is reported as one and
//! never as the store's.
//!
//! Model: the sum is taken of the durable bytes when they become durable, and compared with what reads see, which got
//! there another way, on every read of a clean sector and at a crash. Legal damage (rot, misdirected writes) takes a new
//! sum knowingly.

use xxhash_rust::xxh3::xxh3_64;

use super::page::{Page, SECTOR, SECTORS};

/// Checksum of a sector.
pub(super) type Sum = u32;

/// Of a sector that nothing was ever written to.
pub(super) const ZEROS: Sum = 0;

#[inline]
pub(super) fn of(sector: &[u8]) -> Sum {
    debug_assert_eq!(sector.len(), SECTOR);
    xxh3_64(sector) as u32 | 1
}

#[inline]
fn holds(sector: &[u8], sum: Sum) -> bool {
    if sum == ZEROS { sector.iter().all(|byte| *byte == 0) } else { of(sector) == sum }
}

/// Takes the sums of some sectors of a durable page.
#[inline]
pub(super) fn take(page: &mut Page, mask: u8) {
    for sector in bits(mask) {
        page.sums[sector] = of(page.sector(sector));
    }
}

/// Checks some sectors of a page.
///
/// # Panics
/// If a sum does not hold: a bug of this simulator.
#[inline]
pub(super) fn verify(page: &Page, index: u32, mask: u8) {
    for sector in bits(mask) {
        assert!(
            holds(page.sector(sector), page.sums[sector]),
            "simulator bug: sector {} changed by itself",
            u64::from(index) * SECTORS as u64 + sector as u64
        );
    }
}

/// The sectors of a mask.
#[inline]
pub(super) fn bits(mask: u8) -> impl Iterator<Item = usize> {
    (0..SECTORS).filter(move |sector| mask >> sector & 1 == 1)
}
