//! Options of the commit log: plain data under upstream's names (`MessageStoreConfig`), in snake case, with upstream's
//! defaults.

use serde::{Deserialize, Serialize};

use crate::codec::{CheckOptions, PropertyCrc, RecordOptions, ScanOptions, record::BLANK_LEN};
use crate::log::{LogOptions, WrittenBy};
use crate::planted::Planted;

/// When a message counts as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FlushDiskType {
    /// Once it is on the device.
    SyncFlush,
    /// Once the kernel has it.
    AsyncFlush,
}

/// What recovery does about what it cannot read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryPolicy {
    /// Tells a torn tail from damage by what is proved durable, serves both sides of a hole, and keeps what it cuts.
    Safe,
    /// What RocketMQ does: the log ends at the first record that does not check.
    Compatible,
}

/// Options of the commit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommitLogOptions {
    /// Length of a segment's file in bytes.
    pub mapped_file_size_commit_log: u64,
    /// Largest body, and largest client batch, in bytes.
    pub max_message_size: usize,
    /// When a message counts as stored.
    pub flush_disk_type: FlushDiskType,
    /// What nobody waits for is synced this long after it was appended, in milliseconds.
    pub flush_interval_commit_log: u64,
    /// How long a message waits for someone else's sync before its outcome is unknown, in milliseconds.
    pub sync_flush_timeout: u64,
    /// Whether records end with a CRC of themselves.
    pub enabled_append_prop_crc: bool,
    /// Whether that CRC is checked. Under [`RecoveryPolicy::Compatible`] a record without one ends the log; otherwise it
    /// is checked where a record has one.
    pub force_verify_prop_crc: bool,
    /// Whether a topic of more than 127 bytes makes a version 2 record.
    pub auto_message_version_on_topic_len: bool,
    /// Whether recovery checks body CRCs.
    pub check_crc_on_recover: bool,
    /// Whether reads check body CRCs. Not in upstream, which does not.
    pub check_crc_on_read: bool,
    /// Largest buffer that a check keeps for the next record, in bytes (`maxCheckMessageReuseBufferSize`).
    pub max_check_reuse_buffer: usize,
    /// What recovery does about what it cannot read.
    pub recovery_policy: RecoveryPolicy,
    /// How messages that need not be durable reach the kernel.
    pub written_by: WrittenBy,
    /// The planted fault.
    #[serde(skip)]
    pub planted: Planted,
}

impl Default for CommitLogOptions {
    fn default() -> Self {
        Self {
            mapped_file_size_commit_log: 1 << 30,
            max_message_size: 4 << 20,
            flush_disk_type: FlushDiskType::AsyncFlush,
            flush_interval_commit_log: 500,
            sync_flush_timeout: 5000,
            enabled_append_prop_crc: false,
            force_verify_prop_crc: false,
            auto_message_version_on_topic_len: true,
            check_crc_on_recover: true,
            check_crc_on_read: true,
            max_check_reuse_buffer: (4 << 20) + (64 << 10),
            recovery_policy: RecoveryPolicy::Safe,
            written_by: WrittenBy::Region,
            planted: Planted::NONE,
        }
    }
}

/// An option that the commit log cannot work with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("option {name} is {value}: {reason}")]
pub struct OptionError {
    /// The option.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
    /// What would be right.
    pub reason: &'static str,
}

impl CommitLogOptions {
    pub(super) fn check(&self) -> Result<(), OptionError> {
        let (name, value) = ("mapped_file_size_commit_log", self.mapped_file_size_commit_log);
        if value <= BLANK_LEN as u64 {
            return Err(OptionError { name, value, reason: "a segment has room for more than its blank" });
        }
        if value > i32::MAX as u64 {
            return Err(OptionError { name, value, reason: "a blank tells its length in 31 bits" });
        }
        Ok(())
    }

    pub(super) fn log_options(&self) -> LogOptions {
        LogOptions {
            written_by: self.written_by,
            flush_interval_ms: self.flush_interval_commit_log,
            planted: self.planted,
            ..LogOptions::default()
        }
    }

    pub(super) fn record_options(&self) -> RecordOptions {
        RecordOptions {
            max_message_size: self.max_message_size,
            append_property_crc: self.enabled_append_prop_crc,
            auto_message_version: self.auto_message_version_on_topic_len,
            planted: self.planted,
        }
    }

    /// What a record must be to be served.
    pub(super) fn read_check(&self) -> CheckOptions {
        CheckOptions { body_crc: self.check_crc_on_read, ..self.strict_check() }
    }

    /// What a record must be to be taken by recovery.
    pub(super) fn recovery_check(&self) -> CheckOptions {
        match self.recovery_policy {
            RecoveryPolicy::Safe => CheckOptions { body_crc: self.check_crc_on_recover, ..self.strict_check() },
            RecoveryPolicy::Compatible => self.rocketmq_check(),
        }
    }

    /// What a record must be to be taken by RocketMQ's recovery.
    pub(super) fn rocketmq_check(&self) -> CheckOptions {
        let property_crc = if self.force_verify_prop_crc { PropertyCrc::Require } else { PropertyCrc::Ignore };
        CheckOptions {
            body_crc: self.check_crc_on_recover,
            property_crc,
            planted: self.planted,
            ..CheckOptions::ROCKETMQ
        }
    }

    /// Records of before the option was set have no property CRC and are no worse for it. (apache/rocketmq #7480)
    fn strict_check(&self) -> CheckOptions {
        let has_crc = self.enabled_append_prop_crc || self.force_verify_prop_crc;
        let property_crc = if has_crc { PropertyCrc::WherePresent } else { PropertyCrc::Ignore };
        CheckOptions { property_crc, planted: self.planted, ..CheckOptions::STRICT }
    }

    pub(super) fn scan_options(&self, check: CheckOptions) -> ScanOptions {
        ScanOptions { max_check_reuse_buffer: self.max_check_reuse_buffer, check, ..ScanOptions::default() }
    }
}
