//! What producers do to a commit log.
//!
//! Model: each producer is a thread that works through numbered operations; each operation draws from a stream of its
//! own, so that one that is dropped changes no other. A message carries its number in the property `ID`, so that what
//! is served names its append; its content is a function of its choices.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use stormlog::codec::{Host, MessageRef, Properties, RecordHeader, SysFlag, batch};
use stormlog::commitlog::{Appended, CommitLog, FlushDiskType};
use stormlog::env::Env;
use stormlog::log::Level;

use super::parameters::Workload;
use super::view::{fingerprint, served};
use crate::choices::{Actor, Family, Stream};
use crate::env::SimEnv;
use crate::history::{AppendId, History, MessageId, Place, Queue, Told};
use crate::machine::Shared;
use crate::scenario::Finding;

/// The property that carries a message's number.
pub(super) const ID: &str = "ID";

/// What a round's threads share with the host's side.
#[derive(Clone, Default)]
pub(super) struct Books {
    pub(super) history: Shared<History>,
    pub(super) findings: Shared<Vec<Finding>>,
    /// Whether the last life ended because the store did not open.
    pub(super) refused_to_open: Shared<bool>,
}

impl Books {
    pub(super) fn find(&self, oracle: &str, message: String) {
        self.findings.with(|findings| findings.push(Finding { oracle: oracle.to_owned(), message }));
    }
}

/// A producer.
pub(super) struct Producer {
    pub(super) env: SimEnv,
    pub(super) log: Arc<CommitLog<SimEnv>>,
    pub(super) books: Books,
    pub(super) workload: Workload,
    pub(super) actor: Actor,
    /// Whether the disk may take back what only the kernel had.
    pub(super) io_may_fail: bool,
}

struct Draft {
    topic: String,
    queue_id: i32,
    sys_flag: SysFlag,
    hosts: (Host, Host),
    level: Level,
    messages: Vec<(i32, Vec<u8>)>,
    is_batch: bool,
    by_callback: bool,
}

const TOPICS: [&str; 4] = [
    "TopicTest",
    "a-1",
    "Thème/ü",
    "a-topic-that-is-longer-than-one-hundred-and-twenty-seven-bytes-and-is-therefore-stored-with-a-length-of-two-bytes-in-a-version-2-record",
];

impl Producer {
    /// Does all its operations, or as many as the process's life allows.
    pub(super) fn work(&self) {
        let mut last = None;
        for number in 0..self.workload.appends {
            let actor = self.actor.child("operation", number);
            let stream = self.env.with_context(|ctx| ctx.stream(Family::Workload, actor));
            match self.env.with_context(|ctx| ctx.operation(stream, &self.workload.operations)) {
                0 => {}
                1 => last = self.append(&self.draft(stream, 1)).or(last),
                2 => {
                    let count = self.draw(stream, 1, self.workload.batch_messages_max);
                    let draft = Draft { is_batch: true, sys_flag: SysFlag(0), ..self.draft(stream, count) };
                    last = self.append(&draft).or(last);
                }
                3 => {
                    let mut draft = self.draft(stream, 1);
                    draft.messages[0].1.resize(self.workload.body_bytes_max as usize + 1, 0);
                    if self.append(&draft).is_some() {
                        self.books.find("limits-hold", "a body longer than the limit was stored".to_owned());
                    }
                }
                4 => self.env.sleep_ns(self.draw(stream, 1_000, 5_000_000)),
                _ => self.read_back(last.as_ref()),
            }
        }
    }

    /// Whether a store that had no space takes a message, now that there is some.
    pub(super) fn is_taken_again(&self) -> bool {
        let actor = self.actor.child("again", 0);
        let stream = self.env.with_context(|ctx| ctx.stream(Family::Workload, actor));
        let mut draft = self.draft(stream, 1);
        // One that fits into any segment.
        draft.messages[0].1.truncate(64);
        self.append(&draft).is_some()
    }

    fn draw(&self, stream: Stream, low: u64, high: u64) -> u64 {
        self.env.with_context(|ctx| ctx.range(stream, low, high))
    }

