//! Where the fields of a stored record are.

use super::SysFlag;

/// Length in bytes of the smallest record: version 1, IPv4 hosts, nothing in it.
pub const SMALLEST_RECORD_LEN: usize = 91;

/// Offsets of the fields that stand at the same place in every record.
pub(crate) mod at {
    pub const TOTAL_SIZE: usize = 0;
    pub const MAGIC: usize = 4;
    pub const BODY_CRC: usize = 8;
    pub const QUEUE_ID: usize = 12;
    pub const FLAG: usize = 16;
    pub const QUEUE_OFFSET: usize = 20;
    pub const PHYSICAL_OFFSET: usize = 28;
    pub const SYS_FLAG: usize = 36;
    pub const BORN_TIMESTAMP: usize = 40;
    pub const BORN_HOST: usize = 48;
}

/// The word behind a total size. It tells the version of a record, which is the width of its topic length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Magic {
    /// A record whose topic length is one signed byte.
    V1,
    /// A record whose topic length is two signed bytes.
    V2,
    /// The blank that fills a segment.
    Blank,
}

impl Magic {
    const V1_CODE: i32 = 0xDAA3_20A7_u32 as i32;
    const V2_CODE: i32 = 0xDAA3_20AB_u32 as i32;
    const BLANK_CODE: i32 = 0xCBD4_3194_u32 as i32;

    /// The word.
    pub const fn code(self) -> i32 {
        match self {
            Self::V1 => Self::V1_CODE,
            Self::V2 => Self::V2_CODE,
            Self::Blank => Self::BLANK_CODE,
        }
    }

    /// What a word is, if anything.
    pub const fn from_code(code: i32) -> Option<Self> {
        match code {
            Self::V1_CODE => Some(Self::V1),
            Self::V2_CODE => Some(Self::V2),
            Self::BLANK_CODE => Some(Self::Blank),
            _ => None,
        }
    }
}

/// Offset of the store timestamp: it moves with the width of the born host.
pub(crate) const fn store_timestamp_at(sys_flag: SysFlag) -> usize {
    at::BORN_HOST + born_host_len(sys_flag)
}

/// Offset of the body length.
pub(crate) const fn body_len_at(sys_flag: SysFlag) -> usize {
    store_timestamp_at(sys_flag) + 8 + store_host_len(sys_flag) + 4 + 8
}

pub(crate) const fn born_host_len(sys_flag: SysFlag) -> usize {
    if sys_flag.is_born_host_v6() { super::Host::V6_LEN } else { super::Host::V4_LEN }
}

pub(crate) const fn store_host_len(sys_flag: SysFlag) -> usize {
    if sys_flag.is_store_host_v6() { super::Host::V6_LEN } else { super::Host::V4_LEN }
}

/// Length of a record by the lengths in it, none of them negative.
pub(crate) const fn record_len(
    sys_flag: SysFlag,
    magic: Magic,
    body_len: usize,
    topic_len: usize,
    properties_len: usize,
) -> usize {
    let topic_len_len = if matches!(magic, Magic::V2) { 2 } else { 1 };
    body_len_at(sys_flag) + 4 + body_len + topic_len_len + topic_len + 2 + properties_len
}

/// Reads the array at `at`.
#[inline(always)]
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[inline(always)]
pub(crate) fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    array_at(bytes, at).map(i32::from_be_bytes)
}

#[inline(always)]
pub(crate) fn i16_at(bytes: &[u8], at: usize) -> Option<i16> {
    array_at(bytes, at).map(i16::from_be_bytes)
}

/// Where the variable fields of a whole record are. Every offset is inside the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub len: u32,
    pub body_at: u32,
    pub body_len: u32,
    pub topic_at: u32,
    pub topic_len: u16,
    pub properties_len: u16,
}

impl Layout {
    /// Reads the layout of the record at the front of `bytes`; `None` if there is none whose fields add up to its total
    /// size. As upstream has it, a negative length of body or properties counts as 0, one of the topic does not.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let len = u32::try_from(i32_at(bytes, at::TOTAL_SIZE)?).ok()?;
        let record = bytes.get(..len as usize)?;
        let (layout, end) = Self::read_fields(record, len)?;
        (end == record.len()).then_some(layout)
    }

    /// As [`Layout::read`], but believes any total size above zero.
    pub fn read_trusting_size(bytes: &[u8]) -> Option<Self> {
        let len = i32_at(bytes, at::TOTAL_SIZE)?;
        let (layout, _) = Self::read_fields(bytes, len as u32)?;
        (len > 0).then_some(layout)
    }

    /// Reads the fields of a record of `len` bytes, and where they end.
    #[inline]
    fn read_fields(record: &[u8], len: u32) -> Option<(Self, usize)> {
        let head: &[u8; SMALLEST_RECORD_LEN] = record.first_chunk()?;
        let body_len_at = body_len_at(SysFlag(i32_at(head, at::SYS_FLAG)?));
        let body_len = i32_at(record, body_len_at)?.max(0) as u32;
        let topic_len_at = body_len_at + 4 + body_len as usize;
        let (topic_at, topic_len) = match i32_at(head, at::MAGIC)? {
            Magic::V1_CODE => (topic_len_at + 1, i16::from(*record.get(topic_len_at)? as i8)),
            Magic::V2_CODE => (topic_len_at + 2, i16_at(record, topic_len_at)?),
            _ => return None,
        };
        let topic_len = u16::try_from(topic_len).ok()?;
        let properties_len_at = topic_at + usize::from(topic_len);
        let properties_len = i16_at(record, properties_len_at)?.max(0) as u16;
        let layout = Self {
            len,
            body_at: body_len_at as u32 + 4,
            body_len,
            topic_at: topic_at as u32,
            topic_len,
            properties_len,
        };
        Some((layout, properties_len_at + 2 + usize::from(properties_len)))
    }
}
