//! Computes the differences between the tables of two diagrams, and the full contents of the tables.

use std::collections::{BTreeMap, HashMap, HashSet};

use bdd::{Ref, Store};

use super::{EmitContext, Emitter, EntryPoint, NodeDelta, NodeHasher, deliver, differing_children};
use crate::compile::codes::Codes;
use crate::compile::slice;
use crate::format::max_of;
use crate::tables::{CodeEntry, EntryKey, Leaf, StageEntry, StateId, TableChange, Tables};

/// The old and the new node of one state; either may be missing.
type Pair = (Option<Ref>, Option<Ref>, StateId);

impl Emitter {
    /// Updates the codes. Returns the previous codes and the levels whose codes were all reassigned.
    pub(super) fn update_codes(
        &mut self,
        old: &EntryPoint,
        store: &Store,
        delta: &NodeDelta,
    ) -> (BTreeMap<u32, Codes>, Vec<u32>) {
        let (old_direct, new_direct) = (old.direct(), self.entry_point.direct());
        let (mut before, mut spread) = (BTreeMap::new(), Vec::new());
        for (level, codes) in &mut self.codes {
            let here = |function: &Ref| store.level(*function) == Some(*level);
            let fresh: Vec<Ref> = delta.fresh.iter().copied().chain(new_direct).filter(here).collect();
            let dead: Vec<Ref> = delta.dead.keys().copied().chain(old_direct).filter(here).collect();
            if fresh.is_empty() && dead.is_empty() {
                continue;
            }
            before.insert(*level, codes.clone());
            let bounds = |of: Ref| store.arms(of).map(|(first, _)| first).skip(1);
            let moved = fresh.into_iter().flat_map(bounds).fold(false, |moved, bound| codes.acquire(bound) | moved);
            if moved {
                spread.push(*level);
            }
            dead.into_iter().flat_map(bounds).for_each(|bound| codes.release(bound));
        }
        (before, spread)
    }

    /// Returns the entries of a node under a state, sorted by key; keys are codes if the level has codes.
    fn entries_of(
        function: Ref,
        codes: Option<&Codes>,
        with: &EmitContext<'_>,
        state_of: impl Fn(Ref) -> StateId,
    ) -> Vec<(EntryKey, StateId)> {
        let Some(level) = with.store.level(function) else { return Vec::new() };
        let (stage, width) = with.stage(level);
        let arms = with.store.arms(function).map(|(first, child)| (first, state_of(child)));
        let arms: Vec<(u128, StateId)> = arms.collect();
        let mut entries = slice::entries(&arms, width, codes, &with.stages[stage]);
        entries.sort_unstable();
        entries
    }

    /// Returns the codes of the level that a node tests.
    fn codes_of(&self, function: Ref, with: &EmitContext<'_>) -> Option<&Codes> {
        self.codes.get(&with.store.level(function)?)
    }

