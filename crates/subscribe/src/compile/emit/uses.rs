//! Counts the arms that lead to each node of the diagram in the tables.
//!
//! A changed node usually differs from the one that it replaces in a few of many arms. The arms with which both begin
//! and end are not counted anew: the old node's uses of these children become the new node's when the old one is
//! removed.

use std::collections::HashMap;
use std::ops::Range;

use bdd::{Ref, Store};

use super::{EmitContext, Emitter, EntryPoint, NodeDelta, NodeRecord, differing_children};

impl Emitter {
    /// Acquires all nodes of a diagram, beside the one in the tables.
    pub(super) fn acquire_entry_point(&mut self, new: &EntryPoint, with: &EmitContext<'_>, delta: &mut NodeDelta) {
        if new.direct().is_some() {
            return new.functions(with.store).for_each(|function| self.acquire(function, None, with, delta));
        }
        let old: HashMap<_, Ref> = self.entry_point.frontier.iter().cloned().collect();
        for (pattern, function) in &new.frontier {
            self.acquire(*function, old.get(pattern).copied(), with, delta);
        }
    }

    /// Acquires a node that may replace `old`.
    fn acquire(&mut self, function: Ref, old: Option<Ref>, with: &EmitContext<'_>, delta: &mut NodeDelta) {
        if function == Ref::NOTHING {
            return;
        }
        let node = self.nodes.entry(function).or_insert(NodeRecord { state: 0, entries: 0, uses: 0 });
        node.uses += 1;
        if node.uses > 1 {
            return;
        }
        delta.fresh.push(function);
        let Some(level) = with.store.level(function) else { return };
        let entries = with.entries(function, level);
        node.entries = u32::try_from(entries).unwrap_or(u32::MAX);
        *self.entries.entry(level).or_default() += node.entries as usize;
        let is_replaceable = |old: &Ref| {
            with.store.level(*old) == Some(level) && self.nodes.contains_key(old) && !delta.heirs.contains_key(old)
        };
        let Some(old) = old.filter(is_replaceable) else {
            return with.store.arms(function).for_each(|(_, child)| self.acquire(child, None, with, delta));
        };
        delta.heirs.insert(old, function);
        delta.replaced.insert(function, old);
        let mut old_children: Vec<(u128, Ref)> = Vec::new();
        old_children.extend(differing_children(with.store, old, function).map(|(first, old, _)| (first, old)));
        for (first, child) in with.store.arms_in(function, own_arms(with.store, function, old)) {
            let beside =
                old_children.binary_search_by_key(&first, |(first, _)| *first).ok().map(|at| old_children[at].1);
            self.acquire(child, beside, with, delta);
        }
    }

    /// Acquires the common arms of new nodes whose old nodes stay in the diagram.
    pub(super) fn acquire_shared_arms(&mut self, with: &EmitContext<'_>, delta: &mut NodeDelta) {
        for (old, new) in std::mem::take(&mut delta.heirs) {
            let own = own_arms(with.store, new, old);
            let all = 0..with.store.arm_count(new);
            for range in [all.start..own.start, own.end..all.end] {
                with.store.arms_in(new, range).for_each(|(_, child)| self.acquire(child, None, with, delta));
            }
        }
    }

    /// Releases a node.
    pub(super) fn release(&mut self, function: Ref, store: &Store, delta: &mut NodeDelta) {
        if function == Ref::NOTHING {
            return;
        }
        let node = self.nodes.get_mut(&function).expect("what is released was held");
        node.uses -= 1;
        if node.uses > 0 {
            return;
        }
        let entries = node.entries as usize;
        delta.dead.insert(function, node.state);
        self.nodes.remove(&function);
        if let Some(of_level) = store.level(function).and_then(|level| self.entries.get_mut(&level)) {
            *of_level -= entries;
        }
        // The uses of the other arms are those of the other node of the pair.
        let other = delta.heirs.remove(&function).or_else(|| delta.replaced.get(&function).copied());
        let arms = match other {
            Some(other) => own_arms(store, function, other),
            None => 0..store.arm_count(function),
        };
        store.arms_in(function, arms).for_each(|(_, child)| self.release(child, store, delta));
    }
}

/// Returns the arms of a node between those that it has in common with another one.
fn own_arms(store: &Store, of: Ref, other: Ref) -> Range<usize> {
    let (front, back) = store.common_arms(of, other);
    front..store.arm_count(of) - back
}
