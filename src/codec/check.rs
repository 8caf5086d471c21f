//! The record check: what stands at a place of the log?
//!
//! It answers as `CommitLog.checkMessageAndReturnSize` does, with every way to refuse named. A record whose fields add up
//! is checked where it lies, without copying or allocating; only a refusal walks the fields again, in upstream's order,
//! to name the first thing that is wrong.
//!
//! Stricter than upstream by option: the record's own offset, the blank's length, a property CRC wherever one stands.
//! Not modelled: upstream's scratch array, kept by each thread, lets a damaged record whose inner lengths go beyond its
//! total size come out as (size, false) instead of (-1, false) once the thread has seen a longer record; and numbers in
//! properties written in other than ASCII digits.

use super::crc::{PROPERTY_CRC_LEN, property_crc_at_end, property_crc_value};
use super::layout::{Layout, Magic, at, body_len_at, i16_at, i32_at, record_len};
use super::{PropertiesRef, RecordView, SysFlag, masked_crc, text};
use crate::{planted, planted::Planted};

/// The topic of delayed messages, whose delay must be a number.
const SCHEDULE_TOPIC: &[u8] = b"SCHEDULE_TOPIC_XXXX";

/// What to do about property CRCs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PropertyCrc {
    /// Nothing.
    #[default]
    Ignore,
    /// Check it where a record ends with one, beside the body CRC. A store that never wrote any may hold a client's
    /// property of that name.
    WherePresent,
    /// Refuse a record without one, and do not look at the body CRC (`forceVerifyPropCRC`).
    Require,
}

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckOptions {
    /// The body CRC.
    pub body_crc: bool,
    /// The property CRC.
    pub property_crc: PropertyCrc,
    /// That the record says it is where it stands. Not in upstream.
    pub physical_offset: bool,
    /// That a blank says it fills what remains. Not in upstream.
    pub blank_len: bool,
    /// That no length is negative, and that an empty body has the CRC of one. Not in upstream, which takes a negative length
    /// for 0 and looks at no CRC then; no writer makes such records, damage does.
    pub written_lens: bool,
    /// That properties, where there are any, tell where a duplicated record came from (`duplicationEnable`).
    pub dup_info: bool,
    /// The fault planted, if any.
    pub planted: Planted,
}

impl CheckOptions {
    /// What upstream checks when it recovers, with its own defaults.
    pub const ROCKETMQ: Self = Self {
        body_crc: true,
        property_crc: PropertyCrc::Ignore,
        physical_offset: false,
        blank_len: false,
        written_lens: false,
        dup_info: false,
        planted: Planted::NONE,
    };

    /// Everything that holds for every record and blank of an undamaged log.
    pub const STRICT: Self = Self { physical_offset: true, blank_len: true, written_lens: true, ..Self::ROCKETMQ };
}

/// A field, or a stretch of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Field {
    Magic,
    Header,
    BornHost,
    StoreHost,
    BodyLen,
    Body,
    TopicLen,
    Topic,
    PropertiesLen,
    Properties,
}

/// Why what stands there is not a record. Lengths are in bytes; `remaining` is what is left from the record's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum Rejection {
    #[error("only {remaining} bytes are left")]
    TooShort { remaining: u64 },
    #[error("total size {total_size} is negative")]
    NegativeSize { total_size: i32 },
    #[error("total size {total_size} goes beyond the {remaining} bytes that are left")]
    SizeBeyondEnd { total_size: i32, remaining: u64 },
    #[error("magic {magic:#010x} is not a record's")]
    UnknownMagic { magic: i32 },
    #[error("{field:?} needs {needed} bytes, {remaining} are left")]
    Cut { field: Field, needed: u64, remaining: u64 },
    #[error("{field:?} of length {len} does not fit into total size {total_size}")]
    BeyondSize { field: Field, len: i32, total_size: i32 },
    #[error("topic length {len} is negative")]
    NegativeTopicLen { len: i16 },
    #[error("{field:?} of length {len} is negative")]
    NegativeLen { field: Field, len: i32, total_size: i32 },
    #[error("the body is empty, and its CRC is {stored:#010x}")]
    EmptyBodyCrc { stored: i32, total_size: i32 },
    #[error("body CRC is {computed:#010x}, the record says {stored:#010x}")]
    BodyCrc { stored: i32, computed: i32 },
    #[error("the property CRC is missing")]
    PropertyCrcMissing,
    #[error("property CRC is {computed:#010x}, the record says {stored:#010x}")]
    PropertyCrc { stored: i32, computed: i32 },
    #[error("the properties do not tell where the record was duplicated from")]
    DupInfo,
    #[error("the delay of a scheduled message is not a number")]
    DelayLevel,
    #[error("count or base of an inner batch is not a number")]
    InnerBatch,
    #[error("total size {total_size}, the fields take {computed}")]
    SizeMismatch { total_size: i32, computed: i64 },
    #[error("the record of {total_size} bytes at {at} says that it is at {stored}")]
    PhysicalOffset { stored: i64, at: i64, total_size: i32 },
    #[error("the blank says {stated} bytes, {remaining} are left")]
    BlankLen { stated: i32, remaining: u64 },
}

