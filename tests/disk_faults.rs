//! Faults of the simulated disk: each is seen to have its effect, with its error number, and none other.

use std::collections::BTreeSet;

use serde::Deserialize;
use stormlog::env::OpenOptions;
use stormlog_sim::choices::{Actor, Family, Overrides};
use stormlog_sim::context::Context;
use stormlog_sim::disk::fault::{FaultPoint, FaultRule};
use stormlog_sim::disk::profile::{FaultRates, FileSystem, SyncFailure};
use stormlog_sim::disk::{Damage, DamageKind, Disk, DiskProfile, Errno, Handle, Owner, SyncKind};

const OWNER: Owner = Owner(1);
const ALWAYS_PPM: u32 = 1_000_000;

struct Machine {
    ctx: Context,
    disk: Disk,
}

impl Machine {
    fn new(seed: u64, profile: DiskProfile) -> Self {
        Self { ctx: Context::new(seed, Overrides::new(), true, false), disk: Disk::new(profile) }
    }

    fn plain() -> Self {
        Self::new(1, DiskProfile::default())
    }

    fn place(&mut self, rule: &str) {
        self.disk.place_fault(rule.parse().unwrap());
    }

    fn try_open(&mut self, path: &str, options: OpenOptions) -> Result<Handle, Errno> {
        self.disk.open(&mut self.ctx, OWNER, path, options)
    }

    fn open(&mut self, path: &str) -> Handle {
        self.try_open(path, OpenOptions::CREATE).unwrap()
    }

    fn write(&mut self, file: Handle, offset: u64, bytes: &[u8]) -> Result<usize, Errno> {
        self.disk.write_at(&mut self.ctx, file, bytes, offset)
    }

    fn read(&mut self, file: Handle, offset: u64, len: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; len];
        let count = self.disk.read_at(&mut self.ctx, file, &mut bytes, offset)?;
        bytes.truncate(count);
        Ok(bytes)
    }

    fn sync(&mut self, file: Handle) -> Result<(), Errno> {
        let ticket = self.disk.sync_begin(&mut self.ctx, file, SyncKind::All)?;
        self.disk.sync_end(&mut self.ctx, ticket)
    }

    fn sync_dir(&mut self, path: &str) -> Result<(), Errno> {
        let ticket = self.disk.sync_dir_begin(&mut self.ctx, path)?;
        self.disk.sync_end(&mut self.ctx, ticket)
    }

    /// A file that is durable under its name.
    fn durable(&mut self, path: &str, bytes: &[u8]) -> Handle {
        let file = self.open(path);
        assert_eq!(self.write(file, 0, bytes), Ok(bytes.len()));
        self.sync(file).unwrap();
        self.sync_dir("/").unwrap();
        file
    }

    fn power_loss(&mut self) {
        self.disk.power_loss(&mut self.ctx, Actor::RUN);
    }

    fn after_power_loss(&mut self, path: &str, len: usize) -> Vec<u8> {
        self.power_loss();
        let file = self.try_open(path, OpenOptions::READ_WRITE).unwrap();
        self.read(file, 0, len).unwrap()
    }

    fn kinds(&self) -> Vec<DamageKind> {
        self.disk.damage().iter().map(|damage| damage.kind).collect()
    }
}

/// Does one operation at a point.
fn operate(m: &mut Machine, point: FaultPoint) -> Result<(), Errno> {
    let (ctx, disk) = (&mut m.ctx, &mut m.disk);
    let file = |ctx: &mut Context, disk: &mut Disk| disk.open(ctx, OWNER, "d/f", OpenOptions::READ_WRITE).unwrap();
    match point {
        FaultPoint::Open => disk.open(ctx, OWNER, "d/f", OpenOptions::READ).map(drop),
        FaultPoint::Create => disk.open(ctx, OWNER, "d/new", OpenOptions::CREATE_NEW).map(drop),
        FaultPoint::Read => {
            let file = file(ctx, disk);
            disk.read_at(ctx, file, &mut [0; 8], 0).map(drop)
        }
        FaultPoint::Write => {
            let file = file(ctx, disk);
            disk.write_at(ctx, file, b"written", 0).map(drop)
        }
        FaultPoint::Sync => {
            let file = file(ctx, disk);
            let ticket = disk.sync_begin(ctx, file, SyncKind::Data)?;
            disk.sync_end(ctx, ticket)
        }
        FaultPoint::DirSync => {
            let ticket = disk.sync_dir_begin(ctx, "d")?;
            disk.sync_end(ctx, ticket)
        }
        FaultPoint::SetLen => {
            let file = file(ctx, disk);
            disk.set_len(ctx, file, 3)
        }
        FaultPoint::Space => {
            let file = file(ctx, disk);
            disk.preallocate(ctx, file, 1 << 20)
        }
        FaultPoint::Map => {
            let file = file(ctx, disk);
            disk.region_open(ctx, file, 0, 8).map(drop)
        }
        FaultPoint::Rename => disk.rename(ctx, "d/f", "d/g"),
        FaultPoint::RemoveFile => disk.remove_file(ctx, "d/f"),
        FaultPoint::CreateDir => disk.create_dir(ctx, "d/new"),
        FaultPoint::RemoveDir => disk.remove_dir(ctx, "d/empty"),
        FaultPoint::List => disk.list_dir(ctx, "d").map(drop),
    }
}

