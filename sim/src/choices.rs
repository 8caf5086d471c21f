//! Choices: the one source of everything that may differ between two runs.
//!
//! Model: a choice is an integer below a bound, drawn from ChaCha keyed by (seed, [`Family`], [`Actor`], n), where n
//! counts the actor's draws in the family. Streams are independent: a further draw in one moves no other. **0 is
//! always the benign outcome**, so that shrinking is setting choices to 0. Ranges are our own mapping of raw words,
//! integers only, so that a seed means the same on any machine and with any version of a random-number library's
//! distributions.
//!
//! Not modelled: quality of distribution beyond multiply-and-shift; a bias below 2⁻³² is accepted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::hash::FixedMap;

macro_rules! families {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// What is decided by a choice.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        #[repr(u8)]
        pub enum Family { $($(#[$doc])* $variant,)* }

        impl Family {
            /// All families.
            pub const ALL: &'static [Family] = &[$(Family::$variant,)*];

            /// The name used in case files.
            pub const fn name(self) -> &'static str {
                match self { $(Family::$variant => $name,)* }
            }
        }
    };
}

families! {
    /// Parameters of the run and options of the store.
    Option => "option",
    /// What clients do.
    Workload => "workload",
    /// Which runnable thread goes next.
    Schedule => "schedule",
    /// Whether a thread is preempted at an env operation.
    Preempt => "preempt",
    /// How long an operation takes.
    Latency => "latency",
    /// Whether and where a process dies or power is lost.
    Crash => "crash",
    /// What survives a power loss.
    Survive => "survive",
    /// Whether an operation fails, and how.
    Fault => "fault",
    /// Which bytes rot, and other damage from outside.
    Damage => "damage",
    /// When and what a crash image is taken of.
    Image => "image",
    /// Entropy asked for by the program.
    Entropy => "entropy",
    /// Civil time.
    Clock => "clock",
}

/// Who decides: a stable id, made from names and creation order, never from an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Actor(pub u64);

impl Actor {
    /// The run itself.
    pub const RUN: Actor = Actor(0);

    /// The `n`-th child of this actor with that name.
    pub fn child(self, name: &str, n: u64) -> Actor {
        Actor(xxh3_64_with_seed(name.as_bytes(), self.0 ^ n.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A text that names no family.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no family of choices")]
pub struct FamilyError(pub String);

impl FromStr for Family {
    type Err = FamilyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Family::ALL.iter().copied().find(|f| f.name() == text).ok_or_else(|| FamilyError(text.to_owned()))
    }
}

impl TryFrom<String> for Family {
    type Error = FamilyError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Family> for String {
    fn from(family: Family) -> Self {
        family.name().to_owned()
    }
}

/// Names one choice of a run. Written `family/actor/n`, the actor in hex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ChoiceKey {
    /// What is decided.
    pub family: Family,
    /// Who decides.
    pub actor: Actor,
    /// The how-manieth draw of that actor in that family, from 0.
    pub n: u64,
}

impl fmt::Display for ChoiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.family.name(), self.actor, self.n)
    }
}

/// A text that is no choice key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a choice key: want family/actor/n, as in crash/00000000000000ff/0")]
pub struct ChoiceKeyError(pub String);

impl FromStr for ChoiceKey {
    type Err = ChoiceKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ChoiceKeyError(text.to_owned());
        let mut parts = text.split('/');
        let (Some(family), Some(actor), Some(n), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(refuse());
        };
        Ok(ChoiceKey {
            family: family.parse().map_err(|_| refuse())?,
            actor: Actor(u64::from_str_radix(actor, 16).map_err(|_| refuse())?),
            n: n.parse().map_err(|_| refuse())?,
        })
    }
}

impl TryFrom<String> for ChoiceKey {
    type Error = ChoiceKeyError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ChoiceKey> for String {
    fn from(key: ChoiceKey) -> Self {
        key.to_string()
    }
}

/// Choices whose outcome is given instead of drawn: single ones by key, and all others of a family set to 0.
///
/// Written in JSON as `{"benign": ["latency"], "given": {"crash/0000000000000000/0": 2}}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Overrides {
    /// Families in which a choice that is not in `given` is 0, one that no earlier run made included.
    pub benign: BTreeSet<Family>,
    /// Choices by key.
    pub given: BTreeMap<ChoiceKey, u64>,
}

impl Overrides {
    /// None: every choice is drawn.
    pub const fn new() -> Self {
        Self { benign: BTreeSet::new(), given: BTreeMap::new() }
    }

    /// Whether every choice is drawn.
    pub fn is_empty(&self) -> bool {
        self.benign.is_empty() && self.given.is_empty()
    }

