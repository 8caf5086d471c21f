//! The RocketMQ-compatible commit log on top of [`log`](crate::log): records of all topics, one behind the other.
//!
//! Model: [`CommitLog::append`] encodes a message as a record and gives it its place: physical offset, queue offset and
//! store timestamp, assigned together under `append.lock`. A queue offset is taken only by a message that is in the log.
//! [`CommitLog::wait`] waits until the message is as safe as its [`Level`] says.
//!
//! In the directory: `commitlog/` with the segments, `checkpoint`, `abort` while the store is open, `lock`, and beside what
//! RocketMQ has, `durable` (what is proved durable), `preparing` (a segment in the making) and `salvage/` (what recovery
//! has cut). A directory written by either side opens in the other.
//!
//! Where RocketMQ's consume queues are and messages were appended, the abort marker stays after a clean stop: they do not know
//! those messages, and only a recovery after a crash has RocketMQ build what is missing. Our own next opening then recovers
//! too, and finds everything proved durable.
//!
//! Not modelled yet: consume queues and index, which are derived from this log, and retention.

mod checkpoint;
mod directory;
mod error;
mod layout;
mod options;
mod queues;
mod read;
mod recovery;

use std::path::Path;

use crate::codec::properties::name;
use crate::codec::record::assign;
use crate::codec::{Assigned, Host, MessageId, MessageRef, PropertiesRef, RecordHeader, RecordTemplate};
use crate::env::{Env, Step};
use crate::log::{Callback, Context, IoFailure, Level, Log, LogStart, Operation, Receipt, UnknownError};

use directory::Directory;

pub use checkpoint::Checkpoint;
pub use error::{AppendError, OpenError, Outcome, ReadError, StopError};
pub use layout::CommitLogLayout;
pub use options::{CommitLogOptions, FlushDiskType, OptionError, RecoveryPolicy};
pub use queues::QueueOffsets;
pub use read::{Record, Records};
pub use recovery::{Cut, CutRecord, Flaw, Hole, Proof, Proved, RecoveryReport, Removed, RocketMqView};

/// An open commit log.
///
/// Dropping it is a crash: nothing is written or synced. [`CommitLog::close`] stops it cleanly.
pub struct CommitLog<E: Env> {
    env: E,
    directory: Directory,
    options: CommitLogOptions,
    log: Log<E, CommitLogLayout>,
    holes: Vec<Hole>,
    /// Where the log ended at the opening, if that was after a clean stop.
    closed_end: Option<u64>,
    _lock: E::LockFile,
}

/// What a message, or a batch of them, got in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Its place, and what its acknowledgement waits for.
    pub receipt: Receipt,
    /// Queue offset of the first message; 0 for a prepared or rolled back message, which has none.
    pub queue_offset: i64,
    /// How many messages there are.
    pub count: u32,
    /// When it was stored, in milliseconds since 1970.
    pub store_timestamp_ms: i64,
    store_host: Host,
}

impl Appended {
    /// The id of the first message.
    pub fn message_id(&self) -> MessageId {
        MessageId { store_host: self.store_host, physical_offset: self.receipt.position as i64 }
    }
}

impl<E: Env> CommitLog<E> {
    /// Opens the store in `root`, whose parent exists, and recovers it.
    ///
    /// # Errors
    /// The options are of no use, somebody has the store open, its files are not such a store's, or the disk refuses.
    pub fn open(env: E, root: &Path, options: CommitLogOptions) -> Result<(Self, RecoveryReport), OpenError> {
        options.check()?;
        let directory = Directory::new(root);
        directory.make(&env)?;
        let path = &directory.lock;
        let lock = env.lock_file(path).context(Operation::Lock, path, None)?;
        let lock = lock.ok_or_else(|| OpenError::Locked { path: path.clone() })?;

        let layout = CommitLogLayout { segment_bytes: options.mapped_file_size_commit_log, planted: options.planted };
        let recovered = recovery::recover(&env, &layout, &directory, &options)?;
        let report = recovered.report;
        let start = LogStart {
            directory: directory.commitlog.clone(),
            preparing: directory.preparing.clone(),
            mark: recovered.mark,
            segments: recovered.segments,
            end: recovered.end,
            ends_in_zeros: recovered.ends_in_zeros,
            tail: recovered.tail,
        };
        let log = Log::open(&env, "commitlog", layout, options.log_options(), start)?;
        let holes = report.holes.clone();
        let closed_end = report.was_closed.then_some(report.end);
        Ok((Self { env, directory, options, log, holes, closed_end, _lock: lock }, report))
    }

    /// Appends a message. Returns as soon as it has its place; see [`CommitLog::wait`].
    ///
    /// # Errors
    /// The message was refused: nothing of it is in the log, and it took no queue offset.
    pub fn append(
        &self,
        header: &RecordHeader<'_>,
        message: MessageRef<'_>,
        level: Level,
    ) -> Result<Appended, AppendError> {
        let template = RecordTemplate::new(header, &self.options.record_options())?;
        let prepared = template.prepare(message)?;
        let places = queues::places(header.sys_flag, message.properties);
        self.env.charge(Step::EncodeMessage, 1);
        self.place(header, prepared.encoded_len(), 1, places, level, |bytes| prepared.write_to(bytes))
    }

    /// Appends the messages of a client batch, one record each: all of them or none.
    ///
    /// # Errors
    /// As [`CommitLog::append`], for all of them.
    pub fn append_batch(&self, header: &RecordHeader<'_>, batch: &[u8], level: Level) -> Result<Appended, AppendError> {
        let template = RecordTemplate::new(header, &self.options.record_options())?;
        let prepared = template.prepare_batch(batch)?;
        let count = prepared.message_count();
        if count == 0 {
            return Err(AppendError::EmptyBatch);
        }
        self.env.charge(Step::EncodeMessage, u64::from(count));
        self.place(header, prepared.encoded_len(), count, i64::from(count), level, |bytes| prepared.write_to(bytes))
    }