fn with_dir(profile: DiskProfile) -> Machine {
    let mut m = Machine::new(1, profile);
    m.disk.create_dir(&mut m.ctx, "d").unwrap();
    m.disk.create_dir(&mut m.ctx, "d/empty").unwrap();
    let file = m.open("d/f");
    m.write(file, 0, b"12345678").unwrap();
    m
}

#[test]
fn a_placed_error_strikes_its_point_and_changes_nothing() {
    for point in FaultPoint::ALL {
        let mut m = with_dir(DiskProfile::default());
        // The points that `operate` passes on its way are not the one meant.
        let path = match point {
            FaultPoint::Create | FaultPoint::CreateDir => "new",
            FaultPoint::RemoveDir => "empty",
            FaultPoint::DirSync | FaultPoint::List => "d",
            _ => "d/f",
        };
        m.place(&format!("on {} of {path} -> EROFS", point.name()));
        let before = m.disk.fingerprint();
        assert_eq!(operate(&mut m, *point), Err(Errno::EROFS), "{}", point.name());
        assert_eq!(m.disk.fingerprint(), before, "{}", point.name());
        let error = std::io::Error::from(Errno::EROFS);
        assert_eq!(error.raw_os_error(), Some(30));

        let mut m = with_dir(DiskProfile::default());
        m.place(&format!("on {} of other/* -> EROFS", point.name()));
        assert_eq!(operate(&mut m, *point), Ok(()), "{}", point.name());
    }
}

#[test]
fn a_rule_strikes_when_it_says() {
    let struck = |when: &str| -> Vec<usize> {
        let mut m = Machine::plain();
        m.place(&format!("on write {when} of f -> EIO"));
        let (file, other) = (m.open("f"), m.open("other"));
        let strikes = (1..=9).filter(|_| {
            m.write(other, 0, b"x").unwrap();
            m.write(file, 0, b"x").is_err()
        });
        strikes.collect()
    };
    assert_eq!(struck("#3"), [3]);
    assert_eq!(struck("#7.."), [7, 8, 9]);
    assert_eq!(struck("every 4"), [4, 8]);
    assert_eq!(struck("").len(), 9);
}

#[test]
fn a_rule_goes_on_counting_after_a_power_loss() {
    let mut m = Machine::plain();
    m.place("on write #2 -> EIO");
    let file = m.durable("f", b"1");
    m.sync(file).unwrap();
    m.power_loss();
    let file = m.open("f");
    assert_eq!(m.write(file, 0, b"2"), Err(Errno::EIO));
}

#[test]
fn a_pattern_matches_the_end_of_a_path() {
    let matches = |pattern: &str, path: &str| {
        let mut m = Machine::plain();
        for dir in ["s", "s/log", "s/log/log"] {
            m.disk.create_dir(&mut m.ctx, dir).unwrap();
        }
        m.place(&format!("on create of {pattern} -> EIO"));
        m.try_open(path, OpenOptions::CREATE).is_err()
    };
    assert!(matches("log/*", "s/log/0"));
    assert!(matches("log/*", "/s/log/0"));
    assert!(matches("log/*", "s/log/log/0"));
    assert!(matches("/s/log/*", "/s/log/0"));
    assert!(matches("**", "s/log/0"));
    assert!(matches("s/**/0", "s/log/log/0"));
    assert!(!matches("log/*", "s/0"));
    assert!(!matches("/log/*", "s/log/0"));
    assert!(!matches("s/*", "s/log/0"));
    assert!(!matches("og/*", "s/log/0"));
}

