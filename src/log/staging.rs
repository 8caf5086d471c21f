//! What is decided under `append.lock`: places in the log, and the bytes on their way to the kernel.
//!
//! Model: `bytes` are those of the active segment that no one has taken to write yet; they end at the log's end. A region
//! is a shorter way for the same bytes, open only while nothing before them is still on its way.

use std::sync::Arc;
use std::sync::atomic::Ordering::Release;
use std::sync::atomic::fence;

use crate::env::{Env, MutexGuard, Region};

use super::error::{IoFailure, RefusedError};
use super::layout::Layout;
use super::segment::Segment;

/// A mapped part of a segment, in positions of the log.
pub(super) struct Window<E: Env> {
    pub begin: u64,
    pub end: u64,
    pub region: E::Region,
}

impl<E: Env> Window<E> {
    /// Copies what is appended at `position`, its first bytes last: a process killed on the way leaves no beginning
    /// without the rest.
    pub fn publish(&self, position: u64, bytes: &[u8]) {
        const FIRST_BYTES: usize = 8;
        let offset = position - self.begin;
        let (first, rest) = bytes.split_at(FIRST_BYTES.min(bytes.len()));
        self.region.copy_in(offset + first.len() as u64, rest);
        fence(Release);
        self.region.copy_in(offset, first);
    }
}

/// The segment behind the active one.
pub(super) enum Next<E: Env> {
    /// Not needed yet.
    Unasked,
    /// The allocator is to make it.
    Asked,
    /// Zero-filled, synced, and named durably.
    Ready(Arc<Segment<E>>, Option<Window<E>>),
    /// It could not be made.
    Failed(Arc<IoFailure>),
}

pub(super) type StagingGuard<'l, E, L> = MutexGuard<'l, E, Staging<E, L>>;

pub(super) struct Staging<E: Env, L: Layout> {
    /// The layout's own part of the tail.
    pub tail: L::Tail,
    /// Where the next append goes.
    pub end: u64,
    /// The segment it goes to, unless that is still to be made.
    pub active: Option<Arc<Segment<E>>>,
    /// Staged bytes, `[end - bytes.len(), end)`.
    pub bytes: Vec<u8>,
    /// Where bytes are encoded on their way to a region; grows to the longest and keeps its length.
    pub scratch: Vec<u8>,
    /// The region that is written through.
    pub window: Option<Window<E>>,
    /// The region behind it, if it is mapped already.
    pub next_window: Option<Window<E>>,
    /// Whether the allocator is to map the region behind `window`.
    pub window_asked: bool,
    /// The sync that will carry what is staged now.
    pub batch: u64,
    /// The segment behind the active one.
    pub next: Next<E>,
    /// Whether the flusher sleeps until it is woken.
    pub flusher_sleeps: bool,
    /// Where the unsynced bytes become too many to wait for the flusher's interval.
    pub flush_at: u64,
    /// Whether they have.
    pub flush_due: bool,
    /// Why appends are refused, if they are.
    pub refusing: Option<RefusedError>,
}

impl<E: Env, L: Layout> Staging<E, L> {
    /// Whether `len` bytes fit into the active segment.
    pub fn fits(&self, len: u64, closing_bytes: u64) -> bool {
        self.active.as_ref().is_some_and(|active| self.end + len + closing_bytes <= active.limit)
    }

    /// Whether `len` bytes at the end may go to the kernel at once through a region, given what the kernel has.
    pub fn may_bypass(&mut self, written_end: u64, len: u64) -> bool {
        if written_end != self.end {
            return false;
        }
        if self.window.as_ref().is_some_and(|window| window.end <= self.end) {
            self.window = self.next_window.take();
        }
        let (begin, end) = (self.end, self.end + len);
        self.window.as_ref().is_some_and(|window| window.begin <= begin && end <= window.end)
    }

    /// Whether the flusher has to be woken: it sleeps, or what is unsynced has become too much.
    pub fn needs_flusher(&mut self) -> bool {
        let is_due = !self.flush_due && self.flush_at <= self.end;
        self.flush_due |= is_due;
        std::mem::take(&mut self.flusher_sleeps) | is_due
    }

    /// Whether the allocator has to be woken: half of the active segment, or of the window, is used.
    pub fn needs_allocator(&mut self) -> bool {
        let Some(active) = &self.active else { return false };
        let half_used = |begin: u64, end: u64| self.end >= begin && self.end - begin >= (end - begin) / 2;
        let wants_next = matches!(self.next, Next::Unasked) && half_used(active.base, active.limit);
        let wants_window = !self.window_asked
            && self.next_window.is_none()
            && self.window.as_ref().is_some_and(|w| w.end < active.limit && half_used(w.begin, w.end));
        if wants_next {
            self.next = Next::Asked;
        }
        self.window_asked |= wants_window;
        wants_next || wants_window
    }
}
