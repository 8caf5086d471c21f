//! Records as the store appends them: encoding, and what the log fills in once it knows the record's place.
//!
//! A record is encoded outside the log's lock, body CRC included, with zeros where the log assigns: queue offset,
//! physical offset and store timestamp. Under the lock [`assign`] fills them in, and then the property CRC, which covers
//! all of them. A client batch becomes one stored record per message in one pass.
//!
//! Differences to upstream, each where upstream writes what it cannot read back:
//! * the version is chosen by the topic's length in bytes, not in UTF-16 units: a long non-ASCII topic is version 2;
//! * the host bits of the flag word always say what the hosts are;
//! * properties of a batch element get the separator before a property CRC too, and their length is checked;
//! * a batch of more than 32 767 messages is refused.

use bytes::BufMut;

use super::batch::BatchReader;
use super::crc::{PROPERTY_CRC_LEN, body_crc, property_crc_tail};
use super::layout::{array_at, at, body_len_at, record_len, store_timestamp_at};
use super::properties::{MAX_PROPERTIES_LEN, VALUE_END, name};
use super::{EncodeError, Grow, Host, Magic, MessageRef, SysFlag, Transaction, masked_crc};
use crate::{planted, planted::Planted};

/// Bytes written of a blank; every append leaves room for them in its segment.
pub const BLANK_LEN: usize = 8;
const MAX_V1_TOPIC_LEN: usize = i8::MAX as usize;
const MAX_V2_TOPIC_LEN: usize = i16::MAX as usize;
const MAX_BATCH_COUNT: usize = i16::MAX as usize;
/// Room for the fields before the body: 88 bytes, 12 more for each IPv6 host.
const MAX_HEAD_LEN: usize = 112;

/// How records are written. The names are upstream's (`MessageStoreConfig`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordOptions {
    /// Largest body, and largest client batch, in bytes. A record may be 64 KiB larger.
    pub max_message_size: usize,
    /// Whether records end with a CRC of themselves (`enabledAppendPropCRC`).
    pub append_property_crc: bool,
    /// Whether a topic of more than 127 bytes makes a version 2 record; otherwise it is refused
    /// (`autoMessageVersionOnTopicLen`).
    pub auto_message_version: bool,
    /// The fault planted, if any.
    pub planted: Planted,
}

impl Default for RecordOptions {
    fn default() -> Self {
        Self {
            max_message_size: 4 << 20,
            append_property_crc: false,
            auto_message_version: true,
            planted: Planted::NONE,
        }
    }
}

impl RecordOptions {
    /// Largest record in bytes.
    pub const fn max_record_len(&self) -> usize {
        let len = self.max_message_size.saturating_add(64 << 10);
        if len > i32::MAX as usize { i32::MAX as usize } else { len }
    }
}

/// What a broker knows of a message, or of all messages of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The queue.
    pub queue_id: i32,
    /// The broker's flag; its host bits are set from the hosts.
    pub sys_flag: SysFlag,
    /// When the client made the message, in milliseconds since 1970.
    pub born_timestamp_ms: i64,
    /// Where the message came from.
    pub born_host: Host,
    /// The store that takes it.
    pub store_host: Host,
    /// How often a consumer gave the message back.
    pub reconsume_times: i32,
    /// Where the prepared message of a commit or rollback is; 0 is written for the messages of a batch.
    pub prepared_transaction_offset: i64,
}

/// What the log assigns to a record under its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assigned {
    /// Place in the queue. Prepared and rolled back messages have none: 0 is written.
    pub queue_offset: i64,
    /// Offset in the log of the record's first byte.
    pub physical_offset: i64,
    /// When the record is stored, in milliseconds since 1970.
    pub store_timestamp_ms: i64,
}

/// The fields that all messages of one request share, laid out once.
#[derive(Debug, Clone)]
pub struct RecordTemplate<'a> {
    head: [u8; MAX_HEAD_LEN],
    topic: &'a [u8],
    magic: Magic,
    sys_flag: SysFlag,
    options: RecordOptions,
}