#[test]
fn a_rule_reads_back_from_line_and_from_table() {
    #[derive(Deserialize)]
    struct Scenario {
        fault: Vec<FaultRule>,
    }
    let lines = [
        "on sync #3 of commitlog/* -> EIO, profile xfs",
        "on write #7.. of ** -> ENOSPC, partial 512",
        "on read every 5 -> short, partial 3",
        "on read #1 of a b -> EIO, sticky",
        "on sync -> EIO, profile ext4-data, partial 2",
        "on sync #1 -> lie",
        "on sync #1 -> lose",
        "on sync #1 -> misdirect",
        "on dir-sync -> EROFS",
        "on space #2 -> EDQUOT",
    ];
    for line in lines {
        let rule: FaultRule = line.parse().unwrap();
        assert_eq!(rule.to_string(), line);
        let Scenario { fault } = toml::from_str(&format!("fault = [{line:?}]")).unwrap();
        assert_eq!(fault, [rule]);
    }
    let table = "[[fault]]\non = \"sync\"\nnth = 3\npath = \"commitlog/*\"\nerror = \"EIO\"\nprofile = \"xfs\"";
    let Scenario { fault } = toml::from_str(table).unwrap();
    assert_eq!(fault[0].to_string(), lines[0]);
    let profile = DiskProfile { faults: fault, ..DiskProfile::default() };
    assert_eq!(toml::from_str::<DiskProfile>(&toml::to_string(&profile).unwrap()).unwrap(), profile);
}

#[test]
fn a_wrong_rule_is_refused_with_its_reason() {
    for (line, reason) in [
        ("", "there is no `->`"),
        ("on sync", "there is no `->`"),
        ("sync -> EIO", "want `on POINT`"),
        ("on flush -> EIO", "want one of open, create, read"),
        ("on sync -> EWHAT", "ENOSPC"),
        ("on sync #0 -> EIO", "want a number from 1"),
        ("on sync #x -> EIO", "want a number from 1"),
        ("on sync 3 -> EIO", "want #N, #N.. or every N"),
        ("on sync every 0 -> EIO", "want a number from 1"),
        ("on sync of a[ -> EIO", "is no pattern"),
        ("on sync -> EIO, profile fat", "want one of ext4-ordered"),
        ("on write -> EIO, profile xfs", "profile is for a sync"),
        ("on sync -> lie, profile xfs", "profile is for a sync"),
        ("on sync -> short", "short is for read and write"),
        ("on write -> lie", "lie is for sync"),
        ("on write -> EIO, sticky", "sticky is for a read"),
        ("on read -> EIO, partial 3", "partial is for"),
        ("on write -> EIO, partial x", "want a number"),
        ("on write -> EIO, twice", "want profile NAME, partial N or sticky"),
    ] {
        let error = line.parse::<FaultRule>().unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains(&format!("{line:?}")), "{line:?} says {error:?}");
    }
    for table in ["on = \"sync\"\nerror = \"EIO\"\nnth = 0", "on = \"sync\"\nerror = \"EIO\"\nnth = 1\nevery = 2"] {
        assert!(toml::from_str::<FaultRule>(table).unwrap_err().to_string().contains("one of nth, from, every"));
    }
    assert!(toml::from_str::<FaultRule>("on = \"sync\"\nerror = \"EIO\"\nwhen = 3").is_err());
}

#[test]
fn a_failing_write_may_have_done_a_part() {
    let mut m = Machine::plain();
    m.place("on write #2 -> EIO, partial 3");
    let file = m.open("f");
    m.write(file, 0, b"aaaaa").unwrap();
    assert_eq!(m.write(file, 0, b"bbbbb"), Err(Errno::EIO));
    assert_eq!(m.read(file, 0, 9).unwrap(), b"bbbaa");
    m.place("on write -> ENOSPC, partial 2");
    assert_eq!(m.disk.zero_range(&mut m.ctx, file, 0, 5), Err(Errno::ENOSPC));
    assert_eq!(m.read(file, 0, 9).unwrap(), b"\0\0baa");
}

#[test]
fn a_short_read_or_write_moves_at_least_a_byte() {
    let mut m = Machine::plain();
    m.place("on write -> short");
    m.place("on read #1 -> short, partial 3");
    m.place("on read #2 -> short, partial 0");
    m.place("on read #3 -> short");
    let file = m.open("f");
    assert_eq!(m.write(file, 0, b"aaaaaaaa"), Ok(4));
    assert_eq!(m.write(file, 4, b"b"), Ok(1));
    assert_eq!(m.read(file, 0, 9).unwrap(), b"aaa");
    assert_eq!(m.read(file, 0, 9).unwrap(), b"a");
    assert_eq!(m.read(file, 0, 9).unwrap(), b"aa");
    assert_eq!(m.read(file, 0, 9).unwrap(), b"aaaab");
}

