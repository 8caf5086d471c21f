//! `stormlog shrink`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;

use super::args::{Format, ShrinkArgs};
use super::interrupt::Interrupt;
use super::progress::Progress;
use super::{Exit, Failure, Shell, planted, replay_command, report};
use crate::campaign::finds;
use crate::campaign::job::{Job, Verdict};
use crate::campaign::target::Target;
use crate::case::Case;
use crate::record::Digest;
use crate::shrink::{Shrunk, Size, shrink as shrink_job};

#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    scenario: &'a str,
    seed: u64,
    verdict: &'a Verdict,
    digest: Option<Digest>,
    before: Option<Size>,
    after: Option<Size>,
    runs: u64,
    complete: bool,
    case: &'a Path,
    replay: String,
}

/// Shrinks a case or a seed.
pub fn shrink(shell: &mut Shell, args: &ShrinkArgs) -> Result<Exit, Failure> {
    let (job, oracle, file) = what(shell, args)?;
    if job.planted.is_some() && !cfg!(feature = "planted-faults") {
        return Err(Failure::NotPlanted(replay_command::with_planted_faults()));
    }
    let interrupt = Interrupt::catch()?;
    let mut progress = Progress::spinner();
    let until = Instant::now() + args.time;
    let mut go_on = |left| {
        progress.say(&format!("left: {}", report::left(left)));
        if interrupt.is_asked() || Instant::now() >= until { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut runner = shell.runner()?;
    let shrunk = shrink_job(&mut runner, &job, oracle.as_deref(), args.patience, &mut go_on)?;
    progress.finish();
    let (mut case, _) = finds::case_of(&mut runner, &shrunk.job, args.patience)?;
    case.verdict = Verdict::Found(shrunk.oracle.clone());
    let path = match file {
        Some((path, old)) => {
            case.note = old.note;
            case.write(&path)?;
            path
        }
        None => finds::save(shell.registry, &args.save, &case)?,
    };
    tell(shell, args.format, &case, &shrunk, &path)?;
    Ok(Exit::Found)
}

type What = (Job, Option<String>, Option<(PathBuf, Case)>);

fn what(shell: &Shell, args: &ShrinkArgs) -> Result<What, Failure> {
    if let Some(seed) = args.seed {
        let mut target =
            Target::find(shell.registry, &args.scenario, args.parameters_file.as_deref(), &args.assignments)?;
        target.planted = planted(args.plant.as_deref())?;
        return Ok((target.job(seed), None, None));
    }
    if shell.registry.find(&args.scenario).is_some() {
        return Err(Failure::Usage(format!("{} is a scenario: which --seed of it is to be shrunk?", args.scenario)));
    }
    let path = PathBuf::from(&args.scenario);
    let case = Case::read(shell.registry, &path)?;
    let Verdict::Found(oracle) = case.verdict.clone() else {
        return Err(Failure::Usage(format!("{}: this case is expected to hold: nothing to shrink", path.display())));
    };
    Ok((case.job.clone(), Some(oracle), Some((path, case))))
}

fn tell(shell: &mut Shell, format: Format, case: &Case, shrunk: &Shrunk, path: &Path) -> Result<(), Failure> {
    let Case { job, verdict, digest, .. } = case;
    let Shrunk { before, after, runs, complete, .. } = *shrunk;
    let replay = replay_command::replay(shell, path);
    let out = &mut shell.out;
    if format == Format::Json {
        return Ok(out.json(&Line {
            kind: "shrunk",
            scenario: &job.scenario,
            seed: job.seed,
            verdict,
            digest: *digest,
            before,
            after,
            runs,
            complete,
            case: path,
            replay,
        })?);
    }
    out.line(&format!("{} seed {}: {verdict}", job.scenario, job.seed))?;
    match before.zip(after) {
        None => out.field("left", &report::left(None))?,
        Some((before, after)) => {
            for (name, after, before) in [
                ("operations", after.operations, before.operations),
                ("crashes", after.crashes, before.crashes),
                ("choices", after.choices, before.choices),
                ("events", after.events, before.events),
            ] {
                out.field(name, &format!("{after} left of {before}"))?;
            }
        }
    }
    let end = if complete { "no choice left can be 0 alone" } else { "time was up; more may be possible" };
    out.field("runs", &format!("{runs}; {end}"))?;
    Ok(out.command("replay", &replay)?)
}
