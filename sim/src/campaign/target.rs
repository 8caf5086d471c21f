//! What a command is to run: a scenario by name, or a TOML file that names one and overrides its parameters.
//!
//! The file has a key `scenario`; all else in it are parameters, so that what `stormlog scenarios NAME` prints is such a
//! file.

use std::path::{Path, PathBuf};

use stormlog::planted::Fault;
use toml::{Table, Value};

use super::job::{Job, Keep};
use super::parameters;
use crate::choices::Overrides;
use crate::scenario::{ParameterError, Scenario};
use crate::scenarios::Registry;

/// Key of a scenario file that names the scenario.
const SCENARIO: &str = "scenario";

/// A scenario with its parameters, as the user gave them.
#[derive(Clone)]
pub struct Target {
    /// The scenario.
    pub scenario: &'static dyn Scenario,
    /// All its parameters, `limits` included.
    pub parameters: Table,
    /// The fault to plant.
    pub planted: Option<Fault>,
}

/// A scenario that cannot be had as the user gave it.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// No scenario of that name, and no file.
    #[error("no scenario {name}: {reason} (a scenario file ends in .toml)")]
    Unknown {
        /// What was given.
        name: String,
        /// What is near.
        reason: String,
    },
    /// A file cannot be read.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// A file is wrong.
    #[error("{path}:{line}: {reason}", path = .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A parameter on the command line is wrong.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
}

impl Target {
    /// Finds `name`, which is a scenario's name or a file, and overrides its parameters by those of the file
    /// `parameters_file`, then by `assignments`.
    pub fn find(
        registry: Registry,
        name: &str,
        parameters_file: Option<&Path>,
        assignments: &[String],
    ) -> Result<Self, TargetError> {
        let mut target = if Path::new(name).extension().is_some_and(|extension| extension == "toml") {
            Self::read(registry, Path::new(name))?
        } else {
            Self::plain(by_name(registry, name)?)
        };
        if let Some(path) = parameters_file {
            let text = read(path)?;
            target.overlay_file(path, &text, parse(path, &text)?)?;
        }
        for assignment in assignments {
            let given = parameters::parse_assignment(assignment, &target.parameters)?;
            parameters::overlay(&mut target.parameters, given)?;
        }
        parameters::split(target.parameters.clone())?;
        Ok(target)
    }

    /// A scenario with its default parameters.
    pub fn plain(scenario: &'static dyn Scenario) -> Self {
        Self { scenario, parameters: parameters::defaults(scenario), planted: None }
    }

    /// One seed of it.
    pub fn job(&self, seed: u64) -> Job {
        Job {
            scenario: self.scenario.name().to_owned(),
            parameters: self.parameters.clone(),
            seed,
            overrides: Overrides::new(),
            planted: self.planted,
            keep: Keep::default(),
        }
    }

    fn read(registry: Registry, path: &Path) -> Result<Self, TargetError> {
        let text = read(path)?;
        let table = parse(path, &text)?;
        let wrong = |reason| TargetError::File {
            path: path.to_owned(),
            line: parameters::line_of(&text, &[], SCENARIO).unwrap_or(1),
            reason,
        };
        let scenario = match table.get(SCENARIO) {
            Some(Value::String(name)) => by_name(registry, name).map_err(|error| wrong(error.to_string()))?,
            Some(other) => return Err(wrong(format!("scenario is {other}: want the name of a scenario"))),
            None => return Err(wrong("it does not say which scenario it is: want scenario = \"NAME\"".to_owned())),
        };
        let mut target = Self::plain(scenario);
        target.overlay_file(path, &text, table)?;
        Ok(target)
    }

    fn overlay_file(&mut self, path: &Path, text: &str, mut table: Table) -> Result<(), TargetError> {
        let wrong = |name: &str, reason| TargetError::File {
            path: path.to_owned(),
            line: parameters::line_of(text, &[], name).unwrap_or(1),
            reason,
        };
        if let Some(named) = table.remove(SCENARIO)
            && named.as_str() != Some(self.scenario.name())
        {
            let reason = format!("these are parameters of scenario {named}, and {} is to run", self.scenario.name());
            return Err(wrong(SCENARIO, reason));
        }
        parameters::overlay(&mut self.parameters, table).map_err(|error| wrong(&error.name, error.to_string()))
    }
}

fn by_name(registry: Registry, name: &str) -> Result<&'static dyn Scenario, TargetError> {
    registry.find(name).ok_or_else(|| TargetError::Unknown {
        name: name.to_owned(),
        reason: parameters::unknown(name, registry.all().iter().map(|scenario| scenario.name())),
    })
}

#[allow(clippy::disallowed_methods, reason = "a file of the user's, outside of any run")]
fn read(path: &Path) -> Result<String, TargetError> {
    std::fs::read_to_string(path).map_err(|error| TargetError::Io { path: path.to_owned(), error })
}

fn parse(path: &Path, text: &str) -> Result<Table, TargetError> {
    text.parse().map_err(|error: toml::de::Error| TargetError::File {
        path: path.to_owned(),
        line: error.span().map_or(1, |span| parameters::line_at(text, span.start)),
        reason: error.message().to_owned(),
    })
}
