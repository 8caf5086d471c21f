//! Parameters that the commit log's scenarios share, and what a seed draws within them.

use std::rc::Rc;

use serde::Deserialize;
use stormlog::commitlog::{CommitLogOptions, FlushDiskType};
use stormlog::log::WrittenBy;
use stormlog::planted::Planted;

use crate::choices::{Actor, Family};
use crate::context::Context;
use crate::disk::DiskProfile;
use crate::disk::fault::FaultRule;
use crate::disk::profile::FileSystem;
use crate::machine::{Profile, SchedulePolicy};
use crate::scenario::{ParameterError, RunRequest};

/// Parameters of a scenario of the commit log.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Parameters {
    machine: String,
    pub(super) rounds: u64,
    pub(super) images: u64,
    pub(super) ends: [u32; 3],
    schedules: [u32; 3],
    pub(super) workload: Workload,
    store: Store,
    disk: DiskParameters,
    full: Option<Full>,
    pub(super) failure: Option<Failure>,
}

/// How the disk fills up.
#[derive(Debug, Clone, Deserialize)]
struct Full {
    capacity_bytes: [u64; 2],
}

/// How often I/O fails.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Failure {
    pub(super) sync_error_ppm: u32,
    pub(super) dir_sync_error_ppm: u32,
    pub(super) write_error_ppm: u32,
}

/// What producers do.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Workload {
    pub(super) producers: u64,
    pub(super) appends: u64,
    pub(super) body_bytes_max: u64,
    pub(super) batch_messages_max: u64,
    pub(super) operations: [u32; 5],
    pub(super) levels: [u32; 3],
}

#[derive(Debug, Clone, Deserialize)]
struct Store {
    segment_bytes: Vec<u64>,
}

#[derive(Debug, Clone, Deserialize)]
struct DiskParameters {
    file_systems: Vec<String>,
    torn_sector_ppm: u32,
    #[serde(default)]
    faults: Vec<FaultRule>,
}

fn refuse(name: &str, reason: impl Into<String>) -> ParameterError {
    ParameterError { name: name.to_owned(), reason: reason.into() }
}

fn file_system(name: &str) -> Result<FileSystem, ParameterError> {
    Ok(match name {
        "weak-posix" => FileSystem::WEAK_POSIX,
        "posix" => FileSystem::default(),
        "ext4-ordered" => FileSystem::EXT4_ORDERED,
        "ext4-data" => FileSystem::EXT4_DATA,
        "xfs" => FileSystem::XFS,
        "btrfs" => FileSystem::BTRFS,
        other => {
            let known = "weak-posix, posix, ext4-ordered, ext4-data, xfs, btrfs";
            return Err(refuse("disk.file_systems", format!("{other:?} is none of {known}")));
        }
    })
}

impl Parameters {
    /// Reads them and refuses what no run can use.
    pub(super) fn read(request: &RunRequest) -> Result<Self, ParameterError> {
        let parameters: Self =
            request.parameters.clone().try_into().map_err(|e: toml::de::Error| refuse("parameters", e.message()))?;
        let bounded = |name: &str, value: u64, low: u64, high: u64| {
            let fits = (low..=high).contains(&value);
            fits.then_some(()).ok_or_else(|| refuse(name, format!("{value} is not between {low} and {high}")))
        };
        bounded("rounds", parameters.rounds, 1, 1000)?;
        bounded("images", parameters.images, 0, 10_000)?;
        bounded("workload.producers", parameters.workload.producers, 1, 1000)?;
        bounded("workload.appends", parameters.workload.appends, 0, 1_000_000)?;
        bounded("workload.body_bytes_max", parameters.workload.body_bytes_max, 1, 16 << 20)?;
        bounded("workload.batch_messages_max", parameters.workload.batch_messages_max, 1, 1000)?;
        bounded("disk.torn_sector_ppm", u64::from(parameters.disk.torn_sector_ppm), 0, 1_000_000)?;
        for (name, weights) in [
            ("ends", &parameters.ends[..]),
            ("schedules", &parameters.schedules[..]),
            ("workload.operations", &parameters.workload.operations[..]),
            ("workload.levels", &parameters.workload.levels[..]),
        ] {
            if weights.iter().all(|weight| *weight == 0) {
                return Err(refuse(name, "some weight is above 0"));
            }
        }
        if parameters.store.segment_bytes.is_empty() || parameters.disk.file_systems.is_empty() {
            return Err(refuse("store.segment_bytes, disk.file_systems", "there is at least one to draw from"));
        }
        if let Some(failure) = parameters.failure {
            bounded("failure.sync_error_ppm", u64::from(failure.sync_error_ppm), 0, 1_000_000)?;
            bounded("failure.dir_sync_error_ppm", u64::from(failure.dir_sync_error_ppm), 0, 1_000_000)?;
            bounded("failure.write_error_ppm", u64::from(failure.write_error_ppm), 0, 1_000_000)?;
        }
        if let Some(Full { capacity_bytes: [low, high] }) = parameters.full {
            bounded("full.capacity_bytes", low, 4096, high)?;
            bounded("full.capacity_bytes", high, low, 1 << 40)?;
        }
        for bytes in &parameters.store.segment_bytes {
            bounded("store.segment_bytes", *bytes, 1024, 1 << 30)?;
        }
        Profile::built_in(&parameters.machine).map_err(|error| refuse("machine", error.to_string()))?;
        parameters.disk.file_systems.iter().try_for_each(|name| file_system(name).map(|_| ()))?;
        Ok(parameters)
    }
}

