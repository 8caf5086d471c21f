//! The record of a run: a digest over everything that happened, and on request the events themselves.
//!
//! Model: an event is (virtual time, actor, operation, two arguments, result). The digest covers every event and every
//! choice, in order, and never an address, a line number or a backtrace, so that the same seed gives the same digest on
//! any machine, in debug and release. [`DIGEST_VERSION`] changes whenever what is covered changes.

use std::fmt;

use xxhash_rust::xxh3::Xxh3Default;

use crate::choices::Actor;

/// Changes whenever the meaning of a digest does.
pub const DIGEST_VERSION: u32 = 1;

const EVENT_BYTES: usize = 48;
const BLOCK_BYTES: usize = 64 * EVENT_BYTES;

/// An operation's name, hashed when the program is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    name: &'static str,
    code: u64,
}

impl Op {
    /// Names an operation. Use it in a `const`.
    pub const fn new(name: &'static str) -> Self {
        let bytes = name.as_bytes();
        let mut code = 0xCBF2_9CE4_8422_2325u64;
        let mut i = 0;
        while i < bytes.len() {
            code = (code ^ bytes[i] as u64).wrapping_mul(0x100_0000_01B3);
            i += 1;
        }
        Self { name, code }
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

/// Something that happened in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Virtual time.
    pub at_ns: u64,
    /// Who.
    pub actor: Actor,
    /// Did what.
    pub op: Op,
    /// With which arguments.
    pub args: [u64; 2],
    /// And what came of it.
    pub result: u64,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Event { at_ns, actor, op, args: [a, b], result } = self;
        write!(f, "{at_ns:>12} {actor} {:<16} {a:>8x} {b:>8x} -> {result:x}", op.name)
    }
}

/// Digest of a run: equal exactly if everything that happened was equal. Shown as 16 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(pub u64);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a digest: want 16 hex digits")]
pub struct DigestError(pub String);

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let whole = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let word = if whole { u64::from_str_radix(&text, 16).ok() } else { None };
        word.map(Digest).ok_or(DigestError(text))
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// Collects events.
pub struct Recorder {
    hash: Xxh3Default,
    /// Events that are still to be hashed: many at a time cost a third of one by one.
    block: Vec<u8>,
    count: u64,
    events: Option<Vec<Event>>,
}

impl Recorder {
    /// Starts a record; `keep` keeps the events themselves.
    pub fn new(keep: bool) -> Self {
        Self { hash: Xxh3Default::new(), block: Vec::with_capacity(BLOCK_BYTES), count: 0, events: keep.then(Vec::new) }
    }

    /// Adds an event.
    #[inline]
    pub fn record(&mut self, event: Event) {
        let words = [event.at_ns, event.actor.0, event.op.code, event.args[0], event.args[1], event.result];
        let mut bytes = [0u8; EVENT_BYTES];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        self.block.extend_from_slice(&bytes);
        if self.block.len() == BLOCK_BYTES {
            self.hash.update(&self.block);
            self.block.clear();
        }
        self.count += 1;
        if let Some(events) = &mut self.events {
            events.push(event);
        }
    }

    /// How many events there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The digest so far.
    pub fn digest(&self) -> Digest {
        let mut hash = self.hash.clone();
        hash.update(&self.block);
        Digest(hash.digest())
    }

    /// The events kept so far, oldest first.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.events.take().unwrap_or_default()
    }
}
