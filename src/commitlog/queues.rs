//! The next queue offset of every queue of every topic.
//!
//! Model: dense from 0 per topic and queue; moved on only by a successful append, under `append.lock`. Recovery rebuilds it
//! from the records. Prepared and rolled back messages have no place in a queue.

use std::collections::BTreeMap;

use crate::codec::properties::name;
use crate::codec::{PropertiesRef, RecordView, SysFlag};

/// Next queue offsets, and when the last record was stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueOffsets {
    topics: BTreeMap<Box<[u8]>, BTreeMap<i32, i64>>,
    /// Store timestamp of the last record, in milliseconds since 1970; 0 without one.
    pub(super) last_store_timestamp_ms: i64,
}

impl QueueOffsets {
    /// The offset that the next message of a queue gets.
    pub fn next(&self, topic: &[u8], queue_id: i32) -> i64 {
        self.topics.get(topic).and_then(|queues| queues.get(&queue_id)).copied().unwrap_or(0)
    }

    /// All queues, by topic and id, with their next offset.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], i32, i64)> {
        self.topics.iter().flat_map(|(topic, queues)| queues.iter().map(|(id, next)| (&topic[..], *id, *next)))
    }

    /// Takes `count` offsets of a queue and returns the first.
    pub(super) fn take(&mut self, topic: &[u8], queue_id: i32, count: i64) -> i64 {
        let next = self.slot(topic, queue_id);
        let first = *next;
        *next = first.saturating_add(count);
        first
    }

    /// Takes note of a record that is in the log already.
    pub(super) fn observe(&mut self, record: &RecordView<'_>) {
        self.last_store_timestamp_ms = record.store_timestamp_ms();
        if record.sys_flag().is_queued() {
            let behind = record.queue_offset().saturating_add(places(record.sys_flag(), record.properties()));
            let next = self.slot(record.topic(), record.queue_id());
            *next = behind.max(*next);
        }
    }

    fn slot(&mut self, topic: &[u8], queue_id: i32) -> &mut i64 {
        if !self.topics.contains_key(topic) {
            self.topics.insert(topic.into(), BTreeMap::new());
        }
        self.topics.get_mut(topic).expect("inserted just now").entry(queue_id).or_insert(0)
    }
}

/// How many places a record takes in its queue: an inner batch as many as it says it holds.
pub(super) fn places(sys_flag: SysFlag, properties: PropertiesRef<'_>) -> i64 {
    if sys_flag.0 & SysFlag::INNER_BATCH == 0 {
        return 1;
    }
    let count = properties.get(name::INNER_NUM).and_then(|text| std::str::from_utf8(text).ok());
    count.and_then(|text| text.parse::<i16>().ok()).map_or(1, i64::from).max(1)
}
