//! Entropy and the number of cores.

use rustix::io::retry_on_intr;
use rustix::rand::{GetRandomFlags, getrandom};

pub(super) fn fill_entropy(mut bytes: &mut [u8]) {
    while !bytes.is_empty() {
        let filled = retry_on_intr(|| getrandom(&mut *bytes, GetRandomFlags::empty()))
            .expect("a kernel since Linux 3.17 has entropy, and blocks until it does");
        bytes = &mut bytes[filled..];
    }
}

/// What the scheduler's affinity mask and the control group's quota leave; 1 where they cannot be read.
pub(super) fn core_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
