//! Files of cells, each file written by one of the three ways in which bytes get to the kernel.

use std::path::{Path, PathBuf};

use stormlog::env::real::{RealEnv, RealFile, RealRegion};
use stormlog::env::{Env, File, OpenOptions, Region};

use super::{Acknowledged, Subject, acknowledge};

/// A writer for each way, by turns.
pub struct BareFiles;

const CELL_LEN: u64 = 200;
const CELLS_PER_FILE: u64 = 500;
const FILE_LEN: u64 = CELL_LEN * CELLS_PER_FILE;

#[derive(Debug, Clone, Copy)]
enum Way {
    Region,
    Write,
    SyncedWrite,
}

const WAYS: [Way; 3] = [Way::Region, Way::Write, Way::SyncedWrite];

impl Subject for BareFiles {
    fn append_for_ever(root: &Path) -> ! {
        let mut writers = WAYS.map(|way| CellWriter::open(root, way));
        loop {
            for (n, writer) in writers.iter_mut().enumerate() {
                writer.append(root);
                acknowledge(n, writer.cell);
            }
        }
    }

    fn check(root: &Path, acknowledged: &Acknowledged) {
        for (writer, count) in acknowledged {
            let whole = count_whole_cells(root, WAYS[*writer]);
            assert!(whole >= *count, "{:?}: {count} cells acknowledged, {whole} are there", WAYS[*writer]);
        }
    }
}

struct CellWriter {
    way: Way,
    cell: u64,
    file: RealFile,
    region: RealRegion,
}

impl CellWriter {
    fn open(root: &Path, way: Way) -> Self {
        let cell = count_whole_cells(root, way);
        let file = RealEnv.open(&cell_file(root, way, cell), OpenOptions::CREATE).expect("a file");
        if file.len().expect("a length") < FILE_LEN {
            file.zero_range(0, FILE_LEN).expect("to zero");
        }
        let region = RealEnv.map_region(&file, 0, FILE_LEN).expect("a region");
        Self { way, cell, file, region }
    }

    fn append(&mut self, root: &Path) {
        let offset = self.cell % CELLS_PER_FILE * CELL_LEN;
        let content = cell_content(self.cell);
        match self.way {
            Way::Region => self.region.copy_in(offset, &content),
            Way::Write => self.file.write_all_at(&content, offset).expect("to write"),
            Way::SyncedWrite => {
                self.file.write_all_at(&content, offset).expect("to write");
                self.file.sync_data().expect("to sync");
            }
        }
        self.cell += 1;
        if self.cell.is_multiple_of(CELLS_PER_FILE) {
            *self = Self::open(root, self.way);
        }
    }
}

fn cell_file(root: &Path, way: Way, cell: u64) -> PathBuf {
    root.join(format!("{way:?}-{:04}", cell / CELLS_PER_FILE))
}

/// Different from zeros in every byte.
fn cell_content(cell: u64) -> [u8; CELL_LEN as usize] {
    std::array::from_fn(|at| (cell.wrapping_mul(31).wrapping_add(at as u64) % 255) as u8 + 1)
}

fn count_whole_cells(root: &Path, way: Way) -> u64 {
    let is_whole = |cell: &u64| {
        let mut bytes = [0; CELL_LEN as usize];
        RealEnv
            .open(&cell_file(root, way, *cell), OpenOptions::READ)
            .and_then(|file| file.read_exact_at(&mut bytes, cell % CELLS_PER_FILE * CELL_LEN))
            .is_ok_and(|()| bytes == cell_content(*cell))
    };
    (0..).find(|cell| !is_whole(cell)).expect("an end")
}
