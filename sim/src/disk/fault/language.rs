//! The fault language: rules as lines, and as tables of TOML.
//!
//! Model: a line and a table of the same words are the same rule; what a rule cannot mean is refused with its reason. See
//! [`super`] for the words. A rule is always written as a line.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::{Effect, FaultPoint, FaultRule, When};
use crate::disk::profile::SyncFailure;

/// A pattern of paths: see the module's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathPattern {
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

    pub fn matches(&self, path: &str) -> bool {
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
