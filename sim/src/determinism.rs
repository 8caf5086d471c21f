//! Where two runs that should be equal first differ.
//!
#![doc = include_str!("../docs/determinism.md")]

use std::collections::BTreeMap;

use crate::campaign::job::{Judged, TraceEvent};

/// The first difference of two runs.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// How many events are equal before it.
    pub equal: usize,
    /// The last of the equal events, oldest first.
    pub before: Vec<TraceEvent>,
    /// What follows in the one run, if it did not end there.
    pub left: Vec<TraceEvent>,
    /// What follows in the other.
    pub right: Vec<TraceEvent>,
    /// What differs though no event does: findings, or numbers of the run.
    pub outside: Option<(String, String)>,
}

/// How many events are shown on each side.
const CONTEXT: usize = 4;

/// Compares two runs, both with their events kept, event by event and then by what else is a function of the seed.
pub fn first_difference(left: &Judged, right: &Judged) -> Option<Difference> {
    let equal = left.events.iter().zip(&right.events).take_while(|(a, b)| a == b).count();
    let events_differ = equal < left.events.len().max(right.events.len());
    let outside = outside_of_events(left, right);
    if !events_differ && outside.is_none() {
        return None;
    }
    let from = |events: &[TraceEvent]| events[equal..].iter().take(CONTEXT).cloned().collect();
    Some(Difference {
        equal,
        before: left.events[equal.saturating_sub(CONTEXT)..equal].to_vec(),
        left: from(&left.events),
        right: from(&right.events),
        outside: if events_differ { None } else { outside },
    })
}

fn outside_of_events(left: &Judged, right: &Judged) -> Option<(String, String)> {
    let differ = |a: String, b: String| (a != b).then_some((a, b));
    differ(format!("{:?}", left.findings), format!("{:?}", right.findings))
        .or_else(|| differ(format!("{:?}", left.stats), format!("{:?}", right.stats)))
        .or_else(|| differ(format!("marks {:?}", left.marks), format!("marks {:?}", right.marks)))
        .or_else(|| differ(format!("digest {:?}", left.digest), format!("digest {:?}", right.digest)))
}

impl Difference {
    /// The lines that show it: common ones indented, `-` for the one run and `+` for the other.
    pub fn lines(&self, actors: &BTreeMap<u64, String>) -> Vec<String> {
        let shown = |sign: char, event: &TraceEvent| format!("{sign} {}", event.line(actors));
        let mut lines: Vec<String> = self.before.iter().map(|event| shown(' ', event)).collect();
        for (sign, events) in [('-', &self.left), ('+', &self.right)] {
            lines.extend(events.iter().map(|event| shown(sign, event)));
            if events.is_empty() && self.outside.is_none() {
                lines.push(format!("{sign} (the run ends here)"));
            }
        }
        if let Some((left, right)) = &self.outside {
            lines.push(format!("- {left}"));
            lines.push(format!("+ {right}"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(results: &[u64]) -> Judged {
        let event = |result: &u64| TraceEvent {
            at_ns: 1500 * *result,
            actor: 0,
            op: "read".to_owned(),
            args: [0, 0],
            result: *result,
        };
        Judged { events: results.iter().map(event).collect(), ..Judged::default() }
    }

    #[test]
    fn equal_runs_do_not_differ() {
        assert_eq!(first_difference(&run(&[1, 2]), &run(&[1, 2])), None);
        assert_eq!(first_difference(&run(&[]), &run(&[])), None);
    }

    #[test]
    fn shows_both_sides_and_what_was_before() {
        let found = first_difference(&run(&[1, 2, 3, 4, 5, 6, 7]), &run(&[1, 2, 3, 4, 5, 9])).expect("they differ");
        assert_eq!((found.equal, found.before.len(), found.left.len(), found.right.len()), (5, 4, 2, 1));
        let lines = found.lines(&BTreeMap::from([(0, "main".to_owned())]));
        assert_eq!(lines[0], "          3.000 µs  main             read           0 0 -> 2");
        assert!(lines[4].starts_with("-         9.000 µs") && lines[6].ends_with("-> 9"), "{lines:#?}");
    }

    #[test]
    fn a_run_that_ends_early_differs() {
        let found = first_difference(&run(&[1]), &run(&[1, 2])).expect("they differ");
        assert_eq!((found.equal, found.left.len(), found.right.len()), (1, 0, 1));
        assert!(found.lines(&BTreeMap::new()).contains(&"- (the run ends here)".to_owned()));
    }

    #[test]
    fn equal_events_with_unequal_findings_differ() {
        let other = Judged { findings: Judged::cut_short("panic", "x".to_owned()).findings, ..run(&[1]) };
        let found = first_difference(&run(&[1]), &other).expect("they differ");
        assert_eq!(found.lines(&BTreeMap::new()).len(), 3);
        assert!(found.outside.is_some());
    }
}
