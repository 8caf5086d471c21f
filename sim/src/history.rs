//! The history of a run: what clients asked of a store, and what they were told.
//!
//! Model: a history lives outside of the machine that the store runs on, so that it outlives every crash, and so that
//! the same [oracles](crate::oracles) judge a run, a crash image, and a store written by somebody else. An append is
//! *invoked*, and then acknowledged at a level, refused, or never heard of again. After a crash, the next recovery
//! decides for good what became of each message: it is *kept* or it is *gone*.

use std::collections::{BTreeMap, BTreeSet};

use stormlog::log::Level;

/// Number of an append in its history. It travels inside the message, so that a served message names its append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppendId(pub u32);

/// One message of an append: a batch has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId {
    /// The append.
    pub append: AppendId,
    /// The element of the batch; 0 for a single message.
    pub element: u32,
}

impl MessageId {
    /// As text, to travel in a message's property.
    pub fn to_text(self) -> String {
        format!("{}.{}", self.append.0, self.element)
    }

    /// Reads [`MessageId::to_text`] back.
    pub fn from_text(text: &str) -> Option<Self> {
        let (append, element) = text.split_once('.')?;
        Some(Self { append: AppendId(append.parse().ok()?), element: element.parse().ok()? })
    }
}

/// A queue of a topic.
pub type Queue = (String, i32);

/// What a client was told of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Nothing, yet or for ever.
    Nothing,
    /// It has its place, and survives what the level promises.
    Acknowledged(Level, Place),
    /// It is not in the store and never will be.
    Refused,
    /// The store does not know.
    Unknown,
}

/// Where an append was told to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Physical offset of its first record.
    pub position: u64,
    /// Queue offset of its first message; `None` where it has none, as in a prepared transaction.
    pub queue_offset: Option<i64>,
}

impl Place {
    /// Queue offset of an element of the batch.
    pub fn queue_offset_of(self, element: u32) -> Option<i64> {
        self.queue_offset.map(|first| first + i64::from(element))
    }
}

/// What became of a message, as the last recovery decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// No recovery came since.
    Open,
    /// It was served at this position.
    Kept(u64),
    /// It was served at this position with other bytes than were appended: a crash tore it where no check of the format
    /// looks, and nobody had been promised it.
    Torn(u64),
    /// It was not served, and must not come back.
    Gone,
}

/// An append.
#[derive(Debug, Clone)]
pub struct Append {
    /// The queue of its messages.
    pub queue: Queue,
    /// Fingerprint of each message: equal exactly if all that a client can see of it is.
    pub fingerprints: Vec<u64>,
    /// What the client was told.
    pub told: Told,
    /// What became of each message.
    pub fates: Vec<Fate>,
}

/// The worst that happened to a store since it was last opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exposure {
    /// It runs, or was closed.
    Nothing,
    /// Its process was killed.
    Kill,
    /// Power was lost.
    PowerLoss,
}

impl Exposure {
    /// The lowest level that survives it.
    pub fn survivor(self) -> Level {
        match self {
            Self::Nothing => Level::Staged,
            Self::Kill => Level::Written,
            Self::PowerLoss => Level::Durable,
        }
    }
}

/// A history.
#[derive(Debug, Clone)]
pub struct History {
    /// All appends, in the order of their invocation.
    pub appends: Vec<Append>,
    /// The worst that happened since the last recovery that came to its end.
    pub exposure: Exposure,
    /// The store was closed cleanly since: what it acknowledged at any level is durable.
    pub closed: bool,
}

impl Default for History {
    fn default() -> Self {
        Self { appends: Vec::new(), exposure: Exposure::Nothing, closed: false }
    }
}

impl History {
    /// Notes that an append is invoked. `fingerprints` makes them from the number that the append gets.
    pub fn invoke(&mut self, queue: Queue, fingerprints: impl FnOnce(AppendId) -> Vec<u64>) -> AppendId {
        let id = AppendId(u32::try_from(self.appends.len()).expect("a run has fewer than 2^32 appends"));
        let fingerprints = fingerprints(id);
        let fates = vec![Fate::Open; fingerprints.len()];
        self.appends.push(Append { queue, fingerprints, told: Told::Nothing, fates });
        id
    }

    /// Notes what the client was told.
    pub fn tell(&mut self, append: AppendId, told: Told) {
        let record = &mut self.appends[append.0 as usize];
        assert_eq!(record.told, Told::Nothing, "a client is told once");
        record.told = told;
    }

    /// Notes a crash. One after a clean close takes nothing.
    pub fn crash(&mut self, exposure: Exposure) {
        if !self.closed {
            self.exposure = self.exposure.max(exposure);
        }
    }

    /// Notes that the store was closed cleanly.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Notes that a recovery came to its end and served exactly these messages, those in `torn` with other bytes than
    /// were appended, and that what it serves is durable now.
    pub fn recovered(&mut self, served: &BTreeMap<MessageId, u64>, torn: &BTreeSet<MessageId>) {
        for (index, append) in self.appends.iter_mut().enumerate() {
            for (element, fate) in append.fates.iter_mut().enumerate() {
                let id = MessageId { append: AppendId(index as u32), element: element as u32 };
                *fate = match served.get(&id) {
                    None => Fate::Gone,
                    Some(position) if torn.contains(&id) => Fate::Torn(*position),
                    Some(position) => Fate::Kept(*position),
                };
            }
        }
        self.exposure = Exposure::Nothing;
        self.closed = false;
    }

    /// How many appends were acknowledged at `level` or better.
    pub fn acknowledged(&self, level: Level) -> usize {
        self.appends.iter().filter(|append| matches!(append.told, Told::Acknowledged(at, _) if at >= level)).count()
    }
}
