//! The oracles of a log: acknowledged is served, nothing is invented, nothing comes twice, queue offsets are dense.
//!
//! Model: a [`View`] is everything that a store serves after its recovery, in log order. A hole that the store reports
//! excuses what was lost only where the scenario damaged the disk beyond what is legal; the scenario then says so by
//! `excused`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::history::{Append, AppendId, Exposure, Fate, History, MessageId, Place, Queue, Told};
use crate::scenario::Finding;

/// A message as a store serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedMessage {
    /// Physical offset of its record.
    pub position: u64,
    /// Length of its record.
    pub size: u64,
    /// Its queue.
    pub queue: Queue,
    /// Its queue offset; `None` where it has none.
    pub queue_offset: Option<i64>,
    /// The append that it says it comes from, if it says one.
    pub id: Option<MessageId>,
    /// Its fingerprint, to compare with the append's.
    pub fingerprint: u64,
}

/// What a store serves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// All messages, in log order.
    pub messages: Vec<ServedMessage>,
    /// End of the log.
    pub end: u64,
    /// Ranges of the log that the store reports as lost.
    pub holes: Vec<Range<u64>>,
}

impl View {
    /// Where each message that names its append stands.
    pub fn positions(&self) -> BTreeMap<MessageId, u64> {
        self.messages.iter().filter_map(|message| Some((message.id?, message.position))).collect()
    }
}

struct Judge<'a> {
    view: &'a View,
    excused: &'a [Range<u64>],
    is_covered: bool,
    torn: BTreeSet<MessageId>,
    findings: Vec<Finding>,
}

/// Judges a view against a history. `excused` are ranges of the log that were damaged beyond what is legal. Where the
/// format does not cover all bytes of a record (`is_covered` is false), an append that nobody was told of may be served
/// with other bytes in those: it was torn, and nothing can tell.
pub fn judge(history: &History, view: &View, excused: &[Range<u64>], is_covered: bool) -> Vec<Finding> {
    let torn = torn(history, view, is_covered);
    let mut judge = Judge { view, excused, is_covered, torn, findings: Vec::new() };
    let served = judge.nothing_is_invented(history);
    judge.fates_are_final(history, &served);
    judge.acknowledged_is_served(history, &served);
    judge.records_do_not_overlap();
    judge.queue_offsets_are_dense();
    judge.losses_are_reported();
    judge.findings
}

/// The messages of a view that are served with other bytes than were appended, which nobody had been promised, and which
/// the format does not cover (`is_covered` is false): a crash tore them, and nothing can tell.
pub fn torn(history: &History, view: &View, is_covered: bool) -> BTreeSet<MessageId> {
    let is_torn = |message: &ServedMessage| {
        let id = message.id?;
        let append = history.appends.get(id.append.0 as usize)?;
        let element = id.element as usize;
        let told = match append.told {
            Told::Acknowledged(level, place) => Some((level, place)),
            Told::Nothing | Told::Refused | Told::Unknown => None,
        };
        let was_promised = match append.fates.get(element)? {
            Fate::Open => told.is_some_and(|(level, _)| level >= history.exposure.survivor()),
            Fate::Kept(_) | Fate::Gone => true,
            Fate::Torn(_) => false,
        };
        let differs = append.fingerprints[element] != message.fingerprint
            || append.queue != message.queue
            || told.is_some_and(|(_, place)| place.queue_offset_of(id.element) != message.queue_offset);
        (differs && !was_promised).then_some(id)
    };
    if is_covered { BTreeSet::new() } else { view.messages.iter().filter_map(is_torn).collect() }
}

type Served<'a> = BTreeMap<MessageId, &'a ServedMessage>;

impl<'a> Judge<'a> {
    fn find(&mut self, oracle: &str, message: String) {
        self.findings.push(Finding { oracle: oracle.to_owned(), message });
    }