/// A file of `old` bytes, overwritten by `new` ones and appended to, the sync of which fails. Gives the file.
fn failed_sync(m: &mut Machine, failure: SyncFailure) -> Handle {
    let file = m.durable("f", &[b'o'; 1024]);
    m.write(file, 512, &[b'n'; 1024]).unwrap();
    m.place(&format!("on sync #1 of f -> EIO, profile {}, partial 0", failure.name()));
    let outcome = m.sync(file);
    assert_eq!(outcome, if failure == SyncFailure::Ext4Data { Ok(()) } else { Err(Errno::EIO) });
    file
}

#[test]
fn a_failed_sync_of_ext4_and_xfs_drops_the_bytes_and_the_next_one_succeeds_without_them() {
    for failure in [SyncFailure::Ext4Ordered, SyncFailure::Xfs] {
        for seed in 0..50 {
            let mut m = Machine::new(seed, DiskProfile::default());
            let file = failed_sync(&mut m, failure);
            let new = [[b'o'; 512], [b'n'; 512], [b'n'; 512]].concat();
            assert_eq!(m.read(file, 0, 2000).unwrap(), new, "reads see the new bytes");
            assert_eq!(m.sync(file), Ok(()));
            let bytes = m.after_power_loss("f", 2000);
            // The second sync made the length durable, and the bytes of neither write.
            assert_eq!(bytes, [vec![b'o'; 1024], vec![0; 512]].concat());
        }
    }
}

#[test]
fn bytes_that_a_failed_sync_dropped_are_gone_once_they_are_evicted() {
    let mut m = Machine::plain();
    let file = failed_sync(&mut m, SyncFailure::Ext4Ordered);
    m.disk.evict(&mut m.ctx, "f").unwrap();
    assert_eq!(m.read(file, 0, 1024).unwrap(), [b'o'; 1024]);

    let rates = FaultRates { evict_ppm: ALWAYS_PPM, ..FaultRates::default() };
    let mut m = Machine::new(1, DiskProfile { rates, ..DiskProfile::default() });
    let file = failed_sync(&mut m, SyncFailure::Ext4Ordered);
    assert_eq!(m.read(file, 512, 512).unwrap(), [b'n'; 512]);
    m.open("f");
    assert_eq!(m.read(file, 0, 1024).unwrap(), [b'o'; 1024], "opening it again drew an eviction");
}

#[test]
fn a_write_to_a_page_takes_along_what_a_failed_sync_dropped_of_it() {
    let mut m = Machine::plain();
    let file = failed_sync(&mut m, SyncFailure::Ext4Ordered);
    m.write(file, 0, b"w").unwrap();
    assert_eq!(m.sync(file), Ok(()));
    let new = [vec![b'w'], vec![b'o'; 511], vec![b'n'; 1024]].concat();
    assert_eq!(m.after_power_loss("f", 2000), new);
}

#[test]
fn a_failed_sync_may_have_done_a_part() {
    let mut m = Machine::plain();
    let file = m.durable("f", &[b'o'; 2048]);
    m.write(file, 0, &[b'n'; 2048]).unwrap();
    m.place("on sync -> EIO, partial 2");
    assert_eq!(m.sync(file), Err(Errno::EIO));
    assert_eq!(m.after_power_loss("f", 4096), [[b'n'; 1024], [b'o'; 1024]].concat());

    let rates = FaultRates { sync_error_ppm: ALWAYS_PPM, ..FaultRates::default() };
    let mut seen = BTreeSet::new();
    for seed in 0..300 {
        let mut m = Machine::new(seed, DiskProfile::default());
        let file = m.durable("f", &[b'o'; 1024]);
        m.write(file, 0, &[b'n'; 1024]).unwrap();
        m.disk.reset_faults(rates);
        assert_eq!(m.sync(file), Err(Errno::EIO));
        let bytes = m.after_power_loss("f", 4096);
        seen.insert((bytes[0], bytes[512]));
    }
    assert_eq!(seen, BTreeSet::from([(b'o', b'o'), (b'o', b'n'), (b'n', b'o'), (b'n', b'n')]));
}

