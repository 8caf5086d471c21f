//! The command line: arguments in, text or JSON out, an exit code that says what came of it.
//!
//! Exit codes: 0 it held, 1 something was found, 2 it was not asked rightly or could not be done.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "the command line stands outside of any run")]

mod args;
mod fuzz;
mod hunt;
mod interrupt;
mod out;
mod progress;
mod replay;
mod replay_command;
mod report;
mod run;
mod scenarios;
mod shrink;
mod vectors;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser as _;
use stormlog::planted::Fault;

use crate::campaign::fuzz::CampaignError;
use crate::campaign::process::WorkerCommand;
use crate::campaign::runner::{Isolated, RunError};
use crate::campaign::target::TargetError;
use crate::campaign::worker;
use crate::case::CaseError;
use crate::scenarios::Registry;
use crate::shrink::ShrinkError;
use crate::vectors::VectorError;
use args::{Args, Command, VectorsCommand};
use out::Out;

/// What a command came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Held,
    Found,
}

impl Exit {
    fn of(found: bool) -> Self {
        if found { Exit::Found } else { Exit::Held }
    }
}

/// Why a command could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Case(#[from] CaseError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    #[error(transparent)]
    Shrink(#[from] ShrinkError),
    #[error(transparent)]
    Vectors(#[from] VectorError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{given}: there is no such planted fault: {reason}")]
    Fault { given: String, reason: String },
    #[error("planted faults are not in this build; this one has them:\n  {0}")]
    NotPlanted(String),
    #[error("{0}")]
    Usage(String),
}

impl Failure {
    /// A seed that fails once and then does not is something found.
    fn exit_code(&self) -> u8 {
        match self {
            Failure::Campaign(CampaignError::Vanished { .. }) => 1,
            _ => 2,
        }
    }
}

/// What every command needs.
struct Shell {
    registry: Registry,
    out: Out,
    /// How the program was called, for commands that a person can paste.
    program: String,
}

impl Shell {
    fn worker(&self) -> io::Result<WorkerCommand> {
        WorkerCommand::this_program(self.registry)
    }

    fn runner(&self) -> io::Result<Isolated> {
        Ok(Isolated::new(self.worker()?))
    }
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let args = Args::parse();
    let registry = if args.selftest { Registry::Selftest } else { Registry::Ordinary };
    let program = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    // A bare name was found through the PATH, and will be again.
    let program = if program.as_os_str().is_empty() { "stormlog".to_owned() } else { program.display().to_string() };
    let mut shell = Shell { registry, out: Out::new(), program };
    let done = match args.command {
        Command::Scenarios(args) => scenarios::scenarios(&mut shell, &args),
        Command::Run(args) => run::run(&mut shell, &args),
        Command::Replay(args) => replay::replay(&mut shell, &args),
        Command::Fuzz(args) => fuzz::fuzz(&mut shell, &args),
        Command::Shrink(args) => shrink::shrink(&mut shell, &args),
        Command::Hunt(args) => hunt::hunt(&mut shell, &args),
        Command::Vectors(VectorsCommand::Check(args)) => vectors::check(&mut shell, &args),
        Command::Worker => worker::serve(registry).map(|()| Exit::Held).map_err(Failure::from),
    };
    let done = done.and_then(|exit| shell.out.flush().map(|()| exit).map_err(Failure::from));
    match done {
        Ok(Exit::Held) => ExitCode::SUCCESS,
        Ok(Exit::Found) => ExitCode::from(1),
        Err(failure) => {
            // Said on standard error, which may be gone as well.
            let _ = shell.out.flush();
            let _ = out::complain(&failure.to_string());
            ExitCode::from(failure.exit_code())
        }
    }
}

/// The fault to plant; refused in a build that has none, with the command that has.
fn planted(name: Option<&str>) -> Result<Option<Fault>, Failure> {
    let Some(name) = name else { return Ok(None) };
    let fault = Fault::from_name(name).ok_or_else(|| Failure::Fault {
        given: name.to_owned(),
        reason: crate::campaign::parameters::unknown(name, Fault::ALL.iter().map(|fault| fault.name())),
    })?;
    if cfg!(feature = "planted-faults") {
        Ok(Some(fault))
    } else {
        Err(Failure::NotPlanted(replay_command::with_planted_faults()))
    }
}
