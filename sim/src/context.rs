//! What every part of one run shares: virtual time, choices, the record, and the marks reached.

use std::collections::BTreeMap;

use crate::choices::{Actor, Choices, Family, Overrides, Ratio, Stream};
use crate::record::{Event, Op, Recorder};

const CHOICE: Op = Op::new("choice");

/// Shared state of one run. Parts of the testbed take it by `&mut`; there is one to a run, nested simulations included.
pub struct Context {
    /// Virtual time since the run began.
    pub now_ns: u64,
    /// All choices of the run. Draw through the methods of `Context`, which put the outcome into the record.
    pub choices: Choices,
    /// The record.
    pub recorder: Recorder,
    marks: BTreeMap<&'static str, u64>,
}

impl Context {
    /// Starts a run. `keep_choices` and `keep_events` are for re-running a find: they cost memory and change nothing.
    pub fn new(seed: u64, overrides: Overrides, keep_choices: bool, keep_events: bool) -> Self {
        Self {
            now_ns: 0,
            choices: Choices::new(seed, overrides, keep_choices),
            recorder: Recorder::new(keep_events),
            marks: BTreeMap::new(),
        }
    }

    /// Puts an event into the record.
    #[inline]
    pub fn record(&mut self, actor: Actor, op: Op, args: [u64; 2], result: u64) {
        self.recorder.record(Event { at_ns: self.now_ns, actor, op, args, result });
    }

    /// The stream of an actor in a family.
    pub fn stream(&mut self, family: Family, actor: Actor) -> Stream {
        self.choices.stream(family, actor)
    }

    /// See [`Choices::below`].
    #[inline]
    pub fn below(&mut self, stream: Stream, bound: u64) -> u64 {
        let value = self.choices.below(stream, bound);
        self.chose(stream, bound, value)
    }

    /// See [`Choices::range`].
    #[inline]
    pub fn range(&mut self, stream: Stream, low: u64, high: u64) -> u64 {
        let value = self.choices.range(stream, low, high);
        self.chose(stream, high, value)
    }

    /// See [`Choices::chance`]. A probability of 0 draws nothing.
    #[inline]
    pub fn chance(&mut self, stream: Stream, ratio: Ratio) -> bool {
        if ratio.num == 0 {
            return false;
        }
        let happens = self.choices.chance(stream, ratio);
        self.chose(stream, 2, u64::from(happens)) == 1
    }

    /// See [`Choices::weighted`].
    pub fn weighted(&mut self, stream: Stream, weights: &[u32]) -> usize {
        let value = self.choices.weighted(stream, weights) as u64;
        self.chose(stream, weights.len() as u64, value) as usize
    }

    /// See [`Choices::operation`].
    pub fn operation(&mut self, stream: Stream, weights: &[u32]) -> usize {
        let value = self.choices.operation(stream, weights) as u64;
        self.chose(stream, weights.len() as u64, value) as usize
    }

    /// See [`Choices::fill`].
    pub fn fill(&mut self, stream: Stream, bytes: &mut [u8]) {
        self.choices.fill(stream, bytes);
        self.chose(stream, bytes.len() as u64, xxhash_rust::xxh3::xxh3_64(bytes));
    }

    /// Counts a mark.
    pub fn mark(&mut self, name: &'static str) {
        *self.marks.entry(name).or_insert(0) += 1;
    }

    /// The marks reached, with how often.
    pub fn marks(&self) -> &BTreeMap<&'static str, u64> {
        &self.marks
    }

    #[inline]
    fn chose(&mut self, stream: Stream, bound: u64, value: u64) -> u64 {
        let (family, actor) = self.choices.owner(stream);
        self.record(actor, CHOICE, [family as u64, bound], value);
        value
    }
}