impl<'a> RecordTemplate<'a> {
    /// Lays out the fields before the body.
    pub fn new(header: &RecordHeader<'a>, options: &RecordOptions) -> Result<Self, EncodeError> {
        let topic = header.topic.as_bytes();
        let (magic, limit) = match topic.len() {
            ..=MAX_V1_TOPIC_LEN => (Magic::V1, MAX_V1_TOPIC_LEN),
            _ if options.auto_message_version => (Magic::V2, MAX_V2_TOPIC_LEN),
            _ => (Magic::V1, MAX_V1_TOPIC_LEN),
        };
        if topic.len() > limit {
            return Err(EncodeError::TopicTooLong { len: topic.len(), limit });
        }
        let sys_flag = header.sys_flag.with_hosts(header.born_host, header.store_host);
        let mut head = [0; MAX_HEAD_LEN];
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        put(at::MAGIC, &magic.code().to_be_bytes());
        put(at::QUEUE_ID, &header.queue_id.to_be_bytes());
        put(at::SYS_FLAG, &sys_flag.0.to_be_bytes());
        put(at::BORN_TIMESTAMP, &header.born_timestamp_ms.to_be_bytes());
        let end = body_len_at(sys_flag);
        put(end - 12, &header.reconsume_times.to_be_bytes());
        put(end - 8, &header.prepared_transaction_offset.to_be_bytes());
        header.born_host.write_to(&mut head[at::BORN_HOST..]);
        header.store_host.write_to(&mut head[store_timestamp_at(sys_flag) + 8..]);
        Ok(Self { head, topic, magic, sys_flag, options: *options })
    }

    /// Checks a message against all limits and fixes its record's length.
    pub fn prepare<'m>(&'m self, message: MessageRef<'m>) -> Result<PreparedRecord<'m>, EncodeError> {
        let properties = if self.options.append_property_crc {
            // The CRC that a client may have sent along would be taken for the record's own where it stands last.
            PropertiesPlan::before_crc(message.properties.without(name::CRC32))
        } else {
            PropertiesPlan::plain(message.properties.0.len())
        };
        let len = self.plan(message.body.len(), properties)?;
        Ok(PreparedRecord { template: self, message, properties, len })
    }

    /// Encodes a message at the end of `buffer` and returns the record's length. Allocates only where the buffer's
    /// capacity is too small.
    #[inline]
    pub fn encode_into(&self, message: MessageRef<'_>, buffer: &mut impl Grow) -> Result<usize, EncodeError> {
        let prepared = self.prepare(message)?;
        buffer.grow(prepared.len);
        prepared.write(buffer);
        Ok(prepared.len)
    }

    /// Reads a client batch, checks every message against all limits, and fixes the length of their records together.
    pub fn prepare_batch<'m>(&'m self, batch: &'m [u8]) -> Result<PreparedBatch<'m>, EncodeError> {
        let limit = self.options.max_message_size;
        if batch.len() > limit {
            return Err(EncodeError::BatchTooLarge { len: batch.len(), limit });
        }
        if self.sys_flag.transaction() != Transaction::None {
            return Err(EncodeError::BatchInTransaction);
        }
        let (mut len, mut count) = (0, 0);
        for message in BatchReader::new(batch) {
            let message = message?;
            len += self.plan(message.body.len(), self.plan_element(message))?;
            count += 1;
        }
        if count > MAX_BATCH_COUNT {
            return Err(EncodeError::TooManyMessages { count, limit: MAX_BATCH_COUNT });
        }
        let limit = self.options.max_record_len();
        if len > limit {
            return Err(EncodeError::BatchTooLarge { len, limit });
        }
        Ok(PreparedBatch { template: self, batch, len, count: count as u32 })
    }

    /// Encodes the messages of a client batch at the end of `buffer` and returns the length of their records together.
    pub fn encode_batch_into(&self, batch: &[u8], buffer: &mut impl Grow) -> Result<usize, EncodeError> {
        let prepared = self.prepare_batch(batch)?;
        buffer.grow(prepared.len);
        prepared.write(buffer);
        Ok(prepared.len)
    }

    /// Upstream copies the properties of a batch element as they are.
    #[inline]
    fn plan_element(&self, message: MessageRef<'_>) -> PropertiesPlan {
        if self.options.append_property_crc {
            PropertiesPlan::before_crc(std::iter::once(message.properties.0))
        } else {
            PropertiesPlan::plain(message.properties.0.len())
        }
    }

