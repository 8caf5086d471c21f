//! Our codec, asked as any other.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stormlog::codec::{
    Assigned, CheckOptions, Magic, MessageId, MessageRef, Outcome, Properties, PropertiesRef, PropertyCrc,
    RecordHeader, RecordOptions, RecordTemplate, RecordView, SysFlag, batch, check, hash, masked_crc, properties,
    record,
};
use stormlog::planted::Planted;

use super::inputs::{
    BatchInput, BlankInput, BytesInput, CheckInput, EncodeInput, IdInput, KeyInput, ListInput, MessageInput,
    RecordFields, RecordInput, RecordsInput, TagsInput, host,
};
use super::{Answer, Codec, Kind, Mismatch, Op, Question};

/// The codec of `stormlog`.
#[derive(Debug, Clone, Copy, Default)]
pub struct OurCodec;

impl Codec for OurCodec {
    fn answer(&mut self, question: &Question<'_>) -> Result<Answer, Mismatch> {
        Ok(answer(question).unwrap_or_else(Answer::Refused))
    }
}

fn answer(question: &Question<'_>) -> Result<Answer, String> {
    match question.op {
        Op::Encode => encode(question).map(Answer::Bytes),
        Op::Decode => decode(question).map(Answer::Output),
        Op::Check => check_bytes(question).map(Answer::Output),
        Op::Hash => hashed(question).map(Answer::Output),
    }
}

fn encode(question: &Question<'_>) -> Result<Vec<u8>, String> {
    match question.kind {
        Kind::ClientMessage | Kind::ClientRefused => encode_messages(&[typed(question.input)?]),
        Kind::ClientBatch => encode_messages(&typed::<BatchInput>(question.input)?.messages),
        Kind::PropertiesEncode => {
            let mut properties = Properties::new();
            for (name, value) in typed::<ListInput>(question.input)?.list {
                properties.push_as_upstream(Some(&name), Some(&value));
            }
            Ok(properties.as_str().into())
        }
        Kind::StoredRecord | Kind::StoredRefused => {
            let RecordInput { record, message } = typed(question.input)?;
            let body = bytes(&message.body)?;
            let message = MessageRef {
                flag: message.flag,
                body: &body,
                properties: PropertiesRef(message.properties.as_bytes()),
            };
            encode_records(&record, question.options, |template, encoded| {
                template.encode_into(message, encoded).map_err(text)
            })
        }
        Kind::StoredBatch => {
            let RecordsInput { record, messages } = typed(question.input)?;
            let batch = encode_messages(&messages)?;
            encode_records(&record, question.options, |template, encoded| {
                template.encode_batch_into(&batch, encoded).map_err(text)
            })
        }
        Kind::Blank => Ok(record::blank(typed::<BlankInput>(question.input)?.size, Planted::NONE).into()),
        _ => Err(not_asked(question)),
    }
}

fn encode_messages(messages: &[MessageInput]) -> Result<Vec<u8>, String> {
    let bodies = messages.iter().map(|message| bytes(&message.body)).collect::<Result<Vec<_>, _>>()?;
    let messages: Vec<_> = messages
        .iter()
        .zip(&bodies)
        .map(|(message, body)| MessageRef {
            flag: message.flag,
            body,
            properties: PropertiesRef(message.properties.as_bytes()),
        })
        .collect();
    batch::encode(&messages).map_err(text)
}