    pub(super) fn difference(
        &mut self,
        old: &EntryPoint,
        with: &EmitContext<'_>,
        delta: &NodeDelta,
        inherited: &HashMap<Ref, Ref, NodeHasher>,
        (old_codes, spread): (&BTreeMap<u32, Codes>, &[u32]),
    ) -> TableChange {
        let mut change = TableChange::default();
        let old_state = |function: Ref| delta.dead.get(&function).copied().unwrap_or_else(|| self.state(function));
        let no_set = |function: &Ref| !function.is_set();
        // Without validity, the root has state 0, as does a missing function.
        let of_root = |entry_point: &EntryPoint| entry_point.direct().unwrap_or(Ref::NOTHING);
        let (old_direct, new_direct) = (of_root(old), of_root(&self.entry_point));
        let mut pairs: Vec<Pair> = vec![(Some(old_direct), Some(new_direct), 0)];
        let taken: HashSet<Ref, NodeHasher> = inherited.values().copied().collect();
        pairs.extend(delta.fresh.iter().map(|new| (inherited.get(new).copied(), Some(*new), self.state(*new))));
        let gone = delta.dead.iter().filter(|(old, _)| !taken.contains(*old));
        pairs.extend(gone.map(|(old, state)| (Some(*old), None, *state)));
        // Reassigned codes change the entries of states that stay, too.
        if !spread.is_empty() {
            let fresh: HashSet<Ref, NodeHasher> = delta.fresh.iter().copied().collect();
            let is_spread = |of: &Ref| with.store.level(*of).is_some_and(|level| spread.contains(&level));
            let stays = self.nodes.iter().filter(|(of, _)| is_spread(of) && !fresh.contains(*of));
            let mut stays: Vec<_> = stays.map(|(of, node)| (Some(*of), Some(*of), node.state)).collect();
            stays.sort_unstable();
            pairs.extend(stays);
        }
        let codes_before = |of: Ref| {
            let level = with.store.level(of)?;
            old_codes.get(&level).or_else(|| self.codes.get(&level))
        };
        for (old, new, state) in &pairs {
            if let (Some(old), Some(new)) = (old, new)
                && self.exact_difference((*old, *new, *state), with, old_state, &mut change)
            {
                continue;
            }
            let level = |function: &Option<Ref>| function.filter(no_set).and_then(|of| with.store.level(of));
            let before = old.map_or(Vec::new(), |old| Self::entries_of(old, codes_before(old), with, old_state));
            let after = new.map_or(Vec::new(), |new| {
                Self::entries_of(new, self.codes_of(new, with), with, |child| self.state(child))
            });
            let old_stage = level(old).map_or(0, |level| with.stage(level).0 as u16);
            let new_stage = level(new).map_or(0, |level| with.stage(level).0 as u16);
            let entry = |stage: u16, (key, next): (EntryKey, StateId)| StageEntry { stage, state: *state, key, next };
            let before = before.into_iter().map(|of| entry(old_stage, of)).collect();
            let after = after.into_iter().map(|of| entry(new_stage, of)).collect();
            merge(before, after, &mut change);
        }
        merge(validity(old, old_state), validity(&self.entry_point, |of| self.state(of)), &mut change);
        for (level, before) in old_codes {
            let stage = with.stage(*level).0 as u16;
            let (before, after) = (before.entries(stage), self.codes[level].entries(stage));
            let (old, new): (HashSet<_>, HashSet<_>) = (before.iter().collect(), after.iter().collect());
            change.old_codes.extend(before.iter().filter(|entry| !new.contains(entry)).cloned());
            change.new_codes.extend(after.iter().filter(|entry| !old.contains(entry)).cloned());
        }
        self.leaves(&pairs, with, &mut change);
        change.kept = pairs.iter().filter(|(old, new, _)| old.is_some() && new.is_some()).map(|pair| pair.2).collect();
        change.kept.sort_unstable();
        change
    }

    /// Records the difference between two nodes of one state that match single values. Returns `false` without an
    /// effect if it cannot: if the nodes are of different levels, have codes, or have an entry for the values that no
    /// rule names.
    fn exact_difference(
        &self,
        (old, new, state): (Ref, Ref, StateId),
        with: &EmitContext<'_>,
        old_state: impl Fn(Ref) -> StateId,
        change: &mut TableChange,
    ) -> bool {
        let Some(level) = with.store.level(new).filter(|level| with.store.level(old) == Some(*level)) else {
            return false;
        };
        let (stage, width) = with.stage(level);
        let is_exact = with.stages[stage].wide.is_none() && !self.codes.contains_key(&level);
        let max = max_of(width);
        if !is_exact || ![old, new].into_iter().all(|of| is_mostly_nothing(of, max, with.store)) {
            return false;
        }
        let entry =
            |value: u128, next: StateId| StageEntry { stage: stage as u16, state, key: EntryKey::Exact(value), next };
        let mut intervals = differing_children(with.store, old, new).peekable();
        while let Some((first, before, after)) = intervals.next() {
            // A node in both diagrams has one state.
            if before == after {
                continue;
            }
            let last = intervals.peek().map_or(max, |(next, ..)| next - 1);
            let (before, after) = (old_state(before), self.state(after));
            for value in first..=last {
                match (before, after) {
                    (0, 0) => {}
                    (0, next) => change.inserted.push(entry(value, next)),
                    (next, 0) => change.deleted.push(entry(value, next)),
                    (before, after) if before == after => {}
                    (_, next) => change.modified.push(entry(value, next)),
                }
            }
        }
        true
    }

    fn leaves(&mut self, pairs: &[Pair], with: &EmitContext<'_>, change: &mut TableChange) {
        let set = |function: &Option<Ref>| function.filter(|of| of.is_set() && *of != Ref::NOTHING);
        // All new groups are acquired before old ones are released, so that groups in both stay.
        let mut old_ports = Vec::new();
        for (old, new, state) in pairs {
            let after = set(new).map(|new| {
                let mut delivery = deliver(with, new);
                delivery.group = self.groups.acquire(&delivery.ports, &mut change.new_groups);
                Leaf { state: *state, delivery }
            });
            let is_old = set(old).map(|old| old_ports.push(deliver(with, old).ports)).is_some();
            match (is_old, after) {
                (true, Some(leaf)) => change.modified_leaves.push(leaf),
                (false, Some(leaf)) => change.new_leaves.push(leaf),
                (true, None) => change.old_leaves.push(*state),
                (false, None) => {}
            }
        }
        for ports in old_ports {
            self.groups.release(&ports, &mut change.old_groups);
        }
    }

