//! Reading vectors: JSON lines, from the binary or from files.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::Kind;

const EMBEDDED: [(&str, &str); 4] = [
    ("check.jsonl", include_str!("../../../fixtures/vectors/check.jsonl")),
    ("client.jsonl", include_str!("../../../fixtures/vectors/client.jsonl")),
    ("hash.jsonl", include_str!("../../../fixtures/vectors/hash.jsonl")),
    ("stored.jsonl", include_str!("../../../fixtures/vectors/stored.jsonl")),
];

/// One vector, as the reference emitted it. Which of the fields are there depends on the kind.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Vector {
    /// Unlike every other's.
    pub id: String,
    /// What it is about.
    pub kind: Kind,
    /// What was encoded or hashed.
    pub input: Option<Value>,
    /// The bytes.
    pub hex: Option<String>,
    /// What was decoded or hashed to.
    pub output: Option<Value>,
    /// Settings of the reference.
    pub options: Option<Value>,
    /// What it decided.
    pub outcome: Option<Value>,
    /// What it decides in a thread that has checked a longer record before, where that differs.
    pub grown_outcome: Option<Value>,
    /// The published artefact that emitted it.
    pub artefact: String,
    /// That artefact's version.
    pub version: String,
}

/// Why vectors cannot be checked at all.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum VectorError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{}:{line}: {reason}", path.display())]
    Line { path: PathBuf, line: usize, reason: String },
    #[error("{}: no vectors in its *.jsonl files", path.display())]
    None { path: PathBuf },
    #[error("{command:?} cannot be started: {source}")]
    Start { command: String, source: std::io::Error },
}

/// The vectors in the binary.
pub fn read_embedded() -> Result<Vec<Vector>, VectorError> {
    let mut vectors = Vec::new();
    for (name, text) in EMBEDDED {
        vectors.extend(parse(Path::new(name), text)?);
    }
    Ok(vectors)
}

/// The vectors in the `*.jsonl` files of a directory, in the order of their names.
#[allow(clippy::disallowed_methods, reason = "reads a user's files, outside of any simulation")]
pub fn read_dir(dir: &Path) -> Result<Vec<Vector>, VectorError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        |source| VectorError::Io { path, source }
    };
    let entries = std::fs::read_dir(dir).map_err(io(dir))?;
    let mut paths =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().map_err(io(dir))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    let mut vectors = Vec::new();
    for path in paths {
        vectors.extend(parse(&path, &std::fs::read_to_string(&path).map_err(io(&path))?)?);
    }
    if vectors.is_empty() {
        return Err(VectorError::None { path: dir.to_owned() });
    }
    Ok(vectors)
}

/// Parses JSON lines; `path` is for messages.
pub fn parse(path: &Path, text: &str) -> Result<Vec<Vector>, VectorError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(n, line)| {
            let fail = |reason| VectorError::Line { path: path.to_owned(), line: n + 1, reason };
            let vector: Vector = serde_json::from_str(line).map_err(|error| fail(error.to_string()))?;
            vector.complete().map_err(fail)?;
            Ok(vector)
        })
        .collect()
}

impl Vector {
    /// Whether all is there that the kind needs.
    fn complete(&self) -> Result<(), String> {
        let needs: &[(&str, bool)] = match self.kind {
            Kind::ClientMessage
            | Kind::ClientBatch
            | Kind::StoredRecord
            | Kind::StoredBatch
            | Kind::Blank
            | Kind::PropertiesEncode => &[("input", self.input.is_some()), ("hex", self.hex.is_some())],
            Kind::PropertiesDecode => &[("hex", self.hex.is_some()), ("output", self.output.is_some())],
            Kind::ClientRefused | Kind::StoredRefused => &[("input", self.input.is_some())],
            Kind::ClientCheck | Kind::Check => &[("hex", self.hex.is_some()), ("outcome", self.outcome.is_some())],
            Kind::MessageId | Kind::Crc32 | Kind::TagsCode | Kind::KeyHash => {
                &[("input", self.input.is_some()), ("output", self.output.is_some())]
            }
        };
        if let Some((missing, _)) = needs.iter().find(|(_, there)| !there) {
            return Err(format!("vector {} has no {missing}", self.id));
        }
        match self.hex.as_ref().map(hex::decode) {
            Some(Err(error)) => Err(format!("vector {}: hex: {error}", self.id)),
            _ => Ok(()),
        }
    }
}