    fn draft(&self, stream: Stream, messages: u64) -> Draft {
        let workload = &self.workload;
        self.env.with_context(|ctx| {
            let level = [Level::Staged, Level::Written, Level::Durable][ctx.weighted(stream, &workload.levels)];
            let topic = TOPICS[ctx.weighted(stream, &[6, 3, 2, 1])].to_owned();
            let queue_id = ctx.below(stream, 2) as i32;
            let sys_flag = SysFlag([0, 0x4, 0x8, 0xC][ctx.weighted(stream, &[12, 1, 1, 1])]);
            let v4 = Host::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 10911);
            let v6 = Host::new(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)), 40000);
            let hosts = [(v4, v4), (v6, v4), (v4, v6), (v6, v6)][ctx.weighted(stream, &[9, 1, 1, 1])];
            let messages = (0..messages).map(|_| {
                let len = match ctx.weighted(stream, &[3, 1, 4, 2]) {
                    0 => ctx.range(stream, 1, 64.min(workload.body_bytes_max)),
                    1 => 0,
                    2 => ctx.range(stream, 1, 512.min(workload.body_bytes_max)),
                    _ => ctx.range(stream, 1, workload.body_bytes_max),
                };
                let mut body = vec![0; len as usize];
                ctx.fill(stream, &mut body);
                (ctx.below(stream, 3) as i32 - 1, body)
            });
            let messages: Vec<_> = messages.collect();
            let by_callback = ctx.below(stream, 4) == 3;
            Draft { topic, queue_id, sys_flag, hosts, level, messages, is_batch: false, by_callback }
        })
    }

    fn append(&self, draft: &Draft) -> Option<(AppendId, Appended)> {
        let queue: Queue = (draft.topic.clone(), draft.queue_id);
        let mut messages = Vec::new();
        let id = self.books.history.with(|history| {
            history.invoke(queue.clone(), |append| {
                let contents = draft.messages.iter().zip(0..);
                messages.extend(contents.map(|((flag, body), element)| {
                    let mut properties = Properties::new();
                    let id = MessageId { append, element }.to_text();
                    properties.insert(ID, &id).expect("a number is a property's value");
                    (*flag, body.as_slice(), properties)
                }));
                let print = |(flag, body, properties): &(i32, &[u8], Properties)| {
                    fingerprint(draft.sys_flag, *flag, body, properties.view())
                };
                messages.iter().map(print).collect()
            })
        });
        let header = RecordHeader {
            topic: &draft.topic,
            queue_id: draft.queue_id,
            sys_flag: draft.sys_flag,
            born_timestamp_ms: self.env.civil_ms(),
            born_host: draft.hosts.0,
            store_host: draft.hosts.1,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
        };
        let messages: Vec<MessageRef<'_>> = messages
            .iter()
            .map(|(flag, body, properties)| MessageRef { flag: *flag, body, properties: properties.view() })
            .collect();
        let appended = if draft.is_batch {
            let body = batch::encode(&messages).expect("a batch of this size is encoded");
            self.log.append_batch(&header, &body, draft.level)
        } else {
            self.log.append(&header, messages[0], draft.level)
        };
        let Ok(appended) = appended else {
            self.env.mark("append.refused");
            self.books.history.with(|history| history.tell(id, Told::Refused));
            return None;
        };
        let queue_offset = draft.sys_flag.is_queued().then_some(appended.queue_offset);
        let place = Place { position: appended.receipt.position, queue_offset };
        let history = self.books.history.clone();
        let tell = move |outcome: Result<Level, _>| {
            history.with(|history| {
                history.tell(id, outcome.map_or(Told::Unknown, |level| Told::Acknowledged(level, place)));
            });
        };
        if draft.by_callback {
            self.log.on_settled(&appended, Box::new(tell));
        } else {
            tell(self.log.wait(&appended));
        }
        Some((id, appended))
    }

    /// What was acknowledged and is visible is read back as it was written.
    fn read_back(&self, last: Option<&(AppendId, Appended)>) {
        let Some((id, appended)) = last else { return };
        let told = self.books.history.with(|history| history.appends[id.0 as usize].told);
        let visible = match self.log.options().flush_disk_type {
            FlushDiskType::AsyncFlush if !self.io_may_fail => Level::Written,
            FlushDiskType::AsyncFlush | FlushDiskType::SyncFlush => Level::Durable,
        };
        let Told::Acknowledged(level, place) = told else { return };
        if level < visible {
            return;
        }
        match self.log.read(appended.receipt.position) {
            Ok(record) => {
                let expected = self.books.history.with(|history| history.appends[id.0 as usize].fingerprints[0]);
                let now = served(&record.view());
                if now.fingerprint != expected || now.queue_offset != place.queue_offset {
                    self.books.find("reads-what-was-written", format!("append {} reads as {now:?}", id.0));
                }
            }
            Err(error) => self.books.find("reads-what-was-written", format!("append {}: {error}", id.0)),
        }
    }
}
