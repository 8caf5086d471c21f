//! A stored record looked into where it lies: nothing is copied, nothing allocated.

use std::fmt;

use super::crc::property_crc_at_end;
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
    pub(crate) fn new(bytes: &'a [u8], (len, layout): (usize, Layout)) -> Self {
        Self { bytes: &bytes[..len], layout }
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
    #[inline]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Version.
    #[inline]
    pub fn magic(&self) -> Magic {
        Magic::from_code(self.i32_at(at::MAGIC)).expect("a record has a magic")
    }

    /// The stored body CRC.
    #[inline]
    pub fn body_crc(&self) -> i32 {
        self.i32_at(at::BODY_CRC)
    }

    /// The queue.
    #[inline]
    pub fn queue_id(&self) -> i32 {
        self.i32_at(at::QUEUE_ID)
    }

    /// The user's flag.
    #[inline]
    pub fn flag(&self) -> i32 {
        self.i32_at(at::FLAG)
    }

    /// Place in the queue; 0 for a prepared or rolled back message, which has none.
    #[inline]
    pub fn queue_offset(&self) -> i64 {
        self.i64_at(at::QUEUE_OFFSET)
    }

    /// The offset in the log that the record says it has.
    #[inline]
    pub fn physical_offset(&self) -> i64 {
        self.i64_at(at::PHYSICAL_OFFSET)
    }

    /// The broker's flag.
    #[inline]
    pub fn sys_flag(&self) -> SysFlag {
        SysFlag(self.i32_at(at::SYS_FLAG))
    }

    /// When the client made the message, in milliseconds since 1970.
    #[inline]
    pub fn born_timestamp_ms(&self) -> i64 {
        self.i64_at(at::BORN_TIMESTAMP)
    }

    /// Where the message came from.
    #[inline]
    pub fn born_host(&self) -> Host {
        self.host_at(at::BORN_HOST, born_host_len(self.sys_flag()))
    }

    /// When the record was stored, in milliseconds since 1970.
    #[inline]
    pub fn store_timestamp_ms(&self) -> i64 {
        self.i64_at(store_timestamp_at(self.sys_flag()))
    }

    /// The store that took it.
    #[inline]
    pub fn store_host(&self) -> Host {
        self.host_at(store_timestamp_at(self.sys_flag()) + 8, store_host_len(self.sys_flag()))
    }

    #[inline]
    fn host_at(&self, at: usize, len: usize) -> Host {
        Host::from_bytes(&self.bytes[at..at + len]).expect("the length is a host's")
    }

    /// How often a consumer gave the message back.
    #[inline]
    pub fn reconsume_times(&self) -> i32 {
        self.i32_at(self.layout.body_at as usize - 16)
    }

    /// Where the prepared message of a commit or rollback is.
    #[inline]
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
        let end = self.bytes.len() - usize::from(self.layout.properties_len) - 2;
        &self.bytes[end - usize::from(self.layout.topic_len)..end]
    }

    /// The properties.
    #[inline]
    pub fn properties(&self) -> PropertiesRef<'a> {
        PropertiesRef(&self.bytes[self.bytes.len() - usize::from(self.layout.properties_len)..])
    }

    /// The CRC of itself that the record ends with, if it does.
    pub fn property_crc(&self) -> Option<i32> {
        property_crc_at_end(self.properties().0)
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

/// How much of a body a dump shows, in bytes.
const MAX_SHOWN_BODY_LEN: usize = 256;

/// Every field on a line of its own, unprintable bytes escaped, a long body cut.
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
        let (shown, hidden) = self.body().split_at(self.body().len().min(MAX_SHOWN_BODY_LEN));
        let more = if hidden.is_empty() { "" } else { " …" };
        writeln!(f, "                     \"{}\"{more}", shown.escape_ascii())?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Assigned, MessageRef, RecordHeader, RecordOptions, RecordTemplate, Transaction, record};

    fn dump(born: &str, topic: &str, transaction: Transaction, body: &[u8], properties: &[u8]) -> String {
        let header = RecordHeader {
            topic,
            queue_id: 3,
            sys_flag: SysFlag(SysFlag::COMPRESSED).with_transaction(transaction),
            born_timestamp_ms: 1_700_000_000_000,
            born_host: Host::new(born.parse().unwrap(), 40000),
            store_host: Host::new("10.0.0.1".parse().unwrap(), 10911),
            reconsume_times: 2,
            prepared_transaction_offset: 77,
        };
        let options = RecordOptions { append_property_crc: true, ..RecordOptions::default() };
        let template = RecordTemplate::new(&header, &options).unwrap();
        let mut bytes = Vec::new();
        template.encode_into(MessageRef { flag: -5, body, properties: PropertiesRef(properties) }, &mut bytes).unwrap();
        let first = Assigned { queue_offset: 41, physical_offset: 123, store_timestamp_ms: 1_700_000_000_001 };
        record::assign(&mut bytes, first, true);
        RecordView::parse(&bytes).unwrap().to_string()
    }

    #[test]
    fn a_dump_shows_every_field() {
        let dump =
            dump("127.0.0.1", "TopicTest", Transaction::Commit, b"hello\0\xFF\"", b"TAGS\x01TagA\x02KEYS\x01k1\x02");
        insta::assert_snapshot!(dump, @r#"
record V1, 146 bytes
  topic              "TopicTest"
  queue              3 @ 41
  physical offset    123
  message id         0A00000100002A9F000000000000007B
  flag               -5
  sys flag           0x9 (transaction: Commit)
  born               1700000000000 ms, 127.0.0.1:40000
  stored             1700000000001 ms, 10.0.0.1:10911
  reconsume times    2
  prepared offset    77
  body               8 bytes, crc 0x3957098b
                     "hello\x00\xff\""
  properties         38 bytes
    "TAGS" = "TagA"
    "KEYS" = "k1"
    "__CRC32#" = "6519236990"
"#);
    }

    #[test]
    fn a_dump_of_version_2_with_malformed_properties() {
        let topic = "t".repeat(128);
        let dump = dump("2001:db8::1", &topic, Transaction::Prepared, b"", b"a\x01\xED\xA0\x80\x02no value\x02");
        insta::assert_snapshot!(dump, @r#"
record V2, 267 bytes
  topic              "tttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt"
  queue              3 @ 0
  physical offset    123
  message id         0A00000100002A9F000000000000007B
  flag               -5
  sys flag           0x15 (transaction: Prepared)
  born               1700000000000 ms, [2001:db8::1]:40000
  stored             1700000000001 ms, 10.0.0.1:10911
  reconsume times    2
  prepared offset    77
  body               0 bytes, crc 0x00000000
                     ""
  properties         35 bytes
    "a" = "�"
    "__CRC32#" = "4476912630"
"#);
    }
}
