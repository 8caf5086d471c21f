//! The vectors that the real Java implementation emitted: our codec agrees with all of them, and whatever does not is
//! noticed, be it a vector, our codec, or a program behind a pipe.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use stormlog_sim::vectors::{
    Answer, Codec, ExecCodec, Kind, Mismatch, Op, OurCodec, Question, Source, Vector, VectorError, VectorResult, check,
    parse, read_embedded, run_check,
};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/vectors");
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/compat/codec_example.py");

fn results(vectors: &[Vector], codec: &mut dyn Codec) -> Vec<VectorResult> {
    let mut results = Vec::new();
    let summary = check(vectors, codec, &mut |result| results.push(result.clone()));
    assert_eq!(summary.checked, results.len() as u64);
    assert_eq!(summary.mismatched, results.iter().filter(|result| result.mismatch.is_some()).count() as u64);
    results
}

fn mismatch(vector: Vector) -> Option<Mismatch> {
    results(&[vector], &mut OurCodec).remove(0).mismatch
}

fn some(kinds: &[Kind]) -> Vec<Vector> {
    let vectors: Vec<_> = read_embedded().unwrap().into_iter().filter(|vector| kinds.contains(&vector.kind)).collect();
    assert!(!vectors.is_empty());
    vectors
}

#[test]
fn our_codec_agrees_with_the_reference() {
    for source in [Source::Embedded, Source::Dir(Path::new(FIXTURES))] {
        let mut mismatches = Vec::new();
        let summary = run_check(source, None, &mut |result| {
            if let Some(mismatch) = &result.mismatch {
                mismatches.push(format!("{}: {mismatch}", result.id));
            }
        })
        .unwrap();
        assert!(mismatches.is_empty(), "{} of {}:\n{}", summary.mismatched, summary.checked, mismatches.join("\n"));
        assert!(summary.checked >= 1000, "{} vectors", summary.checked);
        assert_eq!(
            summary.emitted_by.into_iter().collect::<Vec<_>>(),
            ["org.apache.rocketmq:rocketmq-common 5.5.1", "org.apache.rocketmq:rocketmq-store 5.5.1"]
        );
    }
}

#[test]
fn a_flipped_byte_of_a_vector_is_noticed_where_it_is() {
    let encoded = [
        Kind::ClientMessage,
        Kind::ClientBatch,
        Kind::PropertiesEncode,
        Kind::StoredRecord,
        Kind::StoredBatch,
        Kind::Blank,
    ];
    for vector in some(&encoded) {
        let bytes = hex::decode(vector.hex.as_ref().unwrap()).unwrap();
        let positions = [0, bytes.len() / 3, bytes.len() / 2, bytes.len().saturating_sub(1)];
        for at in positions.into_iter().filter(|&at| at < bytes.len()) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            let found = mismatch(Vector { hex: Some(hex::encode(flipped)), ..vector.clone() });
            assert!(
                matches!(found, Some(Mismatch::Bytes { at: place, .. }) if place == at),
                "{}: {found:?}",
                vector.id
            );
        }
        let longer = mismatch(Vector { hex: Some(hex::encode([&bytes[..], &[0]].concat())), ..vector.clone() });
        let end = bytes.len();
        assert!(matches!(longer, Some(Mismatch::Bytes { at, got: None, .. }) if at == end), "{}", vector.id);
    }
}

#[test]
fn another_output_or_outcome_is_noticed() {
    for vector in some(&[Kind::MessageId, Kind::Crc32, Kind::TagsCode, Kind::KeyHash, Kind::PropertiesDecode]) {
        let output = match vector.output.clone().unwrap() {
            Value::Number(number) => json!(number.as_i64().unwrap() ^ 1),
            Value::String(text) => json!(text.replace('0', "1")),
            _ => json!({ "sorted": [["other", "value"]] }),
        };
        let found = mismatch(Vector { output: Some(output), ..vector.clone() });
        assert!(matches!(found, Some(Mismatch::Output { .. })), "{}: {found:?}", vector.id);
    }
    for vector in some(&[Kind::Check, Kind::ClientCheck]) {
        let mut outcome = vector.outcome.clone().unwrap();
        outcome["success"] = json!(!outcome["success"].as_bool().unwrap());
        let found = mismatch(Vector { outcome: Some(outcome), grown_outcome: None, ..vector.clone() });
        assert!(matches!(found, Some(Mismatch::Output { op: Op::Check, .. })), "{}: {found:?}", vector.id);
    }
    for vector in some(&[Kind::ClientRefused, Kind::StoredRefused]) {
        let mut input = vector.input.clone().unwrap();
        input["properties"] = json!("");
        input["body"] = json!("");
        assert_eq!(mismatch(Vector { input: Some(input), ..vector }), Some(Mismatch::NotRefused { op: Op::Encode }));
    }
}