fn encode_records(
    fields: &RecordFields,
    options: Option<&Value>,
    encode: impl FnOnce(&RecordTemplate<'_>, &mut Vec<u8>) -> Result<usize, String>,
) -> Result<Vec<u8>, String> {
    let mut record_options = RecordOptions { append_property_crc: fields.property_crc, ..RecordOptions::default() };
    if options.is_some() {
        record_options.max_message_size = typed::<EncodeInput>(options)?.max_message_size;
    }
    let header = RecordHeader {
        topic: &fields.topic,
        queue_id: fields.queue_id,
        sys_flag: SysFlag(fields.sys_flag),
        born_timestamp_ms: fields.born_timestamp,
        born_host: host(&fields.born_host)?,
        store_host: host(&fields.store_host)?,
        reconsume_times: fields.reconsume_times,
        prepared_transaction_offset: fields.prepared_transaction_offset,
    };
    let mut encoded = Vec::new();
    encode(&RecordTemplate::new(&header, &record_options).map_err(text)?, &mut encoded)?;
    let first = Assigned {
        queue_offset: fields.queue_offset,
        physical_offset: fields.physical_offset,
        store_timestamp_ms: fields.store_timestamp,
    };
    record::assign(&mut encoded, first, fields.property_crc);
    Ok(encoded)
}

fn decode(question: &Question<'_>) -> Result<Value, String> {
    let text_of_hex = question.hex.ok_or_else(|| not_asked(question))?;
    if question.kind == Kind::MessageId {
        let id: MessageId = text_of_hex.parse().map_err(text)?;
        let input = IdInput { host: id.store_host.to_string(), physical_offset: id.physical_offset };
        return serde_json::to_value(input).map_err(text);
    }
    let bytes = bytes(text_of_hex)?;
    let output = match question.kind {
        Kind::ClientMessage => {
            let mut messages = decode_messages(&bytes)?;
            match (messages.pop(), messages.pop()) {
                (Some(message), None) => serde_json::to_value(message),
                _ => return Err("not exactly one message".to_owned()),
            }
        }
        Kind::ClientBatch => serde_json::to_value(BatchInput { messages: decode_messages(&bytes)? }),
        Kind::PropertiesDecode => {
            let mut pairs = PropertiesRef(&bytes).to_pairs();
            pairs.sort();
            Ok(json!({ "sorted": pairs }))
        }
        Kind::StoredRecord => {
            let (input, rest) = decode_record(&bytes)?;
            if !rest.is_empty() {
                return Err(format!("{} bytes behind the record", rest.len()));
            }
            serde_json::to_value(input)
        }
        Kind::StoredBatch => serde_json::to_value(decode_records(&bytes)?),
        Kind::Blank => match bytes.as_chunks::<4>() {
            ([size, magic], []) if Magic::from_code(i32::from_be_bytes(*magic)) == Some(Magic::Blank) => {
                serde_json::to_value(BlankInput { size: u32::from_be_bytes(*size) })
            }
            _ => return Err("not what is written of a blank".to_owned()),
        },
        _ => return Err(not_asked(question)),
    };
    output.map_err(text)
}

fn decode_messages(bytes: &[u8]) -> Result<Vec<MessageInput>, String> {
    batch::BatchReader::new(bytes).map(|message| message.map(message_input).map_err(text)).collect()
}

fn message_input(message: MessageRef<'_>) -> MessageInput {
    MessageInput {
        flag: message.flag,
        body: hex::encode(message.body),
        properties: String::from_utf8_lossy(message.properties.0).into_owned(),
    }
}

fn decode_record(bytes: &[u8]) -> Result<(RecordInput, &[u8]), String> {
    let options = CheckOptions { property_crc: PropertyCrc::WherePresent, ..CheckOptions::ROCKETMQ };
    let view = match check(bytes, 0, &options) {
        Outcome::Record(view) => view,
        other => return Err(format!("{other:?}")),
    };
    Ok((record_input(&view), &bytes[view.bytes().len()..]))
}

fn record_input(view: &RecordView<'_>) -> RecordInput {
    let stored = view.properties().0;
    let tail = stored.len().checked_sub(record_crc_len()).map(|at| stored.split_at(at));
    let (kept, property_crc) = match tail {
        Some((kept, crc)) if crc.starts_with(properties::name::CRC32.as_bytes()) => (kept, true),
        _ => (stored, false),
    };
    let message = MessageRef { flag: view.flag(), body: view.body(), properties: PropertiesRef(kept) };
    let record = RecordFields {
        version: if view.magic() == Magic::V2 { 2 } else { 1 },
        topic: String::from_utf8_lossy(view.topic()).into_owned(),
        queue_id: view.queue_id(),
        queue_offset: view.queue_offset(),
        physical_offset: view.physical_offset(),
        sys_flag: view.sys_flag().0,
        born_timestamp: view.born_timestamp_ms(),
        born_host: view.born_host().to_string(),
        store_timestamp: view.store_timestamp_ms(),
        store_host: view.store_host().to_string(),
        reconsume_times: view.reconsume_times(),
        prepared_transaction_offset: view.prepared_transaction_offset(),
        property_crc,
    };
    RecordInput { record, message: message_input(message) }
}

/// Bytes of a property CRC: name, separator, ten digits, separator.
const fn record_crc_len() -> usize {
    properties::name::CRC32.len() + 12
}

fn decode_records(bytes: &[u8]) -> Result<RecordsInput, String> {
    let (first, mut rest) = decode_record(bytes)?;
    let mut messages = vec![first.message];
    while !rest.is_empty() {
        let at = (bytes.len() - rest.len()) as i64;
        let (next, behind) = decode_record(rest)?;
        let expected = RecordFields {
            queue_offset: first.record.queue_offset + messages.len() as i64,
            physical_offset: first.record.physical_offset + at,
            ..first.record.clone()
        };
        if next.record != expected {
            return Err(format!("record at {at} is not the next of its batch: {:?}", next.record));
        }
        messages.push(next.message);
        rest = behind;
    }
    Ok(RecordsInput { record: first.record, messages })
}

fn check_bytes(question: &Question<'_>) -> Result<Value, String> {
    let bytes = bytes(question.hex.ok_or_else(|| not_asked(question))?)?;
    match question.kind {
        Kind::ClientCheck => Ok(match decode_messages(&bytes) {
            Ok(messages) => json!({ "success": true, "messages": messages.len() }),
            Err(_) => json!({ "success": false }),
        }),
        Kind::Check => {
            let asked: CheckInput = typed(question.options)?;
            let options = CheckOptions {
                body_crc: asked.check_crc && asked.read_body,
                property_crc: if asked.check_crc && asked.force_verify_prop_crc {
                    PropertyCrc::Require
                } else {
                    PropertyCrc::Ignore
                },
                dup_info: asked.check_dup_info,
                ..CheckOptions::ROCKETMQ
            };
            let (size, success) = check(&bytes, 0, &options).to_rocketmq();
            Ok(json!({ "size": size, "success": success }))
        }
        _ => Err(not_asked(question)),
    }
}

fn hashed(question: &Question<'_>) -> Result<Value, String> {
    match question.kind {
        Kind::MessageId => {
            let input: IdInput = typed(question.input)?;
            let id = MessageId { store_host: host(&input.host)?, physical_offset: input.physical_offset };
            Ok(json!(id.to_string()))
        }
        Kind::Crc32 => Ok(json!(masked_crc(&bytes(&typed::<BytesInput>(question.input)?.bytes)?))),
        Kind::TagsCode => Ok(json!(hash::tags_code(typed::<TagsInput>(question.input)?.tags.as_bytes()))),
        Kind::KeyHash => {
            let KeyInput { topic, key } = typed(question.input)?;
            Ok(json!(hash::index_key_hash(topic.as_bytes(), key.as_bytes())))
        }
        _ => Err(not_asked(question)),
    }
}

fn typed<T: DeserializeOwned>(value: Option<&Value>) -> Result<T, String> {
    serde_json::from_value(value.cloned().unwrap_or_default()).map_err(text)
}

fn bytes(hex: &str) -> Result<Vec<u8>, String> {
    hex::decode(hex).map_err(text)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn not_asked(question: &Question<'_>) -> String {
    format!("{} is not asked of {:?}", question.op, question.kind)
}
