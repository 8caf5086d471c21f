//! What a commit log serves, as the oracles see it.

use stormlog::codec::{PropertiesRef, RecordView, SysFlag};
use stormlog::commitlog::{CommitLog, RecoveryReport};
use stormlog::env::Env;
use xxhash_rust::xxh3::Xxh3Default;

use super::workload::ID;
use crate::history::MessageId;
use crate::oracles::{ServedMessage, View};

/// Property that the store adds, and that is none of the message's own.
const PROPERTY_CRC: &[u8] = b"__CRC32#";

/// A number that two messages share exactly if a client can tell no difference.
pub(super) fn fingerprint(sys_flag: SysFlag, flag: i32, body: &[u8], properties: PropertiesRef<'_>) -> u64 {
    let mut hash = Xxh3Default::new();
    hash.update(&(sys_flag.transaction() as u64).to_le_bytes());
    hash.update(&flag.to_le_bytes());
    hash.update(&(body.len() as u64).to_le_bytes());
    hash.update(body);
    for (name, value) in properties.iter().filter(|(name, _)| *name != PROPERTY_CRC) {
        hash.update(&(name.len() as u64).to_le_bytes());
        hash.update(name);
        hash.update(&(value.len() as u64).to_le_bytes());
        hash.update(value);
    }
    hash.digest()
}

/// A record as the oracles see it.
pub(super) fn served(record: &RecordView<'_>) -> ServedMessage {
    let sys_flag = record.sys_flag();
    let properties = record.properties();
    let id = properties.get(ID).and_then(|id| MessageId::from_text(std::str::from_utf8(id).ok()?));
    ServedMessage {
        position: record.physical_offset() as u64,
        size: record.bytes().len() as u64,
        queue: (String::from_utf8_lossy(record.topic()).into_owned(), record.queue_id()),
        queue_offset: sys_flag.is_queued().then_some(record.queue_offset()),
        id,
        fingerprint: fingerprint(sys_flag, record.flag(), record.body(), properties),
    }
}

/// Reads everything that a log serves. `Err` is what stopped the reading.
pub(super) fn read_all<E: Env>(log: &CommitLog<E>, report: &RecoveryReport) -> Result<View, String> {
    let visible = log.visible();
    let mut view = View { end: visible.end, ..View::default() };
    view.holes.extend(report.holes.iter().map(|hole| hole.begin..hole.end));
    for record in log.records(visible.start) {
        view.messages.push(served(&record.map_err(|error| error.to_string())?.view()));
    }
    Ok(view)
}
