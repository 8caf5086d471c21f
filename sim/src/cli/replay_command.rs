//! Commands that a person can paste.

use std::path::Path;

use super::Shell;
use super::args::TargetArgs;
use crate::scenarios::Registry;

/// Quotes words for a shell.
fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    // Arguments of a process hold no NUL, the only thing that cannot be quoted.
    shlex::Quoter::new().allow_nul(true).join(words).unwrap_or_default()
}

fn program(shell: &Shell) -> Vec<&str> {
    let hidden = (shell.registry == Registry::Selftest).then_some("--selftest");
    std::iter::once(shell.program.as_str()).chain(hidden).collect()
}

/// `stormlog run` of a target, without its seed.
pub fn run_without_seed(shell: &Shell, target: &TargetArgs) -> String {
    let mut words = program(shell);
    words.extend(["run", &target.scenario]);
    for assignment in &target.assignments {
        words.extend(["--param", assignment]);
    }
    let file = target.parameters_file.as_ref().map(|path| path.to_string_lossy());
    if let Some(file) = &file {
        words.extend(["--params", file]);
    }
    if let Some(fault) = &target.plant {
        words.extend(["--plant", fault]);
    }
    quoted(words)
}

/// `stormlog run` of one seed.
pub fn run(shell: &Shell, target: &TargetArgs, seed: u64) -> String {
    format!("{} --seed {seed}", run_without_seed(shell, target))
}

/// `stormlog replay` of a case file.
pub fn replay(shell: &Shell, path: &Path) -> String {
    let path = path.to_string_lossy();
    quoted(program(shell).into_iter().chain(["replay", &path]))
}

/// The command being run, in a build that has planted faults.
pub fn with_planted_faults() -> String {
    let given: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let build = "cargo run --release --features planted-faults --target-dir target/planted --";
    format!("{build} {}", quoted(given.iter().map(String::as_str)))
}