impl Parameters {
    /// The size of the disk while it is small.
    pub(super) fn draw_capacity(&self, context: &mut Context) -> Option<u64> {
        let [low, high] = self.full.as_ref()?.capacity_bytes;
        let stream = context.stream(Family::Fault, Actor::RUN.child("capacity", 0));
        // The benign choice is the largest disk.
        Some(high - context.range(stream, 0, high - low))
    }
}

/// What a seed drew: the machine, the disk, and the store's options.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    pub(super) profile: Rc<Profile>,
    pub(super) policy: SchedulePolicy,
    pub(super) disk: DiskProfile,
    pub(super) options: CommitLogOptions,
}

impl Setup {
    /// Draws within the parameters.
    pub(super) fn draw(
        context: &mut Context,
        parameters: &Parameters,
        planted: Planted,
    ) -> Result<Self, ParameterError> {
        let profile = Profile::built_in(&parameters.machine).map_err(|error| refuse("machine", error.to_string()))?;
        let stream = context.stream(Family::Option, Actor::RUN.child("setup", 0));
        let policy = match context.weighted(stream, &parameters.schedules) {
            0 => SchedulePolicy::Timed,
            1 => SchedulePolicy::Random { preempt_every: 2 << context.below(stream, 7) },
            _ => SchedulePolicy::Priorities { operations: 1000, changes: 1 + context.below(stream, 3) as u32 },
        };
        let segments = &parameters.store.segment_bytes;
        let segment_bytes = segments[context.below(stream, segments.len() as u64) as usize];
        let systems = &parameters.disk.file_systems;
        let file_system = file_system(&systems[context.below(stream, systems.len() as u64) as usize])?;
        let faults = parameters.disk.faults.clone();
        let mut disk = DiskProfile { file_system, faults, ..DiskProfile::default() };
        if context.below(stream, 2) == 1 {
            disk.crash.torn_sector_ppm = parameters.disk.torn_sector_ppm;
        }
        let flips = context.below(stream, 8);
        let options = CommitLogOptions {
            mapped_file_size_commit_log: segment_bytes,
            max_message_size: parameters.workload.body_bytes_max as usize,
            flush_disk_type: if flips & 1 == 0 { FlushDiskType::SyncFlush } else { FlushDiskType::AsyncFlush },
            written_by: if flips & 2 == 0 { WrittenBy::Write } else { WrittenBy::Region },
            enabled_append_prop_crc: flips & 4 != 0,
            force_verify_prop_crc: flips & 4 != 0,
            flush_interval_commit_log: 1 << context.below(stream, 6),
            max_check_reuse_buffer: 512 << context.below(stream, 4),
            planted,
            ..CommitLogOptions::default()
        };
        Ok(Self { profile: Rc::new(profile), policy, disk, options })
    }
}
