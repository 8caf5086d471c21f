//! `stormlog vectors check`.

use std::collections::BTreeSet;

use serde::Serialize;

use super::args::{Format, VectorsCheckArgs};
use super::{Exit, Failure, Shell};
use crate::vectors::{Kind, Source, VectorResult, VectorSummary, run_check};

#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    id: &'a str,
    vector: Kind,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mismatch: Option<String>,
}

#[derive(Serialize)]
struct Totals<'a> {
    kind: &'static str,
    verdict: &'static str,
    checked: u64,
    mismatched: u64,
    emitted_by: &'a BTreeSet<String>,
}

/// Checks a codec against golden vectors.
pub fn check(shell: &mut Shell, args: &VectorsCheckArgs) -> Result<Exit, Failure> {
    let source = args.dir.as_deref().map_or(Source::Embedded, Source::Dir);
    let out = &mut shell.out;
    let mut written = Ok(());
    let mut tell = |result: &VectorResult| {
        let VectorResult { id, kind, mismatch } = result;
        let line = match (args.format, mismatch) {
            (Format::Text, None) => Ok(()),
            (Format::Text, Some(mismatch)) => out.wrapped("", &format!("{id}: {mismatch}"), 2),
            (Format::Json, mismatch) => out.json(&Line {
                kind: "vector",
                id,
                vector: *kind,
                verdict: if mismatch.is_none() { "held" } else { "mismatch" },
                mismatch: mismatch.as_ref().map(ToString::to_string),
            }),
        };
        if written.is_ok() {
            written = line.and_then(|()| out.flush());
        }
    };
    let VectorSummary { checked, mismatched, emitted_by } = run_check(source, args.exec.as_deref(), &mut tell)?;
    written?;
    let verdict = if mismatched == 0 { "held" } else { "found" };
    match args.format {
        Format::Json => {
            shell.out.json(&Totals { kind: "totals", verdict, checked, mismatched, emitted_by: &emitted_by })?;
        }
        Format::Text => {
            let whose = args.exec.as_deref().unwrap_or("our codec");
            let by = emitted_by.iter().cloned().collect::<Vec<_>>().join(", ");
            let text = match mismatched {
                0 => format!("held: {whose} agrees with all {checked} vectors of {by}"),
                n => format!("FOUND: {whose} disagrees with {n} of {checked} vectors of {by}"),
            };
            shell.out.wrapped("", &text, 2)?;
        }
    }
    Ok(Exit::of(mismatched > 0))
}