#[test]
fn a_failed_sync_of_ext4_with_data_journal_is_told_by_the_next_one() {
    let mut m = Machine::plain();
    let file = failed_sync(&mut m, SyncFailure::Ext4Data);
    assert_eq!(m.kinds(), [DamageKind::LyingSync]);
    assert_eq!(m.sync(file), Err(Errno::EIO));
    assert_eq!(m.sync(file), Ok(()));
    assert_eq!(m.after_power_loss("f", 1024), [b'o'; 1024]);
}

#[test]
fn a_failed_sync_of_btrfs_shows_the_old_bytes_and_length_at_once() {
    let mut m = Machine::plain();
    let file = failed_sync(&mut m, SyncFailure::Btrfs);
    assert_eq!(m.read(file, 0, 2000).unwrap(), [b'o'; 1024]);
    assert_eq!(m.sync(file), Ok(()));
    assert_eq!(m.after_power_loss("f", 2000), [b'o'; 1024]);

    let mut m = Machine::plain();
    let file = m.durable("f", &[b'o'; 1024]);
    m.write(file, 0, &[b'n'; 1024]).unwrap();
    m.place("on sync -> EIO, profile btrfs");
    let ticket = m.disk.sync_begin(&mut m.ctx, file, SyncKind::Data).unwrap();
    m.write(file, 512, &[b'l'; 512]).unwrap();
    assert_eq!(m.disk.sync_end(&mut m.ctx, ticket), Err(Errno::EIO));
    assert_eq!(m.read(file, 0, 2000).unwrap(), [[b'o'; 512], [b'l'; 512]].concat(), "a write during the sync stays");
}

#[test]
fn a_failed_sync_of_the_polite_profile_is_healed_by_the_next_one() {
    let mut m = Machine::plain();
    let file = failed_sync(&mut m, SyncFailure::Polite);
    assert_eq!(m.sync(file), Ok(()));
    assert_eq!(m.after_power_loss("f", 2000), [[b'o'; 512], [b'n'; 512], [b'n'; 512]].concat());
}

#[test]
fn an_error_of_a_sync_is_told_once_to_every_handle_that_was_open() {
    let mut m = Machine::plain();
    let other = m.open("f");
    let file = failed_sync(&mut m, SyncFailure::Xfs);
    let later = m.open("f");
    assert_eq!(m.sync(file), Ok(()));
    assert_eq!((m.sync(other), m.sync(other)), (Err(Errno::EIO), Ok(())));
    assert_eq!(m.sync(later), Ok(()));

    let mut m = Machine::plain();
    let file = failed_sync(&mut m, SyncFailure::Ext4Data);
    m.disk.close(&mut m.ctx, file);
    let later = m.open("f");
    assert_eq!((m.sync(later), m.sync(later)), (Err(Errno::EIO), Ok(())), "nobody was told before");
}

#[test]
fn a_failed_sync_of_a_directory_leaves_its_names_unsynced() {
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let mut m = Machine::new(seed, DiskProfile::default());
        m.place("on dir-sync -> EIO");
        m.open("f");
        assert_eq!(m.sync_dir("/"), Err(Errno::EIO));
        m.power_loss();
        seen.insert(m.disk.exists(&mut m.ctx, "f"));
    }
    assert_eq!(seen, BTreeSet::from([Ok(false), Ok(true)]));
}

#[test]
fn a_sticky_read_error_stays_until_the_sector_is_overwritten() {
    let mut m = Machine::plain();
    m.place("on read #1 -> EIO, sticky");
    m.durable("f", &[b'a'; 1024]);
    let file = m.open("f");
    for _ in 0..3 {
        assert_eq!(m.read(file, 512, 100), Err(Errno::EIO));
    }
    assert_eq!(m.read(file, 0, 512).unwrap(), [b'a'; 512]);
    assert_eq!(m.disk.damage(), [Damage { kind: DamageKind::LatentError, path: "f".into(), offset: 512, len: 512 }]);
    m.power_loss();
    let file = m.open("f");
    assert_eq!(m.read(file, 512, 100), Err(Errno::EIO));
    assert_eq!(m.write(file, 600, b"part"), Err(Errno::EIO), "the rest of the sector cannot be read");
    m.write(file, 512, &[b'b'; 512]).unwrap();
    assert_eq!(m.read(file, 0, 1024).unwrap(), [[b'a'; 512], [b'b'; 512]].concat());
}

