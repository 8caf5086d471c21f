//! All legal crash states of a disk with few unsynced changes.

use std::collections::BTreeSet;

use super::Disk;
use super::inode::{InodeId, Node, ROOT};
use super::page::{PAGE, page_count};
use super::pick::Odometer;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

impl Disk {
    /// Every legal crash state, each once, the one that keeps everything first; `None` if there are more than `limit` ways
    /// to choose. Sectors are whole and growth reads as zeros here: torn and garbage sectors, and runs of a large zeroed
    /// range, are for [`Disk::crash_image`].
    pub fn enumerate_images(&self, limit: usize) -> Option<Vec<Disk>> {
        let (mut images, mut seen) = (Vec::new(), BTreeSet::new());
        let mut odometer = Odometer::default();
        for _ in 0..limit {
            let image = self.crash_state(&mut odometer);
            if seen.insert(image.fingerprint()) {
                images.push(image);
            }
            if !odometer.advance() {
                return Some(images);
            }
        }
        None
    }

    /// A hash over all that reads see: names, lengths and bytes.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Xxh3Default::new();
        self.hash_into(&mut hash, ROOT);
        hash.digest()
    }

    fn hash_into(&self, hash: &mut Xxh3Default, id: InodeId) {
        match &self.inode(id).node {
            Node::Dir(dir) => {
                hash.update(&(dir.visible.len() as u64).to_le_bytes());
                for (name, child) in &dir.visible {
                    hash.update(&xxh3_64(name.as_bytes()).to_le_bytes());
                    self.hash_into(hash, *child);
                }
            }
            Node::File(file) => {
                // A directory has no such length.
                hash.update(&(!file.visible.len).to_le_bytes());
                for (index, page) in file.visible.pages.present(0..page_count(file.visible.len)) {
                    if page.bytes != [0; PAGE] {
                        hash.update(&index.to_le_bytes());
                        hash.update(&page.bytes);
                    }
                }
            }
        }
    }
}
