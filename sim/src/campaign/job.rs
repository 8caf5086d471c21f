//! One seed to run, and what came of it, in a form that crosses from one process to another.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use stormlog::planted::Fault;
use toml::Table;

use crate::alloc::Allocation;
use crate::choices::{ChoiceRecord, Overrides};
use crate::record::{Digest, Event};
use crate::scenario::{Finding, RunStats};

/// One seed of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The scenario's name.
    pub scenario: String,
    /// All its parameters, `limits` included.
    pub parameters: Table,
    /// The seed.
    pub seed: u64,
    /// Choices given instead of drawn.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub overrides: Overrides,
    /// The fault to plant.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "fault_name")]
    pub planted: Option<Fault>,
    /// What to keep beyond the verdict.
    #[serde(default)]
    pub keep: Keep,
}

/// What to keep of a run beyond its verdict; costs memory, changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// Every choice made.
    pub choices: bool,
    /// Every event.
    pub events: bool,
    /// The digest after each of these counts of events.
    pub trail_at: Vec<u64>,
    /// The backtrace of a panic.
    pub backtrace: bool,
}

/// What came of a run, judged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// What was found; empty if the seed held.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Digest of the run; none if it did not come to its end.
    pub digest: Option<Digest>,
    /// Numbers of the run.
    pub stats: RunStats,
    /// Marks reached, with how often.
    pub marks: BTreeMap<String, u64>,
    /// What the host allocated for the run.
    pub allocation: Allocation,
    /// Every choice, if kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<ChoiceRecord>,
    /// Every event, if kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<TraceEvent>,
    /// The trail, if asked for: (count of events, digest after them), as far as the run came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trail: Vec<(u64, Digest)>,
    /// Names of actors, if choices or events are kept.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub actors: BTreeMap<u64, String>,
    /// The scenario's own report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<serde_json::Value>,
}

impl Judged {
    /// A run that ended its process, or had to be ended.
    pub fn cut_short(oracle: &str, message: String) -> Self {
        Self { findings: vec![Finding { oracle: oracle.to_owned(), message }], ..Self::default() }
    }

    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        self.findings.first().map_or(Verdict::Held, |finding| Verdict::Found(finding.oracle.clone()))
    }

    /// What an oracle found, if it found anything.
    pub fn finding_of(&self, oracle: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.oracle == oracle)
    }

    /// Whether this is the verdict: for a finding, whether that oracle is among those that found something.
    pub fn agrees_with(&self, verdict: &Verdict) -> bool {
        match verdict {
            Verdict::Held => self.findings.is_empty(),
            Verdict::Found(oracle) => self.finding_of(oracle).is_some(),
        }
    }
}

/// What a run comes to: `held`, or the name of the first oracle that found something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Verdict {
    /// No oracle found anything.
    Held,
    /// That oracle did.
    Found(String),
}

const HELD: &str = "held";

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Held => f.write_str(HELD),
            Verdict::Found(oracle) => f.write_str(oracle),
        }
    }
}

impl From<String> for Verdict {
    fn from(text: String) -> Self {
        if text == HELD { Verdict::Held } else { Verdict::Found(text) }
    }
}

impl From<Verdict> for String {
    fn from(verdict: Verdict) -> Self {
        verdict.to_string()
    }
}

/// An [`Event`] that crosses from one process to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceEvent {
    /// Virtual time.
    pub at_ns: u64,
    /// Who.
    pub actor: u64,
    /// Did what.
    pub op: String,
    /// With which arguments.
    pub args: [u64; 2],
    /// And what came of it.
    pub result: u64,
}

impl From<&Event> for TraceEvent {
    fn from(event: &Event) -> Self {
        let Event { at_ns, actor, op, args, result } = *event;
        Self { at_ns, actor: actor.0, op: op.name().to_owned(), args, result }
    }
}

impl TraceEvent {
    /// One line of a trace, with the actor's name where there is one.
    pub fn line(&self, actors: &BTreeMap<u64, String>) -> String {
        let Self { at_ns, actor, op, args: [a, b], result } = self;
        let (us, ns) = (at_ns / 1000, at_ns % 1000);
        let who = actors
            .get(actor)
            .cloned()
            .unwrap_or_else(|| if *actor == 0 { "run".into() } else { format!("{actor:016x}") });
        format!("{us:>9}.{ns:03} µs  {who:<16} {op:<14} {a:x} {b:x} -> {result:x}")
    }
}

mod fault_name {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
    use stormlog::planted::Fault;

    pub fn serialize<S: Serializer>(fault: &Option<Fault>, serializer: S) -> Result<S::Ok, S::Error> {
        fault.map(Fault::name).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Fault>, D::Error> {
        let name = Option::<String>::deserialize(deserializer)?;
        let find = |name: String| Fault::from_name(&name).ok_or_else(|| D::Error::custom(format!("no fault {name:?}")));
        name.map(find).transpose()
    }
}
