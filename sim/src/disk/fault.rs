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

use std::fmt;
use std::rc::Rc;
use std::str::FromStr;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::errno::Errno;
use super::handle::Handle;
use super::inode::{InodeId, ROOT, inode_actor};
use super::pick::per_million;
use super::profile::{DiskProfile, FaultRates, SyncFailure};
use super::{Disk, op};
use crate::choices::{Actor, Family};
use crate::context::Context;

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
    path: Option<PathPattern>,
    effect: Effect,
    profile: Option<SyncFailure>,
    partial: Option<u64>,
    sticky: bool,
}

/// A pattern of paths: see the module's table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PathPattern {
    text: String,
    pattern: glob::Pattern,
}

impl PathPattern {
    fn parse(text: &str) -> Result<Self, FaultRuleError> {
        let anchored = match text.strip_prefix('/') {
            Some(rest) => rest.to_owned(),
            None => format!("**/{text}"),
        };
        let pattern = glob::Pattern::new(&anchored)
            .map_err(|error| FaultRuleError(format!("the path {text:?} is no pattern: {}", error.msg)))?;
        Ok(Self { text: text.to_owned(), pattern })
    }

    fn matches(&self, path: &str) -> bool {
        let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::new() };
        self.pattern.matches_with(path.trim_start_matches('/'), options)
    }
}

/// A text that is no fault rule, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FaultRuleError(String);

fn refuse<T>(reason: impl Into<String>) -> Result<T, FaultRuleError> {
    Err(FaultRuleError(reason.into()))
}

fn one_of<T: Copy>(what: &str, word: &str, all: impl Iterator<Item = (T, &'static str)>) -> Result<T, FaultRuleError> {
    let all: Vec<_> = all.collect();
    match all.iter().find(|(_, name)| *name == word) {
        Some((found, _)) => Ok(*found),
        None => {
            let names: Vec<_> = all.iter().map(|(_, name)| *name).collect();
            refuse(format!("{word:?} is no {what}: want one of {}", names.join(", ")))
        }
    }
}

fn parse_point(word: &str) -> Result<FaultPoint, FaultRuleError> {
    one_of("point of faults", word, FaultPoint::ALL.iter().map(|point| (*point, point.name())))
}

fn parse_profile(word: &str) -> Result<SyncFailure, FaultRuleError> {
    one_of("profile of sync failure", word, SyncFailure::NAMED.iter().copied())
}

fn parse_effect(word: &str) -> Result<Effect, FaultRuleError> {
    match word {
        "short" => Ok(Effect::Short),
        "lie" => Ok(Effect::Lie),
        "lose" => Ok(Effect::Lose),
        "misdirect" => Ok(Effect::Misdirect),
        _ => word
            .parse()
            .map(Effect::Error)
            .map_err(|error| FaultRuleError(format!("{error}, or short, lie, lose, misdirect"))),
    }
}

fn parse_count(what: &str, word: &str) -> Result<u64, FaultRuleError> {
    match word.parse() {
        Ok(0) | Err(_) => refuse(format!("{what} {word:?}: want a number from 1")),
        Ok(count) => Ok(count),
    }
}

impl FaultRule {
    fn checked(self) -> Result<Self, FaultRuleError> {
        let (on, effect) = (self.on, self.effect);
        let of_sync = on == FaultPoint::Sync;
        let of_bytes = matches!(on, FaultPoint::Read | FaultPoint::Write);
        let is_error = matches!(effect, Effect::Error(_));
        if effect == Effect::Short && !of_bytes {
            return refuse(format!("short is for read and write, not for {}", on.name()));
        }
        if !is_error && effect != Effect::Short && !of_sync {
            return refuse(format!("{effect} is for sync, not for {}", on.name()));
        }
        if self.profile.is_some() && !(of_sync && is_error) {
            return refuse("profile is for a sync that fails");
        }
        let can_be_partial = effect == Effect::Short || (is_error && (of_sync || on == FaultPoint::Write));
        if self.partial.is_some() && !can_be_partial {
            return refuse("partial is for a write or sync that fails, and for short");
        }
        if self.sticky && !(is_error && on == FaultPoint::Read) {
            return refuse("sticky is for a read that fails");
        }
        Ok(self)
    }
}

impl fmt::Display for FaultRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "on {}", self.on.name())?;
        match self.when {
            When::Always => {}
            When::Nth(n) => write!(f, " #{n}")?,
            When::From(n) => write!(f, " #{n}..")?,
            When::Every(n) => write!(f, " every {n}")?,
        }
        if let Some(path) = &self.path {
            write!(f, " of {}", path.text)?;
        }
        write!(f, " -> {}", self.effect)?;
        if let Some(profile) = self.profile {
            write!(f, ", profile {}", profile.name())?;
        }
        if let Some(partial) = self.partial {
            write!(f, ", partial {partial}")?;
        }
        if self.sticky {
            f.write_str(", sticky")?;
        }
        Ok(())
    }
}