#[test]
fn a_full_disk_refuses_and_recovers() {
    let mut m = Machine::new(1, DiskProfile { capacity_bytes: 3 * 4096, ..DiskProfile::default() });
    let (file, other) = (m.open("f"), m.open("g"));
    assert_eq!(m.write(other, 0, b"x"), Ok(1));
    assert_eq!(m.write(file, 0, &[1; 5 * 4096]), Ok(2 * 4096), "what there is space for");
    assert_eq!(m.write(file, 2 * 4096, b"x"), Err(Errno::ENOSPC));
    assert_eq!(m.write(file, 4096, b"x"), Ok(1), "an overwrite takes no space");
    assert_eq!(m.disk.disk_usage().available, 0);
    assert_eq!(m.disk.preallocate(&mut m.ctx, file, 3 * 4096), Err(Errno::ENOSPC));
    assert_eq!(m.disk.len(file), Ok(2 * 4096));
    assert_eq!(m.disk.zero_range(&mut m.ctx, file, 4096, 8192), Err(Errno::ENOSPC));
    assert_eq!(m.read(file, 4096, 1).unwrap(), [0], "a part of it was done");

    m.disk.remove_file(&mut m.ctx, "g").unwrap();
    assert_eq!(m.write(file, 2 * 4096, b"x"), Err(Errno::ENOSPC), "an open file keeps its space");
    m.disk.close(&mut m.ctx, other);
    assert_eq!(m.write(file, 2 * 4096, b"x"), Ok(1));
    assert_eq!(m.write(file, 3 * 4096, b"x"), Err(Errno::ENOSPC));
    m.disk.set_len(&mut m.ctx, file, 4096).unwrap();
    assert_eq!(m.disk.disk_usage().available, 2 * 4096);
    m.disk.set_capacity(4096);
    assert_eq!((m.disk.disk_usage().available, m.write(file, 4096, b"x")), (0, Err(Errno::ENOSPC)));
    m.disk.set_capacity(1 << 20);
    assert_eq!(m.write(file, 4096, b"x"), Ok(1));
    assert_eq!(m.disk.disk_usage().available, (1 << 20) - 2 * 4096);
}

#[test]
fn space_is_counted_alike_after_a_power_loss() {
    for seed in 0..50 {
        let mut m = Machine::new(seed, DiskProfile { capacity_bytes: 1 << 20, ..DiskProfile::default() });
        let file = m.durable("f", &[1; 9000]);
        m.write(file, 20_000, b"x").unwrap();
        m.disk.set_len(&mut m.ctx, file, 4000).unwrap();
        m.open("g");
        m.power_loss();
        let file = m.open("f");
        m.disk.set_len(&mut m.ctx, file, 0).unwrap();
        assert_eq!(m.disk.disk_usage().available, 1 << 20);
    }
}

#[test]
fn rot_is_the_same_on_every_read_and_is_listed() {
    let mut hit = BTreeSet::new();
    for seed in 0..100 {
        let mut m = Machine::new(seed, DiskProfile::default());
        let file = m.durable("f", &[b'a'; 1500]);
        let damage = m.disk.rot(&mut m.ctx, Actor::RUN, "/").unwrap().unwrap();
        assert_eq!((damage.kind, damage.path.as_str()), (DamageKind::Rot, "f"));
        let bytes = m.read(file, 0, 2000).unwrap();
        let changed: Vec<u64> = (0..1500).filter(|n| bytes[*n as usize] != b'a').collect();
        let listed = damage.offset..damage.offset + damage.len;
        assert!(changed.iter().all(|n| listed.contains(n)));
        assert!(listed.start / 512 == (listed.end - 1) / 512, "one sector");
        assert_eq!(m.read(file, 0, 2000).unwrap(), bytes);
        assert_eq!(m.after_power_loss("f", 2000), bytes);
        hit.extend((!changed.is_empty()).then_some(listed.start / 512));
    }
    assert_eq!(hit, BTreeSet::from([0, 1, 2]));
    let mut m = Machine::plain();
    assert_eq!(m.disk.rot(&mut m.ctx, Actor::RUN, "/"), Ok(None));
    assert_eq!(m.disk.rot(&mut m.ctx, Actor::RUN, "/none"), Err(Errno::ENOENT));
}

#[test]
fn a_lying_sync_makes_nothing_durable() {
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let mut m = Machine::new(seed, DiskProfile::default());
        let file = m.durable("f", &[b'o'; 512]);
        m.place("on sync #1 -> lie");
        m.write(file, 0, &[b'n'; 512]).unwrap();
        assert_eq!(m.sync(file), Ok(()));
        assert_eq!(m.disk.damage(), [Damage { kind: DamageKind::LyingSync, path: "f".into(), offset: 0, len: 512 }]);
        seen.insert(m.after_power_loss("f", 1)[0]);
    }
    assert_eq!(seen, BTreeSet::from([b'n', b'o']));
}

