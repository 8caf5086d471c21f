//! Why a message cannot be encoded, and why a batch cannot be decoded.

/// Why a message was refused before any byte of it was written. Lengths and limits are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum EncodeError {
    /// The length field holds 16 signed bits, and the property CRC and its separator count.
    #[error("properties take {len} bytes, the limit is {limit}")]
    PropertiesTooLong { len: usize, limit: usize },
    #[error("the body has {len} bytes, the limit is {limit}")]
    BodyTooLarge { len: usize, limit: usize },
    #[error("the topic has {len} bytes, the limit is {limit}")]
    TopicTooLong { len: usize, limit: usize },
    #[error("the record would take {len} bytes, the limit is {limit}")]
    RecordTooLarge { len: usize, limit: usize },
    #[error("the batch takes {len} bytes, the limit is {limit}")]
    BatchTooLarge { len: usize, limit: usize },
    /// RocketMQ counts the messages of a batch in 16 signed bits.
    #[error("the batch has {count} messages, the limit is {limit}")]
    TooManyMessages { count: usize, limit: usize },
    #[error("a batch cannot be part of a transaction")]
    BatchInTransaction,
    #[error("the batch cannot be read: {0}")]
    Batch(#[from] BatchError),
}

/// Why a client batch cannot be read. `at` is the offset in the batch of the message that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum BatchError {
    #[error("message at {at}: {remaining} bytes are left, its fixed fields need {needed}")]
    Cut { at: usize, needed: usize, remaining: usize },
    #[error("message at {at}: body length {body_len}, {remaining} bytes are left for it")]
    BodyLen { at: usize, body_len: i32, remaining: usize },
    #[error("message at {at}: properties length {properties_len}, {remaining} bytes are left for them")]
    PropertiesLen { at: usize, properties_len: i16, remaining: usize },
    #[error("message at {at}: total size {total_size}, {remaining} bytes are left for it")]
    TotalSize { at: usize, total_size: i32, remaining: usize },
}
