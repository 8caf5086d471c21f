//! Overrides in which later choices follow an operation that goes.
//!
//! Model: an operation that goes takes its draws on shared actors (a disk, a file) and its env operations along. What
//! was decided at such an actor's third draw may have to be decided at its second, and a crash at the 140th operation
//! happens at the 120th.

use std::collections::{BTreeMap, BTreeSet};

use crate::choices::{Actor, ChoiceKey, Family, Overrides};

/// How many draws of a shared actor an operation is thought to take along, at most.
const DRAWS_MAX: u64 = 4;
/// How many env operations it is thought to take along, at most.
const POSITIONS_MAX: u64 = 64;

/// Families whose outcomes are positions in the run.
fn is_position(family: Family) -> bool {
    matches!(family, Family::Crash | Family::Image)
}

/// The operations whose choices are listed.
pub fn operations(overrides: &Overrides) -> BTreeSet<Actor> {
    overrides.given.keys().filter(|key| key.family == Family::Workload).map(|key| key.actor).collect()
}

/// Without one operation, what can follow it: draws of one shared actor, or one position.
pub fn dropping(overrides: &Overrides, operation: Actor) -> Vec<Overrides> {
    let mut rest = overrides.clone();
    rest.given.retain(|key, _| (key.family, key.actor) != (Family::Workload, operation));
    let mut candidates = earlier_draws(&rest);
    for (key, value) in rest.given.iter().filter(|(key, _)| is_position(key.family)) {
        for by in 1..=POSITIONS_MAX.min(value.saturating_sub(1)) {
            let mut moved = rest.clone();
            moved.given.insert(*key, value - by);
            candidates.push(moved);
        }
    }
    candidates
}

fn earlier_draws(overrides: &Overrides) -> Vec<Overrides> {
    let shared = overrides.given.keys().filter(|key| key.family != Family::Workload);
    let streams: BTreeSet<(Family, Actor)> = shared.map(|key| (key.family, key.actor)).collect();
    let mut candidates = Vec::new();
    for stream in streams {
        let (moving, staying): (BTreeMap<ChoiceKey, u64>, _) =
            overrides.given.iter().partition(|(key, _)| (key.family, key.actor) == stream);
        let first = moving.keys().next().map_or(0, |key| key.n);
        for by in 1..=DRAWS_MAX.min(first) {
            let mut given: BTreeMap<ChoiceKey, u64> = staying.clone();
            given.extend(moving.iter().map(|(key, value)| (ChoiceKey { n: key.n - by, ..*key }, *value)));
            candidates.push(Overrides { benign: overrides.benign.clone(), given });
        }
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn key(family: Family, actor: u64, n: u64) -> ChoiceKey {
        ChoiceKey { family, actor: Actor(actor), n }
    }

    #[test]
    fn draws_and_positions_follow() {
        let (first, second) = (key(Family::Workload, 1, 0), key(Family::Workload, 2, 0));
        let (fault, crash) = (key(Family::Fault, 9, 2), key(Family::Crash, 9, 0));
        let overrides = Overrides::from([(first, 1), (second, 1), (fault, 5), (crash, 3)]);
        assert_eq!(operations(&overrides), BTreeSet::from([Actor(1), Actor(2)]));
        let expected = [
            [(second, 1), (key(Family::Fault, 9, 1), 5), (crash, 3)],
            [(second, 1), (key(Family::Fault, 9, 0), 5), (crash, 3)],
            [(second, 1), (fault, 5), (crash, 2)],
            [(second, 1), (fault, 5), (crash, 1)],
        ];
        let mut got = dropping(&overrides, Actor(1));
        got.sort_by_key(|candidate| std::cmp::Reverse(candidate.given.clone()));
        let mut expected = expected.map(Overrides::from);
        expected.sort_by_key(|candidate| std::cmp::Reverse(candidate.given.clone()));
        assert_eq!(got, expected);
    }
}
