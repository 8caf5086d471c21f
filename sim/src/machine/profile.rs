//! Machine profiles: what a simulated machine is like.
//!
//! Model: a number of cores; a cost for each named step; a lock model; the cost of waking a thread; latencies of I/O as
//! quantile tables of integers. Profiles are TOML under `fixtures/machines/`, embedded in the program.
//!
//! Not modelled: caches, frequency, memory bandwidth, hyper-threads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stormlog::env::Step;

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// What it is modelled on.
    pub about: String,
    /// How many threads run at once.
    pub cores: usize,
    /// How long a thread with work may hold a core while others wait for one.
    pub quantum_ns: u64,
    /// CPU costs smaller than this are saved up until they are as large, which costs the simulation fewer events.
    pub charge_grain_ns: u64,
    /// From the moment a thread is woken until it can run.
    pub wake_ns: u64,
    /// What an unlock does.
    pub lock_model: LockModel,
    /// Cost of one unit of each named step, in picoseconds. A step that is not named costs nothing.
    pub step_ps: BTreeMap<String, u64>,
    /// Latency of each class of I/O.
    pub latency_ns: LatencyTables,
}

/// What happens to a lock that is given up while threads wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockModel {
    /// The longest waiter owns it at once.
    Fair,
    /// It is free; the longest waiter is woken and competes with whoever comes by.
    Barging,
    /// Fair or barging, by the seed.
    Choice,
}

/// Latencies of I/O.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyTables {
    /// A read.
    pub read: Quantiles,
    /// A write into the page cache.
    pub write: Quantiles,
    /// A sync of a file or directory. Syncs of one device follow one another.
    pub sync: Quantiles,
    /// Open, rename, list and other work on names.
    pub name: Quantiles,
}

/// A distribution: ascending (per mille, nanoseconds), the first at 0 and the last at 1000, linear between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantiles(Vec<(u64, u64)>);

/// A profile that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// It is not TOML of the right shape.
    #[error("machine profile: {0}")]
    Shape(String),
    /// A value is impossible.
    #[error("machine profile {profile}: {field}: {reason}")]
    Value {
        /// Which profile.
        profile: String,
        /// Which field.
        field: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is no built-in profile of that name.
    #[error("no machine profile is named {0:?}; there are {known}", known = BUILT_IN.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "))]
    Unknown(String),
}

const BUILT_IN: [(&str, &str); 2] = [
    ("ci", include_str!("../../../fixtures/machines/ci.toml")),
    ("report-2018", include_str!("../../../fixtures/machines/report-2018.toml")),
];

/// How finely a quantile is drawn.
pub(super) const QUANTILE_STEPS: u64 = 1 << 16;

impl Quantiles {
    /// The value at `position` of [`QUANTILE_STEPS`].
    pub(super) fn at(&self, position: u64) -> u64 {
        let scaled = position * 1000;
        let above = self.0.iter().position(|(mille, _)| mille * QUANTILE_STEPS > scaled).unwrap_or(self.0.len() - 1);
        let ((low_mille, low), (high_mille, high)) = (self.0[above.max(1) - 1], self.0[above.max(1)]);
        let span = (high_mille - low_mille) * QUANTILE_STEPS;
        let into = scaled.saturating_sub(low_mille * QUANTILE_STEPS).min(span);
        low + ((u128::from(high - low) * u128::from(into)) / u128::from(span.max(1))) as u64
    }

    fn check(&self) -> Result<(), &'static str> {
        let points = &self.0;
        if points.len() < 2 || points[0].0 != 0 || points[points.len() - 1].0 != 1000 {
            return Err("want points from 0 to 1000 per mille");
        }
        if points.windows(2).any(|pair| pair[0].0 >= pair[1].0 || pair[0].1 > pair[1].1) {
            return Err("want points in ascending order");
        }
        if points.iter().any(|point| point.1 > 3_600_000_000_000) {
            return Err("want latencies of at most an hour");
        }
        Ok(())
    }
}

impl Profile {
    /// A built-in profile.
    pub fn built_in(name: &str) -> Result<Self, ProfileError> {
        let (_, text) =
            BUILT_IN.iter().find(|(known, _)| *known == name).ok_or_else(|| ProfileError::Unknown(name.to_owned()))?;
        Self::from_toml(text)
    }

    /// Reads and checks a profile.
    pub fn from_toml(text: &str) -> Result<Self, ProfileError> {
        let profile: Profile = toml::from_str(text).map_err(|e| ProfileError::Shape(e.to_string()))?;
        let refuse = |field: &str, reason| {
            Err(ProfileError::Value { profile: profile.name.clone(), field: field.to_owned(), reason })
        };
        if !(1..=1024).contains(&profile.cores) {
            return refuse("cores", "want 1 to 1024");
        }
        if profile.quantum_ns == 0 {
            return refuse("quantum_ns", "want at least 1");
        }
        for name in profile.step_ps.keys() {
            if !Step::ALL.iter().any(|step| step.name() == name) {
                return refuse(name, "there is no such step");
            }
        }
        let tables = &profile.latency_ns;
        for (field, table) in
            [("read", &tables.read), ("write", &tables.write), ("sync", &tables.sync), ("name", &tables.name)]
        {
            if let Err(reason) = table.check() {
                return refuse(field, reason);
            }
        }
        Ok(profile)
    }

    /// Cost of each step in picoseconds, by the step's number.
    pub(super) fn step_table(&self) -> Vec<u64> {
        Step::ALL.iter().map(|step| self.step_ps.get(step.name()).copied().unwrap_or(0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_profiles_are_sound() {
        for (name, _) in BUILT_IN {
            assert_eq!(Profile::built_in(name).map(|p| p.name), Ok(name.to_owned()));
        }
        assert!(matches!(Profile::built_in("cray"), Err(ProfileError::Unknown(_))));
    }

    #[test]
    fn quantiles_meet_their_points() {
        let table = Quantiles(vec![(0, 10), (500, 20), (990, 1000), (1000, 5000)]);
        let at_mille = |mille: u64| table.at(mille * QUANTILE_STEPS / 1000);
        assert_eq!((table.at(0), at_mille(250), at_mille(500)), (10, 15, 20));
        assert!((990..=1000).contains(&at_mille(990)));
        assert!(table.at(QUANTILE_STEPS - 1) <= 5000);
        assert!((1..QUANTILE_STEPS).all(|p| table.at(p - 1) <= table.at(p)));
    }

    #[test]
    fn senseless_profiles_are_refused() {
        let sound = BUILT_IN[0].1;
        for (from, to) in
            [("cores = ", "cores = 0 #"), ("quantum_ns = ", "quantum_ns = 0 #"), ("name = \"ci\"", "nome = \"ci\"")]
        {
            assert!(sound.contains(from), "{from}");
            assert!(Profile::from_toml(&sound.replacen(from, to, 1)).is_err(), "{from}");
        }
    }
}