impl FromStr for FaultRule {
    type Err = FaultRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_line(text).map_err(|FaultRuleError(reason)| FaultRuleError(format!("fault {text:?}: {reason}")))
    }
}

fn parse_line(text: &str) -> Result<FaultRule, FaultRuleError> {
    let Some((place, outcome)) = text.split_once("->") else {
        return refuse("want `on POINT [#N] [of PATH] -> EFFECT`, and there is no `->`");
    };
    let (place, path) = match place.split_once(" of ") {
        Some((place, path)) => (place, Some(PathPattern::parse(path.trim())?)),
        None => (place, None),
    };
    let words: Vec<&str> = place.split_whitespace().collect();
    let (point, when) = match words[..] {
        ["on", point] => (point, When::Always),
        ["on", point, "every", n] => (point, When::Every(parse_count("every", n)?)),
        ["on", point, nth] => match nth.strip_prefix('#').map(|n| (n, n.strip_suffix(".."))) {
            Some((_, Some(from))) => (point, When::From(parse_count("the count", from)?)),
            Some((n, None)) => (point, When::Nth(parse_count("the count", n)?)),
            None => return refuse(format!("{nth:?}: want #N, #N.. or every N")),
        },
        _ => return refuse("want `on POINT`, then #N, #N.. or every N, then `of PATH`"),
    };
    let mut parts = outcome.split(',').map(str::trim);
    let mut rule = FaultRule {
        on: parse_point(point)?,
        when,
        path,
        effect: parse_effect(parts.next().unwrap_or_default())?,
        profile: None,
        partial: None,
        sticky: false,
    };
    for part in parts {
        match part.split_whitespace().collect::<Vec<_>>()[..] {
            ["profile", name] => rule.profile = Some(parse_profile(name)?),
            ["partial", n] => match n.parse() {
                Ok(n) => rule.partial = Some(n),
                Err(_) => return refuse(format!("partial {n:?}: want a number")),
            },
            ["sticky"] => rule.sticky = true,
            _ => return refuse(format!("{part:?}: want profile NAME, partial N or sticky")),
        }
    }
    rule.checked()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    on: String,
    path: Option<String>,
    nth: Option<u64>,
    from: Option<u64>,
    every: Option<u64>,
    error: String,
    profile: Option<String>,
    partial: Option<u64>,
    #[serde(default)]
    sticky: bool,
}

impl TryFrom<RuleTable> for FaultRule {
    type Error = FaultRuleError;

    fn try_from(table: RuleTable) -> Result<Self, Self::Error> {
        let when = match (table.nth, table.from, table.every) {
            (None, None, None) => When::Always,
            (Some(n), None, None) if n > 0 => When::Nth(n),
            (None, Some(n), None) if n > 0 => When::From(n),
            (None, None, Some(n)) if n > 0 => When::Every(n),
            _ => return refuse("want one of nth, from, every, and from 1"),
        };
        FaultRule {
            on: parse_point(&table.on)?,
            when,
            path: table.path.as_deref().map(PathPattern::parse).transpose()?,
            effect: parse_effect(&table.error)?,
            profile: table.profile.as_deref().map(parse_profile).transpose()?,
            partial: table.partial,
            sticky: table.sticky,
        }
        .checked()
    }
}