    fn outcome(&self, key: ChoiceKey) -> Option<u64> {
        self.given.get(&key).copied().or_else(|| self.benign.contains(&key.family).then_some(0))
    }
}

impl<const N: usize> From<[(ChoiceKey, u64); N]> for Overrides {
    fn from(given: [(ChoiceKey, u64); N]) -> Self {
        Self { benign: BTreeSet::new(), given: BTreeMap::from(given) }
    }
}

/// A choice as it was made; recorded only in the re-run of a find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ChoiceRecord {
    /// Which choice.
    pub key: ChoiceKey,
    /// Its outcome is below this.
    pub bound: u64,
    /// Its outcome.
    pub value: u64,
}

/// A probability, as a ratio of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    /// Out of `of` …
    pub num: u32,
    /// … this many happen.
    pub of: u32,
}

impl Ratio {
    /// Never.
    pub const NEVER: Ratio = Ratio { num: 0, of: 1 };

    /// `num` out of `of`.
    ///
    /// # Panics
    /// If the ratio is above one or `of` is 0.
    pub const fn new(num: u32, of: u32) -> Ratio {
        assert!(num <= of && of > 0, "a probability is at most one");
        Ratio { num, of }
    }
}

/// A stream of choices: one actor's in one family. Cheap to keep, so that a draw looks nothing up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream(u32);

struct StreamState {
    family: Family,
    actor: Actor,
    n: u64,
    rng: ChaCha8Rng,
}

/// All choices of one run.
pub struct Choices {
    seed: u64,
    streams: Vec<StreamState>,
    index: FixedMap<(Family, Actor), Stream>,
    overrides: Overrides,
    recorded: Option<Vec<ChoiceRecord>>,
}

impl Choices {
    /// The choices of a seed, some of them overridden. `record` keeps each choice made, for shrinking.
    pub fn new(seed: u64, overrides: Overrides, record: bool) -> Self {
        Self { seed, streams: Vec::new(), index: FixedMap::default(), overrides, recorded: record.then(Vec::new) }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The stream of an actor in a family.
    pub fn stream(&mut self, family: Family, actor: Actor) -> Stream {
        if let Some(stream) = self.index.get(&(family, actor)) {
            return *stream;
        }
        let mut key = [0u8; 32];
        key[..8].copy_from_slice(&self.seed.to_be_bytes());
        key[8] = family as u8;
        key[9..25].copy_from_slice(b"stormlog choices");
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(actor.0);
        let stream = Stream(u32::try_from(self.streams.len()).expect("fewer than 2^32 streams"));
        self.streams.push(StreamState { family, actor, n: 0, rng });
        self.index.insert((family, actor), stream);
        stream
    }

    /// Draws an integer below `bound`.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below(&mut self, stream: Stream, bound: u64) -> u64 {
        assert!(bound > 0, "a choice needs an outcome");
        self.decide(stream, bound, |word| scale(word, bound))
    }

    /// Draws from `low..=high`; `low` is the benign outcome.
    pub fn range(&mut self, stream: Stream, low: u64, high: u64) -> u64 {
        assert!(low <= high, "an empty range");
        low + self.below(stream, (high - low).checked_add(1).expect("a range of fewer than 2^64"))
    }

    /// Draws whether something of that probability happens; not happening is benign.
    pub fn chance(&mut self, stream: Stream, ratio: Ratio) -> bool {
        self.decide(stream, 2, |word| u64::from(scale(word, u64::from(ratio.of)) >= u64::from(ratio.of - ratio.num)))
            == 1
    }

    /// Draws an index by weight; index 0 is benign.
    ///
    /// # Panics
    /// If all weights are 0.
    pub fn weighted(&mut self, stream: Stream, weights: &[u32]) -> usize {
        self.decide(stream, weights.len() as u64, |word| by_weight(word, weights)) as usize
    }

    /// Draws the kind of a client operation by weight: 1 is the first kind. 0 means that the operation is dropped; it
    /// is never drawn, and is what shrinking sets.
    pub fn operation(&mut self, stream: Stream, weights: &[u32]) -> usize {
        self.decide(stream, weights.len() as u64 + 1, |word| by_weight(word, weights) + 1) as usize
    }

    /// Fills bytes from the stream: one draw, overridden to zeros.
    pub fn fill(&mut self, stream: Stream, bytes: &mut [u8]) {
        if self.decide(stream, 2, |_| 1) == 0 {
            bytes.fill(0);
        } else {
            // A stream of its own, keyed by the draw, so that the length asked for moves nothing.
            let state = &self.streams[stream.0 as usize];
            let mut key = [0u8; 32];
            key[..8].copy_from_slice(&self.seed.to_be_bytes());
            key[8] = state.family as u8;
            key[9..17].copy_from_slice(&state.n.to_be_bytes());
            key[17..].copy_from_slice(b"choice of bytes");
            let mut rng = ChaCha8Rng::from_seed(key);
            rng.set_stream(state.actor.0);
            rng.fill_bytes(bytes);
        }
    }