    /// The length of a record, checked in upstream's order: properties, body, total.
    #[inline]
    fn plan(&self, body_len: usize, properties: PropertiesPlan) -> Result<usize, EncodeError> {
        if properties.len > MAX_PROPERTIES_LEN {
            return Err(EncodeError::PropertiesTooLong { len: properties.len, limit: MAX_PROPERTIES_LEN });
        }
        let limit = self.options.max_message_size;
        if body_len > limit {
            return Err(EncodeError::BodyTooLarge { len: body_len, limit });
        }
        let len = record_len(self.sys_flag, self.magic, body_len, self.topic.len(), properties.len);
        let limit = self.options.max_record_len();
        if len > limit {
            return Err(EncodeError::RecordTooLarge { len, limit });
        }
        Ok(len)
    }

    #[inline]
    fn write<'m>(
        &self,
        message: MessageRef<'_>,
        properties: impl Iterator<Item = &'m [u8]>,
        plan: PropertiesPlan,
        len: usize,
        buffer: &mut impl BufMut,
    ) {
        let mut head = self.head;
        let body_len_at = body_len_at(self.sys_flag);
        head[at::TOTAL_SIZE..][..4].copy_from_slice(&(len as i32).to_be_bytes());
        head[at::BODY_CRC..][..4].copy_from_slice(&body_crc(message.body, self.options.planted).to_be_bytes());
        head[at::FLAG..][..4].copy_from_slice(&message.flag.to_be_bytes());
        head[body_len_at..][..4].copy_from_slice(&(message.body.len() as i32).to_be_bytes());
        buffer.put_slice(&head[..body_len_at + 4]);
        buffer.put_slice(message.body);
        match self.magic {
            Magic::V2 => buffer.put_slice(&(self.topic.len() as i16).to_be_bytes()),
            _ => buffer.put_slice(&[self.topic.len() as u8]),
        }
        buffer.put_slice(self.topic);
        buffer.put_slice(&(plan.len as i16).to_be_bytes());
        properties.for_each(|part| buffer.put_slice(part));
        if plan.separator {
            buffer.put_slice(&[VALUE_END]);
        }
        if self.options.append_property_crc {
            buffer.put_slice(&property_crc_tail(0));
        }
    }
}

/// What stands in the properties field of a record: its length in bytes, and whether a separator stands before the CRC.
#[derive(Debug, Clone, Copy)]
struct PropertiesPlan {
    len: usize,
    separator: bool,
}

impl PropertiesPlan {
    const fn plain(len: usize) -> Self {
        Self { len, separator: false }
    }

    fn before_crc<'m>(parts: impl Iterator<Item = &'m [u8]>) -> Self {
        let (len, last) =
            parts.fold((0, VALUE_END), |(len, last), part| (len + part.len(), part.last().copied().unwrap_or(last)));
        let separator = last != VALUE_END;
        Self { len: len + usize::from(separator) + PROPERTY_CRC_LEN, separator }
    }
}

/// A message that will become a record: nothing can fail any more.
#[derive(Debug, Clone, Copy)]
pub struct PreparedRecord<'m> {
    template: &'m RecordTemplate<'m>,
    message: MessageRef<'m>,
    properties: PropertiesPlan,
    len: usize,
}

impl PreparedRecord<'_> {
    /// Length of the record in bytes.
    pub const fn encoded_len(&self) -> usize {
        self.len
    }

    /// Writes the record over the whole of `bytes`.
    ///
    /// # Panics
    /// If `bytes` is not exactly [`encoded_len`](Self::encoded_len) long.
    pub fn write_to(&self, mut bytes: &mut [u8]) {
        assert_eq!(bytes.len(), self.len, "a record is written to a slice of its own length");
        self.write(&mut bytes);
        assert!(bytes.is_empty(), "the length of a record is the sum of its fields");
    }

    #[inline]
    fn write(&self, buffer: &mut impl BufMut) {
        let Self { template, message, properties: plan, len } = *self;
        if template.options.append_property_crc {
            template.write(message, message.properties.without(name::CRC32), plan, len, buffer);
        } else {
            template.write(message, std::iter::once(message.properties.0), plan, len, buffer);
        }
    }
}

