//! Reach of the simulated disk: small scenarios, each with the full list of its legal outcomes, worked out here by hand or by
//! rules of their own. Over many seeds each outcome must be seen, and no other; and the enumeration must find just these.

use std::collections::BTreeSet;

use stormlog::env::OpenOptions;
use stormlog_sim::choices::{Actor, Overrides};
use stormlog_sim::context::Context;
use stormlog_sim::disk::profile::{FileSystem, GrowthFill, RenameOrder};
use stormlog_sim::disk::{Disk, DiskProfile, Errno, Handle, Owner, SyncKind};

const OWNER: Owner = Owner(1);
const SECTOR: usize = 512;

/// A machine with one disk.
struct Machine {
    ctx: Context,
    disk: Disk,
}

impl Machine {
    fn new(seed: u64, profile: &DiskProfile) -> Self {
        Self { ctx: Context::new(seed, Overrides::new(), false, false), disk: Disk::new(profile.clone()) }
    }

    fn open(&mut self, path: &str) -> Handle {
        self.disk.open(&mut self.ctx, OWNER, path, OpenOptions::CREATE).unwrap()
    }

    fn write(&mut self, handle: Handle, offset: u64, bytes: &[u8]) {
        assert_eq!(self.disk.write_at(&mut self.ctx, handle, bytes, offset), Ok(bytes.len()));
    }

    fn sync(&mut self, handle: Handle) {
        self.try_sync(handle).unwrap();
    }

    fn try_sync(&mut self, handle: Handle) -> Result<(), Errno> {
        let ticket = self.disk.sync_begin(&mut self.ctx, handle, SyncKind::Data)?;
        self.disk.sync_end(&mut self.ctx, ticket)
    }

    fn sync_dir(&mut self, path: &str) {
        let ticket = self.disk.sync_dir_begin(&mut self.ctx, path).unwrap();
        self.disk.sync_end(&mut self.ctx, ticket).unwrap();
    }

    /// A file that is durable under its name.
    fn durable(&mut self, path: &str, bytes: &[u8]) -> Handle {
        let handle = self.open(path);
        self.write(handle, 0, bytes);
        self.sync(handle);
        self.sync_dir("/");
        handle
    }
}

/// What a disk holds: every path with its bytes, directories with a slash.
fn contents(disk: &mut Disk, ctx: &mut Context, dir: &str, into: &mut Vec<(String, Vec<u8>)>) {
    for entry in disk.list_dir(ctx, dir).unwrap() {
        let path = if dir == "/" { entry.name } else { format!("{dir}/{}", entry.name) };
        if entry.is_dir {
            into.push((format!("{path}/"), Vec::new()));
            contents(disk, ctx, &path, into);
            continue;
        }
        let handle = disk.open(ctx, OWNER, &path, OpenOptions::READ).unwrap();
        let mut bytes = vec![0; entry.len as usize];
        assert_eq!(disk.read_at(ctx, handle, &mut bytes, 0), Ok(bytes.len()));
        disk.close(ctx, handle);
        into.push((path, bytes));
    }
}

/// A file as a word: a letter for each sector of one byte, `.` for zeros, `?` for a mix.
fn word(bytes: &[u8]) -> String {
    let letter = |sector: &[u8]| match sector[0] {
        byte if sector.iter().any(|other| *other != byte) => '?',
        0 => '.',
        byte => char::from(byte),
    };
    bytes.chunks(SECTOR).map(letter).collect()
}

fn words(disk: &mut Disk, ctx: &mut Context) -> String {
    let mut all = Vec::new();
    contents(disk, ctx, "/", &mut all);
    all.iter().map(|(path, bytes)| format!("{path}={}", word(bytes))).collect::<Vec<_>>().join(" ")
}

fn sectors(word: &str) -> Vec<u8> {
    word.bytes().flat_map(|byte| [if byte == b'.' { 0 } else { byte }; SECTOR]).collect()
}

fn profile(file_system: FileSystem) -> DiskProfile {
    DiskProfile { file_system, ..DiskProfile::default() }
}

/// Zeros where a file grew, else the weakest.
fn weak() -> DiskProfile {
    profile(FileSystem { growth: GrowthFill::Zeros, rename: RenameOrder::Atomic, ..FileSystem::WEAK_POSIX })
}

