//! What kind of disk and file system is simulated. Plain data, in TOML under a scenario's parameters.

use serde::{Deserialize, Serialize};

use super::fault::FaultRule;

/// A disk with a file system on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiskProfile {
    /// Bytes that files can take, in 4 KiB blocks.
    pub capacity_bytes: u64,
    /// Open handles of all processes together; one more is `ENFILE`.
    pub handles_max: u32,
    /// What the file system promises.
    pub file_system: FileSystem,
    /// How a power loss chooses among the legal states.
    pub crash: CrashProfile,
    /// Faults by rate.
    pub rates: FaultRates,
    /// Faults that are placed. `[[fault]]` in TOML, too.
    #[serde(alias = "fault")]
    pub faults: Vec<FaultRule>,
}

impl Default for DiskProfile {
    fn default() -> Self {
        Self {
            capacity_bytes: 1 << 40,
            handles_max: 65_536,
            file_system: FileSystem::default(),
            crash: CrashProfile::default(),
            rates: FaultRates::default(),
            faults: Vec::new(),
        }
    }
}

/// What a file system promises beyond POSIX, and how it fails. The default is the weakest that POSIX allows, with the
/// sync failure of ext4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FileSystem {
    /// In which order changes of names become durable.
    pub names: NameOrder,
    /// What a rename is after a power loss.
    pub rename: RenameOrder,
    /// Whether a file's length may become durable before its bytes.
    pub length: LengthOrder,
    /// Whether the sync of a new file makes its name durable too (ext4, XFS and Btrfs do).
    pub sync_covers_name: bool,
    /// What is read where a durable length covers bytes that were lost.
    pub growth: GrowthFill,
    /// What a failed sync leaves behind.
    pub sync_failure: SyncFailure,
}

impl FileSystem {
    /// The weakest file system that POSIX allows.
    pub const WEAK_POSIX: Self = Self {
        names: NameOrder::Any,
        rename: RenameOrder::Split,
        length: LengthOrder::Free,
        sync_covers_name: false,
        growth: GrowthFill::Anything,
        sync_failure: SyncFailure::Ext4Ordered,
    };
    /// ext4, `data=ordered`.
    pub const EXT4_ORDERED: Self = Self {
        names: NameOrder::Journal,
        rename: RenameOrder::Ordered,
        length: LengthOrder::AfterData,
        sync_covers_name: true,
        growth: GrowthFill::Zeros,
        sync_failure: SyncFailure::Ext4Ordered,
    };
    /// XFS.
    pub const XFS: Self = Self { rename: RenameOrder::Atomic, sync_failure: SyncFailure::Xfs, ..Self::EXT4_ORDERED };
    /// ext4, `data=journal`.
    pub const EXT4_DATA: Self = Self { sync_failure: SyncFailure::Ext4Data, ..Self::EXT4_ORDERED };
    /// Btrfs.
    pub const BTRFS: Self = Self { sync_failure: SyncFailure::Btrfs, ..Self::EXT4_ORDERED };
}

impl Default for FileSystem {
    fn default() -> Self {
        Self { rename: RenameOrder::Atomic, ..Self::WEAK_POSIX }
    }
}

/// Order in which changes of names become durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameOrder {
    /// Each by itself, in order only where two touch the same name.
    Any,
    /// In order over the whole disk: a journal.
    Journal,
}

/// What a rename is after a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RenameOrder {
    /// Done or not done.
    Atomic,
    /// Done or not done, and if done over an existing file, with the renamed file's bytes (ext4's `auto_da_alloc`).
    Ordered,
    /// Removal of the target, removal of the source and the new name, each by itself.
    Split,
}

/// Whether a length may be durable before the bytes it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LengthOrder {
    /// It may.
    Free,
    /// A durable length covers durable bytes.
    AfterData,
}

/// What is read where a durable length covers bytes that were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrowthFill {
    /// Zeros.
    Zeros,
    /// Zeros, garbage, or what the reused space held before, drawn for each file at each crash.
    Anything,
}

