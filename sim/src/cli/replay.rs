//! `stormlog replay`.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::args::{Format, ReplayArgs};
use super::out::complain;
use super::{Exit, Failure, Shell, replay_command, run};
use crate::campaign::finds;
use crate::campaign::job::{Job, Judged, Keep, Verdict};
use crate::campaign::runner::{Isolated, Runner};
use crate::case::Case;
use crate::choices::ChoiceKey;
use crate::record::{DIGEST_VERSION, Digest};

#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    file: &'a Path,
    scenario: &'a str,
    seed: u64,
    /// What it came to now.
    verdict: Verdict,
    expected: &'a Verdict,
    digest: Option<Digest>,
    holds: bool,
    updated: bool,
    departs: &'a [String],
    replay: String,
}

#[derive(Serialize)]
struct Totals {
    kind: &'static str,
    cases: usize,
    hold: usize,
    fail: usize,
    unreadable: usize,
}

/// Replays case files.
pub fn replay(shell: &mut Shell, args: &ReplayArgs) -> Result<Exit, Failure> {
    let mut runner = shell.runner()?;
    let (mut hold, mut last_error) = (0, None);
    let mut unreadable = 0;
    for path in &args.files {
        match one(shell, args, &mut runner, path) {
            Ok(true) => hold += 1,
            Ok(false) => {}
            // The other files are still worth replaying.
            Err(error) => {
                unreadable += 1;
                if let Some(earlier) = last_error.replace(error) {
                    complain(&Failure::to_string(&earlier))?;
                }
            }
        }
        if shell.out.is_closed() {
            break;
        }
    }
    let fail = args.files.len() - hold - unreadable;
    match args.format {
        Format::Json => {
            shell.out.json(&Totals { kind: "totals", cases: args.files.len(), hold, fail, unreadable })?;
        }
        Format::Text if args.files.len() > 1 => {
            let unread = if unreadable > 0 { format!(", {unreadable} could not be replayed") } else { String::new() };
            shell.out.line(&format!("{} cases: {hold} hold, {fail} fail{unread}", args.files.len()))?;
        }
        Format::Text => {}
    }
    last_error.map_or_else(|| Ok(Exit::of(fail > 0)), Err)
}

fn one(shell: &mut Shell, args: &ReplayArgs, runner: &mut Isolated, path: &Path) -> Result<bool, Failure> {
    let case = Case::read(shell.registry, path)?;
    if case.job.planted.is_some() && !cfg!(feature = "planted-faults") {
        return Err(Failure::NotPlanted(replay_command::with_planted_faults()));
    }
    let judged = finds::with_backtrace(runner, &case.job, args.patience)?;
    if args.trace {
        run::trace(shell, args.format, runner, &case.job, args.patience)?;
    }
    let departs = departures(runner, &case, &judged, args)?;
    let updated = args.update && judged.agrees_with(&case.verdict) && judged.digest != case.digest;
    if updated {
        update(runner, &case, path, args)?;
    }
    let digest_holds = judged.digest == case.digest || updated || !case.is_of_this_version();
    let holds = judged.agrees_with(&case.verdict) && digest_holds;
    let Case { job: Job { scenario, seed, .. }, verdict: expected, .. } = &case;
    let verdict = if judged.agrees_with(expected) { expected.clone() } else { judged.verdict() };
    match args.format {
        Format::Json => shell.out.json(&Line {
            kind: "case",
            file: path,
            scenario,
            seed: *seed,
            verdict,
            expected,
            digest: judged.digest,
            holds,
            updated,
            departs: &departs,
            replay: replay_command::replay(shell, path),
        })?,
        Format::Text => {
            let word = match (holds, updated) {
                (true, false) => "holds",
                (true, true) => "holds, and is updated",
                (false, _) => "FAILS",
            };
            shell.out.line(&format!("{}: {word}", path.display()))?;
            shell.out.field("run", &format!("{scenario} seed {seed}"))?;
            if !case.note.is_empty() {
                shell.out.field("note", &case.note.replace('\n', " "))?;
            }
            shell.out.field("expected", &expected.to_string())?;
            shell.out.field("came to", &verdict.to_string())?;
            for finding in &judged.findings {
                shell.out.wrapped("    ", &finding.message, 6)?;
            }
            for departure in &departs {
                shell.out.field("departs", departure)?;
            }
        }
    }
    Ok(holds)
}

/// Writes a case anew with the digests of now.
fn update(runner: &mut Isolated, case: &Case, path: &Path, args: &ReplayArgs) -> Result<(), Failure> {
    let (now, _) = finds::case_of(runner, &case.job, args.patience)?;
    Ok(Case { verdict: case.verdict.clone(), note: case.note.clone(), ..now }.write(path)?)
}

/// In what the run is not the one that was recorded.
fn departures(runner: &mut Isolated, case: &Case, judged: &Judged, args: &ReplayArgs) -> Result<Vec<String>, Failure> {
    let mut departs = Vec::new();
    if !judged.agrees_with(&case.verdict) {
        departs.push(format!("the verdict is {}, not {}", judged.verdict(), case.verdict));
    }
    let (Some(expected), Some(digest)) = (case.digest, judged.digest) else {
        if case.digest != judged.digest {
            let end = |digest: Option<_>| if digest.is_some() { "came to its end" } else { "did not come to its end" };
            departs.push(format!("the run {}, and {} then", end(judged.digest), end(case.digest)));
        }
        return Ok(departs);
    };
    if case.digest_version != DIGEST_VERSION {
        departs.push(format!("its digests are of version {}, ours of {DIGEST_VERSION}", case.digest_version));
        return Ok(departs);
    }
    if expected == digest {
        return Ok(departs);
    }
    let keep =
        Keep { choices: true, trail_at: case.trail.iter().map(|(events, _)| *events).collect(), ..Keep::default() };
    let kept = runner.run(&Job { keep, ..case.job.clone() }, args.patience)?;
    let by = if case.is_of_this_version() { "" } else { &format!(" ({} wrote it)", case.found_by) };
    departs.push(format!("the digest is {digest}, not {expected}{by}"));
    departs.push(place(case, &kept, judged.stats.events));
    let made: BTreeSet<ChoiceKey> = kept.choices.iter().map(|choice| choice.key).collect();
    let not_made: Vec<_> = case.job.overrides.given.keys().filter(|key| !made.contains(key)).collect();
    if let Some(first) = not_made.first() {
        departs.push(format!("{} of the choices that it sets are not made, the first {first}", not_made.len()));
    }
    Ok(departs)
}

/// Between which events the run departs from the trail.
fn place(case: &Case, kept: &Judged, events: u64) -> String {
    let equal = case.trail.iter().zip(&kept.trail).take_while(|(a, b)| a == b).count();
    let from = equal.checked_sub(1).map_or(0, |last| case.trail[last].0);
    match case.trail.get(equal) {
        Some((to, _)) if *to <= events => format!("between event {from} and event {to}"),
        Some(_) => format!("after event {from}: this run ends at {events}"),
        None if case.trail.is_empty() => "the case has no trail to say where".to_owned(),
        None => format!("after event {from}, where it ended then: this run goes on to {events}"),
    }
}