    fn place(
        &self,
        header: &RecordHeader<'_>,
        len: usize,
        count: u32,
        places: i64,
        level: Level,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<Appended, AppendError> {
        let (receipt, (queue_offset, store_timestamp_ms)) = self.log.append(len, level, |tail, position, bytes| {
            write(bytes);
            let queue_offset = if header.sys_flag.is_queued() {
                tail.take(header.topic.as_bytes(), header.queue_id, places)
            } else {
                0
            };
            let store_timestamp_ms = self.env.civil_ms();
            tail.last_store_timestamp_ms = store_timestamp_ms;
            let physical_offset = i64::try_from(position).expect("a segment's limit is an offset");
            let first = Assigned { queue_offset, physical_offset, store_timestamp_ms };
            assign(bytes, first, self.options.enabled_append_prop_crc);
            (queue_offset, store_timestamp_ms)
        })?;
        self.env.charge(Step::CopyByte, len as u64);
        Ok(Appended { receipt, queue_offset, count, store_timestamp_ms, store_host: header.store_host })
    }

    /// The level at which a message with these properties counts as stored: with synchronous flush it is durable, unless
    /// its `WAIT` property says something other than `true`.
    pub fn level_for(&self, properties: PropertiesRef<'_>) -> Level {
        let waits = properties.get(name::WAIT).is_none_or(|wait| wait.eq_ignore_ascii_case(b"true"));
        match self.options.flush_disk_type {
            FlushDiskType::SyncFlush if waits => Level::Durable,
            _ => Level::Written,
        }
    }

    /// Waits until a message has reached its level, for `sync_flush_timeout` at most where someone else syncs.
    ///
    /// # Errors
    /// What became of the message is unknown.
    pub fn wait(&self, appended: &Appended) -> Result<Level, UnknownError> {
        self.log.wait(&appended.receipt, Some(self.options.sync_flush_timeout))
    }

    /// Appends a message and waits for the level that its properties ask for.
    pub fn put(&self, header: &RecordHeader<'_>, message: MessageRef<'_>) -> Outcome {
        let level = self.level_for(message.properties);
        match self.append(header, message, level).map(|appended| self.wait(&appended)) {
            Ok(Ok(level)) => Outcome::Acknowledged(level),
            Ok(Err(reason)) => Outcome::Unknown(reason),
            Err(reason) => Outcome::Refused(reason),
        }
    }

    /// Has `callback` called once with what came of a message: on the flush thread, outside of all locks. It may append;
    /// it must not wait.
    pub fn on_settled(&self, appended: &Appended, callback: Callback) {
        self.log.on_settled(appended.receipt, callback);
    }

    /// Syncs everything appended so far.
    ///
    /// # Errors
    /// A write or sync failed, now or earlier.
    pub fn sync(&self) -> Result<(), UnknownError> {
        self.log.sync()
    }

    /// Where the next record goes.
    pub fn end(&self) -> u64 {
        self.log.end()
    }

    /// Everything below is with the kernel.
    pub fn written_end(&self) -> u64 {
        self.log.written_end()
    }

    /// Everything below is on the device.
    pub fn durable_end(&self) -> u64 {
        self.log.durable_end()
    }

    /// The queue offset that the next message of a queue gets.
    pub fn next_queue_offset(&self, topic: &str, queue_id: i32) -> i64 {
        self.log.with_tail(|tail| tail.next(topic.as_bytes(), queue_id))
    }

    /// Why the log has stopped taking messages, if it has.
    pub fn failure(&self) -> Option<std::sync::Arc<IoFailure>> {
        self.log.failure()
    }

    /// The options that the store was opened with.
    pub fn options(&self) -> &CommitLogOptions {
        &self.options
    }

    fn visible_end(&self) -> u64 {
        match self.options.flush_disk_type {
            FlushDiskType::SyncFlush => self.log.durable_end(),
            FlushDiskType::AsyncFlush => self.log.written_end(),
        }
    }

    fn hole_at(&self, position: u64) -> Option<&Hole> {
        let index = self.holes.partition_point(|hole| hole.begin <= position).checked_sub(1)?;
        Some(&self.holes[index]).filter(|hole| position < hole.end)
    }

    /// Stops the store cleanly: everything is synced, and the next opening finds it closed, unless RocketMQ's consume queues
    /// are there and lag behind: see the module.
    ///
    /// # Errors
    /// Not everything is safe; the next opening is a recovery after a crash.
    pub fn close(self) -> Result<(), StopError> {
        let Self { env, directory, log, closed_end, _lock, .. } = self;
        let stored_ms = log.with_tail(|tail| tail.last_store_timestamp_ms);
        let (begin, end) = (log.begin(), log.end());
        log.close()?;
        let checkpoint = Checkpoint::read(&env, &directory.checkpoint)?.unwrap_or_default();
        let checkpoint = Checkpoint { physic_msg_timestamp: stored_ms, ..checkpoint }.clamped(begin, end);
        checkpoint.write(&env, &directory.checkpoint)?;
        directory::sync_dir(&env, &directory.root)?;
        let queues_lag = closed_end != Some(end) && directory::exists(&env, &directory.consume_queues)?;
        if !queues_lag {
            directory.mark_closed(&env)?;
        }
        Ok(())
    }
}