/// What stands at a place of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// A record.
    Record(RecordView<'a>),
    /// The blank that fills the rest of a segment. `stated_len` is what it says of its length.
    Blank {
        /// Length in bytes.
        stated_len: i32,
    },
    /// Neither.
    Rejected(Rejection),
}

impl Outcome<'_> {
    /// Size and success of the `DispatchRequest` with which RocketMQ 5.5.1 answers.
    pub fn to_rocketmq(&self) -> (i32, bool) {
        match self {
            Self::Record(record) => (record.bytes().len() as i32, true),
            Self::Blank { .. } | Self::Rejected(Rejection::BlankLen { .. }) => (0, true),
            Self::Rejected(
                Rejection::PhysicalOffset { total_size, .. }
                | Rejection::NegativeLen { total_size, .. }
                | Rejection::EmptyBodyCrc { total_size, .. },
            ) => (*total_size, true),
            Self::Rejected(Rejection::SizeMismatch { total_size, .. }) => (*total_size, false),
            Self::Rejected(_) => (-1, false),
        }
    }
}

/// Checks what stands at the front of `bytes`, which is offset `at` of the log. `bytes` goes to the end of what can be
/// read: the segment's end, not the record's.
// Inlined, so that the record found stays in registers: through memory it costs a third of the check of a small record.
#[inline(always)]
pub fn check<'a>(bytes: &'a [u8], at: i64, options: &CheckOptions) -> Outcome<'a> {
    check_within(bytes, bytes.len() as u64, at, options)
}

/// As [`check`], where only the first of the `remaining` bytes are at hand: at least a whole record, if one is there.
#[inline(always)]
pub(crate) fn check_within<'a>(bytes: &'a [u8], remaining: u64, at: i64, options: &CheckOptions) -> Outcome<'a> {
    let layout = if planted!(options.planted, SizeCheckSkipped) {
        Layout::read_trusting_size(bytes)
    } else {
        Layout::read(bytes)
    };
    let Some(layout) = layout else { return explain(bytes, remaining, options) };
    let record = RecordView::new(bytes, layout);
    match check_contents(&record, at, options) {
        Ok(()) => Outcome::Record(record),
        Err(rejection) => Outcome::Rejected(rejection),
    }
}

#[inline(always)]
fn check_contents(record: &RecordView<'_>, at: i64, options: &CheckOptions) -> Result<(), Rejection> {
    if options.body_crc && options.property_crc != PropertyCrc::Require {
        check_body_crc(record.body(), record.body_crc())?;
    }
    let properties = record.properties();
    if options.property_crc == PropertyCrc::WherePresent
        && let Some(stored) = property_crc_at_end(properties.0)
    {
        check_property_crc(record.bytes(), stored)?;
    }
    let any_name_counts =
        options.dup_info || options.property_crc == PropertyCrc::Require || record.topic() == SCHEDULE_TOPIC;
    if any_name_counts || properties.may_have_initial(b'I') {
        check_special_properties(record, options)?;
    }
    if options.written_lens && (record.body().is_empty() || properties.0.is_empty()) {
        check_written_lens(record)?;
    }
    if options.physical_offset && !planted!(options.planted, StaleRecordAccepted) && record.physical_offset() != at {
        let total_size = record.bytes().len() as i32;
        return Err(Rejection::PhysicalOffset { stored: record.physical_offset(), at, total_size });
    }
    Ok(())
}

/// Checks what only few records have: the properties that the store itself reads.
#[inline(never)]
fn check_special_properties(record: &RecordView<'_>, options: &CheckOptions) -> Result<(), Rejection> {
    let properties = record.properties();
    let special = SpecialProperties::find(properties);
    check_properties(record.topic(), properties, &special, options)?;
    if options.property_crc == PropertyCrc::Require {
        check_property_crc(record.bytes(), special.required_crc()?)?;
    }
    check_inner_batch(&special)
}

