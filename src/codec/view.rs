//! A stored record looked into where it lies: nothing is copied, nothing allocated.

use std::fmt;

use super::layout::{Layout, array_at, at, born_host_len, store_host_len, store_timestamp_at};
use super::properties::name;
use super::{Host, Magic, MessageId, PropertiesRef, Rejection, SysFlag, hash, text};

/// A whole record whose fields add up. No CRC has been looked at: see [`check`](super::check()).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RecordView<'a> {
    bytes: &'a [u8],
    layout: Layout,
}

impl<'a> RecordView<'a> {
    /// Looks at the record at the front of `bytes`.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Rejection> {
        match Layout::read(bytes) {
            Some(layout) => Ok(Self::new(bytes, layout)),
            None => Err(super::check::explain_structure(bytes)),
        }
    }

    #[inline]
    pub(crate) fn new(bytes: &'a [u8], layout: Layout) -> Self {
        Self { bytes: &bytes[..layout.len as usize], layout }
    }

    #[inline]
    fn i32_at(&self, at: usize) -> i32 {
        i32::from_be_bytes(self.array_at(at))
    }

    #[inline]
    fn i64_at(&self, at: usize) -> i64 {
        i64::from_be_bytes(self.array_at(at))
    }

    #[inline]
    fn array_at<const N: usize>(&self, at: usize) -> [u8; N] {
        array_at(self.bytes, at).expect("the fields of a whole record are inside it")
    }

    /// The record.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Version.
    pub fn magic(&self) -> Magic {
        Magic::from_code(self.i32_at(at::MAGIC)).expect("a record has a magic")
    }

    /// The stored body CRC.
    pub fn body_crc(&self) -> i32 {
        self.i32_at(at::BODY_CRC)
    }

    /// The queue.
    pub fn queue_id(&self) -> i32 {
        self.i32_at(at::QUEUE_ID)
    }

    /// The user's flag.
    pub fn flag(&self) -> i32 {
        self.i32_at(at::FLAG)
    }

    /// Place in the queue; 0 for a prepared or rolled back message, which has none.
    pub fn queue_offset(&self) -> i64 {
        self.i64_at(at::QUEUE_OFFSET)
    }

    /// The offset in the log that the record says it has.
    pub fn physical_offset(&self) -> i64 {
        self.i64_at(at::PHYSICAL_OFFSET)
    }

    /// The broker's flag.
    pub fn sys_flag(&self) -> SysFlag {
        SysFlag(self.i32_at(at::SYS_FLAG))
    }

    /// When the client made the message, in milliseconds since 1970.
    pub fn born_timestamp_ms(&self) -> i64 {
        self.i64_at(at::BORN_TIMESTAMP)
    }

    /// Where the message came from.
    pub fn born_host(&self) -> Host {
        self.host_at(at::BORN_HOST, born_host_len(self.sys_flag()))
    }

    /// When the record was stored, in milliseconds since 1970.
    pub fn store_timestamp_ms(&self) -> i64 {
        self.i64_at(store_timestamp_at(self.sys_flag()))
    }

    /// The store that took it.
    pub fn store_host(&self) -> Host {
        self.host_at(store_timestamp_at(self.sys_flag()) + 8, store_host_len(self.sys_flag()))
    }

    fn host_at(&self, at: usize, len: usize) -> Host {
        Host::from_bytes(&self.bytes[at..at + len]).expect("the length is a host's")
    }

    /// How often a consumer gave the message back.
    pub fn reconsume_times(&self) -> i32 {
        self.i32_at(self.layout.body_at as usize - 16)
    }

    /// Where the prepared message of a commit or rollback is.
    pub fn prepared_transaction_offset(&self) -> i64 {
        self.i64_at(self.layout.body_at as usize - 12)
    }

    /// The body.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        let at = self.layout.body_at as usize;
        &self.bytes[at..at + self.layout.body_len as usize]
    }

    /// The topic, UTF-8 unless the record is malformed.
    #[inline]
    pub fn topic(&self) -> &'a [u8] {
        let at = self.layout.topic_at as usize;
        &self.bytes[at..at + usize::from(self.layout.topic_len)]
    }

    /// The properties.
    #[inline]
    pub fn properties(&self) -> PropertiesRef<'a> {
        PropertiesRef(&self.bytes[self.bytes.len() - usize::from(self.layout.properties_len)..])
    }

    /// The code that the tags have in a consume queue unit; 0 without tags. A delayed message has its delivery time
    /// there instead, which takes the store's table of delays.
    pub fn tags_code(&self) -> i64 {
        self.properties().get(name::TAGS).map_or(0, hash::tags_code)
    }

    /// The id that the store gave the message.
    pub fn message_id(&self) -> MessageId {
        MessageId { store_host: self.store_host(), physical_offset: self.physical_offset() }
    }
}

/// Every field on a line of its own, body and unprintable text escaped.
impl fmt::Display for RecordView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sys_flag = self.sys_flag();
        writeln!(f, "record {:?}, {} bytes", self.magic(), self.bytes.len())?;
        writeln!(f, "  topic              {:?}", text::decode(self.topic()))?;
        writeln!(f, "  queue              {} @ {}", self.queue_id(), self.queue_offset())?;
        writeln!(f, "  physical offset    {}", self.physical_offset())?;
        writeln!(f, "  message id         {}", self.message_id())?;
        writeln!(f, "  flag               {}", self.flag())?;
        writeln!(f, "  sys flag           {:#x} (transaction: {:?})", sys_flag.0, sys_flag.transaction())?;
        writeln!(f, "  born               {} ms, {}", self.born_timestamp_ms(), self.born_host())?;
        writeln!(f, "  stored             {} ms, {}", self.store_timestamp_ms(), self.store_host())?;
        writeln!(f, "  reconsume times    {}", self.reconsume_times())?;
        writeln!(f, "  prepared offset    {}", self.prepared_transaction_offset())?;
        writeln!(f, "  body               {} bytes, crc {:#010x}", self.body().len(), self.body_crc())?;
        writeln!(f, "                     \"{}\"", self.body().escape_ascii())?;
        write!(f, "  properties         {} bytes", self.properties().0.len())?;
        for (name, value) in self.properties().to_pairs() {
            write!(f, "\n    {name:?} = {value:?}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for RecordView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
