//! The client's wire form of messages: a batch body is one message after another, without count, padding or end mark.
//!
//! Per message: total size i32, magic i32 (0), CRC i32 (0), flag i32, body length i32, body, properties length i16,
//! properties. Topic, queue and times are in the request around it.
//!
//! Encoding makes two passes: lengths first, with every refusal before the first byte; then straight writes into one
//! buffer of exactly the right size. Decoding borrows; total size, magic and CRC are ignored, as upstream ignores them.

use bytes::{BufMut, Bytes};

use super::layout::{i16_at, i32_at};
use super::properties::MAX_PROPERTIES_LEN;
use super::{BatchError, EncodeError, Grow, MessageRef, PropertiesRef};

const BODY_AT: usize = 20;
/// Bytes that a message takes beside its body and properties.
pub const MESSAGE_OVERHEAD: usize = BODY_AT + 2;
const MAX_LEN: usize = i32::MAX as usize;

/// Length in bytes that a message takes.
pub fn message_len(message: MessageRef<'_>) -> Result<usize, EncodeError> {
    let properties_len = message.properties.0.len();
    if properties_len > MAX_PROPERTIES_LEN {
        return Err(EncodeError::PropertiesTooLong { len: properties_len, limit: MAX_PROPERTIES_LEN });
    }
    let overhead = MESSAGE_OVERHEAD + properties_len;
    match message.body.len().checked_add(overhead) {
        Some(len) if len <= MAX_LEN => Ok(len),
        _ => Err(EncodeError::BodyTooLarge { len: message.body.len(), limit: MAX_LEN - overhead }),
    }
}

/// Length in bytes of the batch body that holds `messages`.
pub fn encoded_len<'a, M>(messages: &'a [M]) -> Result<usize, EncodeError>
where
    MessageRef<'a>: From<&'a M>,
{
    let mut total = 0usize;
    for message in messages {
        total = total.saturating_add(message_len(message.into())?);
    }
    if total > MAX_LEN {
        return Err(EncodeError::BatchTooLarge { len: total, limit: MAX_LEN });
    }
    Ok(total)
}

/// Encodes a batch body, in one allocation of its exact size. A single message is a batch of one.
pub fn encode<'a, M>(messages: &'a [M]) -> Result<Vec<u8>, EncodeError>
where
    MessageRef<'a>: From<&'a M>,
{
    let mut encoded = Vec::new();
    encode_into(messages, &mut encoded)?;
    Ok(encoded)
}

/// Appends a batch body to `buffer` and returns its length. Allocates only where the buffer's capacity is too small.
pub fn encode_into<'a, M>(messages: &'a [M], buffer: &mut impl Grow) -> Result<usize, EncodeError>
where
    MessageRef<'a>: From<&'a M>,
{
    let len = encoded_len(messages)?;
    buffer.grow(len);
    for message in messages {
        write(message.into(), buffer);
    }
    Ok(len)
}

/// Writes a message that [`message_len`] has passed.
#[inline]
fn write(message: MessageRef<'_>, buffer: &mut impl BufMut) {
    let MessageRef { flag, body, properties: PropertiesRef(properties) } = message;
    let mut head = [0; BODY_AT];
    let total = (MESSAGE_OVERHEAD + body.len() + properties.len()) as i32;
    head[..4].copy_from_slice(&total.to_be_bytes());
    head[12..16].copy_from_slice(&flag.to_be_bytes());
    head[16..].copy_from_slice(&(body.len() as i32).to_be_bytes());
    buffer.put_slice(&head);
    buffer.put_slice(body);
    buffer.put_slice(&(properties.len() as i16).to_be_bytes());
    buffer.put_slice(properties);
}

/// The messages of a batch body, one after the other; ends after the first error.
#[derive(Debug, Clone)]
pub struct BatchReader<'a> {
    batch: &'a [u8],
    at: usize,
}

impl<'a> BatchReader<'a> {
    /// Reads `batch`.
    pub const fn new(batch: &'a [u8]) -> Self {
        Self { batch, at: 0 }
    }

    fn read(&self) -> Result<(MessageRef<'a>, usize), BatchError> {
        let at = self.at;
        let rest = &self.batch[at..];
        let cut = |needed| BatchError::Cut { at, needed, remaining: rest.len() };
        let body_len = i32_at(rest, 16).ok_or_else(|| cut(MESSAGE_OVERHEAD))?;
        let flag = i32_at(rest, 12).ok_or_else(|| cut(MESSAGE_OVERHEAD))?;
        let rest_of_body = &rest[BODY_AT..];
        let (body, tail) = usize::try_from(body_len)
            .ok()
            .and_then(|len| rest_of_body.split_at_checked(len))
            .ok_or(BatchError::BodyLen { at, body_len, remaining: rest_of_body.len() })?;
        let properties_len = i16_at(tail, 0).ok_or_else(|| cut(MESSAGE_OVERHEAD + body.len()))?;
        let tail = &tail[2..];
        let properties = usize::try_from(properties_len)
            .ok()
            .and_then(|len| tail.get(..len))
            .ok_or(BatchError::PropertiesLen { at, properties_len, remaining: tail.len() })?;
        let end = at + MESSAGE_OVERHEAD + body.len() + properties.len();
        Ok((MessageRef { flag, body, properties: PropertiesRef(properties) }, end))
    }
}

impl<'a> Iterator for BatchReader<'a> {
    type Item = Result<MessageRef<'a>, BatchError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.batch.len() {
            return None;
        }
        match self.read() {
            Ok((message, end)) => {
                self.at = end;
                Some(Ok(message))
            }
            Err(error) => {
                self.at = self.batch.len();
                Some(Err(error))
            }
        }
    }
}

/// A message that shares the memory of the batch it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedMessage {
    /// The user's flag.
    pub flag: i32,
    /// The body.
    pub body: Bytes,
    /// The properties string.
    pub properties: Bytes,
}

/// The messages of a batch body, sharing its memory; ends after the first error.
pub fn read_shared(batch: &Bytes) -> impl Iterator<Item = Result<SharedMessage, BatchError>> {
    BatchReader::new(batch).map(|message| {
        message.map(|message| SharedMessage {
            flag: message.flag,
            body: batch.slice_ref(message.body),
            properties: batch.slice_ref(message.properties.0),
        })
    })
}

/// How many messages a batch body has, told by the total sizes alone. (`MessageDecoder.countInnerMsgNum`, which loops
/// for ever on a size of 0)
pub fn count(batch: &[u8]) -> Result<u32, BatchError> {
    const SMALLEST: usize = 8;
    let mut count = 0;
    let mut at = 0;
    while at < batch.len() {
        let remaining = batch.len() - at;
        let total_size = i32_at(batch, at).ok_or(BatchError::Cut { at, needed: 4, remaining })?;
        match usize::try_from(total_size) {
            Ok(len) if (SMALLEST..=remaining).contains(&len) => at += len,
            _ => return Err(BatchError::TotalSize { at, total_size, remaining }),
        }
        count += 1;
    }
    Ok(count)
}