#[test]
fn a_lost_write_is_seen_until_the_power_is_lost() {
    let mut m = Machine::plain();
    let file = m.durable("f", &[b'o'; 1024]);
    m.place("on sync #1 -> lose");
    m.write(file, 512, &[b'n'; 100]).unwrap();
    assert_eq!(m.sync(file), Ok(()));
    assert_eq!(m.disk.damage(), [Damage { kind: DamageKind::LostWrite, path: "f".into(), offset: 512, len: 100 }]);
    assert_eq!(m.read(file, 512, 100).unwrap(), [b'n'; 100]);
    assert_eq!(m.after_power_loss("f", 2000), [b'o'; 1024]);
}

#[test]
fn a_misdirected_write_lands_on_the_place_of_another() {
    let (mut swapped, mut elsewhere) = (0, 0);
    for seed in 0..50 {
        let mut m = Machine::new(seed, DiskProfile::default());
        let file = m.durable("f", &[b'o'; 2048]);
        m.place("on sync #1 -> misdirect");
        m.write(file, 0, &[b'x'; 512]).unwrap();
        m.write(file, 1024, &[b'y'; 512]).unwrap();
        assert_eq!(m.sync(file), Ok(()));
        let [from, to] = m.disk.damage() else { panic!("the place it came from, and where it went") };
        let (from, to) = (from.offset as usize, to.offset as usize);
        let bytes = m.after_power_loss("f", 4096);
        let strayed = if from == 0 { b'x' } else { b'y' };
        assert_eq!(bytes[to..to + 512], [strayed; 512]);
        if from != to {
            assert_eq!(bytes[from..from + 512], [b'o'; 512]);
        }
        if from + to == 1024 { swapped += 1 } else { elsewhere += 1 }
    }
    assert!(swapped > 0 && elsewhere > 0);
}

#[test]
fn every_rate_has_its_effect_and_a_rate_of_zero_draws_nothing() {
    type Check = (fn(&mut FaultRates, u32), FaultPoint, Result<(), Errno>, Option<DamageKind>);
    let checks: [Check; 11] = [
        (|rates, ppm| rates.open_error_ppm = ppm, FaultPoint::Open, Err(Errno::EIO), None),
        (|rates, ppm| rates.name_error_ppm = ppm, FaultPoint::Create, Err(Errno::EIO), None),
        (|rates, ppm| rates.name_error_ppm = ppm, FaultPoint::Rename, Err(Errno::EIO), None),
        (|rates, ppm| rates.read_error_ppm = ppm, FaultPoint::Read, Err(Errno::EIO), None),
        (|rates, ppm| rates.write_error_ppm = ppm, FaultPoint::Write, Err(Errno::EIO), None),
        (|rates, ppm| rates.no_space_ppm = ppm, FaultPoint::Space, Err(Errno::ENOSPC), None),
        (|rates, ppm| rates.sync_error_ppm = ppm, FaultPoint::Sync, Err(Errno::EIO), None),
        (|rates, ppm| rates.dir_sync_error_ppm = ppm, FaultPoint::DirSync, Err(Errno::EIO), None),
        (|rates, ppm| rates.latent_error_ppm = ppm, FaultPoint::Read, Err(Errno::EIO), Some(DamageKind::LatentError)),
        (|rates, ppm| rates.lying_sync_ppm = ppm, FaultPoint::Sync, Ok(()), Some(DamageKind::LyingSync)),
        (|rates, ppm| rates.lost_write_ppm = ppm, FaultPoint::Sync, Ok(()), Some(DamageKind::LostWrite)),
    ];
    for (set, point, outcome, damage) in checks {
        let mut m = with_dir(DiskProfile::default());
        let mut rates = FaultRates::default();
        set(&mut rates, ALWAYS_PPM);
        m.disk.reset_faults(rates);
        assert_eq!(operate(&mut m, point), outcome, "{}", point.name());
        assert_eq!(m.kinds().first().copied(), damage, "{}", point.name());
        assert!(m.ctx.choices.take_recorded().iter().any(|choice| choice.key.family == Family::Fault));
    }
    let mut m = with_dir(DiskProfile::default());
    for point in FaultPoint::ALL {
        operate(&mut m, *point).ok();
    }
    assert!(m.ctx.choices.take_recorded().is_empty());

    let short = |set: fn(&mut FaultRates)| {
        let mut rates = FaultRates::default();
        set(&mut rates);
        (0..50).map(move |seed| {
            let mut m = Machine::new(seed, DiskProfile { rates, ..DiskProfile::default() });
            let file = m.open("f");
            let written = m.write(file, 0, &[1; 100]).unwrap();
            (written, m.read(file, 0, 100).unwrap().len())
        })
    };
    assert!(short(|rates| rates.write_short_ppm = ALWAYS_PPM).any(|(written, _)| (1..100).contains(&written)));
    assert!(short(|rates| rates.read_short_ppm = ALWAYS_PPM).any(|(_, read)| (1..100).contains(&read)));

    let rates = FaultRates { rot_ppm: ALWAYS_PPM, ..FaultRates::default() };
    let mut m = Machine::new(1, DiskProfile { rates, ..DiskProfile::default() });
    m.durable("f", &[1; 100]);
    m.power_loss();
    assert_eq!(m.kinds(), [DamageKind::Rot]);
}

