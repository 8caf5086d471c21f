//! What a vector asks, and what may be answered.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::compare::Expected;
use super::{Vector, inputs};

/// What a vector is about. The names in JSON are these in kebab case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One message in a client's wire form.
    ClientMessage,
    /// A batch of them.
    ClientBatch,
    /// A message that a client's encoder refuses.
    ClientRefused,
    /// Whether bytes can be read as a batch, and how many messages it has.
    ClientCheck,
    /// A properties string made of a list.
    PropertiesEncode,
    /// What is read from a properties string.
    PropertiesDecode,
    /// A record of the commit log.
    StoredRecord,
    /// The records of a client's batch.
    StoredBatch,
    /// A message that the store's encoder refuses.
    StoredRefused,
    /// What is written of a blank.
    Blank,
    /// The record check.
    Check,
    /// The id that a store gives a message.
    MessageId,
    /// CRC-32 with its top bit cleared.
    Crc32,
    /// The hash of tags.
    TagsCode,
    /// The hash of an index key.
    KeyHash,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Bytes from `input`.
    Encode,
    /// Output from `hex`.
    Decode,
    /// An outcome from `hex`.
    Check,
    /// A number or text from `input`.
    Hash,
}

impl std::fmt::Display for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Encode => "encode",
            Self::Decode => "decode",
            Self::Check => "check",
            Self::Hash => "hash",
        })
    }
}

/// One question to a codec: a line on the standard input of a program that is asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Question<'a> {
    /// The vector's id.
    pub id: &'a str,
    /// Its kind.
    pub kind: Kind,
    /// What is to be done.
    pub op: Op,
    /// Fields to encode or hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<&'a Value>,
    /// Bytes to decode or check, or the text of a message id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hex: Option<&'a str>,
    /// Settings of the codec for this question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<&'a Value>,
}

/// What a codec answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Bytes.
    Bytes(Vec<u8>),
    /// Anything else, in the shape of the vector's input, output or outcome.
    Output(Value),
    /// It refuses, with its reason.
    Refused(String),
}

impl Vector {
    pub(super) fn questions(&self) -> Vec<(Question<'_>, Expected<'_>)> {
        let hex = self.hex.as_deref();
        let input = self.input.as_ref();
        let options = self.options.as_ref();
        let ask = |op, input, hex| Question { id: &self.id, kind: self.kind, op, input, hex, options };
        let encode = || (ask(Op::Encode, input, None), Expected::Bytes(hex.unwrap_or_default()));
        let decode = |output| (ask(Op::Decode, None, hex), Expected::Output(vec![output]));
        let given = |value: &Option<Value>| value.clone().unwrap_or_default();
        match self.kind {
            Kind::ClientMessage | Kind::ClientBatch | Kind::Blank => vec![encode(), decode(given(&self.input))],
            Kind::StoredRecord | Kind::StoredBatch => {
                vec![encode(), decode(inputs::as_decoded(given(&self.input)))]
            }
            Kind::PropertiesEncode => vec![encode()],
            Kind::PropertiesDecode => vec![decode(given(&self.output))],
            Kind::ClientRefused | Kind::StoredRefused => vec![(ask(Op::Encode, input, None), Expected::Refused)],
            Kind::ClientCheck | Kind::Check => {
                let outcomes = [&self.outcome, &self.grown_outcome].into_iter().flatten().cloned();
                let mut outcomes: Vec<_> = outcomes.map(inputs::without_reason).collect();
                if inputs::is_refusal_without_body(&outcomes[0], options) {
                    outcomes.push(inputs::plain_refusal());
                }
                vec![(ask(Op::Check, None, hex), Expected::Output(outcomes))]
            }
            Kind::MessageId => {
                let id = self.output.as_ref().and_then(Value::as_str);
                let back = Expected::Output(vec![inputs::as_decoded(given(&self.input))]);
                let hash = (ask(Op::Hash, input, None), Expected::Output(vec![given(&self.output)]));
                vec![hash, (ask(Op::Decode, None, id), back)]
            }
            Kind::Crc32 | Kind::TagsCode | Kind::KeyHash => {
                vec![(ask(Op::Hash, input, None), Expected::Output(vec![given(&self.output)]))]
            }
        }
    }
}
