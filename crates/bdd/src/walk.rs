//! Queries of functions.

use std::collections::BTreeSet;

use crate::store::{Ref, Store};

impl Store {
    /// Returns the set of a function for given values of fields, which are queried by level.
    pub fn evaluate(&self, function: Ref, value: impl Fn(u32) -> u128) -> &[u32] {
        let mut at = function;
        while !at.is_set() {
            let node = self.get(at);
            let value = value(node.level);
            at = node.children[node.cuts.partition_point(|cut| *cut <= value)];
        }
        self.set(at)
    }

    /// Returns values by level, levels ascending, for which two functions differ; `None` if they are equal. Levels that
    /// are not listed may have any value.
    pub fn difference(&self, a: Ref, b: Ref) -> Option<Vec<(u32, u128)>> {
        if a == b {
            return None;
        }
        let (mut a, mut b, mut path) = (a, b, Vec::new());
        // Different functions differ on some arm, and functions that differ there differ to the end.
        while let Some(level) = [self.level(a), self.level(b)].into_iter().flatten().min() {
            let firsts = |of: Ref| self.arms(of).map(|(first, _)| first);
            let of_level = |of: Ref| (self.level(of) == Some(level)).then_some(of);
            let values: BTreeSet<u128> = [a, b].into_iter().filter_map(of_level).flat_map(firsts).collect();
            let down = |of: Ref, value: u128| match of_level(of) {
                Some(of) => self.get(of).children[self.get(of).cuts.partition_point(|cut| *cut <= value)],
                None => of,
            };
            let value = values.into_iter().find(|value| down(a, *value) != down(b, *value));
            let value = value.expect("different nodes have an arm that differs");
            path.push((level, value));
            (a, b) = (down(a, value), down(b, value));
        }
        Some(path)
    }

    /// Returns every node and set of a function, parents before children, in an order that depends only on the
    /// function.
    pub fn reachable(&self, function: Ref) -> Vec<Ref> {
        let mut seen = vec![[false; 2]; self.nodes.len().max(self.sets.capacity())];
        let mut out = Vec::new();
        let mut waiting = vec![function];
        while let Some(next) = waiting.pop() {
            if !std::mem::replace(&mut seen[next.index()][usize::from(next.is_set())], true) {
                out.push(next);
                if !next.is_set() {
                    waiting.extend(self.get(next).children.iter().rev());
                }
            }
        }
        // Depth-first search finds a shared child before a later parent: by level, parents come first.
        out.sort_by_key(|of| self.level(*of).unwrap_or(u32::MAX));
        out
    }
}
