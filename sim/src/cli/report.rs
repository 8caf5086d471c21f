//! What one run came to, written for people or programs.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;

use super::args::Format;
use super::out::{Out, grouped};
use crate::alloc::Allocation;
use crate::campaign::job::{Job, Judged, Verdict};
use crate::record::{DIGEST_VERSION, Digest};
use crate::scenario::{Finding, RunStats};
use crate::shrink::{Shrunk, Size};

#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    scenario: &'a str,
    seed: u64,
    verdict: Verdict,
    digest: Option<Digest>,
    digest_version: u32,
    findings: &'a [Finding],
    stats: RunStats,
    marks: &'a BTreeMap<String, u64>,
    allocation: Allocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<&'a serde_json::Value>,
    replay: &'a str,
}

#[derive(Serialize)]
struct EventLine<'a> {
    kind: &'static str,
    at_ns: u64,
    actor: Option<&'a String>,
    actor_id: String,
    op: &'a str,
    args: [u64; 2],
    result: u64,
}

/// Writes the events of a run.
pub fn trace(out: &mut Out, format: Format, judged: &Judged) -> io::Result<()> {
    for event in &judged.events {
        match format {
            Format::Text => out.line(&event.line(&judged.actors))?,
            Format::Json => out.json(&EventLine {
                kind: "event",
                at_ns: event.at_ns,
                actor: judged.actors.get(&event.actor),
                actor_id: format!("{:016x}", event.actor),
                op: &event.op,
                args: event.args,
                result: event.result,
            })?,
        }
    }
    Ok(())
}

/// Writes the verdict of a run and its numbers.
pub fn run(out: &mut Out, format: Format, job: &Job, judged: &Judged, replay: &str) -> io::Result<()> {
    if format == Format::Json {
        return out.json(&Line {
            kind: "result",
            scenario: &job.scenario,
            seed: job.seed,
            verdict: judged.verdict(),
            digest: judged.digest,
            digest_version: DIGEST_VERSION,
            findings: &judged.findings,
            stats: judged.stats,
            marks: &judged.marks,
            allocation: judged.allocation,
            report: judged.report.as_ref(),
            replay,
        });
    }
    out.line(&format!("{} seed {}: {}", job.scenario, job.seed, judged.verdict()))?;
    for finding in &judged.findings {
        let mut lines = finding.message.lines();
        out.wrapped("  ", &format!("{}: {}", finding.oracle, lines.next().unwrap_or_default()), 4)?;
        for line in lines {
            out.line(&format!("    {line}"))?;
        }
    }
    if let Some(digest) = judged.digest {
        let RunStats { events, virtual_ns, operations, crashes, images } = judged.stats;
        let Allocation { largest_bytes, live_bytes, total_bytes } = judged.allocation;
        out.field("digest", &format!("{digest} (version {DIGEST_VERSION})"))?;
        out.field("events", &grouped(events))?;
        out.field("operations", &grouped(operations))?;
        out.field("crashes", &grouped(crashes))?;
        out.field("crash images", &grouped(images))?;
        out.field("virtual time", &seconds(virtual_ns))?;
        let [total, live, largest] = [total_bytes, live_bytes, largest_bytes].map(grouped);
        out.field("allocated", &format!("{total} bytes, at most {live} live, largest {largest}"))?;
        out.field("reached", &list(judged.marks.iter().map(|(name, times)| format!("{name} {times}"))))?;
    }
    if let Some(report) = &judged.report {
        out.line(&serde_json::to_string_pretty(report)?)?;
    }
    out.command("replay", replay)
}

/// A time in seconds, to the millisecond.
pub fn seconds(ns: u64) -> String {
    format!("{}.{:03} s", grouped(ns / 1_000_000_000), ns / 1_000_000 % 1000)
}

/// What a shrink came to.
pub fn shrunk(shrunk: &Shrunk) -> String {
    let Shrunk { before, after, complete, .. } = shrunk;
    let left = match before.zip(*after) {
        Some((before, after)) => format!(
            "{} of {} operations, {} of {} choices left",
            after.operations, before.operations, after.choices, before.choices
        ),
        None => left(None),
    };
    if *complete { left } else { format!("{left}, when time was up") }
}

/// What is left of a run.
pub fn left(size: Option<Size>) -> String {
    size.map_or_else(
        || "a run that does not live to tell its size".to_owned(),
        |Size { operations, choices, .. }| format!("{operations} operations, {choices} choices"),
    )
}

/// The items, separated; a dash for none.
pub fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "-".to_owned() } else { items.join(", ") }
}

/// What is left of a text that may have many lines: the first.
pub fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
