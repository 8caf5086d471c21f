//! Whether an answer is what the reference said, and where it first is not.

use serde_json::Value;

use super::{Answer, Op};

/// What is wrong with a codec's answer to a vector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum Mismatch {
    #[error("{op}: byte {at} is {}, the reference has {} ({got_len} bytes, the reference {expected_len})",
        shown(*.got), shown(*.expected))]
    Bytes { op: Op, at: usize, expected: Option<u8>, got: Option<u8>, expected_len: usize, got_len: usize },
    #[error("{op}: {field} is {got}, the reference has {expected}")]
    Output { op: Op, field: String, expected: String, got: String },
    #[error("{op}: refused ({reason}), the reference does not refuse")]
    Refused { op: Op, reason: String },
    #[error("{op}: not refused, the reference refuses")]
    NotRefused { op: Op },
    #[error("{op}: answered with {got}, {wanted} is asked for")]
    WrongShape { op: Op, wanted: &'static str, got: &'static str },
    #[error("{op}: no answer within {seconds} s")]
    NoAnswer { op: Op, seconds: u64 },
    #[error("{op}: the program ended ({how}) without an answer")]
    Ended { op: Op, how: String },
    #[error("{op}: not an answer to this question: {line}")]
    Garbage { op: Op, line: String },
    #[error("{op}: not asked, the program failed {failures} times before")]
    NotAsked { op: Op, failures: u32 },
}

fn shown(byte: Option<u8>) -> String {
    byte.map_or("missing".to_owned(), |byte| format!("{byte:02x}"))
}

/// What the reference said.
#[derive(Debug)]
pub enum Expected<'a> {
    /// These bytes, in hex.
    Bytes(&'a str),
    /// One of these; fields beyond them are not looked at.
    Output(Vec<Value>),
    /// A refusal.
    Refused,
}

pub fn compare(op: Op, expected: &Expected<'_>, answer: &Answer) -> Result<(), Mismatch> {
    match (expected, answer) {
        (Expected::Refused, Answer::Refused(_)) => Ok(()),
        (Expected::Refused, _) => Err(Mismatch::NotRefused { op }),
        (_, Answer::Refused(reason)) => Err(Mismatch::Refused { op, reason: reason.clone() }),
        (Expected::Bytes(hex), Answer::Bytes(got)) => compare_bytes(op, hex, got),
        (Expected::Output(outputs), Answer::Output(got)) => compare_outputs(op, outputs, got),
        (Expected::Bytes(_), Answer::Output(_)) => Err(Mismatch::WrongShape { op, wanted: "hex", got: "output" }),
        (Expected::Output(_), Answer::Bytes(_)) => Err(Mismatch::WrongShape { op, wanted: "output", got: "hex" }),
    }
}

fn compare_bytes(op: Op, hex: &str, got: &[u8]) -> Result<(), Mismatch> {
    let expected = hex::decode(hex).expect("a vector's hex was checked when it was read");
    if expected == got {
        return Ok(());
    }
    let at = expected.iter().zip(got).take_while(|(a, b)| a == b).count();
    let (expected_len, got_len) = (expected.len(), got.len());
    let (expected, got) = (expected.get(at).copied(), got.get(at).copied());
    Err(Mismatch::Bytes { op, at, expected, got, expected_len, got_len })
}

fn compare_outputs(op: Op, outputs: &[Value], got: &Value) -> Result<(), Mismatch> {
    let differences: Vec<_> = outputs.iter().map(|expected| difference("output", expected, got)).collect();
    match differences.into_iter().collect::<Option<Vec<_>>>() {
        None => Ok(()),
        Some(differences) => {
            let (field, expected, got) = differences.into_iter().next().expect("a vector has at least one output");
            Err(Mismatch::Output { op, field, expected, got })
        }
    }
}

/// The first field that differs: its path, and both values.
fn difference(path: &str, expected: &Value, got: &Value) -> Option<(String, String, String)> {
    match (expected, got) {
        (Value::Object(expected), Value::Object(fields)) => expected.iter().find_map(|(name, value)| {
            difference(&format!("{path}.{name}"), value, fields.get(name).unwrap_or(&Value::Null))
        }),
        (Value::Array(expected), Value::Array(items)) if expected.len() == items.len() => expected
            .iter()
            .zip(items)
            .enumerate()
            .find_map(|(n, (value, item))| difference(&format!("{path}[{n}]"), value, item)),
        _ if expected == got => None,
        _ => Some((path.to_owned(), clipped(&expected.to_string()), clipped(&got.to_string()))),
    }
}

/// The front of a text that may be long.
pub fn clipped(text: &str) -> String {
    const SHOWN: usize = 120;
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
