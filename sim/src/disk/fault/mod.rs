//! Faults of operations: by rate, or placed by rules.
//!
//! Model: every operation has a *point*. Rules are looked at in order, and the first that strikes decides; then the rates
//! of the profile. A rule counts the operations at its point on paths that match, restarts of the machine included, and
//! strikes at the n-th, from the n-th on, at every n-th, or always. A fault is one line in a scenario file:
//!
//! ```toml
//! faults = [
//!     "on sync #3 of commitlog/* -> EIO, profile xfs",
//!     "on write #7 of commitlog/* -> ENOSPC, partial 512",
//!     "on read every 5 of ** -> short",
//! ]
//! ```
//!
//! or a table of the same words:
//!
//! ```toml
//! [[fault]]
//! on = "sync"
//! nth = 3
//! path = "commitlog/*"
//! error = "EIO"
//! profile = "xfs"
//! ```
//!
//! | word | means |
//! | --- | --- |
//! | `on POINT` | `open create read write sync dir-sync set-len space map rename remove-file create-dir remove-dir list` |
//! | `#N`, `#N..`, `every N` (`nth`, `from`, `every`) | when; always, if left out |
//! | `of PATH` (`path`) | `*` and `?` within a name, `**` across names; matches the end of the path the file was opened by, all of it with a leading `/` |
//! | `-> EFFECT` (`error`) | an error number's name; `short` for reads and writes; for a sync the media faults `lie`, `lose` and `misdirect` |
//! | `profile NAME` | what a failed sync leaves: `ext4-ordered xfs ext4-data btrfs polite` |
//! | `partial N` | how much is done all the same: bytes of a write or read, sectors of a sync |
//! | `sticky` | a read error stays until the sector is overwritten |
//!
//! A write is in one piece for its file system call, a zeroed range too. Not modelled: errors of `close` and of closing a
//! region, a file system that goes read-only by itself.

mod language;
mod strike;

use std::fmt;

use super::errno::Errno;
use super::profile::SyncFailure;

pub use self::language::FaultRuleError;
pub(super) use self::strike::{FaultState, Strike};

macro_rules! points {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// Where a fault can strike.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FaultPoint { $($(#[$doc])* $variant,)* }

        impl FaultPoint {
            /// All points.
            pub const ALL: &'static [FaultPoint] = &[$(FaultPoint::$variant,)*];

            /// The name in the fault language.
            pub const fn name(self) -> &'static str {
                match self { $(FaultPoint::$variant => $name,)* }
            }
        }
    };
}

points! {
    /// Opening a file, new or not.
    Open => "open",
    /// Making a file.
    Create => "create",
    /// Reading.
    Read => "read",
    /// Writing, and zeroing a range.
    Write => "write",
    /// Syncing a file.
    Sync => "sync",
    /// Syncing a directory.
    DirSync => "dir-sync",
    /// Setting a length.
    SetLen => "set-len",
    /// Asking for space that is not allocated: in a write, a zeroed range, a preallocation.
    Space => "space",
    /// Mapping a region.
    Map => "map",
    /// Renaming; matched with the old path.
    Rename => "rename",
    /// Removing a file's name.
    RemoveFile => "remove-file",
    /// Making a directory.
    CreateDir => "create-dir",
    /// Removing a directory.
    RemoveDir => "remove-dir",
    /// Listing a directory.
    List => "list",
}

/// What a fault does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The operation fails.
    Error(Errno),
    /// A read or write does less than asked for.
    Short,
    /// *Media:* a sync succeeds and makes nothing durable.
    Lie,
    /// *Media:* a sync succeeds without one of the writes.
    Lose,
    /// *Media:* a sync puts one of the writes elsewhere.
    Misdirect,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Error(errno) => write!(f, "{errno}"),
            Effect::Short => f.write_str("short"),
            Effect::Lie => f.write_str("lie"),
            Effect::Lose => f.write_str("lose"),
            Effect::Misdirect => f.write_str("misdirect"),
        }
    }
}

/// At which of its operations a rule strikes; they are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// At all.
    Always,
    /// At this one.
    Nth(u64),
    /// At this one and all after it.
    From(u64),
    /// At every n-th.
    Every(u64),
}

impl When {
    fn strikes(self, count: u64) -> bool {
        match self {
            When::Always => true,
            When::Nth(n) => count == n,
            When::From(n) => count >= n,
            When::Every(n) => count.is_multiple_of(n),
        }
    }
}

/// A placed fault. Made by parsing its line, or from TOML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultRule {
    on: FaultPoint,
    when: When,
    path: Option<language::PathPattern>,
    effect: Effect,
    profile: Option<SyncFailure>,
    partial: Option<u64>,
    sticky: bool,
}
