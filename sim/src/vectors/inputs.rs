//! The fields of vectors' inputs, typed.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stormlog::codec::Host;

/// A message of a client. `body` is hex, `properties` the properties string.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageInput {
    pub flag: i32,
    pub body: String,
    pub properties: String,
}

/// A client's batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchInput {
    pub messages: Vec<MessageInput>,
}

/// Names and values in the order to be written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ListInput {
    pub list: Vec<(String, String)>,
}

/// What a store knows of a record beside the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordFields {
    pub version: u8,
    pub topic: String,
    pub queue_id: i32,
    pub queue_offset: i64,
    pub physical_offset: i64,
    pub sys_flag: i32,
    pub born_timestamp: i64,
    pub born_host: String,
    pub store_timestamp: i64,
    pub store_host: String,
    pub reconsume_times: i32,
    pub prepared_transaction_offset: i64,
    pub property_crc: bool,
}

/// A stored record. Its property CRC, and the separator put before it, are no part of `properties`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordInput {
    #[serde(flatten)]
    pub record: RecordFields,
    #[serde(flatten)]
    pub message: MessageInput,
}

/// The records of a batch; offsets are the first one's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordsInput {
    #[serde(flatten)]
    pub record: RecordFields,
    pub messages: Vec<MessageInput>,
}

/// A blank that fills `size` bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlankInput {
    pub size: u32,
}

/// What a message id is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdInput {
    pub host: String,
    pub physical_offset: i64,
}

/// Bytes in hex.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct BytesInput {
    pub bytes: String,
}

/// Tags.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TagsInput {
    pub tags: String,
}

/// An index key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct KeyInput {
    pub topic: String,
    pub key: String,
}

/// What the record check is asked to do, in upstream's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckInput {
    pub check_crc: bool,
    pub check_dup_info: bool,
    pub read_body: bool,
    pub force_verify_prop_crc: bool,
}

/// Settings of the store's encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EncodeInput {
    pub max_message_size: usize,
}

/// A host from `1.2.3.4:5` or `[::1]:5`.
pub fn host(text: &str) -> Result<Host, String> {
    text.parse::<SocketAddr>().map(Host::from).map_err(|error| format!("host {text:?}: {error}"))
}

/// What decoding gives where it is not the input as it stands: an IPv4-mapped address comes back as IPv4, and properties
/// come back with the separator that a property CRC needed before it.
pub fn as_decoded(mut input: Value) -> Value {
    for name in ["host", "bornHost", "storeHost"] {
        if let Some(Value::String(text)) = input.get_mut(name)
            && let Ok(host) = host(text)
        {
            *text = host.to_string();
        }
    }
    if input.get("propertyCrc") == Some(&Value::Bool(true))
        && let Some(Value::String(properties)) = input.get_mut("properties")
        && !properties.is_empty()
        && !properties.ends_with('\u{2}')
    {
        properties.push('\u{2}');
    }
    input
}

/// An outcome without the reference's own words for it.
pub fn without_reason(mut outcome: Value) -> Value {
    if let Value::Object(fields) = &mut outcome {
        fields.remove("reason");
    }
    outcome
}

/// Whether a record was refused by a check that does not read the body. Which of its two refusals upstream gives then
/// depends on that; one that looks at the body all the same comes upon other damage first.
pub fn is_refusal_without_body(outcome: &Value, options: Option<&Value>) -> bool {
    outcome["success"] == json!(false) && options.is_some_and(|options| options["readBody"] == json!(false))
}

/// The refusal that names no size.
pub fn plain_refusal() -> Value {
    json!({ "size": -1, "success": false })
}