    /// Calls `each` with the stage and key of every entry. Only one node's entries are in memory at a time.
    pub fn each_entry(&self, with: &EmitContext<'_>, mut each: impl FnMut(usize, &EntryKey)) {
        let functions = self.nodes.keys().copied().chain(self.entry_point.direct());
        for function in functions.filter(|of| *of != Ref::NOTHING && !of.is_set()) {
            let stage = with.stage(with.store.level(function).unwrap_or(0)).0;
            let entries = Self::entries_of(function, self.codes_of(function, with), with, |child| self.state(child));
            entries.iter().for_each(|(key, _)| each(stage, key));
        }
        validity(&self.entry_point, |of| self.state(of)).iter().for_each(|entry| each(0, &entry.key));
    }

    /// Returns the entries of all code tables.
    pub fn code_entries(&self, with: &EmitContext<'_>) -> Vec<CodeEntry> {
        self.codes.iter().flat_map(|(level, codes)| codes.entries(with.stage(*level).0 as u16)).collect()
    }

    /// Returns the full contents of the tables.
    pub fn tables(&self, with: &EmitContext<'_>) -> Tables {
        let mut tables = Tables { groups: self.groups.list(), ..Tables::default() };
        let functions = self.nodes.iter().map(|(function, node)| (*function, node.state));
        for (function, state) in functions.chain(self.entry_point.direct().map(|root| (root, 0))) {
            if function == Ref::NOTHING {
                continue;
            }
            if function.is_set() {
                let mut delivery = deliver(with, function);
                delivery.group = self.groups.find(&delivery.ports);
                tables.leaves.push(Leaf { state, delivery });
                continue;
            }
            let stage = with.stage(with.store.level(function).unwrap_or(0)).0 as u16;
            let entries = Self::entries_of(function, self.codes_of(function, with), with, |child| self.state(child));
            tables.entries.extend(entries.into_iter().map(|(key, next)| StageEntry { stage, state, key, next }));
        }
        tables.entries.extend(validity(&self.entry_point, |of| self.state(of)));
        tables.codes = self.code_entries(with);
        tables.entries.sort_unstable();
        tables.leaves.sort_unstable_by_key(|leaf| leaf.state);
        tables
    }
}

/// Whether a node leads nowhere for more than half of the values up to `max`. No other result is then as frequent, and
/// the values without entries are those that lead nowhere.
fn is_mostly_nothing(node: Ref, max: u128, store: &Store) -> bool {
    let mut arms = store.arms(node).peekable();
    let mut count = 0;
    while let Some((first, child)) = arms.next() {
        if child == Ref::NOTHING {
            count += arms.peek().map_or(max, |(next, _)| next - 1) - first;
        }
    }
    count > max / 2
}

/// Returns the entries of the validity table, sorted.
fn validity(entry_point: &EntryPoint, state_of: impl Fn(Ref) -> StateId) -> Vec<StageEntry> {
    let useful = entry_point.frontier.iter().filter(|(_, function)| *function != Ref::NOTHING);
    let entry = |(pattern, function): &(Vec<Option<bool>>, Ref)| StageEntry {
        stage: 0,
        state: 0,
        key: EntryKey::Validity(pattern.clone()),
        next: state_of(*function),
    };
    let mut entries: Vec<StageEntry> = useful.map(entry).collect();
    entries.sort_unstable();
    entries
}

/// Records the changes from one sorted list of entries to another.
fn merge(before: Vec<StageEntry>, after: Vec<StageEntry>, change: &mut TableChange) {
    let place = |entry: &StageEntry| (entry.stage, entry.state, entry.key.clone());
    let mut before = before.into_iter().peekable();
    for entry in after {
        while let Some(old) = before.next_if(|old| place(old) < place(&entry)) {
            change.deleted.push(old);
        }
        match before.next_if(|old| place(old) == place(&entry)) {
            Some(old) if old.next == entry.next => {}
            Some(_) => change.modified.push(entry),
            None => change.inserted.push(entry),
        }
    }
    change.deleted.extend(before);
}
