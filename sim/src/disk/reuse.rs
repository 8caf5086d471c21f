//! Space that was freed: its old bytes may show where a file grew and its data was lost.
//!
//! Model: the last pages that files gave up, a bounded number; a fill takes them in order from a drawn place. Not
//! modelled: which blocks an allocator would reuse.

use std::collections::VecDeque;
use std::rc::Rc;

use super::page::Page;

/// How many pages are kept.
pub(super) const KEPT_PAGES: usize = 64;

/// Pages of removed and truncated files, oldest first.
#[derive(Clone, Default)]
pub(super) struct Reuse {
    pages: VecDeque<Rc<Page>>,
}

impl Reuse {
    pub fn free(&mut self, pages: impl IntoIterator<Item = Rc<Page>>) {
        for page in pages.into_iter().take(KEPT_PAGES) {
            if self.pages.len() == KEPT_PAGES {
                self.pages.pop_front();
            }
            self.pages.push_back(page);
        }
    }

    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// The old bytes of a page of a file, if space is reused from the `first`-th kept page on.
    pub fn page(&self, first: usize, index: u32) -> Option<&Page> {
        let count = self.pages.len();
        (count > 0).then(|| &*self.pages[(first + index as usize) % count])
    }
}