#[inline]
fn check_body_crc(body: &[u8], stored: i32) -> Result<(), Rejection> {
    // Upstream looks at no CRC of an empty body.
    if body.is_empty() {
        return Ok(());
    }
    let computed = masked_crc(body);
    if computed == stored { Ok(()) } else { Err(Rejection::BodyCrc { stored, computed }) }
}

/// Refuses what upstream takes for an empty body or for no properties, and no writer writes.
#[inline(never)]
fn check_written_lens(record: &RecordView<'_>) -> Result<(), Rejection> {
    let (bytes, total_size) = (record.bytes(), record.bytes().len() as i32);
    let body_len = i32_at(bytes, body_len_at(record.sys_flag())).expect("a record has all its fields");
    if body_len < 0 {
        return Err(Rejection::NegativeLen { field: Field::BodyLen, len: body_len, total_size });
    }
    if body_len == 0 && record.body_crc() != 0 {
        return Err(Rejection::EmptyBodyCrc { stored: record.body_crc(), total_size });
    }
    let properties_len_at = bytes.len() - record.properties().0.len() - 2;
    let properties_len = i16_at(bytes, properties_len_at).expect("as above");
    if properties_len < 0 {
        let len = i32::from(properties_len);
        return Err(Rejection::NegativeLen { field: Field::PropertiesLen, len, total_size });
    }
    Ok(())
}

/// Compares with the CRC of all of `record` but the room for its property CRC.
fn check_property_crc(record: &[u8], stored: i32) -> Result<(), Rejection> {
    let covered = record.len().checked_sub(PROPERTY_CRC_LEN).ok_or(Rejection::PropertyCrcMissing)?;
    let computed = masked_crc(&record[..covered]);
    if computed == stored { Ok(()) } else { Err(Rejection::PropertyCrc { stored, computed }) }
}

fn check_properties(
    topic: &[u8],
    properties: PropertiesRef<'_>,
    special: &SpecialProperties<'_>,
    options: &CheckOptions,
) -> Result<(), Rejection> {
    if options.dup_info && !properties.0.is_empty() && !special.dup_info.is_some_and(is_dup_info) {
        return Err(Rejection::DupInfo);
    }
    if topic == SCHEDULE_TOPIC && special.delay.is_some_and(|delay| parse::<i32>(delay).is_none()) {
        return Err(Rejection::DelayLevel);
    }
    Ok(())
}

/// Whether Java's split at underscores, which drops empty parts at the end, has two parts.
fn is_dup_info(value: &[u8]) -> bool {
    let kept = value.iter().rposition(|&byte| byte != b'_').map_or(0, |last| last + 1);
    value[..kept].iter().filter(|&&byte| byte == b'_').count() == 1
}

fn check_inner_batch(special: &SpecialProperties<'_>) -> Result<(), Rejection> {
    match (special.inner_base, special.inner_num) {
        (Some(base), Some(num)) if parse::<i64>(base).is_none() || parse::<i16>(num).is_none() => {
            Err(Rejection::InnerBatch)
        }
        _ => Ok(()),
    }
}

fn parse<T: std::str::FromStr>(value: &[u8]) -> Option<T> {
    text::decode(value).parse().ok()
}

/// The properties that the check looks at, found in one pass.
#[derive(Default)]
struct SpecialProperties<'a> {
    dup_info: Option<&'a [u8]>,
    delay: Option<&'a [u8]>,
    inner_num: Option<&'a [u8]>,
    inner_base: Option<&'a [u8]>,
    crc: Option<&'a [u8]>,
}

impl<'a> SpecialProperties<'a> {
    fn find(properties: PropertiesRef<'a>) -> Self {
        let mut found = Self::default();
        for (name, value) in properties.iter() {
            let slot = match name {
                b"DUP_INFO" => &mut found.dup_info,
                b"DELAY" => &mut found.delay,
                b"INNER_NUM" => &mut found.inner_num,
                b"INNER_BASE" => &mut found.inner_base,
                b"__CRC32#" => &mut found.crc,
                _ => continue,
            };
            *slot = Some(value);
        }
        found
    }

    fn required_crc(&self) -> Result<i32, Rejection> {
        self.crc.map(property_crc_value).ok_or(Rejection::PropertyCrcMissing)
    }
}

/// Names what is wrong with the structure of what stands at the front of `bytes`.
pub(crate) fn explain_structure(bytes: &[u8]) -> Rejection {
    let options = CheckOptions { body_crc: false, ..CheckOptions::ROCKETMQ };
    match explain(bytes, bytes.len() as u64, &options) {
        Outcome::Rejected(rejection) => rejection,
        _ => Rejection::UnknownMagic { magic: Magic::Blank.code() },
    }
}