    fn is_excused(&self, position: u64) -> bool {
        self.excused.iter().any(|range| range.contains(&position))
    }

    /// Every served message was appended, says so truly, and is served once.
    fn nothing_is_invented(&mut self, history: &History) -> Served<'a> {
        let mut served = Served::new();
        let view = self.view;
        for message in &view.messages {
            if self.is_excused(message.position) {
                continue;
            }
            let at = message.position;
            let append = message.id.and_then(|id| {
                let append = history.appends.get(id.append.0 as usize)?;
                ((id.element as usize) < append.fingerprints.len()).then_some((id, append))
            });
            let Some((id, append)) = append else {
                // Acknowledged messages are looked for by number: a torn one in the place of one of them is found there.
                if self.is_covered {
                    self.find("nothing-invented", format!("the message at {at} was never appended"));
                }
                continue;
            };
            let name = id.to_text();
            let differs =
                append.fingerprints[id.element as usize] != message.fingerprint || append.queue != message.queue;
            if differs && !self.torn.contains(&id) {
                self.find("nothing-invented", format!("message {name} at {at} is not what was appended"));
            }
            if append.told == Told::Refused {
                self.find("refused-stays-away", format!("message {name} at {at} was refused"));
            }
            if let Some(first) = served.insert(id, message) {
                self.find("nothing-twice", format!("message {name} is served at {} and at {at}", first.position));
            }
        }
        served
    }

    /// What a recovery served stays, where it was; what it did not serve stays away.
    fn fates_are_final(&mut self, history: &History, served: &Served<'_>) {
        for (id, append, fate) in fates(history) {
            let name = id.to_text();
            match (fate, served.get(&id)) {
                (Fate::Kept(position) | Fate::Torn(position), None) if !self.is_excused(position) => {
                    self.find("kept-is-kept", format!("message {name} was served at {position} and is gone"));
                }
                (Fate::Kept(position) | Fate::Torn(position), Some(now)) if now.position != position => {
                    let message = format!("message {name} was served at {position}, and is now at {}", now.position);
                    self.find("kept-is-kept", message);
                }
                (Fate::Gone, Some(now)) => {
                    let told = append.told;
                    let message = format!("message {name} ({told:?}) was gone, and is back at {}", now.position);
                    self.find("gone-stays-gone", message);
                }
                _ => {}
            }
        }
    }

    /// What was acknowledged at a level that survives what happened is served, where its client was told.
    fn acknowledged_is_served(&mut self, history: &History, served: &Served<'_>) {
        for (id, append, fate) in fates(history) {
            let Told::Acknowledged(level, place) = append.told else { continue };
            let now = served.get(&id);
            if fate == Fate::Open && now.is_none() && level >= history.exposure.survivor() {
                // Only the first element's position is known; a batch stands in one piece behind it.
                if !self.is_excused(place.position) {
                    let message = format!(
                        "message {} was acknowledged {level} at {} and is not served after {}",
                        id.to_text(),
                        place.position,
                        exposure_text(history.exposure)
                    );
                    self.find("acknowledged-is-served", message);
                }
            }
            if let Some(now) = now.filter(|_| !self.torn.contains(&id)) {
                self.stands_where_told(id, now, place);
            }
        }
    }

    fn stands_where_told(&mut self, id: MessageId, now: &ServedMessage, told: Place) {
        let name = id.to_text();
        let queue_offset = told.queue_offset_of(id.element);
        if now.queue_offset != queue_offset {
            let message =
                format!("message {name} has queue offset {:?}, its client was told {queue_offset:?}", now.queue_offset);
            self.find("served-where-told", message);
        }
        if id.element == 0 && now.position != told.position {
            let message = format!("message {name} is at {}, its client was told {}", now.position, told.position);
            self.find("served-where-told", message);
        }
    }

    /// Records are in order and do not overlap, and the end is behind them.
    fn records_do_not_overlap(&mut self) {
        let mut end = 0;
        for message in &self.view.messages {
            if message.position < end {
                let message = format!("the record at {} begins before {end}, where another ends", message.position);
                self.find("records-do-not-overlap", message);
            }
            end = message.position + message.size;
        }
        if end > self.view.end {
            let message = format!("a record ends at {end}, behind the log's end {}", self.view.end);
            self.find("records-do-not-overlap", message);
        }
    }

    /// The offsets of a queue are 0, 1, 2, … in log order, but for messages in ranges damaged or reported lost. A torn
    /// record may name any queue and offset, and those behind it go by what it says.
    fn queue_offsets_are_dense(&mut self) {
        if !self.torn.is_empty() {
            return;
        }
        let mut next = BTreeMap::<&Queue, i64>::new();
        let view = self.view;
        let is_whole = view.holes.is_empty() && self.excused.is_empty();
        for message in &view.messages {
            let Some(offset) = message.queue_offset.filter(|_| !self.is_excused(message.position)) else { continue };
            let expected = next.insert(&message.queue, offset + 1).unwrap_or(0);
            if expected != offset && (is_whole || offset < expected) {
                let (topic, id) = &message.queue;
                let at = message.position;
                let message = format!("queue {topic:?}/{id}: offset {offset} at {at} follows {expected} expected");
                self.find("queue-offsets-are-dense", message);
            }
        }
    }

    /// Between two records there is nothing but what ends a segment, or a hole that the store reports.
    fn losses_are_reported(&mut self) {
        for hole in &self.view.holes {
            if !self.excused.iter().any(|range| range.start < hole.end && hole.start < range.end) {
                let message =
                    format!("the store reports {}..{} as lost, where nothing was damaged", hole.start, hole.end);
                self.find("no-false-alarm", message);
            }
        }
    }
}

