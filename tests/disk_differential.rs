//! The same calls on the simulated disk and in a directory of the real file system, with results, error numbers and bytes
//! compared. What reads see must be what a real disk shows, before any crash; and once everything is synced, a crash must
//! change nothing.
//!
//! Left out: lengths of directories, times, the longest file (each file system has its own), `..` above the root, trailing
//! slashes, and calls that the face of env does not have.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "one side of the comparison is the real disk")]

use std::fs;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::select;
use rustix::fs::{FallocateFlags, fallocate};
use stormlog::env::OpenOptions;
use stormlog_sim::choices::{Actor, Overrides};
use stormlog_sim::context::Context;
use stormlog_sim::disk::{Disk, DiskProfile, Errno, Handle, Owner, SyncKind};

const OWNER: Owner = Owner(1);
const SLOTS: usize = 4;

#[derive(Debug, Clone)]
enum Call {
    Open(usize, &'static str, OpenOptions),
    Close(usize),
    Read(usize, u64, usize),
    Write(usize, u64, usize, u8),
    WriteVectored(usize, u64, [usize; 3], u8),
    ZeroRange(usize, u64, u64),
    Preallocate(usize, u64),
    SetLen(usize, u64),
    Len(usize),
    Rename(&'static str, &'static str),
    RemoveFile(&'static str),
    CreateDir(&'static str),
    RemoveDir(&'static str),
    ListDir(&'static str),
    Exists(&'static str),
    /// Of the simulated disk alone: reads must not notice.
    Sync(usize),
    /// As [`Call::Sync`]: a write while the sync is in flight.
    SyncAround(usize, u64, usize, u8),
    SyncDir(&'static str),
}

/// What a call gave.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Done,
    Count(usize),
    Bytes(Vec<u8>),
    Len(u64),
    Bool(bool),
    Entries(Vec<(String, bool, u64)>),
    Error(i32),
}

const LONG: &str = concat!(
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789",
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789",
    "01234567890123456789012345678901234567890123456789012345"
);

const PATHS: &[&str] = &[
    "a", "b", "a/a", "a/b", "b/a", "b/b", "a/a/a", "a/b/a", "b/a/b", "./a", "a/./b", "a//b", "a/..", "b/../a", "a/.",
    ".", LONG,
];

const OPTIONS: &[OpenOptions] = &[
    OpenOptions::READ,
    OpenOptions::READ_WRITE,
    OpenOptions::CREATE,
    OpenOptions::CREATE,
    OpenOptions::CREATE_NEW,
    OpenOptions::CREATE_EMPTY,
    OpenOptions { create: true, ..OpenOptions::READ },
    OpenOptions { truncate: true, ..OpenOptions::READ },
    OpenOptions { truncate: true, ..OpenOptions::CREATE_NEW },
];

/// Small, at borders of sectors and pages, and impossible.
fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        20 => 0u64..20_000,
        5 => (0u64..6).prop_map(|page| page * 4096),
        5 => (0u64..40).prop_map(|sector| sector * 512),
        1 => select(vec![1 << 63, u64::MAX]),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let slot = || 0..SLOTS;
    let path = || prop_oneof![3 => select(&PATHS[..4]), 2 => select(PATHS)];
    let len = || prop_oneof![8 => 0usize..700, 2 => 0usize..20_000, 1 => Just(512), 1 => Just(4096)];
    let byte = 1u8..;
    prop_oneof![
        8 => (slot(), path(), select(OPTIONS)).prop_map(|(slot, path, options)| Call::Open(slot, path, options)),
        1 => slot().prop_map(Call::Close),
        8 => (slot(), offset(), len()).prop_map(|(slot, offset, len)| Call::Read(slot, offset, len)),
        10 => (slot(), offset(), len(), byte.clone()).prop_map(|(s, o, len, byte)| Call::Write(s, o, len, byte)),
        2 => (slot(), offset(), [len(), len(), len()], byte.clone())
            .prop_map(|(s, o, lens, byte)| Call::WriteVectored(s, o, lens, byte)),
        4 => (slot(), offset(), 1u64..40_000).prop_map(|(slot, offset, len)| Call::ZeroRange(slot, offset, len)),
        2 => (slot(), 0u64..30_000).prop_map(|(slot, len)| Call::Preallocate(slot, len)),
        4 => (slot(), offset()).prop_map(|(slot, len)| Call::SetLen(slot, len)),
        2 => slot().prop_map(Call::Len),
        4 => (path(), path()).prop_map(|(from, to)| Call::Rename(from, to)),
        2 => path().prop_map(Call::RemoveFile),
        4 => path().prop_map(Call::CreateDir),
        2 => path().prop_map(Call::RemoveDir),
        3 => path().prop_map(Call::ListDir),
        2 => path().prop_map(Call::Exists),
        3 => slot().prop_map(Call::Sync),
        2 => (slot(), offset(), len(), byte).prop_map(|(s, o, len, byte)| Call::SyncAround(s, o, len, byte)),
        1 => path().prop_map(Call::SyncDir),
    ]
}

/// Bytes of a write: never zero, and no two neighbours alike.
fn pattern(len: usize, byte: u8) -> Vec<u8> {
    (0..len).map(|n| (n as u8).wrapping_mul(7).wrapping_add(byte) | 1).collect()
}

struct Real {
    root: PathBuf,
    handles: Vec<Option<fs::File>>,
}

impl Real {
    fn call(&mut self, call: &Call) -> Answer {
        self.try_call(call).unwrap_or_else(|error| match (error.raw_os_error(), error.kind()) {
            (Some(errno), _) => Answer::Error(errno),
            // The standard library refuses some open modes before the kernel can.
            (None, io::ErrorKind::InvalidInput) => Answer::Error(Errno::EINVAL.0),
            (None, kind) => panic!("{kind:?} without an error number"),
        })
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn file(&self, slot: usize) -> io::Result<&fs::File> {
        self.handles[slot].as_ref().ok_or_else(|| Errno::EBADF.into())
    }

    fn try_call(&mut self, call: &Call) -> io::Result<Answer> {
        Ok(match call {
            Call::Open(slot, path, options) => {
                let OpenOptions { write, create, create_new, truncate } = *options;
                let file = fs::OpenOptions::new()
                    .read(true)
                    .write(write)
                    .create(create)
                    .create_new(create_new)
                    .truncate(truncate)
                    .open(self.path(path))?;
                self.handles[*slot] = Some(file);
                Answer::Done
            }
            Call::Close(slot) => {
                self.handles[*slot] = None;
                Answer::Done
            }
            Call::Read(slot, offset, len) => {
                let mut bytes = vec![0; *len];
                let count = self.file(*slot)?.read_at(&mut bytes, *offset)?;
                bytes.truncate(count);
                Answer::Bytes(bytes)
            }
            Call::Write(slot, offset, len, byte) | Call::SyncAround(slot, offset, len, byte) => {
                Answer::Count(self.file(*slot)?.write_at(&pattern(*len, *byte), *offset)?)
            }
            Call::WriteVectored(slot, offset, lens, byte) => {
                let parts = lens.map(|len| pattern(len, *byte));
                let slices = [IoSlice::new(&parts[0]), IoSlice::new(&parts[1]), IoSlice::new(&parts[2])];
                Answer::Count(rustix::io::pwritev(self.file(*slot)?, &slices, *offset)?)
            }
            Call::ZeroRange(slot, offset, len) => {
                self.file(*slot)?.write_all_at(&vec![0; *len as usize], *offset)?;
                Answer::Done
            }
            Call::Preallocate(slot, len) => {
                fallocate(self.file(*slot)?, FallocateFlags::empty(), 0, *len)?;
                Answer::Done
            }
            Call::SetLen(slot, len) => {
                self.file(*slot)?.set_len(*len)?;
                Answer::Done
            }
            Call::Len(slot) => {
                let metadata = self.file(*slot)?.metadata()?;
                Answer::Len(if metadata.is_dir() { 0 } else { metadata.len() })
            }
            Call::Rename(from, to) => done(fs::rename(self.path(from), self.path(to)))?,
            Call::RemoveFile(path) => done(fs::remove_file(self.path(path)))?,
            Call::CreateDir(path) => done(fs::create_dir(self.path(path)))?,
            Call::RemoveDir(path) => done(fs::remove_dir(self.path(path)))?,
            Call::ListDir(path) => Answer::Entries(entries(&self.path(path))?),
            Call::Exists(path) => Answer::Bool(self.path(path).try_exists()?),
            Call::Sync(_) | Call::SyncDir(_) => Answer::Done,
        })
    }
}

fn done(outcome: io::Result<()>) -> io::Result<Answer> {
    outcome.map(|()| Answer::Done)
}

fn entries(path: &Path) -> io::Result<Vec<(String, bool, u64)>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        let name = entry.file_name().into_string().expect("made here");
        entries.push((name, metadata.is_dir(), if metadata.is_dir() { 0 } else { metadata.len() }));
    }
    entries.sort();
    Ok(entries)
}

struct Simulated {
    ctx: Context,
    disk: Disk,
    handles: Vec<Option<Handle>>,
}

impl Simulated {
    fn call(&mut self, call: &Call) -> Answer {
        self.try_call(call).unwrap_or_else(|Errno(number)| Answer::Error(number))
    }

    fn try_call(&mut self, call: &Call) -> Result<Answer, Errno> {
        let (ctx, disk) = (&mut self.ctx, &mut self.disk);
        let handles = &self.handles;
        let file = |slot: usize| handles[slot].ok_or(Errno::EBADF);
        Ok(match call {
            Call::Open(slot, path, options) => {
                let handle = disk.open(ctx, OWNER, path, *options)?;
                if let Some(before) = self.handles[*slot].replace(handle) {
                    disk.close(ctx, before);
                }
                Answer::Done
            }
            Call::Close(slot) => {
                if let Some(handle) = self.handles[*slot].take() {
                    disk.close(ctx, handle);
                }
                Answer::Done
            }
            Call::Read(slot, offset, len) => {
                let mut bytes = vec![0; *len];
                let count = disk.read_at(ctx, file(*slot)?, &mut bytes, *offset)?;
                bytes.truncate(count);
                Answer::Bytes(bytes)
            }
            Call::Write(slot, offset, len, byte) => {
                let handle = file(*slot)?;
                Answer::Count(disk.write_at(ctx, handle, &pattern(*len, *byte), *offset)?)
            }
            Call::SyncAround(slot, offset, len, byte) => {
                let handle = file(*slot)?;
                let ticket = disk.sync_begin(ctx, handle, SyncKind::Data)?;
                let outcome = disk.write_at(ctx, handle, &pattern(*len, *byte), *offset);
                disk.sync_end(ctx, ticket)?;
                Answer::Count(outcome?)
            }
            Call::WriteVectored(slot, offset, lens, byte) => {
                let parts = lens.map(|len| pattern(len, *byte));
                let slices = [IoSlice::new(&parts[0]), IoSlice::new(&parts[1]), IoSlice::new(&parts[2])];
                Answer::Count(disk.write_vectored(ctx, file(*slot)?, &slices, *offset)?)
            }
            Call::ZeroRange(slot, offset, len) => {
                disk.zero_range(ctx, file(*slot)?, *offset, *len)?;
                Answer::Done
            }
            Call::Preallocate(slot, len) => {
                disk.preallocate(ctx, file(*slot)?, *len)?;
                Answer::Done
            }
            Call::SetLen(slot, len) => {
                disk.set_len(ctx, file(*slot)?, *len)?;
                Answer::Done
            }
            Call::Len(slot) => Answer::Len(disk.len(file(*slot)?)?),
            Call::Rename(from, to) => disk.rename(ctx, from, to).map(|()| Answer::Done)?,
            Call::RemoveFile(path) => disk.remove_file(ctx, path).map(|()| Answer::Done)?,
            Call::CreateDir(path) => disk.create_dir(ctx, path).map(|()| Answer::Done)?,
            Call::RemoveDir(path) => disk.remove_dir(ctx, path).map(|()| Answer::Done)?,
            Call::ListDir(path) => {
                let entries = disk.list_dir(ctx, path)?;
                Answer::Entries(entries.into_iter().map(|entry| (entry.name, entry.is_dir, entry.len)).collect())
            }
            Call::Exists(path) => Answer::Bool(disk.exists(ctx, path)?),
            Call::Sync(slot) => {
                if let Some(handle) = self.handles[*slot] {
                    let ticket = disk.sync_begin(ctx, handle, SyncKind::All)?;
                    disk.sync_end(ctx, ticket)?;
                }
                Answer::Done
            }
            Call::SyncDir(path) => {
                if let Ok(ticket) = disk.sync_dir_begin(ctx, path) {
                    disk.sync_end(ctx, ticket)?;
                }
                Answer::Done
            }
        })
    }

    /// Syncs every directory and file below one.
    fn sync_all(&mut self, dir: &str) {
        let ticket = self.disk.sync_dir_begin(&mut self.ctx, dir).expect("a directory");
        self.disk.sync_end(&mut self.ctx, ticket).expect("no faults");
        for entry in self.disk.list_dir(&mut self.ctx, dir).expect("a directory") {
            let path = format!("{dir}/{}", entry.name);
            if entry.is_dir {
                self.sync_all(&path);
                continue;
            }
            let handle = self.disk.open(&mut self.ctx, OWNER, &path, OpenOptions::READ).expect("was listed");
            let ticket = self.disk.sync_begin(&mut self.ctx, handle, SyncKind::All).expect("an open file");
            self.disk.sync_end(&mut self.ctx, ticket).expect("no faults");
            self.disk.close(&mut self.ctx, handle);
        }
    }
}

/// Both trees, with all bytes.
fn compare(real: &Real, simulated: &mut Simulated, dir: &str) {
    let of_disk = simulated.disk.list_dir(&mut simulated.ctx, dir).expect("a directory");
    let of_disk: Vec<_> = of_disk.into_iter().map(|entry| (entry.name, entry.is_dir, entry.len)).collect();
    assert_eq!(entries(&real.path(dir)).expect("a directory"), of_disk, "in {dir:?}");
    for (name, is_dir, len) in of_disk {
        let path = format!("{dir}/{name}");
        if is_dir {
            compare(real, simulated, &path);
        } else {
            let (ctx, disk) = (&mut simulated.ctx, &mut simulated.disk);
            let handle = disk.open(ctx, OWNER, &path, OpenOptions::READ).expect("was listed");
            let mut bytes = vec![0; len as usize];
            assert_eq!(disk.read_at(ctx, handle, &mut bytes, 0), Ok(bytes.len()));
            disk.close(ctx, handle);
            assert_eq!(fs::read(real.path(&path)).expect("was listed"), bytes, "bytes of {path:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_simulated_disk_answers_as_the_real_one(calls in prop::collection::vec(call(), 1..80)) {
        let dir = tempfile::tempdir().expect("a directory for temporary files");
        let mut real = Real { root: dir.path().to_owned(), handles: (0..SLOTS).map(|_| None).collect() };
        let mut simulated = Simulated {
            ctx: Context::new(0, Overrides::new(), false, false),
            disk: Disk::new(DiskProfile::default()),
            handles: vec![None; SLOTS],
        };
        for (n, call) in calls.iter().enumerate() {
            prop_assert_eq!(simulated.call(call), real.call(call), "call {}: {:?}", n, call);
        }
        compare(&real, &mut simulated, ".");
        let running = simulated.disk.fingerprint();
        simulated.sync_all(".");
        simulated.disk.power_loss(&mut simulated.ctx, Actor::RUN);
        prop_assert_eq!(simulated.disk.fingerprint(), running, "everything was synced");
        compare(&real, &mut simulated, ".");
    }
}
