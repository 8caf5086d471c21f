//! What was found, made into case files and saved.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::job::{Job, Judged, Keep, Verdict};
use super::judge::PANIC;
use super::runner::{RunError, Runner};
use crate::case::{Case, CaseError, WRITER};
use crate::record::DIGEST_VERSION;
use crate::scenarios::Registry;

/// How many digests on the way a case file has.
const TRAIL_POINTS: u64 = 16;
/// How long it may take to name the frames of a backtrace.
const BACKTRACE_TIME: Duration = Duration::from_secs(30);
/// How many files of one name are tried.
const NAMES_MAX: u32 = 1000;

/// The case of a run as it was seen, without running it again.
pub fn case_as_seen(job: &Job, judged: &Judged) -> Case {
    Case {
        job: Job { keep: Keep::default(), ..job.clone() },
        verdict: judged.verdict(),
        digest: judged.digest,
        digest_version: DIGEST_VERSION,
        trail: Vec::new(),
        found_by: WRITER.to_owned(),
        note: judged.findings.first().map(|finding| first_line(&finding.message)).unwrap_or_default(),
        actors: Default::default(),
    }
}

/// Runs a job and makes its case: with a trail of digests and the names of actors.
pub fn case_of(runner: &mut dyn Runner, job: &Job, patience: Duration) -> Result<(Case, Judged), RunError> {
    let judged = runner.run(job, patience)?;
    let mut case = case_as_seen(job, &judged);
    if judged.digest.is_some() {
        let keep = Keep { choices: true, trail_at: spread(judged.stats.events), ..Keep::default() };
        let kept = runner.run(&Job { keep, ..job.clone() }, patience)?;
        case.trail = kept.trail;
        case.actors = kept.actors;
    }
    Ok((case, judged))
}

/// Runs a job, and once more for the backtrace if it panics: to name its frames takes longer than most runs.
pub fn with_backtrace(runner: &mut dyn Runner, job: &Job, patience: Duration) -> Result<Judged, RunError> {
    let judged = runner.run(job, patience)?;
    if judged.finding_of(PANIC).is_none() {
        return Ok(judged);
    }
    let keep = Keep { backtrace: true, ..Keep::default() };
    let again = runner.run(&Job { keep, ..job.clone() }, patience + BACKTRACE_TIME)?;
    Ok(if again.finding_of(PANIC).is_some() { again } else { judged })
}

fn spread(events: u64) -> Vec<u64> {
    let points = TRAIL_POINTS.min(events);
    (1..=points).map(|point| events * point / points).collect()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Saves a case in `dir` (made if need be) under a name made of scenario, oracle and seed. A file of that name is
/// replaced only if it is a case of the same run.
#[allow(clippy::disallowed_methods, reason = "a directory of the user's, outside of any run")]
pub fn save(registry: Registry, dir: &Path, case: &Case) -> Result<PathBuf, CaseError> {
    std::fs::create_dir_all(dir).map_err(|error| CaseError::Io { path: dir.to_owned(), error })?;
    let Job { scenario, seed, planted, .. } = &case.job;
    let verdict = match &case.verdict {
        Verdict::Held => "held".to_owned(),
        Verdict::Found(oracle) => oracle.replace(|c: char| !c.is_ascii_alphanumeric(), "-"),
    };
    let planted = planted.map(|fault| format!("-planted-{}", fault.name())).unwrap_or_default();
    let stem = format!("{scenario}{planted}-{verdict}-{seed}");
    let names = (1..NAMES_MAX).map(|n| if n == 1 { format!("{stem}.toml") } else { format!("{stem}-{n}.toml") });
    for path in names.map(|name| dir.join(name)) {
        if !path.exists() || Case::read(registry, &path).is_ok_and(|old| is_same_run(&old, case)) {
            case.write(&path)?;
            return Ok(path);
        }
    }
    let error = std::io::Error::other(format!("there are {NAMES_MAX} cases of this name already"));
    Err(CaseError::Io { path: dir.join(stem), error })
}

fn is_same_run(a: &Case, b: &Case) -> bool {
    let identity = |case: &Case| (case.job.parameters.clone(), case.job.planted, case.job.seed);
    identity(a) == identity(b) && a.verdict == b.verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::runner::InProcess;
    use crate::campaign::target::Target;

    #[test]
    fn spreads_over_the_whole_run() {
        assert!(spread(0).is_empty());
        assert_eq!(spread(3), [1, 2, 3]);
        assert_eq!((spread(1000).len(), spread(1000).last()), (16, Some(&1000)));
    }

    #[test]
    fn replaces_only_the_same_run() {
        let dir = tempfile::tempdir().expect("a directory");
        let registry = Registry::Selftest;
        let job = |assignment: &str| {
            Target::find(registry, "selftest", None, &[assignment.to_owned()]).expect("known").job(3)
        };
        let mut runner = InProcess(registry);
        let mut saved = |assignment: &str| {
            let (case, _) = case_of(&mut runner, &job(assignment), Duration::MAX).expect("it runs");
            let path = save(registry, dir.path(), &case).expect("it is saved");
            assert_eq!(Case::read(registry, &path).expect("it reads back").trail, case.trail);
            path
        };
        let first = saved("operations=10");
        assert_eq!((saved("operations=11") == first, saved("operations=10") == first), (false, true));
    }
}