/// A client batch that will become records: nothing can fail any more.
#[derive(Debug, Clone, Copy)]
pub struct PreparedBatch<'m> {
    template: &'m RecordTemplate<'m>,
    batch: &'m [u8],
    len: usize,
    count: u32,
}

impl PreparedBatch<'_> {
    /// Length of all records in bytes.
    pub const fn encoded_len(&self) -> usize {
        self.len
    }

    /// How many messages there are.
    pub const fn message_count(&self) -> u32 {
        self.count
    }

    /// Writes the records, one after the other, over the whole of `bytes`.
    ///
    /// # Panics
    /// If `bytes` is not exactly [`encoded_len`](Self::encoded_len) long.
    pub fn write_to(&self, mut bytes: &mut [u8]) {
        assert_eq!(bytes.len(), self.len, "records are written to a slice of their own length");
        self.write(&mut bytes);
        assert!(bytes.is_empty(), "the length of a record is the sum of its fields");
    }

    fn write(&self, buffer: &mut impl BufMut) {
        let mut template = self.template.clone();
        template.head[body_len_at(template.sys_flag) - 8..][..8].fill(0);
        for message in BatchReader::new(self.batch) {
            let message = message.expect("the batch was read when it was prepared");
            let plan = template.plan_element(message);
            let len = template.plan(message.body.len(), plan).expect("the batch was checked when it was prepared");
            template.write(message, std::iter::once(message.properties.0), plan, len, buffer);
        }
    }
}

/// Fills in what the log assigns: `first` to the first record of `records`, and to each one behind it the next queue
/// offset and its own place in the log. Returns how many records there are. `append_property_crc` must be what it was
/// when they were encoded.
///
/// # Panics
/// If `records` are not whole records from a [`RecordTemplate`].
pub fn assign(records: &mut [u8], first: Assigned, append_property_crc: bool) -> u32 {
    let (mut count, mut start) = (0, 0);
    while start < records.len() {
        let rest = &mut records[start..];
        let len = i32::from_be_bytes(array_at(rest, at::TOTAL_SIZE).expect("a record has a total size")) as usize;
        let assigned = Assigned {
            queue_offset: first.queue_offset + i64::from(count),
            physical_offset: first.physical_offset + start as i64,
            ..first
        };
        assign_one(&mut rest[..len], assigned, append_property_crc);
        start += len;
        count += 1;
    }
    count
}

fn assign_one(record: &mut [u8], assigned: Assigned, append_property_crc: bool) {
    let sys_flag = SysFlag(i32::from_be_bytes(array_at(record, at::SYS_FLAG).expect("a record has a flag")));
    let queue_offset = if sys_flag.is_queued() { assigned.queue_offset } else { 0 };
    record[at::QUEUE_OFFSET..][..8].copy_from_slice(&queue_offset.to_be_bytes());
    record[at::PHYSICAL_OFFSET..][..8].copy_from_slice(&assigned.physical_offset.to_be_bytes());
    record[store_timestamp_at(sys_flag)..][..8].copy_from_slice(&assigned.store_timestamp_ms.to_be_bytes());
    if append_property_crc {
        let (covered, tail) = record.split_last_chunk_mut().expect("a record has room for its CRC");
        *tail = property_crc_tail(masked_crc(covered));
    }
}

/// Whether a record, or a batch of them, of `len` bytes goes into a segment with `remaining` bytes left.
pub const fn fits(len: u64, remaining: u64) -> bool {
    len.saturating_add(BLANK_LEN as u64) <= remaining
}

/// What is written of the blank that fills the last `remaining` bytes of a segment. What is behind it is undefined.
pub fn blank(remaining: u32, planted: Planted) -> [u8; BLANK_LEN] {
    let stated = if planted!(planted, BlankWithoutLength) { 0 } else { remaining };
    let mut blank = [0; BLANK_LEN];
    blank[at::TOTAL_SIZE..at::MAGIC].copy_from_slice(&stated.to_be_bytes());
    blank[at::MAGIC..].copy_from_slice(&Magic::Blank.code().to_be_bytes());
    blank
}
