//! Case files: what replays one run for ever.
//!
//! Model: a TOML file with the scenario, all its parameters, the seed, the choices that were set, and what is expected
//! of it: the verdict always, the digest as long as the version is the one that wrote it.
//!
//! A case file is input: what is wrong with one is said with its line, and nothing in it can make a reader panic.
//!
#![doc = include_str!("../docs/case-files.md")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stormlog::planted::Fault;
use toml::Table;

use crate::campaign::job::{Job, Keep, Verdict};
use crate::campaign::parameters;
use crate::choices::{ChoiceKey, Family, Overrides};
use crate::record::{DIGEST_VERSION, Digest};
use crate::scenario::ParameterError;
use crate::scenarios::Registry;

/// Version of the format.
pub const CASE_VERSION: u32 = 1;
/// What writes case files of this build.
pub const WRITER: &str = concat!("stormlog ", env!("CARGO_PKG_VERSION"));
/// Most bytes of a case file.
const BYTES_MAX: u64 = 64 << 20;
/// Seeds are TOML integers.
pub const SEED_MAX: u64 = i64::MAX as u64;

/// One run, and what is expected of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// What to run; keeps nothing.
    pub job: Job,
    /// The verdict that must hold.
    pub verdict: Verdict,
    /// The digest, where the run came to its end.
    pub digest: Option<Digest>,
    /// [`DIGEST_VERSION`] of the digests.
    pub digest_version: u32,
    /// Digests on the way: (count of events, digest after them).
    pub trail: Vec<(u64, Digest)>,
    /// Which version wrote it.
    pub found_by: String,
    /// What a person should know of it.
    pub note: String,
    /// Names of the actors whose choices were set, for readers.
    pub actors: BTreeMap<u64, String>,
}

/// A file that is no case file of this build.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// It cannot be read or written.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// It is larger than a case file can be.
    #[error("{path}: {bytes} bytes is no case file: want at most {BYTES_MAX}", path = .path.display())]
    Large {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// It is wrong at a line.
    #[error("{path}:{line}: {reason}", path = .path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and what would be right.
        reason: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    case: u32,
    scenario: String,
    seed: u64,
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<Digest>,
    digest_version: u32,
    found_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    planted: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    note: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    trail: Vec<(u64, Digest)>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    benign: BTreeSet<Family>,
    #[serde(default)]
    parameters: Table,
    // Last, and written by hand: each choice has its actor's name beside it.
    // Signed, as TOML's integers are: an outcome of 2^63 or more is written as its two's complement.
    #[serde(default, skip_serializing)]
    choices: BTreeMap<ChoiceKey, i64>,
}

impl Case {
    /// Reads a case file.
    #[allow(clippy::disallowed_methods, reason = "a file of the user's, outside of any run")]
    pub fn read(registry: Registry, path: &Path) -> Result<Self, CaseError> {
        let io = |error| CaseError::Io { path: path.to_owned(), error };
        let bytes = std::fs::metadata(path).map_err(io)?.len();
        if bytes > BYTES_MAX {
            return Err(CaseError::Large { path: path.to_owned(), bytes });
        }
        let text = std::fs::read_to_string(path).map_err(io)?;
        Self::parse(registry, &text).map_err(|(line, reason)| CaseError::Wrong { path: path.to_owned(), line, reason })
    }

    /// Reads the text of a case file; an error is a line, from 1, and what is wrong there.
    pub fn parse(registry: Registry, text: &str) -> Result<Self, (usize, String)> {
        let line_of = |name: &str| parameters::line_of(text, &[], name).unwrap_or(1);
        check_version(text)?;
        let file: CaseFile = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| parameters::line_at(text, span.start));
            (line, error.message().to_owned())
        })?;
        let scenario = registry.find(&file.scenario).ok_or_else(|| {
            let names = registry.all().iter().map(|scenario| scenario.name());
            let reason = parameters::unknown(&file.scenario, names);
            (line_of("scenario"), format!("no scenario {}: {reason}", file.scenario))
        })?;
        let mut all = parameters::defaults(scenario);
        let in_parameters = |error: ParameterError| {
            let line = parameters::line_of(text, &["parameters"], &error.name).unwrap_or(1);
            (line, error.to_string())
        };
        parameters::overlay(&mut all, file.parameters).map_err(in_parameters)?;
        parameters::split(all.clone()).map_err(in_parameters)?;
        let planted = file.planted.map(|name| {
            let names = Fault::ALL.iter().map(|fault| fault.name());
            Fault::from_name(&name).ok_or_else(|| {
                (line_of("planted"), format!("no planted fault {name}: {}", parameters::unknown(&name, names)))
            })
        });
        let given = file.choices.into_iter().map(|(key, value)| (key, value.cast_unsigned())).collect();
        Ok(Self {
            job: Job {
                scenario: file.scenario,
                parameters: all,
                seed: file.seed,
                overrides: Overrides { benign: file.benign, given },
                planted: planted.transpose()?,
                keep: Keep::default(),
            },
            verdict: file.verdict,
            digest: file.digest,
            digest_version: file.digest_version,
            trail: file.trail,
            found_by: file.found_by,
            note: file.note,
            actors: BTreeMap::new(),
        })
    }

    /// The text of the case file.
    pub fn to_text(&self) -> String {
        let file = CaseFile {
            case: CASE_VERSION,
            scenario: self.job.scenario.clone(),
            seed: self.job.seed,
            verdict: self.verdict.clone(),
            digest: self.digest,
            digest_version: self.digest_version,
            found_by: self.found_by.clone(),
            planted: self.job.planted.map(|fault| fault.name().to_owned()),
            note: self.note.clone(),
            trail: self.trail.clone(),
            benign: self.job.overrides.benign.clone(),
            parameters: self.job.parameters.clone(),
            choices: BTreeMap::new(),
        };
        let mut text = toml::to_string(&file).expect("seeds are below 2^63, all else is plain data");
        if !self.job.overrides.given.is_empty() {
            text.push_str("\n[choices]\n");
        }
        for (key, value) in &self.job.overrides.given {
            let name = self.actors.get(&key.actor.0).map(|name| format!(" # {}", name.replace(char::is_control, " ")));
            let value = value.cast_signed();
            writeln!(text, "\"{key}\" = {value}{}", name.unwrap_or_default()).expect("a string takes what is written");
        }
        text
    }

    /// Writes the case file, whole or not at all.
    #[allow(clippy::disallowed_methods, reason = "a file of the user's, outside of any run")]
    pub fn write(&self, path: &Path) -> Result<(), CaseError> {
        let io = |error| CaseError::Io { path: path.to_owned(), error };
        let aside = path.with_extension("toml.new");
        std::fs::write(&aside, self.to_text()).map_err(io)?;
        std::fs::rename(&aside, path).map_err(io)
    }

    /// Whether the same version of Stormlog wrote it, so that its digest must hold too.
    pub fn is_of_this_version(&self) -> bool {
        self.found_by == WRITER && self.digest_version == DIGEST_VERSION
    }
}

