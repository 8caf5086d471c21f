//! The arguments of the command line.

use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use crate::case::SEED_MAX;

/// Deterministic simulation of message-store storage engines: the same seed, the same run, anywhere.
#[derive(Debug, Parser)]
#[command(name = "stormlog", version, max_term_width = 100, after_help = EXAMPLES, subcommand_required = true)]
pub struct Args {
    /// Use the scenario that tests this command line.
    #[arg(long, global = true, hide = true)]
    pub selftest: bool,
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  stormlog fuzz commitlog-crash
  stormlog run commitlog-crash --seed 42 --trace
  stormlog replay fixtures/seeds/*.toml

Exit codes: 0 it held, 1 something was found, 2 usage or input error.";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the scenarios, or print one's parameters as a TOML file.
    Scenarios(ScenariosArgs),
    /// Run one seed.
    Run(RunArgs),
    /// Run case files again, and say where they depart from what was seen.
    Replay(ReplayArgs),
    /// Run many seeds; shrink and save what is found.
    Fuzz(FuzzArgs),
    /// Shrink a failing run to the few choices that matter.
    Shrink(ShrinkArgs),
    /// Plant known mistakes one by one, and see that each is caught.
    Hunt(HuntArgs),
    /// Check golden vectors: bytes that the published Java implementation made.
    #[command(subcommand)]
    Vectors(VectorsCommand),
    /// Run seeds for another process.
    #[command(hide = true)]
    Worker,
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON document a line.
    Json,
}

/// What to run.
#[derive(Debug, clap::Args)]
pub struct TargetArgs {
    /// A scenario's name, or a TOML file that names one and overrides its parameters.
    pub scenario: String,
    /// Override a parameter; repeatable. Dots go into tables, as in limits.events=1000.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub assignments: Vec<String>,
    /// Override parameters by those of a TOML file.
    #[arg(long = "params", value_name = "FILE")]
    pub parameters_file: Option<PathBuf>,
    /// Plant this fault (in a build with planted faults).
    #[arg(long, value_name = "FAULT")]
    pub plant: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  stormlog scenarios
  stormlog scenarios commitlog-crash > mine.toml
  stormlog fuzz mine.toml")]
pub struct ScenariosArgs {
    /// Print this scenario's parameters as a TOML file that run and fuzz take.
    pub name: Option<String>,
    #[arg(long, value_enum, default_value_t, help = "How to write what came of it")]
    pub format: Format,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  stormlog run commitlog-crash --seed 42
  stormlog run commitlog-crash --seed 42 --trace | less
  stormlog run commitlog-crash --seed 42 --check-determinism")]
pub struct RunArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// The seed.
    #[arg(long, value_parser = seed)]
    pub seed: u64,
    /// Print every event.
    #[arg(long)]
    pub trace: bool,
    /// Run it twice, in two processes and environments, and show the first event that differs.
    #[arg(long)]
    pub check_determinism: bool,
    /// How long the run may take.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub patience: Duration,
    /// Save the run as a case file in this directory, whatever it comes to.
    #[arg(long, value_name = "DIR", conflicts_with = "check_determinism")]
    pub save: Option<PathBuf>,
    /// Run it in this process, for a debugger; a run that aborts or hangs is then not survived.
    #[arg(long, conflicts_with = "check_determinism")]
    pub in_process: bool,
    #[arg(long, value_enum, default_value_t, help = "How to write what came of it")]
    pub format: Format,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The verdict of each case must hold. A digest that differs is reported; it fails only if
this very version of stormlog wrote the case.

Examples:
  stormlog replay fixtures/seeds/*.toml
  stormlog replay stormlog-finds/case.toml --trace")]
pub struct ReplayArgs {
    /// Case files.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print every event.
    #[arg(long)]
    pub trace: bool,
    /// Write the digests of cases anew whose verdict holds, after a change that was meant.
    #[arg(long)]
    pub update: bool,
    /// How long one run may take.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub patience: Duration,
    #[arg(long, value_enum, default_value_t, help = "How to write what came of it")]
    pub format: Format,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --seeds and --for: seeds 0..20000, at most 45 seconds, 10 more to shrink.
Ctrl-C ends a campaign; what it found is saved by then.

Examples:
  stormlog fuzz commitlog-crash
  stormlog fuzz commitlog-crash --seeds 20000..100000 --jobs 8
  stormlog fuzz commitlog-crash --seeds 1000000.. --for 10m")]
pub struct FuzzArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// Seeds, the last left out; without the last, all from the first on.
    #[arg(long, value_name = "A..B")]
    pub seeds: Option<Seeds>,
    /// How long to go on, as in 10m.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
    /// Worker processes; as many as there are cores, if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Where finds are saved.
    #[arg(long, value_name = "DIR", default_value = "stormlog-finds")]
    pub save: PathBuf,
    /// A seed that takes longer than this is a finding.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub patience: Duration,
    #[arg(long, value_enum, default_value_t, help = "How to write what came of it")]
    pub format: Format,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A case file is replaced by what is left of it; a scenario's seed is saved as a new one.

Examples:
  stormlog shrink stormlog-finds/case.toml
  stormlog shrink commitlog-crash --seed 42")]
pub struct ShrinkArgs {
    /// A case file (without --seed), or a scenario as for run (with it).
    #[arg(value_name = "FILE|SCENARIO")]
    pub scenario: String,
    /// The seed of a scenario.
    #[arg(long, value_parser = seed)]
    pub seed: Option<u64>,
    /// Override a parameter of the scenario; repeatable.
    #[arg(long = "param", value_name = "NAME=VALUE", requires = "seed")]
    pub assignments: Vec<String>,
    /// Override parameters of the scenario by those of a TOML file.
    #[arg(long = "params", value_name = "FILE", requires = "seed")]
    pub parameters_file: Option<PathBuf>,
    /// Plant this fault (in a build with planted faults).
    #[arg(long, value_name = "FAULT", requires = "seed")]
    pub plant: Option<String>,
    /// Where a scenario's case is saved.
    #[arg(long, value_name = "DIR", default_value = "stormlog-finds")]
    pub save: PathBuf,
    /// How long to go on.
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub time: Duration,
    /// How long one run may take.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub patience: Duration,
    #[arg(long, value_enum, default_value_t, help = "How to write what came of it")]
    pub format: Format,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo run --release --features planted-faults --target-dir target/planted -- hunt")]
pub struct HuntArgs {
    /// Seeds of a scenario to try for one fault, and with none planted.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=SEED_MAX))]
    pub budget_seeds: u64,
    /// Worker processes; as many as there are cores, if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Where the cases are saved.
    #[arg(long, value_name = "DIR", default_value = "stormlog-finds")]
    pub save: PathBuf,
    /// A seed that takes longer than this is a finding.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub patience: Duration,
    #[arg(long, value_enum, default_value_t, help = "How to write what came of it")]
    pub format: Format,
}

#[derive(Debug, Subcommand)]
pub enum VectorsCommand {
    /// Check a codec against the vectors, both ways.
    Check(VectorsCheckArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A program is asked one question a line on its standard input and answers each with a line
on its standard output, both JSON: see the page on golden vectors.

Examples:
  stormlog vectors check
  stormlog vectors check my/vectors
  stormlog vectors check --exec 'java -jar my-codec.jar'")]
pub struct VectorsCheckArgs {
    /// A directory of *.jsonl files; the vectors in this program, if not given.
    pub dir: Option<PathBuf>,
    /// Check this program's codec, not ours. Run through the shell.
    #[arg(long, value_name = "COMMAND")]
    pub exec: Option<String>,
    #[arg(long, value_enum, default_value_t, help = "How to write what came of it")]
    pub format: Format,
}

/// A range of seeds, as given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeds(pub Range<u64>);

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (first, last) = text.split_once("..").ok_or("want A..B, as in 0..20000, or A..")?;
        let first = seed(first)?;
        let end = match last.strip_prefix('=') {
            Some(last) => seed(last)? + 1,
            None if last.is_empty() => SEED_MAX + 1,
            None => seed(last)?,
        };
        if first < end { Ok(Seeds(first..end)) } else { Err("there is no seed in it: want A below B".to_owned()) }
    }
}

fn seed(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(seed) if seed <= SEED_MAX => Ok(seed),
        _ => Err(format!("{text:?} is no seed: want an integer from 0 to {SEED_MAX}")),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        Ok(_) => Err("want more than no time".to_owned()),
        Err(error) => Err(format!("{error}; want a number with a unit, as in 90s, 10m or 1h30m")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        use clap::CommandFactory as _;
        Args::command().debug_assert();
    }

    #[test]
    fn ranges_of_seeds() {
        let parse = |text: &str| text.parse::<Seeds>().map(|seeds| seeds.0);
        assert_eq!(parse("3..7"), Ok(3..7));
        assert_eq!(parse("3..=7"), Ok(3..8));
        assert_eq!(parse("3.."), Ok(3..SEED_MAX + 1));
        for bad in ["", "3", "..", "..3", "7..3", "3..3", "a..b", "-1..3", "3..99999999999999999999", "1..2..3"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        for bad in ["", "0s", "10", "ten", "-1s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
