//! The thread that makes segments and maps regions ahead of need, so that a roll stalls no append.

use std::sync::Arc;
use std::sync::atomic::Ordering::AcqRel;

use crate::env::{Condvar, Env, Word};

use super::error::{Context, IoFailure, Operation};
use super::layout::Layout;
use super::make::make_segment;
use super::options::WrittenBy;
use super::segment::Segment;
use super::shared::{Phase, Shared};
use super::staging::{Next, Window};

impl<E: Env, L: Layout> Shared<E, L> {
    /// The allocator's life.
    pub fn run_allocator(&self) {
        loop {
            self.allocator.swap(0, AcqRel);
            if self.phase() != Phase::Open {
                return;
            }
            self.allocate_what_is_asked();
            self.allocator.wait(0, None);
        }
    }

    fn allocate_what_is_asked(&self) {
        loop {
            let staging = self.staging.lock();
            if matches!(staging.next, Next::Asked) {
                let base = staging.active.as_ref().map_or(staging.end, |active| active.limit);
                drop(staging);
                let next = self.make_next(base);
                self.staging.lock().next = next;
                self.next_made.notify_all();
            } else if staging.window_asked {
                let Some((active, window)) = staging.active.clone().zip(staging.window.as_ref()) else { return };
                let begin = window.end;
                drop(staging);
                let mapped = self.map_window(&active, begin);
                let mut staging = self.staging.lock();
                let is_active = staging.active.as_ref().is_some_and(|now| now.base == active.base);
                match mapped {
                    // Left asked for where it fails: appends take the other way for the rest of the segment.
                    Err(_) => return,
                    Ok(window) if is_active => {
                        staging.window_asked = false;
                        staging.next_window = Some(window);
                    }
                    Ok(_) => {}
                }
            } else {
                return;
            }
        }
    }

    fn make_next(&self, base: u64) -> Next<E> {
        let (env, layout) = (&self.env, &self.layout);
        match make_segment(env, layout, &self.directory, &self.preparing, base, self.options.planted) {
            Ok(segment) => {
                let window = self.first_window(&segment, base);
                Next::Ready(Arc::new(segment), window)
            }
            Err(failure) => Next::Failed(Arc::new(failure)),
        }
    }

    /// Maps the region that takes `position`, if appends go through regions. `None` too where that fails: there is
    /// another way.
    pub fn first_window(&self, segment: &Segment<E>, position: u64) -> Option<Window<E>> {
        (self.options.written_by == WrittenBy::Region && position < segment.limit)
            .then(|| self.map_window(segment, position).ok())
            .flatten()
    }

    fn map_window(&self, segment: &Segment<E>, position: u64) -> Result<Window<E>, IoFailure> {
        let window_bytes = self.options.window_bytes;
        let offset = (position - segment.base) / window_bytes * window_bytes;
        let len = window_bytes.min(segment.limit - segment.base - offset);
        let region = self.env.map_region(&segment.file, offset, len).context(Operation::Map, &segment.path, offset)?;
        Ok(Window { begin: segment.base + offset, end: segment.base + offset + len, region })
    }
}