fn fates(history: &History) -> impl Iterator<Item = (MessageId, &Append, Fate)> {
    history.appends.iter().enumerate().flat_map(|(index, append)| {
        append.fates.iter().enumerate().map(move |(element, fate)| {
            let append_id = AppendId(u32::try_from(index).expect("counted in 32 bits"));
            let element = u32::try_from(element).expect("a batch is smaller");
            (MessageId { append: append_id, element }, append, *fate)
        })
    })
}

fn exposure_text(exposure: Exposure) -> &'static str {
    match exposure {
        Exposure::Nothing => "a clean close",
        Exposure::Kill => "a kill",
        Exposure::PowerLoss => "a power loss",
    }
}

#[cfg(test)]
mod tests {
    use stormlog::log::Level;

    use super::*;

    fn queue() -> Queue {
        ("T".to_owned(), 0)
    }

    /// Three appends of one message each, of 10 bytes, acknowledged durable at 0, 10 and 20.
    fn three() -> (History, View) {
        let mut history = History::default();
        let mut view = View { end: 30, ..View::default() };
        for n in 0..3u32 {
            let id = history.invoke(queue(), |id| vec![u64::from(id.0) + 100]);
            let place = Place { position: u64::from(n) * 10, queue_offset: Some(i64::from(n)) };
            history.tell(id, Told::Acknowledged(Level::Durable, place));
            view.messages.push(ServedMessage {
                position: place.position,
                size: 10,
                queue: queue(),
                queue_offset: place.queue_offset,
                id: Some(MessageId { append: id, element: 0 }),
                fingerprint: u64::from(n) + 100,
            });
        }
        history.crash(Exposure::PowerLoss);
        (history, view)
    }

    fn oracles(history: &History, view: &View) -> Vec<String> {
        judge(history, view, &[], true).into_iter().map(|finding| finding.oracle).collect()
    }

    #[test]
    fn what_was_told_holds() {
        let (history, view) = three();
        assert_eq!(judge(&history, &view, &[], true), []);
    }