impl Serialize for FaultRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FaultRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LineOrTable;

        impl<'de> Visitor<'de> for LineOrTable {
            type Value = FaultRule;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a fault: a line such as \"on sync #3 -> EIO\", or a table of its words")
            }

            fn visit_str<E: de::Error>(self, line: &str) -> Result<FaultRule, E> {
                line.parse().map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FaultRule, A::Error> {
                let table = RuleTable::deserialize(de::value::MapAccessDeserializer::new(map))?;
                FaultRule::try_from(table).map_err(de::Error::custom)
            }
        }

        deserializer.deserialize_any(LineOrTable)
    }
}

/// The rules in force, with how often each one's operation was met.
#[derive(Clone)]
pub(super) struct FaultState {
    rules: Vec<(Rc<FaultRule>, u64)>,
    /// Nothing can strike.
    quiet: bool,
    /// Something has, since the faults were set.
    struck: bool,
}

impl FaultState {
    pub fn new(profile: &DiskProfile) -> Self {
        let rules: Vec<_> = profile.faults.iter().map(|rule| (Rc::new(rule.clone()), 0)).collect();
        let quiet = rules.is_empty() && profile.rates == FaultRates::default();
        Self { rules, quiet, struck: false }
    }
}

/// A fault that strikes an operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strike {
    pub effect: Effect,
    pub profile: Option<SyncFailure>,
    /// How much is done all the same: given by a rule.
    pub partial: Option<u64>,
    pub sticky: bool,
    /// By a rule, which says what happens; what a rate does is drawn.
    placed: bool,
}

impl Strike {
    fn by_rate(effect: Effect) -> Self {
        Self { effect, profile: None, partial: None, sticky: false, placed: false }
    }

    /// How much of a failing write of `len` bytes is done.
    pub fn part_done(&self, ctx: &mut Context, actor: Actor, len: u64) -> u64 {
        if self.placed {
            return self.partial.unwrap_or(0).min(len);
        }
        let stream = ctx.stream(Family::Fault, actor);
        ctx.below(stream, len + 1)
    }

    /// How many of `count` bytes a short read or write moves: at least one.
    pub fn shortened(&self, ctx: &mut Context, actor: Actor, count: usize) -> usize {
        if count < 2 {
            return count;
        }
        if self.placed {
            return self.partial.map_or(count / 2, |partial| (partial as usize).clamp(1, count));
        }
        let stream = ctx.stream(Family::Fault, actor);
        count - ctx.below(stream, count as u64) as usize
    }

    /// The error of an operation that does all or nothing.
    pub fn errno_or(&self, other: Errno) -> Errno {
        match self.effect {
            Effect::Error(errno) => errno,
            _ => other,
        }
    }
}

impl Disk {
    /// Places a fault; it counts from now.
    pub fn place_fault(&mut self, rule: FaultRule) {
        self.faults.rules.push((Rc::new(rule), 0));
        self.faults.quiet = false;
    }

    /// Takes all placed faults away, and sets the rates.
    pub fn reset_faults(&mut self, rates: FaultRates) {
        Rc::make_mut(&mut self.profile).rates = rates;
        self.faults = FaultState { rules: Vec::new(), quiet: rates == FaultRates::default(), struck: false };
    }

    /// Whether a fault has struck since they were set.
    pub fn has_failed(&self) -> bool {
        self.faults.struck
    }

    /// Whether a fault strikes an operation on an open file.
    #[inline]
    pub(super) fn strike(&mut self, ctx: &mut Context, point: FaultPoint, handle: Option<Handle>) -> Option<Strike> {
        if self.faults.quiet {
            return None;
        }
        let open = self.handles.get(handle?).ok()?;
        let (inode, path) = (open.inode, open.path.clone());
        self.strike_loud(ctx, point, &path, inode)
    }

