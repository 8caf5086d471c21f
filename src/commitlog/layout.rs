//! RocketMQ's shape of the log: 20-digit names, and a blank at the end of each segment.

use crate::codec::record::{BLANK_LEN, blank};
use crate::log::Layout;
use crate::planted::Planted;

use super::queues::QueueOffsets;

const NAME_LEN: usize = 20;

/// The layout of a commit log.
#[derive(Debug, Clone, Copy)]
pub struct CommitLogLayout {
    pub(super) segment_bytes: u64,
    pub(super) planted: Planted,
}

impl Layout for CommitLogLayout {
    type Tail = QueueOffsets;

    fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    fn file_name(&self, base: u64) -> String {
        format!("{base:0NAME_LEN$}")
    }

    fn base_of(&self, file_name: &str) -> Option<u64> {
        let digits = file_name.len() == NAME_LEN && file_name.bytes().all(|byte| byte.is_ascii_digit());
        let base: u64 = digits.then(|| file_name.parse().ok())??;
        let fits = base.checked_add(self.segment_bytes).is_some_and(|limit| limit <= i64::MAX as u64);
        (fits && base.is_multiple_of(self.segment_bytes)).then_some(base)
    }

    fn closing_bytes(&self) -> u64 {
        BLANK_LEN as u64
    }

    fn close_segment(&self, remaining: u64, bytes: &mut Vec<u8>) {
        let remaining = u32::try_from(remaining).expect("a segment is shorter than 2 GiB");
        bytes.extend_from_slice(&blank(remaining, self.planted));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_others_do_not() {
        let layout = CommitLogLayout { segment_bytes: 4096, planted: Planted::NONE };
        for base in [0, 4096, 1 << 40] {
            assert_eq!(layout.base_of(&layout.file_name(base)), Some(base));
        }
        for name in ["", "0", "00000000000000000007", "0000000000000000409a", "99999999999999999999"] {
            assert_eq!(layout.base_of(name), None, "{name}");
        }
        assert_eq!(layout.base_of(&format!("{:020}", (i64::MAX as u64) & !4095)), None, "its end is no offset");
    }
}