    /// What was recorded so far.
    pub fn take_recorded(&mut self) -> Vec<ChoiceRecord> {
        self.recorded.take().unwrap_or_default()
    }

    #[inline]
    fn decide(&mut self, stream: Stream, bound: u64, map: impl FnOnce(u64) -> u64) -> u64 {
        let state = &mut self.streams[stream.0 as usize];
        let mut value = map(state.rng.next_u64());
        debug_assert!(value < bound, "a choice is below its bound");
        if !self.overrides.is_empty() || self.recorded.is_some() {
            let key = ChoiceKey { family: state.family, actor: state.actor, n: state.n };
            if let Some(given) = self.overrides.outcome(key) {
                value = given.min(bound - 1);
            }
            if let Some(recorded) = &mut self.recorded {
                recorded.push(ChoiceRecord { key, bound, value });
            }
        }
        state.n += 1;
        value
    }

    /// The family and actor of a stream.
    pub fn owner(&self, stream: Stream) -> (Family, Actor) {
        let state = &self.streams[stream.0 as usize];
        (state.family, state.actor)
    }
}

#[inline]
fn scale(word: u64, bound: u64) -> u64 {
    ((u128::from(word) * u128::from(bound)) >> 64) as u64
}

fn by_weight(word: u64, weights: &[u32]) -> u64 {
    let total: u64 = weights.iter().map(|w| u64::from(*w)).sum();
    assert!(total > 0, "some outcome has weight");
    let mut left = scale(word, total);
    for (index, weight) in weights.iter().enumerate() {
        match left.checked_sub(u64::from(*weight)) {
            Some(rest) => left = rest,
            None => return index as u64,
        }
    }
    unreachable!("scaled below the total")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(overrides: Overrides) -> Vec<u64> {
        let mut choices = Choices::new(7, overrides, false);
        let a = choices.stream(Family::Crash, Actor::RUN);
        let b = choices.stream(Family::Latency, Actor::RUN.child("thread", 1));
        (0..8).flat_map(|_| [choices.below(a, 1000), choices.range(b, 10, 20)]).collect()
    }

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        // Pinned: another value here means that every case file ever written replays something else.
        assert_eq!(draws(Overrides::new()), [1, 15, 291, 18, 561, 18, 5, 16, 323, 13, 37, 12, 8, 18, 922, 20]);
    }

    #[test]
    fn an_override_moves_nothing_else() {
        let key = ChoiceKey { family: Family::Crash, actor: Actor::RUN, n: 2 };
        let (plain, given) = (draws(Overrides::new()), draws(Overrides::from([(key, 0)])));
        let differing: Vec<_> = (0..plain.len()).filter(|i| plain[*i] != given[*i]).collect();
        assert_eq!((differing, given[4]), (vec![4], 0));
    }

    #[test]
    fn a_benign_family_is_zero_but_for_what_is_given() {
        let kept = ChoiceKey { family: Family::Crash, actor: Actor::RUN, n: 2 };
        let overrides = Overrides { benign: BTreeSet::from([Family::Crash]), given: BTreeMap::from([(kept, 7)]) };
        assert_eq!(draws(overrides), [0, 15, 0, 18, 7, 18, 0, 16, 0, 13, 0, 12, 0, 18, 0, 20]);
    }

    #[test]
    fn a_key_reads_back() {
        let key = ChoiceKey { family: Family::Survive, actor: Actor::RUN.child("file", 3), n: 12 };
        assert_eq!(key.to_string().parse(), Ok(key));
        for bad in ["", "crash", "crash/zz/1", "crash/1", "nothing/1/1", "crash/1/1/1", "crash/1/-1"] {
            assert!(bad.parse::<ChoiceKey>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_dropped_operation_is_only_ever_given() {
        let mut choices = Choices::new(1, Overrides::new(), true);
        for n in 0..100 {
            let stream = choices.stream(Family::Workload, Actor::RUN.child("op", n));
            assert_ne!(choices.operation(stream, &[1, 2]), 0);
        }
        let first = choices.take_recorded()[0].key;
        let mut choices = Choices::new(1, Overrides::from([(first, 0)]), false);
        let stream = choices.stream(Family::Workload, first.actor);
        assert_eq!(choices.operation(stream, &[1, 2]), 0);
    }
}