#[test]
fn others_change_files_durably() {
    let mut m = Machine::plain();
    let file = m.durable("f", &[b'a'; 1024]);
    m.write(file, 0, &[b'b'; 512]).unwrap();
    m.disk.poke(&mut m.ctx, "f", 510, b"pppp").unwrap();
    let mut durable = [0; 6];
    assert_eq!(m.disk.peek("f", 509, &mut durable), Ok(6));
    assert_eq!(&durable, b"appppa");
    assert_eq!(m.read(file, 509, 6).unwrap(), b"bbbppa", "an unsynced sector hides it");

    m.disk.damage_len(&mut m.ctx, "f", 512).unwrap();
    assert_eq!(m.after_power_loss("f", 2000).len(), 512);
    m.disk.damage_replace(&mut m.ctx, "f", b"older").unwrap();
    m.disk.damage_replace(&mut m.ctx, "unknown", b"new").unwrap();
    assert_eq!(m.after_power_loss("f", 2000), b"older");
    assert_eq!(m.after_power_loss("unknown", 2000), b"new");
    m.disk.damage_remove(&mut m.ctx, "f").unwrap();
    m.power_loss();
    assert_eq!(m.disk.exists(&mut m.ctx, "f"), Ok(false));
    assert!(m.kinds().iter().all(|kind| *kind == DamageKind::Outside));
    assert_eq!(m.kinds().len(), 5);
    assert_eq!(m.disk.poke(&mut m.ctx, "f", 0, b"x"), Err(Errno::ENOENT));
    assert_eq!(m.disk.poke(&mut m.ctx, "/", 0, b"x"), Err(Errno::EISDIR));
}

#[test]
fn a_file_has_a_longest_length_and_a_disk_a_number_of_handles() {
    let mut m = Machine::new(1, DiskProfile { handles_max: 2, ..DiskProfile::default() });
    let file = m.open("f");
    let longest = (1 << 44) - 4096;
    assert_eq!(m.write(file, longest, b"x"), Err(Errno::EFBIG));
    assert_eq!(m.write(file, longest - 1, b"xy"), Ok(1));
    assert_eq!(m.disk.set_len(&mut m.ctx, file, longest + 1), Err(Errno::EFBIG));
    assert_eq!(m.disk.preallocate(&mut m.ctx, file, longest + 1), Err(Errno::EFBIG));
    m.open("g");
    assert_eq!(m.try_open("h", OpenOptions::CREATE), Err(Errno::ENFILE));
    m.disk.close(&mut m.ctx, file);
    assert!(m.try_open("h", OpenOptions::CREATE).is_ok());
}

#[test]
fn two_runs_of_a_seed_have_one_digest() {
    let run = |seed: u64| {
        let rates = FaultRates {
            read_error_ppm: 100_000,
            write_short_ppm: 100_000,
            sync_error_ppm: 100_000,
            rot_ppm: 500_000,
            ..FaultRates::default()
        };
        let file_system = FileSystem::WEAK_POSIX;
        let mut m = Machine::new(seed, DiskProfile { rates, file_system, ..DiskProfile::default() });
        for round in 0..5 {
            let file = m.open("f");
            for n in 0..20 {
                m.write(file, n * 100, &[round; 158]).unwrap();
                m.sync(file).ok();
                m.read(file, 0, 500).ok();
            }
            m.disk.rename(&mut m.ctx, "f", "g").unwrap();
            m.power_loss();
        }
        (m.ctx.recorder.digest(), m.disk.fingerprint())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}
