//! Reach of the simulated disk: small scenarios, each with the full list of its legal outcomes, worked out here by hand or by
//! rules of their own. Over many seeds each outcome must be seen, and no other; and the enumeration must find just these.

use std::collections::BTreeSet;

use stormlog::env::OpenOptions;
use stormlog_sim::choices::{Actor, ChoiceKey, Family, Overrides};
use stormlog_sim::context::Context;
use stormlog_sim::disk::profile::{CrashProfile, FileSystem, GrowthFill, LengthOrder, NameOrder, RenameOrder};
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

/// A file as a word: a letter for each sector of one byte, `.` for zeros, `?` for a mix, `'` behind a part of a sector.
fn word(bytes: &[u8]) -> String {
    let letter = |sector: &[u8]| match sector[0] {
        byte if sector.iter().any(|other| *other != byte) => '?',
        0 => '.',
        byte => char::from(byte),
    };
    let part = if bytes.len().is_multiple_of(SECTOR) { None } else { Some('\'') };
    bytes.chunks(SECTOR).map(letter).chain(part).collect()
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

#[test]
fn a_synced_file_keeps_its_name_only_where_the_file_system_says_so() {
    let scenario = |m: &mut Machine| {
        let file = m.open("f");
        m.write(file, 0, &sectors("a"));
        m.sync(file);
    };
    expect(&weak(), scenario, ["", "f=a"]);
    expect(&profile(FileSystem::EXT4_ORDERED), scenario, ["f=a"]);
}

#[test]
fn length_and_data_are_kept_apart() {
    let scenario = |m: &mut Machine| {
        let file = m.durable("f", &sectors("a"));
        m.write(file, 512, &sectors("b"));
        m.write(file, 1024, &sectors("c"));
    };
    expect(&weak(), scenario, ["f=a", "f=a.", "f=ab", "f=a..", "f=ab.", "f=a.c", "f=abc"]);
    let after_data = FileSystem { length: LengthOrder::AfterData, ..weak().file_system };
    expect(&profile(after_data), scenario, ["f=a", "f=ab", "f=abc"]);
}

#[test]
fn a_length_set_is_kept_or_not() {
    let scenario = |m: &mut Machine| {
        let file = m.durable("f", &sectors("a"));
        m.disk.preallocate(&mut m.ctx, file, 1024).unwrap();
        m.disk.set_len(&mut m.ctx, file, 1536).unwrap();
    };
    expect(&weak(), scenario, ["f=a", "f=a.", "f=a.."]);
}

#[test]
fn a_truncation_takes_what_was_behind_it_or_never_was() {
    let scenario = |m: &mut Machine| {
        let file = m.durable("f", &sectors("aa"));
        m.disk.set_len(&mut m.ctx, file, 0).unwrap();
        m.write(file, 0, &sectors("b"));
    };
    expect(&weak(), scenario, ["f=aa", "f=", "f=.", "f=b"]);
}

#[test]
fn a_truncation_inside_a_sector_shows_no_old_bytes_again() {
    let scenario = |m: &mut Machine| {
        let file = m.durable("f", &sectors("a"));
        m.disk.set_len(&mut m.ctx, file, 256).unwrap();
        m.disk.set_len(&mut m.ctx, file, 512).unwrap();
    };
    // `?` is half a sector of `a`, with the new length and, as the zeroed half may be on disk before the truncation is,
    // with the old one.
    expect(&weak(), scenario, ["f=a", "f=?", "f=a'"]);
}

#[test]
fn a_sync_in_flight_promises_nothing() {
    let scenario = |m: &mut Machine| {
        let file = m.durable("f", &sectors("aa"));
        m.write(file, 0, &sectors("bb"));
        let _in_flight = m.disk.sync_begin(&mut m.ctx, file, SyncKind::Data).unwrap();
    };
    expect(&weak(), scenario, ["f=aa", "f=ab", "f=ba", "f=bb"]);
}

#[test]
fn a_sync_covers_what_was_written_before_it_began() {
    let scenario = |m: &mut Machine| {
        let file = m.durable("f", &sectors("aa"));
        m.write(file, 0, &sectors("bb"));
        let ticket = m.disk.sync_begin(&mut m.ctx, file, SyncKind::Data).unwrap();
        m.write(file, 512, &sectors("c"));
        m.disk.sync_end(&mut m.ctx, ticket).unwrap();
    };
    expect(&weak(), scenario, ["f=bb", "f=bc"]);
}

#[test]
fn zeros_over_a_range_are_a_version_like_any_other() {
    let scenario = |m: &mut Machine| {
        let file = m.durable("f", &sectors("aaa"));
        m.disk.zero_range(&mut m.ctx, file, 0, 1024).unwrap();
        m.write(file, 512, &sectors("b"));
    };
    expect(&weak(), scenario, mixes(&["a.", "a.b", "a"]).iter().map(|word| format!("f={word}")));
}

#[test]
fn an_unsynced_file_that_is_removed_leaves_nothing_but_itself() {
    let scenario = |m: &mut Machine| {
        let file = m.open("f");
        m.write(file, 0, &sectors("a"));
        m.disk.remove_file(&mut m.ctx, "f").unwrap();
    };
    expect(&weak(), scenario, ["", "f=", "f=.", "f=a"]);
}

#[test]
fn a_removed_file_comes_back_until_its_directory_is_synced() {
    let remove = |m: &mut Machine| {
        let file = m.durable("f", &sectors("a"));
        m.disk.remove_file(&mut m.ctx, "f").unwrap();
        m.disk.close(&mut m.ctx, file);
    };
    expect(&weak(), remove, ["", "f=a"]);
    expect(
        &weak(),
        |m: &mut Machine| {
            remove(m);
            m.sync_dir("/");
        },
        [""],
    );
}

#[test]
fn a_lost_directory_takes_along_what_is_in_it() {
    let scenario = |m: &mut Machine| {
        m.disk.create_dir(&mut m.ctx, "d").unwrap();
        let file = m.open("d/f");
        m.write(file, 0, &sectors("a"));
        m.sync(file);
        m.sync_dir("d");
    };
    expect(&weak(), scenario, ["", "d/= d/f=a"]);
}

#[test]
fn a_removed_directory_that_is_synced_needs_no_sync_of_what_was_in_it() {
    let scenario = |m: &mut Machine| {
        m.disk.create_dir(&mut m.ctx, "d").unwrap();
        m.sync_dir("/");
        let file = m.open("d/f");
        m.sync(file);
        m.sync_dir("d");
        m.disk.close(&mut m.ctx, file);
        m.disk.remove_file(&mut m.ctx, "d/f").unwrap();
        m.disk.remove_dir(&mut m.ctx, "d").unwrap();
        m.sync_dir("/");
        assert_eq!(m.disk.unsynced(), (0, 0), "nobody could sync the names in it any more");
    };
    expect(&weak(), scenario, [""]);
}

#[test]
fn a_rename_over_a_file_by_order_of_renames() {
    let durable = |m: &mut Machine| {
        m.durable("a", &sectors("1"));
        m.durable("b", &sectors("2"));
        m.disk.rename(&mut m.ctx, "a", "b").unwrap();
    };
    expect(&weak(), durable, ["a=1 b=2", "b=1"]);
    let split = FileSystem { rename: RenameOrder::Split, ..weak().file_system };
    expect(&profile(split), durable, ["a=1 b=2", "a=1", "a=1 b=1", "b=2", "", "b=1"]);

    let unsynced = |m: &mut Machine| {
        m.durable("b", &sectors("2"));
        let file = m.open("a");
        m.write(file, 0, &sectors("1"));
        m.disk.rename(&mut m.ctx, "a", "b").unwrap();
    };
    let before = ["b=2", "a= b=2", "a=. b=2", "a=1 b=2"];
    expect(&weak(), unsynced, before.into_iter().chain(["b=", "b=.", "b=1"]));
    let ordered = FileSystem { rename: RenameOrder::Ordered, ..weak().file_system };
    expect(&profile(ordered), unsynced, before.into_iter().chain(["b=1"]));
}

#[test]
fn names_that_build_on_each_other_stay_in_order() {
    let scenario = |m: &mut Machine| {
        m.durable("a", &sectors("1"));
        m.disk.rename(&mut m.ctx, "a", "b").unwrap();
        m.disk.create_dir(&mut m.ctx, "a").unwrap();
        m.disk.create_dir(&mut m.ctx, "c").unwrap();
    };
    expect(&weak(), scenario, ["a=1", "b=1", "a/= b=1", "a=1 c/=", "b=1 c/=", "a/= b=1 c/="]);
    let journal = FileSystem { names: NameOrder::Journal, ..weak().file_system };
    expect(&profile(journal), scenario, ["a=1", "b=1", "a/= b=1", "a/= b=1 c/="]);
}

#[test]
fn the_sync_of_one_directory_leaves_another_alone() {
    let scenario = |m: &mut Machine| {
        for dir in ["d", "e"] {
            m.disk.create_dir(&mut m.ctx, dir).unwrap();
        }
        m.sync_dir("/");
        m.disk.create_dir(&mut m.ctx, "d/x").unwrap();
        m.disk.create_dir(&mut m.ctx, "e/y").unwrap();
        m.sync_dir("e");
    };
    expect(&weak(), scenario, ["d/= e/= e/y/=", "d/= d/x/= e/= e/y/="]);
}

#[test]
fn a_synced_name_takes_along_what_it_builds_on() {
    let scenario = |m: &mut Machine| {
        m.disk.create_dir(&mut m.ctx, "d").unwrap();
        m.sync_dir("/");
        let file = m.open("d/x");
        m.write(file, 0, &sectors("1"));
        m.sync(file);
        m.disk.rename(&mut m.ctx, "d/x", "y").unwrap();
        m.sync_dir("/");
    };
    expect(&weak(), scenario, ["d/= y=1"]);
}

#[test]
fn each_file_goes_its_own_way() {
    let scenario = |m: &mut Machine| {
        for path in ["f", "g"] {
            let file = m.durable(path, &sectors("a"));
            m.write(file, 0, &sectors("b"));
        }
    };
    expect(&weak(), scenario, ["f=a g=a", "f=a g=b", "f=b g=a", "f=b g=b"]);
}

/// Outcomes of power loss alone, where an enumeration does not go.
fn lost(profile: &DiskProfile, seeds: u64, scenario: impl Fn(&mut Machine), mut see: impl FnMut(&[u8])) {
    for seed in 0..seeds {
        let mut machine = Machine::new(seed, profile);
        scenario(&mut machine);
        let Machine { mut ctx, mut disk } = machine;
        disk.power_loss(&mut ctx, Actor::RUN);
        let mut all = Vec::new();
        contents(&mut disk, &mut ctx, "/", &mut all);
        let [(_, bytes)] = &all[..] else { panic!("one file, not {all:?}") };
        see(bytes);
    }
}

#[test]
fn growth_shows_zeros_garbage_or_old_bytes_and_only_there() {
    let profile = profile(FileSystem { growth: GrowthFill::Anything, ..weak().file_system });
    let scenario = |m: &mut Machine| {
        let old = m.durable("old", &sectors("xxxxxxxx"));
        m.disk.remove_file(&mut m.ctx, "old").unwrap();
        m.disk.close(&mut m.ctx, old);
        m.sync_dir("/");
        let file = m.durable("f", &[b'a'; 256]);
        m.write(file, 256, &[b'b'; 256 + 512]);
    };
    let mut seen = BTreeSet::new();
    lost(&profile, 3000, scenario, |bytes| {
        assert!(bytes[..256] == [b'a'; 256], "a durable byte changed");
        assert!([256, 1024].contains(&bytes.len()));
        for part in [256..512, 512..1024] {
            let Some(part) = bytes.get(part) else { continue };
            let all = |byte: u8| part.iter().all(|other| *other == byte);
            let kind = ["zeros", "old", "new"].into_iter().zip([0, b'x', b'b']).find(|(_, byte)| all(*byte));
            seen.insert((part.len(), kind.map_or("garbage", |(kind, _)| kind)));
        }
    });
    let want = [256, 512].into_iter().flat_map(|len| ["zeros", "old", "new", "garbage"].map(|kind| (len, kind)));
    assert_eq!(seen, want.collect());
}

/// Both halves of a torn sector and the byte it is torn at, if it is torn.
fn tear(sector: &[u8]) -> Option<(u8, u8, usize)> {
    let split = sector.iter().position(|byte| *byte != sector[0])?;
    let right = sector[split];
    assert!(sector[split..].iter().all(|byte| *byte == right), "torn in one place");
    Some((sector[0], right, split))
}

#[test]
fn a_sector_is_torn_only_where_the_profile_says_so() {
    let scenario = |m: &mut Machine| {
        let file = m.durable("f", &sectors("a"));
        m.write(file, 0, &sectors("b"));
    };
    let crash = CrashProfile { torn_sector_ppm: 500_000, ..CrashProfile::default() };
    let mut seen = BTreeSet::new();
    lost(&DiskProfile { crash, ..weak() }, 2000, scenario, |bytes| {
        seen.extend(tear(bytes).map(|(left, right, split)| (left, right, split / 128)));
    });
    let want = [(b'a', b'b'), (b'b', b'a')].into_iter().flat_map(|(l, r)| (0..4).map(move |part| (l, r, part)));
    assert_eq!(seen, want.collect());
    lost(&weak(), 500, scenario, |bytes| assert_eq!(tear(bytes), None));
}

#[test]
fn a_copy_into_a_region_may_reach_the_disk_in_the_middle() {
    let scenario = |m: &mut Machine| {
        let file = m.durable("f", &sectors("a"));
        let region = m.disk.region_open(&mut m.ctx, file, 0, 512).unwrap();
        m.disk.region_write(&mut m.ctx, region, 0, &sectors("b")).unwrap();
    };
    let (mut torn, mut whole) = (0, BTreeSet::new());
    lost(&weak(), 1000, scenario, |bytes| match tear(bytes) {
        Some(_) => torn += 1,
        None => _ = whole.insert(bytes[0]),
    });
    assert!(torn > 0 && whole == BTreeSet::from([b'a', b'b']));
}

#[test]
fn garbage_touches_only_bytes_that_a_write_changed() {
    let scenario = |m: &mut Machine| {
        let file = m.durable("f", &sectors("a"));
        m.write(file, 100, &[b'b'; 100]);
    };
    let crash = CrashProfile { garbage_sector_ppm: 500_000, ..CrashProfile::default() };
    let mut garbage = 0;
    lost(&DiskProfile { crash, ..weak() }, 300, scenario, |bytes| {
        assert!(bytes[..100] == [b'a'; 100] && bytes[200..] == [b'a'; 312]);
        garbage += u32::from(!bytes[100..200].iter().all(|byte| [b'a', b'b'].contains(byte)));
    });
    assert!(garbage > 0);
}

#[test]
fn a_large_zeroed_range_is_lost_in_runs_and_holds_what_is_written_into_it() {
    const LEN: usize = 1 << 20;
    const AT: usize = 300 * SECTOR;
    let scenario = |m: &mut Machine| {
        let file = m.durable("f", &vec![b'a'; LEN]);
        m.disk.zero_range(&mut m.ctx, file, 100, LEN as u64 - 200).unwrap();
        m.write(file, AT as u64, &sectors("b"));
    };
    let mut seen = BTreeSet::new();
    lost(&weak(), 400, scenario, |bytes| {
        assert!(bytes[..100] == [b'a'; 100] && bytes[LEN - 100..] == [b'a'; 100]);
        let word = word(&bytes[SECTOR..LEN - SECTOR]);
        assert!(word.char_indices().all(|(index, letter)| "a.".contains(letter) || (letter == 'b' && index == 299)));
        let rest = [&word[..299], &word[300..]].concat();
        let zeroed = rest.matches('.').count();
        let spread = if zeroed == 0 {
            "none"
        } else if zeroed == rest.len() {
            "all"
        } else {
            "some"
        };
        seen.insert((spread, word.as_bytes()[299]));
    });
    let want = ["none", "some", "all"].into_iter().flat_map(|spread| b"a.b".map(|letter| (spread, letter)));
    assert_eq!(seen, want.collect());
}

#[test]
fn a_large_zeroed_range_costs_nothing_and_syncs() {
    const LEN: u64 = 64 << 20;
    let scenario = |m: &mut Machine| {
        let file = m.open("f");
        m.disk.zero_range(&mut m.ctx, file, 0, LEN).unwrap();
        m.sync(file);
        m.sync_dir("/");
        m.write(file, LEN - 512, &sectors("a"));
    };
    let mut seen = BTreeSet::new();
    lost(&weak(), 20, scenario, |bytes| {
        let (zeros, last) = bytes.split_at(LEN as usize - SECTOR);
        assert!(zeros.iter().all(|byte| *byte == 0));
        seen.insert(word(last));
    });
    assert_eq!(seen, BTreeSet::from([".".to_owned(), "a".to_owned()]));
}

/// A file's states since its last completed sync, kept whole: what the disk must never leave.
struct Snapshots {
    states: Vec<Vec<u8>>,
    first: usize,
}

impl Snapshots {
    fn now(&self) -> &[u8] {
        self.states.last().expect("one at least")
    }

    fn change(&mut self, change: impl FnOnce(&mut Vec<u8>)) {
        let mut next = self.now().to_vec();
        change(&mut next);
        self.states.push(next);
    }

    /// Whether a file may be this after a power loss: a length of some state, and each sector that of some state.
    fn allow(&self, bytes: &[u8]) -> bool {
        let states = &self.states[self.first..];
        let sector = |state: &[u8], at: usize, len: usize| {
            let mut sector = vec![0; len];
            let there = state.get(at..state.len().min(at + len)).unwrap_or_default();
            sector[..there.len()].copy_from_slice(there);
            sector
        };
        let of_some_state = |(index, found): (usize, &[u8])| {
            states.iter().any(|state| sector(state, index * SECTOR, found.len()) == found)
        };
        states.iter().any(|state| state.len() == bytes.len()) && bytes.chunks(SECTOR).enumerate().all(of_some_state)
    }
}

#[test]
fn no_crash_of_a_random_run_shows_what_never_was() {
    const LEN_MAX: u64 = 100_000;
    let mut images = 0;
    for seed in 0..300 {
        let mut m = Machine::new(seed, &weak());
        let random = |bound: u64, m: &mut Machine| {
            let stream = m.ctx.stream(Family::Workload, Actor::RUN);
            m.ctx.below(stream, bound)
        };
        let mut file = m.durable("f", b"");
        let mut snapshots = Snapshots { states: vec![Vec::new()], first: 0 };
        let mut in_flight = None;
        // After a failed sync none of the older states is ruled out by a later one.
        let mut failed = false;
        for n in 0..60u64 {
            let offset = random(LEN_MAX, &mut m) >> random(12, &mut m);
            let len = 1 + (random(LEN_MAX, &mut m) >> random(14, &mut m));
            let range = offset as usize..(offset + len) as usize;
            let fill = |state: &mut Vec<u8>, byte: u8| {
                state.resize(state.len().max(range.end), 0);
                state[range.clone()].fill(byte);
            };
            match random(12, &mut m) {
                0..4 => {
                    m.write(file, offset, &vec![n as u8 + 1; len as usize]);
                    snapshots.change(|state| fill(state, n as u8 + 1));
                }
                4 => {
                    m.disk.zero_range(&mut m.ctx, file, offset, len).unwrap();
                    snapshots.change(|state| fill(state, 0));
                }
                5 => {
                    m.disk.set_len(&mut m.ctx, file, offset).unwrap();
                    snapshots.change(|state| state.resize(offset as usize, 0));
                }
                6 => {
                    m.sync(file);
                    if !failed {
                        snapshots.first = snapshots.states.len() - 1;
                    }
                }
                7 if in_flight.is_none() => {
                    let ticket = m.disk.sync_begin(&mut m.ctx, file, SyncKind::Data).unwrap();
                    in_flight = Some((ticket, snapshots.states.len() - 1));
                }
                8 => {
                    if let Some((ticket, covered)) = in_flight.take() {
                        m.disk.sync_end(&mut m.ctx, ticket).unwrap();
                        if !failed {
                            snapshots.first = snapshots.first.max(covered);
                        }
                    }
                }
                9 => {
                    let mut image = m.disk.crash_image(&mut m.ctx, Actor::RUN.child("image", n));
                    let mut all = Vec::new();
                    contents(&mut image, &mut m.ctx, "/", &mut all);
                    assert!(snapshots.allow(&all[0].1), "seed {seed}, image {n}");
                    images += 1;
                }
                10 if random(4, &mut m) == 0 => {
                    m.disk.power_loss(&mut m.ctx, Actor::RUN.child("crash", n));
                    let mut all = Vec::new();
                    contents(&mut m.disk, &mut m.ctx, "/", &mut all);
                    assert!(snapshots.allow(&all[0].1), "seed {seed}, crash {n}");
                    snapshots = Snapshots { states: vec![all.remove(0).1], first: 0 };
                    (in_flight, failed) = (None, false);
                    file = m.open("f");
                }
                11 if seed % 2 == 1 && random(4, &mut m) == 0 => {
                    let partial = random(20, &mut m);
                    let rule = format!("on sync #1 -> EIO, profile ext4-ordered, partial {partial}");
                    m.disk.place_fault(rule.parse().unwrap());
                    assert_eq!(m.try_sync(file), Err(Errno::EIO));
                    failed = true;
                }
                _ => {
                    let mut bytes = vec![0; 2 * LEN_MAX as usize];
                    let count = m.disk.read_at(&mut m.ctx, file, &mut bytes, 0).unwrap();
                    assert!(&bytes[..count] == snapshots.now(), "seed {seed}, read {n}");
                }
            }
        }
    }
    assert!(images > 500);
}

#[test]
fn a_killed_process_leaves_what_reads_see() {
    let mut m = Machine::new(1, &weak());
    let file = m.open("f");
    m.write(file, 0, &sectors("ab"));
    m.disk.rename(&mut m.ctx, "f", "g").unwrap();
    let lock = m.disk.lock_file(&mut m.ctx, OWNER, "lock").unwrap();
    assert!(lock.is_some());
    assert_eq!(m.disk.lock_file(&mut m.ctx, Owner(2), "lock"), Ok(None));
    let region = m.disk.region_open(&mut m.ctx, file, 0, 1024).unwrap();
    let before = m.disk.fingerprint();
    m.disk.kill(&mut m.ctx, OWNER);
    assert_eq!(m.disk.fingerprint(), before);
    assert_eq!(m.disk.write_at(&mut m.ctx, file, b"x", 0), Err(Errno::EBADF));
    assert_eq!(m.disk.region_write(&mut m.ctx, region, 0, b"x"), Err(Errno::EBADF));
    assert!(m.disk.lock_file(&mut m.ctx, Owner(2), "lock").unwrap().is_some());
}

#[test]
fn a_power_loss_leaves_no_handle_region_lock_or_sync() {
    let mut m = Machine::new(1, &weak());
    let file = m.durable("f", &sectors("a"));
    let region = m.disk.region_open(&mut m.ctx, file, 0, 512).unwrap();
    assert!(m.disk.lock_file(&mut m.ctx, OWNER, "f").unwrap().is_some());
    let ticket = m.disk.sync_begin(&mut m.ctx, file, SyncKind::All).unwrap();
    m.disk.power_loss(&mut m.ctx, Actor::RUN);
    assert_eq!(m.disk.sync_end(&mut m.ctx, ticket), Err(Errno::EBADF));
    assert_eq!(m.disk.len(file), Err(Errno::EBADF));
    assert_eq!(m.disk.region_write(&mut m.ctx, region, 0, b"x"), Err(Errno::EBADF));
    let again = m.open("f");
    assert_eq!(m.disk.len(file), Err(Errno::EBADF), "an old handle is never a new one");
    assert_eq!(m.disk.len(again), Ok(512));
    assert!(m.disk.lock_file(&mut m.ctx, OWNER, "f").unwrap().is_some());
}

#[test]
fn choices_of_zero_keep_everything() {
    let keeps_all = |overrides: Overrides| {
        let mut ctx = Context::new(3, overrides, false, false);
        let mut disk = Disk::new(profile(FileSystem::WEAK_POSIX));
        let file = disk.open(&mut ctx, OWNER, "f", OpenOptions::CREATE).unwrap();
        for n in 0..20 {
            disk.write_at(&mut ctx, file, &[n as u8 + 1; 300], n * 300).unwrap();
        }
        let visible = disk.fingerprint();
        disk.power_loss(&mut ctx, Actor::RUN);
        visible == disk.fingerprint()
    };
    assert!(!keeps_all(Overrides::new()), "this seed loses something");
    let benign = BTreeSet::from([Family::Survive]);
    assert!(keeps_all(Overrides { benign: benign.clone(), ..Overrides::new() }));
    // The fate of the disk, then of the file: each by its own choices.
    let each = ChoiceKey { family: Family::Survive, actor: Actor::RUN, n: 0 };
    for of_file in 0..6 {
        let file = ChoiceKey { family: Family::Survive, actor: Actor::RUN.child("file", 1), n: 0 };
        let given = [(each, 3), (file, of_file)].into_iter().collect();
        // Fate 1 of a file is to lose everything, whatever else is chosen.
        assert_eq!(keeps_all(Overrides { benign: benign.clone(), given }), of_file != 1, "fate {of_file}");
    }
}