    /// Whether a fault strikes an operation on a path.
    #[inline]
    pub(super) fn strike_path(&mut self, ctx: &mut Context, point: FaultPoint, path: &str) -> Option<Strike> {
        if self.faults.quiet {
            return None;
        }
        self.strike_loud(ctx, point, path, ROOT)
    }

    /// Fails an operation that does all or nothing.
    pub(super) fn fail_by_fault(&mut self, ctx: &mut Context, point: FaultPoint, path: &str) -> Result<(), Errno> {
        self.strike_path(ctx, point, path).map_or(Ok(()), |strike| Err(strike.errno_or(Errno::EIO)))
    }

    #[cold]
    fn strike_loud(&mut self, ctx: &mut Context, point: FaultPoint, path: &str, inode: InodeId) -> Option<Strike> {
        let actor = inode_actor(inode);
        let mut found = None;
        for (index, (rule, count)) in self.faults.rules.iter_mut().enumerate() {
            if rule.on != point || rule.path.as_ref().is_some_and(|pattern| !pattern.matches(path)) {
                continue;
            }
            // Every rule counts, whichever of them strikes.
            *count += 1;
            if found.is_none() && rule.when.strikes(*count) {
                let FaultRule { effect, profile, partial, sticky, .. } = **rule;
                found = Some((index as u64, Strike { effect, profile, partial, sticky, placed: true }));
            }
        }
        let (by, strike) = match found {
            Some(found) => found,
            None => (u64::MAX, self.strike_by_rate(ctx, point, actor)?),
        };
        let result = match strike.effect {
            Effect::Error(errno) => errno.code(),
            Effect::Short => 1,
            Effect::Lie => 2,
            Effect::Lose => 3,
            Effect::Misdirect => 4,
        };
        self.faults.struck = true;
        self.note(ctx, actor, op::FAULT, [point as u64, by], Ok(result));
        Some(strike)
    }

    fn strike_by_rate(&self, ctx: &mut Context, point: FaultPoint, actor: Actor) -> Option<Strike> {
        let rates = &self.profile.rates;
        let eio = Effect::Error(Errno::EIO);
        let chances: &[(u32, Effect)] = match point {
            FaultPoint::Open => &[(rates.open_error_ppm, eio)],
            FaultPoint::Create
            | FaultPoint::Rename
            | FaultPoint::RemoveFile
            | FaultPoint::CreateDir
            | FaultPoint::RemoveDir => &[(rates.name_error_ppm, eio)],
            FaultPoint::Read => &[(rates.read_error_ppm, eio), (rates.read_short_ppm, Effect::Short)],
            FaultPoint::Write => &[(rates.write_error_ppm, eio), (rates.write_short_ppm, Effect::Short)],
            FaultPoint::Sync => &[
                (rates.sync_error_ppm, eio),
                (rates.lying_sync_ppm, Effect::Lie),
                (rates.lost_write_ppm, Effect::Lose),
                (rates.misdirected_write_ppm, Effect::Misdirect),
            ],
            FaultPoint::DirSync => &[(rates.dir_sync_error_ppm, eio)],
            FaultPoint::Space => &[(rates.no_space_ppm, Effect::Error(Errno::ENOSPC))],
            FaultPoint::SetLen | FaultPoint::Map | FaultPoint::List => &[],
        };
        let latent_ppm = if point == FaultPoint::Read { rates.latent_error_ppm } else { 0 };
        if latent_ppm == 0 && chances.iter().all(|(ppm, _)| *ppm == 0) {
            return None;
        }
        let stream = ctx.stream(Family::Fault, actor);
        if ctx.chance(stream, per_million(latent_ppm)) {
            return Some(Strike { sticky: true, ..Strike::by_rate(eio) });
        }
        let struck = chances.iter().find(|(ppm, _)| ctx.chance(stream, per_million(*ppm)));
        struck.map(|(_, effect)| Strike::by_rate(*effect))
    }
}