/// What a failed sync leaves behind. In all but `Polite` the error comes once and a second sync succeeds without the
/// bytes (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SyncFailure {
    /// Pages are marked clean: reads see the new bytes until they are evicted, the disk has the old.
    Ext4Ordered,
    /// As ext4.
    Xfs,
    /// The sync succeeds, the pages are as after a failure, and the *next* sync of the file fails.
    Ext4Data,
    /// Reads see the old bytes and the old length at once.
    Btrfs,
    /// Pages stay dirty: a second sync makes them durable. No file system that ships does this.
    Polite,
}

impl SyncFailure {
    /// All profiles with their names in the fault language.
    pub const NAMED: &'static [(SyncFailure, &'static str)] = &[
        (SyncFailure::Ext4Ordered, "ext4-ordered"),
        (SyncFailure::Xfs, "xfs"),
        (SyncFailure::Ext4Data, "ext4-data"),
        (SyncFailure::Btrfs, "btrfs"),
        (SyncFailure::Polite, "polite"),
    ];

    /// The name in the fault language.
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(profile, _)| *profile == self).map_or("", |(_, name)| name)
    }
}

/// How a power loss chooses among the legal states. Weights are relative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CrashProfile {
    /// Of the whole disk: everything unsynced survives.
    pub all_weight: u32,
    /// Of the whole disk: nothing unsynced survives.
    pub none_weight: u32,
    /// Of the whole disk: what was done up to some moment survives.
    pub prefix_weight: u32,
    /// Each file, and the names, by themselves.
    pub each_weight: u32,
    /// Of one file, in this order: all, none, up to a moment, each sector by itself, neighbouring sectors together, each
    /// write as a whole.
    pub file_weights: [u32; 6],
    /// Neighbouring sectors that share a fate, at most.
    pub run_sectors_max: u64,
    /// A surviving sector is a mix of two of its versions, cut at a byte. Per million sectors.
    pub torn_sector_ppm: u32,
    /// As [`CrashProfile::torn_sector_ppm`], for bytes that came through a region: the kernel may write a page out
    /// while bytes are being copied into it.
    pub torn_region_ppm: u32,
    /// The bytes of a sector that unsynced writes changed are garbage. Per million sectors.
    pub garbage_sector_ppm: u32,
}

impl Default for CrashProfile {
    fn default() -> Self {
        Self {
            all_weight: 1,
            none_weight: 2,
            prefix_weight: 3,
            each_weight: 6,
            file_weights: [1, 2, 2, 4, 2, 2],
            run_sectors_max: 8,
            torn_sector_ppm: 0,
            torn_region_ppm: 100_000,
            garbage_sector_ppm: 0,
        }
    }
}

/// Faults by rate, each per million operations of its kind; one that is 0 draws nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FaultRates {
    /// `EIO` from open.
    pub open_error_ppm: u32,
    /// `EIO` from create, create_dir, rename, remove_file and remove_dir.
    pub name_error_ppm: u32,
    /// `EIO` from a read, once.
    pub read_error_ppm: u32,
    /// A read of fewer bytes than there are.
    pub read_short_ppm: u32,
    /// `EIO` from a write, any part of it done.
    pub write_error_ppm: u32,
    /// A write of fewer bytes than given.
    pub write_short_ppm: u32,
    /// `ENOSPC` where space is asked for.
    pub no_space_ppm: u32,
    /// `EIO` from a file's sync, with the profile's [`SyncFailure`].
    pub sync_error_ppm: u32,
    /// What a failed sync dropped is evicted, so that reads see the old bytes: per open of such a file.
    pub evict_ppm: u32,
    /// `EIO` from a directory's sync.
    pub dir_sync_error_ppm: u32,
    /// *Media:* a sector that is read gives `EIO` from now on, until it is overwritten.
    pub latent_error_ppm: u32,
    /// *Media:* a sync succeeds and makes nothing durable.
    pub lying_sync_ppm: u32,
    /// *Media:* a sync succeeds without one of the writes.
    pub lost_write_ppm: u32,
    /// *Media:* a sync puts one of the writes in another one's place.
    pub misdirected_write_ppm: u32,
    /// *Media:* per power loss, a durable sector rots.
    pub rot_ppm: u32,
}
