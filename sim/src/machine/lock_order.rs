//! The order in which kinds of locks nest, over a whole run. A cycle is a deadlock that another schedule would find.
//!
//! Model: an edge a → b says that a thread took a lock of kind b while it held one of kind a. Two locks of one kind that
//! nest make no edge: their order is a matter of instances, which kinds cannot tell apart.

use std::collections::{BTreeMap, BTreeSet};

/// The graph.
#[derive(Default)]
pub(super) struct LockOrder {
    edges: BTreeMap<&'static str, BTreeSet<&'static str>>,
}

impl LockOrder {
    /// Adds an edge. Returns the cycle that it closes, if it is new and closes one: `after` first and last.
    pub(super) fn nest(&mut self, before: &'static str, after: &'static str) -> Option<Vec<&'static str>> {
        if before == after || !self.edges.entry(before).or_default().insert(after) {
            return None;
        }
        let mut path = vec![after];
        self.reach(after, before, &mut path, &mut BTreeSet::new()).then(|| {
            path.push(after);
            path
        })
    }

    fn reach(
        &self,
        from: &'static str,
        to: &'static str,
        path: &mut Vec<&'static str>,
        seen: &mut BTreeSet<&'static str>,
    ) -> bool {
        if from == to {
            return true;
        }
        for next in self.edges.get(from).into_iter().flatten() {
            if seen.insert(next) {
                path.push(next);
                if self.reach(next, to, path, seen) {
                    return true;
                }
                path.pop();
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_is_told_once_with_its_path() {
        let mut order = LockOrder::default();
        assert_eq!(order.nest("a", "b"), None);
        assert_eq!(order.nest("b", "c"), None);
        assert_eq!(order.nest("a", "c"), None);
        assert_eq!(order.nest("b", "b"), None);
        assert_eq!(order.nest("c", "a"), Some(vec!["a", "b", "c", "a"]));
        assert_eq!(order.nest("c", "a"), None);
    }
}