/// All outcomes of a scenario, by power loss, by crash image and by enumeration.
fn reached(profile: &DiskProfile, seeds: u64, scenario: impl Fn(&mut Machine)) -> [BTreeSet<String>; 3] {
    let (mut lost, mut imaged) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..seeds {
        let mut machine = Machine::new(seed, profile);
        scenario(&mut machine);
        let Machine { mut ctx, mut disk } = machine;
        let before = words(&mut disk, &mut ctx);
        let mut image = disk.crash_image(&mut ctx, Actor::RUN.child("image", 0));
        imaged.insert(words(&mut image, &mut ctx));
        assert_eq!(words(&mut disk, &mut ctx), before, "an image changes nothing");
        disk.power_loss(&mut ctx, Actor::RUN.child("crash", 0));
        let after = words(&mut disk, &mut ctx);
        disk.power_loss(&mut ctx, Actor::RUN.child("crash", 1));
        assert_eq!(words(&mut disk, &mut ctx), after, "what a crash left is durable");
        lost.insert(after);
    }
    let mut machine = Machine::new(0, profile);
    scenario(&mut machine);
    let images = machine.disk.enumerate_images(100_000).expect("a small scenario");
    let enumerated = images.into_iter().map(|mut image| words(&mut image, &mut machine.ctx)).collect();
    [lost, imaged, enumerated]
}

#[track_caller]
fn expect<S: Into<String>>(profile: &DiskProfile, scenario: impl Fn(&mut Machine), legal: impl IntoIterator<Item = S>) {
    let legal: BTreeSet<String> = legal.into_iter().map(Into::into).collect();
    let seeds = 200 + 150 * legal.len() as u64;
    for (by, reached) in ["power loss", "crash image", "enumeration"].iter().zip(reached(profile, seeds, scenario)) {
        let missing: Vec<_> = legal.difference(&reached).collect();
        let illegal: Vec<_> = reached.difference(&legal).collect();
        assert!(missing.is_empty() && illegal.is_empty(), "by {by}: missing {missing:?}, illegal {illegal:?}");
    }
}

/// All words with one of the letters at each place.
fn mixes(places: &[&str]) -> Vec<String> {
    places.iter().fold(vec![String::new()], |words, letters| {
        words.iter().flat_map(|word| letters.chars().map(move |letter| format!("{word}{letter}"))).collect()
    })
}

#[test]
fn s1_each_sector_of_an_overwrite_is_old_or_new() {
    let scenario = |m: &mut Machine| {
        let file = m.durable("f", &sectors("aaaa"));
        m.write(file, 0, &sectors("bbbb"));
    };
    expect(&weak(), scenario, mixes(&["ab"; 4]).iter().map(|word| format!("f={word}")));
}

#[test]
fn a_sector_overwritten_twice_holds_any_of_three_versions() {
    let scenario = |m: &mut Machine| {
        let file = m.durable("f", &sectors("aaa"));
        m.write(file, 0, &sectors("bbb"));
        m.write(file, 0, &sectors("ccc"));
    };
    expect(&weak(), scenario, mixes(&["abc"; 3]).iter().map(|word| format!("f={word}")));
}

#[test]
fn a_completed_sync_takes_the_older_versions_away() {
    let scenario = |m: &mut Machine| {
        let file = m.durable("f", &sectors("aa"));
        m.write(file, 0, &sectors("b"));
        m.sync(file);
        m.write(file, 0, &sectors("cc"));
    };
    expect(&weak(), scenario, ["f=ba", "f=bc", "f=ca", "f=cc"]);
}

#[test]
fn s2_two_renames_by_order_of_names() {
    let scenario = |m: &mut Machine| {
        m.durable("a", &sectors("1"));
        m.durable("b", &sectors("2"));
        m.disk.rename(&mut m.ctx, "a", "c").unwrap();
        m.disk.rename(&mut m.ctx, "b", "d").unwrap();
    };
    let journal = ["a=1 b=2", "b=2 c=1", "c=1 d=2"];
    expect(&profile(FileSystem::EXT4_ORDERED), scenario, journal);
    expect(&weak(), scenario, journal.into_iter().chain(["a=1 d=2"]));
}

#[test]
fn s3_a_file_renamed_then_synced_by_its_new_name_is_there() {
    let scenario = |m: &mut Machine| {
        let before = m.open("tmp");
        m.write(before, 0, &sectors("ab"));
        m.disk.rename(&mut m.ctx, "tmp", "final").unwrap();
        let after = m.open("final");
        m.sync(after);
        m.sync_dir("/");
        m.sync(before);
    };
    expect(&weak(), scenario, ["final=ab"]);
}
