//! Every case file of the repository still comes to what it says.

#![allow(clippy::disallowed_methods, reason = "files of the repository, outside of any run")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use stormlog_sim::campaign::process::WorkerCommand;
use stormlog_sim::campaign::runner::{Isolated, Runner as _};
use stormlog_sim::case::Case;
use stormlog_sim::scenarios::Registry;

fn cases(dir: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(dir);
    let Ok(entries) = std::fs::read_dir(&dir) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    paths
}

fn replay(registry: Registry, paths: &[PathBuf]) {
    let mut runner = Isolated::new(WorkerCommand::new(env!("CARGO_BIN_EXE_stormlog"), registry));
    for path in paths {
        let case = Case::read(registry, path).expect("a case file");
        if case.job.planted.is_some() && !cfg!(feature = "planted-faults") {
            // The build that has planted faults replays it.
            continue;
        }
        let judged = runner.run(&case.job, Duration::from_secs(60)).expect("it runs");
        let path = path.display();
        assert!(judged.agrees_with(&case.verdict), "{path}: {} is expected, and it comes to {judged:?}", case.verdict);
        if case.is_of_this_version() {
            assert_eq!(judged.digest, case.digest, "{path}: the digest has changed, and the version has not");
        }
    }
}

#[test]
fn finds_replay() {
    replay(Registry::Ordinary, &cases("seeds"));
}

#[test]
fn the_selftest_replays() {
    let paths = cases("selftest");
    assert!(!paths.is_empty());
    replay(Registry::Selftest, &paths);
}