/// Encodes as we do, and decodes all of it but one field.
struct Forgetful(&'static str);

impl Codec for Forgetful {
    fn answer(&mut self, question: &Question<'_>) -> Result<Answer, Mismatch> {
        let answer = OurCodec.answer(question)?;
        Ok(match answer {
            Answer::Output(Value::Object(mut fields)) => {
                fields.remove(self.0);
                Answer::Output(fields.into())
            }
            answer => answer,
        })
    }
}

#[test]
fn a_field_that_decoding_loses_is_noticed() {
    let fields = [
        "version",
        "topic",
        "queueId",
        "queueOffset",
        "physicalOffset",
        "flag",
        "sysFlag",
        "bornTimestamp",
        "bornHost",
        "storeTimestamp",
        "storeHost",
        "reconsumeTimes",
        "preparedTransactionOffset",
        "body",
        "properties",
        "propertyCrc",
    ];
    let records = some(&[Kind::StoredRecord]);
    for name in fields {
        for result in results(&records, &mut Forgetful(name)) {
            let found = result.mismatch.unwrap();
            assert!(
                matches!(&found, Mismatch::Output { op: Op::Decode, field, .. } if *field == format!("output.{name}")),
                "{}: {found}",
                result.id
            );
        }
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let line = |text: &str| match parse(Path::new("v.jsonl"), text) {
        Err(error @ VectorError::Line { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let vector = |fields: &str| format!("\n{{\"id\":\"x\",{fields},\"artefact\":\"a\",\"version\":\"1\"}}");
    assert!(line("{").starts_with("v.jsonl:1: EOF"), "{}", line("{"));
    assert!(line(&vector("\"kind\":\"nonsense\"")).contains("v.jsonl:2: unknown variant `nonsense`"));
    assert_eq!(line(&vector("\"kind\":\"check\",\"outcome\":{}")), "v.jsonl:2: vector x has no hex");
    assert!(line(&vector("\"kind\":\"check\",\"outcome\":{},\"hex\":\"0\"")).contains("vector x: hex: Odd number"));
    let empty = tempfile::tempdir().unwrap();
    let none = run_check(Source::Dir(empty.path()), None, &mut |_| ());
    assert!(matches!(none, Err(VectorError::None { .. })));
    let missing = run_check(Source::Dir(&empty.path().join("missing")), None, &mut |_| ());
    assert!(matches!(missing, Err(VectorError::Io { .. })));
}

fn exec(command: &str, timeout: Duration, vectors: &[Vector]) -> Vec<Mismatch> {
    let mut codec = ExecCodec::start(command, timeout).unwrap();
    results(vectors, &mut codec).into_iter().filter_map(|result| result.mismatch).collect()
}

#[test]
fn a_program_that_ends_or_hangs_or_talks_garbage_is_reported() {
    let vectors = some(&[Kind::Crc32]);
    let op = Op::Hash;
    let long = Duration::from_secs(60);
    let ended = Mismatch::Ended { op, how: "exit status: 3".to_owned() };
    let garbage = |line: &str| Mismatch::Garbage { op, line: line.to_owned() };
    let endless = format!("{}…", "y".repeat(120));
    for (command, timeout, expected) in [
        ("exit 3", long, ended),
        ("sleep 600 | sleep 600", Duration::from_millis(50), Mismatch::NoAnswer { op, seconds: 0 }),
        ("while read line; do echo nonsense; done", long, garbage("nonsense")),
        (
            "while read line; do echo '{\"id\":\"other\",\"output\":1}'; done",
            long,
            garbage("{\"id\":\"other\",\"output\":1}"),
        ),
        ("yes | tr -d '\\n'", long, garbage(&endless)),
    ] {
        let not_asked = Mismatch::NotAsked { op, failures: 3 };
        let mut all = vec![expected; 3];
        all.resize(vectors.len(), not_asked);
        assert_eq!(exec(command, timeout, &vectors), all, "{command}");
    }
}

#[test]
fn a_program_that_fails_once_is_asked_on() {
    let vectors = some(&[Kind::Crc32]);
    let dir = tempfile::tempdir().unwrap();
    let command = format!("cd {} && if mkdir ran 2>/dev/null; then exit 1; fi; exec cat", dir.path().display());
    let found = exec(&command, Duration::from_secs(60), &vectors);
    assert_eq!(found[0], Mismatch::Ended { op: Op::Hash, how: "exit status: 1".to_owned() });
    assert!(matches!(found[1], Mismatch::Garbage { .. }), "the question itself is no answer: {:?}", found[1]);
}

#[test]
fn the_example_codec_agrees_and_its_bug_is_found() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: no python3");
        return;
    }
    let vectors = some(&[Kind::ClientMessage, Kind::ClientBatch, Kind::ClientRefused, Kind::ClientCheck]);
    let long = Duration::from_secs(60);
    assert_eq!(exec(&format!("python3 {EXAMPLE}"), long, &vectors), []);
    let mut codec = ExecCodec::start(&format!("python3 {EXAMPLE} --bug"), long).unwrap();
    for result in results(&vectors, &mut codec) {
        let bitten = vectors.iter().any(|vector| vector.id == result.id && holds_uneven_flag(vector));
        let expected = matches!(result.mismatch, Some(Mismatch::Bytes { op: Op::Encode, .. }));
        assert_eq!(expected, bitten, "{}: {:?}", result.id, result.mismatch);
    }
}

/// Whether a message to be encoded has a flag that reads otherwise from behind.
fn holds_uneven_flag(vector: &Vector) -> bool {
    let input = vector.input.clone().unwrap_or_default();
    let messages = input["messages"].as_array().cloned().unwrap_or(vec![input]);
    let uneven = |message: &Value| {
        message["flag"].as_i64().is_some_and(|flag| (flag as i32).to_be_bytes() != (flag as i32).to_le_bytes())
    };
    vector.kind != Kind::ClientRefused && messages.iter().any(uneven)
}
