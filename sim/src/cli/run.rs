//! `stormlog run`.

use std::time::Duration;

use serde::Serialize;

use super::args::{Format, RunArgs};
use super::{Exit, Failure, Shell, planted, replay_command, report};
use crate::campaign::finds;
use crate::campaign::job::{Job, Judged, Keep, Verdict};
use crate::campaign::panics;
use crate::campaign::runner::{InProcess, Isolated, Runner};
use crate::campaign::target::Target;
use crate::determinism::{Difference, first_difference};
use crate::record::Digest;

/// Runs one seed.
pub fn run(shell: &mut Shell, args: &RunArgs) -> Result<Exit, Failure> {
    let given = &args.target;
    let mut target =
        Target::find(shell.registry, &given.scenario, given.parameters_file.as_deref(), &given.assignments)?;
    target.planted = planted(given.plant.as_deref())?;
    let mut replay = replay_command::run(shell, given, args.seed);
    let job = target.job(args.seed);
    if args.check_determinism {
        return check_determinism(shell, args, &job, &replay);
    }
    let mut runner: Box<dyn Runner> = if args.in_process {
        panics::install();
        Box::new(InProcess(shell.registry))
    } else {
        Box::new(shell.runner()?)
    };
    let judged = finds::with_backtrace(runner.as_mut(), &job, args.patience)?;
    if args.trace {
        trace(shell, args.format, runner.as_mut(), &job, args.patience)?;
    }
    if let Some(dir) = &args.save {
        let (case, _) = finds::case_of(runner.as_mut(), &job, args.patience)?;
        replay = replay_command::replay(shell, &finds::save(shell.registry, dir, &case)?);
    }
    report::run(&mut shell.out, args.format, &job, &judged, &replay)?;
    Ok(Exit::of(judged.verdict() != Verdict::Held))
}

/// Runs a job once more to print its events. Apart from the run that is judged, since what is kept takes memory.
pub fn trace(
    shell: &mut Shell,
    format: Format,
    runner: &mut dyn Runner,
    job: &Job,
    patience: Duration,
) -> Result<(), Failure> {
    let keep = Keep { events: true, ..Keep::default() };
    let traced = runner.run(&Job { keep, ..job.clone() }, patience)?;
    Ok(report::trace(&mut shell.out, format, &traced)?)
}

#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    scenario: &'a str,
    seed: u64,
    verdict: Verdict,
    digest: Option<Digest>,
    deterministic: bool,
    events: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<&'a Difference>,
    replay: &'a str,
}

fn check_determinism(shell: &mut Shell, args: &RunArgs, job: &Job, replay: &str) -> Result<Exit, Failure> {
    let kept = Job { keep: Keep { events: true, ..Keep::default() }, ..job.clone() };
    let here = shell.runner()?.run(&kept, args.patience)?;
    let there = elsewhere(shell, &kept, args.patience)?;
    let difference = first_difference(&here, &there);
    let deterministic = difference.is_none();
    if args.format == Format::Json {
        shell.out.json(&Line {
            kind: "determinism",
            scenario: &job.scenario,
            seed: job.seed,
            verdict: here.verdict(),
            digest: here.digest,
            deterministic,
            events: here.events.len(),
            difference: difference.as_ref(),
            replay,
        })?;
    } else {
        describe(shell, job, &here, difference.as_ref())?;
    }
    Ok(Exit::of(!deterministic || here.verdict() != Verdict::Held))
}

/// Runs a job in another environment, in a process that has run another seed before: what a run leaves behind in its
/// process must not reach the next one either.
fn elsewhere(shell: &Shell, job: &Job, patience: Duration) -> Result<Judged, Failure> {
    let mut runner = Isolated::new(shell.worker()?.elsewhere());
    runner.run(&Job { seed: job.seed ^ 1, keep: Keep::default(), ..job.clone() }, patience)?;
    Ok(runner.run(job, patience)?)
}

fn describe(shell: &mut Shell, job: &Job, here: &Judged, difference: Option<&Difference>) -> Result<(), Failure> {
    let out = &mut shell.out;
    let Some(difference) = difference else {
        let digest = here.digest.map_or_else(|| "none".to_owned(), |digest| digest.to_string());
        out.line(&format!("{} seed {}: {}, deterministic", job.scenario, job.seed, here.verdict()))?;
        out.field("compared", &format!("{} events in two processes and environments", here.events.len()))?;
        return Ok(out.field("digest", &digest)?);
    };
    out.line(&format!("{} seed {}: not deterministic", job.scenario, job.seed))?;
    out.wrapped(
        "  ",
        &format!(
            "The first {} events are equal. Then (- here, + in another process and environment):",
            difference.equal
        ),
        2,
    )?;
    for line in difference.lines(&here.actors) {
        out.line(&line)?;
    }
    Ok(())
}