    #[test]
    fn a_lost_tail_is_found_if_it_was_acknowledged_high_enough() {
        let (mut history, mut view) = three();
        view.messages.pop();
        assert_eq!(oracles(&history, &view), ["acknowledged-is-served"]);
        let Told::Acknowledged(level, _) = &mut history.appends[2].told else { unreachable!() };
        *level = Level::Written;
        assert_eq!(oracles(&history, &view), Vec::<String>::new());
        history.exposure = Exposure::Kill;
        assert_eq!(oracles(&history, &view), ["acknowledged-is-served"]);
    }

    #[test]
    fn each_way_of_serving_wrong_is_found() {
        type Wrong = fn(&mut History, &mut View);
        let cases: [(Wrong, &[&str]); 9] = [
            (|_, v| v.messages[1].fingerprint = 7, &["nothing-invented"]),
            (|_, v| v.messages[1].id = None, &["nothing-invented", "acknowledged-is-served"]),
            (|h, _| h.appends[1].told = Told::Refused, &["refused-stays-away"]),
            (|h, _| h.appends[1].fates[0] = Fate::Gone, &["gone-stays-gone"]),
            (|h, _| h.appends[1].fates[0] = Fate::Kept(40), &["kept-is-kept"]),
            (|_, v| v.messages[2].queue_offset = Some(3), &["served-where-told", "queue-offsets-are-dense"]),
            (|_, v| v.messages[1].position = 5, &["served-where-told", "records-do-not-overlap"]),
            (|_, v| v.end = 29, &["records-do-not-overlap"]),
            (|_, v| v.holes.push(30..40), &["no-false-alarm"]),
        ];
        for (number, (wrong, expected)) in cases.into_iter().enumerate() {
            let (mut history, mut view) = three();
            wrong(&mut history, &mut view);
            assert_eq!(oracles(&history, &view), expected, "case {number}");
        }
        let (history, mut view) = three();
        let mut again = view.messages[0].clone();
        again.position = 30;
        again.queue_offset = Some(3);
        view.messages.push(again);
        view.end = 40;
        assert!(oracles(&history, &view).contains(&"nothing-twice".to_owned()));
    }

    #[test]
    fn what_no_check_covers_may_be_torn_unless_it_was_acknowledged() {
        let (mut history, mut view) = three();
        view.messages[2].id = None;
        let judged = |history: &History, view: &View| judge(history, view, &[], false).len();
        assert_eq!(judged(&history, &view), 1);
        history.appends[2].told = Told::Unknown;
        assert_eq!(judged(&history, &view), 0);
        assert_eq!(judge(&history, &view, &[], true).len(), 1);
    }

    #[test]
    fn a_torn_message_stays_as_it_was_served() {
        let (mut history, mut view) = three();
        view.messages[2].fingerprint = 7;
        view.messages[2].queue_offset = Some(9);
        assert_eq!(judge(&history, &view, &[], false).len(), 3);
        let Told::Acknowledged(level, _) = &mut history.appends[2].told else { unreachable!() };
        *level = Level::Written;
        assert_eq!(judge(&history, &view, &[], true).len(), 3);
        assert_eq!(judge(&history, &view, &[], false), []);
        history.recovered(&view.positions(), &torn(&history, &view, false));
        assert_eq!(judge(&history, &view, &[], false), []);
        view.messages[1].fingerprint = 7;
        assert_eq!(judge(&history, &view, &[], false).len(), 1);
        view.messages[1].fingerprint = 101;
        view.messages.pop();
        assert_eq!(judge(&history, &view, &[], false).len(), 1);
    }

    #[test]
    fn damage_excuses_what_it_hit_and_nothing_else() {
        let (history, mut view) = three();
        view.messages.remove(1);
        view.holes.push(10..20);
        assert_eq!(judge(&history, &view, &[Range { start: 10, end: 20 }], true), []);
        view.messages.remove(0);
        assert!(!judge(&history, &view, &[Range { start: 10, end: 20 }], true).is_empty());
    }
}