/// Names what is wrong with something that is no record with fields that add up, or tells that it is a blank.
#[cold]
fn explain<'a>(bytes: &'a [u8], remaining: u64, options: &CheckOptions) -> Outcome<'a> {
    match walk(bytes, remaining, options) {
        Ok(stated_len) if options.blank_len && i64::from(stated_len) != remaining as i64 => {
            Outcome::Rejected(Rejection::BlankLen { stated: stated_len, remaining })
        }
        Ok(stated_len) => Outcome::Blank { stated_len },
        Err(rejection) => Outcome::Rejected(rejection),
    }
}

/// Walks the fields in upstream's order up to the first thing that is wrong; `Ok` is a blank's stated length.
fn walk(bytes: &[u8], remaining: u64, options: &CheckOptions) -> Result<i32, Rejection> {
    if remaining <= 4 {
        return Err(Rejection::TooShort { remaining });
    }
    let mut fields = Fields { bytes, at: 4, total_size: i32_at(bytes, at::TOTAL_SIZE).unwrap_or(0) };
    let total_size = fields.total_size;
    if total_size < 0 {
        return Err(Rejection::NegativeSize { total_size });
    }
    if i64::from(total_size) > remaining as i64 {
        return Err(Rejection::SizeBeyondEnd { total_size, remaining });
    }
    let code = fields.i32(Field::Magic)?;
    let magic = match Magic::from_code(code) {
        Some(Magic::Blank) => return Ok(total_size),
        Some(magic) => magic,
        None => return Err(Rejection::UnknownMagic { magic: code }),
    };
    let stored_body_crc = fields.i32(Field::Header)?;
    fields.take(at::SYS_FLAG - at::QUEUE_ID, Field::Header)?;
    let sys_flag = SysFlag(fields.i32(Field::Header)?);
    fields.take(8, Field::Header)?;
    fields.sized(super::layout::born_host_len(sys_flag) as i32, Field::BornHost)?;
    fields.take(8, Field::Header)?;
    fields.sized(super::layout::store_host_len(sys_flag) as i32, Field::StoreHost)?;
    fields.take(12, Field::Header)?;
    let body_len = fields.i32(Field::BodyLen)?;
    let body = fields.sized(body_len.max(0), Field::Body)?;
    if options.body_crc && options.property_crc != PropertyCrc::Require {
        check_body_crc(body, stored_body_crc)?;
    }
    let topic_len = match magic {
        Magic::V2 => fields.i16(Field::TopicLen)?,
        _ => i16::from(fields.take(1, Field::TopicLen)?[0] as i8),
    };
    if topic_len < 0 {
        return Err(Rejection::NegativeTopicLen { len: topic_len });
    }
    let topic = fields.sized(i32::from(topic_len), Field::Topic)?;
    let properties_len = fields.i16(Field::PropertiesLen)?.max(0);
    let properties = PropertiesRef(fields.sized(i32::from(properties_len), Field::Properties)?);
    let special = SpecialProperties::find(properties);
    check_properties(topic, properties, &special, options)?;
    if options.property_crc == PropertyCrc::Require {
        // Upstream steps back by the total size from where its reading stopped.
        let stored = special.required_crc()?;
        let start = fields.at.checked_sub(total_size as usize).ok_or(Rejection::PropertyCrcMissing)?;
        check_property_crc(&bytes[start..fields.at], stored)?;
    }
    let computed = record_len(sys_flag, magic, body.len(), topic.len(), properties.0.len()) as i64;
    debug_assert_ne!(computed, i64::from(total_size), "fields that add up are not refused for their lengths");
    Err(Rejection::SizeMismatch { total_size, computed })
}

/// The fields of something that may be a record, read one after the other.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    total_size: i32,
}

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize, field: Field) -> Result<&'a [u8], Rejection> {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        let taken =
            rest.get(..len).ok_or(Rejection::Cut { field, needed: len as u64, remaining: rest.len() as u64 })?;
        self.at += len;
        Ok(taken)
    }

    /// Takes what upstream reads into an array of the total size.
    fn sized(&mut self, len: i32, field: Field) -> Result<&'a [u8], Rejection> {
        if len > self.total_size {
            return Err(Rejection::BeyondSize { field, len, total_size: self.total_size });
        }
        self.take(len as usize, field)
    }

    fn i32(&mut self, field: Field) -> Result<i32, Rejection> {
        self.take(4, field).map(|bytes| i32_at(bytes, 0).expect("four bytes were taken"))
    }

    fn i16(&mut self, field: Field) -> Result<i16, Rejection> {
        self.take(2, field).map(|bytes| i16_at(bytes, 0).expect("two bytes were taken"))
    }
}