/// Says so in words if the file is of another version of the format, whatever else is in it.
fn check_version(text: &str) -> Result<(), (usize, String)> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| parameters::line_at(text, span.start));
        (line, error.message().to_owned())
    })?;
    let version = table.get("case").ok_or_else(|| (1, format!("no case file: want case = {CASE_VERSION}")))?;
    if version.as_integer() == Some(i64::from(CASE_VERSION)) {
        return Ok(());
    }
    let line = parameters::line_of(text, &[], "case").unwrap_or(1);
    Err((line, format!("case = {version} is another version of the format: this build reads {CASE_VERSION}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choices::Actor;
    use crate::scenarios::selftest::Selftest;

    fn sample() -> Case {
        let actor = Actor::RUN.child("operation", 3);
        let key = ChoiceKey { family: Family::Workload, actor, n: 0 };
        Case {
            job: Job {
                scenario: "selftest".to_owned(),
                parameters: parameters::defaults(&Selftest::Faulty),
                seed: 12,
                overrides: Overrides {
                    benign: BTreeSet::from([Family::Latency]),
                    given: BTreeMap::from([(key, 2), (ChoiceKey { n: 1, ..key }, u64::MAX)]),
                },
                planted: Some(Fault::AckBeforeSync),
                keep: Keep::default(),
            },
            verdict: Verdict::Found("acknowledged-is-served".to_owned()),
            digest: Some(Digest(0xAB)),
            digest_version: DIGEST_VERSION,
            trail: vec![(16, Digest(1)), (32, Digest(u64::MAX))],
            found_by: WRITER.to_owned(),
            note: "line one\nline \"two\"".to_owned(),
            actors: BTreeMap::new(),
        }
    }

    fn parse(text: &str) -> Result<Case, (usize, String)> {
        Case::parse(Registry::Selftest, text)
    }

    #[test]
    fn reads_back() {
        let mut case = sample();
        assert_eq!(parse(&case.to_text()), Ok(case.clone()));
        case.actors = BTreeMap::from([(Actor::RUN.child("operation", 3).0, "operation 3\n".to_owned())]);
        assert!(case.to_text().ends_with("/1\" = -1 # operation 3 \n"), "{}", case.to_text());
        assert_eq!(parse(&case.to_text()).map(|read| read.job), Ok(case.job));
    }

    #[test]
    fn says_where_it_is_wrong() {
        let text = sample().to_text();
        let line_of = |needle: &str| 1 + text.lines().position(|line| line.starts_with(needle)).expect(needle);
        for (from, to, at, want) in [
            ("case = 1", "case = 2", "case", "this build reads 1"),
            ("case = 1\n", "", "case", "want case = 1"),
            ("scenario = \"selftest\"", "scenario = \"selftset\"", "scenario", "the nearest is selftest"),
            ("seed = 12", "seed = -1", "seed", "expected u64"),
            ("seed = 12", "seed = 1e3", "seed", "expected u64"),
            ("seed = 12", "seed = [", "digest", ""),
            ("seed = 12", "sed = 12", "sed", "unknown field `sed`"),
            ("ack-before-sync", "ack-before-synk", "planted", "the nearest is ack-before-sync"),
            ("00000000000000ab", "ab", "digest", "16 hex digits"),
            ("operations = 40", "operation = 40", "operation", "the nearest is operations"),
            ("operations = 40", "operations = \"x\"", "operations", "want an integer"),
            ("[\"latency\"]", "[\"lateness\"]", "benign", "no family"),
            ("events = 20000000", "events = -3", "[parameters.limits]", "expected u64"),
            ("workload/", "workload", "\"workload", "not a choice key"),
        ] {
            assert!(text.contains(from), "{from} in {text}");
            let (line, reason) = parse(&text.replacen(from, to, 1)).expect_err(to);
            assert!(reason.contains(want), "{to}: {reason}");
            if to.len() > 1 && from.contains(at) {
                assert_eq!(line, line_of(at), "{to}: {reason}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(at in 0usize..600, with in "\\PC{0,8}") {
            let mut text = sample().to_text();
            let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.insert_str(at, &with);
            let _ = parse(&text);
        }
    }
}
