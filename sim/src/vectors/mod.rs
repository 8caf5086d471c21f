//! Golden vectors: what a codec must make of given input, as the reference implementation made it.
//!
//! Model: a vector is a line of JSON that the reference emitted. Each becomes one or two [`Question`]s to a [`Codec`]:
//! ours, or a program of any language that answers on its standard output. Encoding must give the vector's bytes,
//! decoding its input, and a record check the reference's outcome; what the reference refuses must be refused, though not
//! for the reason that it gives.
//!
//! The vectors in `fixtures/vectors` are part of the binary. Kinds and protocol: `docs/vectors.md`.
//!
//! Not modelled: a codec that answers out of order, or several questions at once.

#![doc = include_str!("../../docs/vectors.md")]

mod compare;
mod exec;
mod inputs;
mod load;
mod ours;
mod question;

use std::collections::BTreeSet;
use std::path::Path;

pub use compare::Mismatch;
pub use exec::{ANSWER_TIMEOUT, ExecCodec};
pub use load::{Vector, VectorError, parse, read_dir, read_embedded};
pub use ours::OurCodec;
pub use question::{Answer, Kind, Op, Question};

/// Where vectors come from.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// The binary itself.
    Embedded,
    /// The `*.jsonl` files of a directory, in the order of their names.
    Dir(&'a Path),
}

/// Something that answers questions. It is asked one at a time.
pub trait Codec {
    /// Answers, or says why no answer can be had: that is a mismatch of the vector, not the end.
    fn answer(&mut self, question: &Question<'_>) -> Result<Answer, Mismatch>;
}

/// How one vector fared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorResult {
    /// The vector's id.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// The first thing that is wrong, if anything is.
    pub mismatch: Option<Mismatch>,
}

/// How all vectors fared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VectorSummary {
    /// Vectors checked.
    pub checked: u64,
    /// Vectors with a mismatch.
    pub mismatched: u64,
    /// What emitted the vectors: artefact and version, such as `org.apache.rocketmq:rocketmq-store 5.5.1`.
    pub emitted_by: BTreeSet<String>,
}

/// Checks all vectors of a source against our codec, or against the program that `exec` starts through the shell.
/// `sink` gets each result as it comes.
pub fn run_check(
    source: Source<'_>,
    exec: Option<&str>,
    sink: &mut dyn FnMut(&VectorResult),
) -> Result<VectorSummary, VectorError> {
    let vectors = match source {
        Source::Embedded => read_embedded()?,
        Source::Dir(dir) => read_dir(dir)?,
    };
    match exec {
        None => Ok(check(&vectors, &mut OurCodec, sink)),
        Some(command) => Ok(check(&vectors, &mut ExecCodec::start(command, ANSWER_TIMEOUT)?, sink)),
    }
}

/// Checks vectors against a codec.
pub fn check(vectors: &[Vector], codec: &mut dyn Codec, sink: &mut dyn FnMut(&VectorResult)) -> VectorSummary {
    let mut summary = VectorSummary::default();
    for vector in vectors {
        let mismatch = vector.questions().into_iter().find_map(|(question, expected)| {
            let answer = codec.answer(&question);
            answer.and_then(|answer| compare::compare(question.op, &expected, &answer)).err()
        });
        summary.checked += 1;
        summary.mismatched += u64::from(mismatch.is_some());
        summary.emitted_by.insert(format!("{} {}", vector.artefact, vector.version));
        sink(&VectorResult { id: vector.id.clone(), kind: vector.kind, mismatch });
    }
    summary
}
