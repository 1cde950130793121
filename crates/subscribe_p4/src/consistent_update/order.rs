//! Orders the writes to entries of surviving states.

use std::collections::BTreeMap;

use subscribe::{EntryKey, StageEntry, StateId};

use crate::entries::Update;

/// Identity of an entry.
type EntryId = (u16, StateId, EntryKey);

/// Priorities of entries that overlap older entries of their state, higher than those of the older entries. (The new
/// entries of a state do not overlap one another, nor do the old ones.)
#[derive(Clone, Debug, Default)]
pub(crate) struct PriorityBoost(BTreeMap<EntryId, u32>);

impl PriorityBoost {
    fn key(entry: &StageEntry) -> EntryId {
        (entry.stage, entry.state, entry.key.clone())
    }

    pub fn priority(&self, entry: &StageEntry) -> u32 {
        if self.0.is_empty() {
            return 1;
        }
        self.0.get(&PriorityBoost::key(entry)).copied().unwrap_or(1)
    }

    pub fn remove(&mut self, entry: &StageEntry) {
        if !self.0.is_empty() {
            self.0.remove(&PriorityBoost::key(entry));
        }
    }

    pub fn extend(&mut self, entries: Vec<(EntryId, u32)>) {
        self.0.extend(entries);
    }
}

/// Returns the priorities of new entries of surviving states that overlap old ones.
pub(crate) fn overlapped(new: &[&StageEntry], old: &[&StageEntry], raised: &PriorityBoost) -> Vec<(EntryId, u32)> {
    let mut by_state: BTreeMap<(u16, StateId), Vec<&StageEntry>> = BTreeMap::new();
    for entry in old {
        by_state.entry((entry.stage, entry.state)).or_default().push(entry);
    }
    let above = |entry: &StageEntry| {
        let others = by_state.get(&(entry.stage, entry.state))?;
        let below = others.iter().filter(|other| overlap(&entry.key, &other.key));
        Some((PriorityBoost::key(entry), 1 + below.map(|other| raised.priority(other)).max()?))
    };
    new.iter().filter_map(|entry| above(entry)).collect()
}

fn overlap(one: &EntryKey, other: &EntryKey) -> bool {
    match (one, other) {
        (EntryKey::Range(first, last), EntryKey::Range(from, to)) => first <= to && from <= last,
        (EntryKey::Validity(one), EntryKey::Validity(other)) => {
            one.iter().zip(other).all(|(one, other)| one.is_none() || other.is_none() || one == other)
        }
        _ => false,
    }
}

/// Returns the precedence among entries of a state that match the same value; larger values are looked up first.
fn specificity(entry: &StageEntry) -> u32 {
    match entry.key {
        EntryKey::Exact(_) => u32::MAX,
        EntryKey::Prefix { length, .. } => length + 1,
        EntryKey::Range(..) | EntryKey::Validity(_) => 1,
        EntryKey::Rest => 0,
    }
}

/// Sorts entries in insertion order: most specific first.
pub(crate) fn least_specific_last(mut entries: Vec<&StageEntry>) -> Vec<&StageEntry> {
    entries.sort_by_key(|entry| std::cmp::Reverse(specificity(entry)));
    entries
}

/// Sorts entries in deletion order: least specific first.
pub(crate) fn least_specific_first(mut entries: Vec<&StageEntry>) -> Vec<&StageEntry> {
    entries.sort_by_key(|entry| specificity(entry));
    entries
}

/// Position of a table in a state's lookup order: the stage, and within it exact, wide, rest.
pub(crate) type TablePosition = (u16, u8);

fn position(entry: &StageEntry) -> TablePosition {
    let part = match entry.key {
        EntryKey::Exact(_) => 0,
        EntryKey::Range(..) | EntryKey::Prefix { .. } | EntryKey::Validity(_) => 1,
        EntryKey::Rest => 2,
    };
    (entry.stage, part)
}

/// The leaf table comes after all stages.
pub(crate) const LEAF: TablePosition = (u16::MAX, 0);

/// Writes to surviving states, grouped in phases with a pause before each. A message that missed an entry because it
/// was not yet inserted must find the later tables unchanged.
#[derive(Default)]
pub(crate) struct Phases {
    phases: Vec<Vec<Update>>,
    /// By state, the first table into which the last phase inserts.
    inserted: BTreeMap<StateId, TablePosition>,
}

impl Phases {
    pub fn entry(&mut self, entry: &StageEntry, update: Update) {
        self.write(entry.state, position(entry), update);
    }

    pub fn leaf(&mut self, state: StateId, updates: Vec<Update>) {
        updates.into_iter().for_each(|update| self.write(state, LEAF, update));
    }

    /// Adds a write that is independent of the others.
    pub fn independent(&mut self, update: Update) {
        if self.phases.is_empty() {
            self.phases.push(Vec::new());
        }
        self.phases.last_mut().expect("there is one").push(update);
    }

    /// Adds a write to a table of a state.
    pub fn write(&mut self, state: StateId, position: TablePosition, update: Update) {
        if self.inserted.get(&state).is_some_and(|first| *first < position) {
            self.phases.push(Vec::new());
            self.inserted.clear();
        }
        if matches!(update, Update::Insert(_)) {
            let first = self.inserted.entry(state).or_insert(position);
            *first = position.min(*first);
        }
        self.independent(update);
    }

    pub fn done(self) -> Vec<Vec<Update>> {
        self.phases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_inserted_in_order_of_lookup_and_deleted_in_reverse() {
        let prefix = |length| EntryKey::Prefix { value: 0, length };
        let keys = [EntryKey::Rest, prefix(8), EntryKey::Exact(7), prefix(16), EntryKey::Range(1, 9)];
        let entries = keys.map(|key| StageEntry { stage: 1, state: 2, key, next: 3 });
        let order = |entries: Vec<&StageEntry>| entries.into_iter().map(|entry| entry.key.clone()).collect::<Vec<_>>();
        let mut expected = [EntryKey::Exact(7), prefix(16), prefix(8), EntryKey::Range(1, 9), EntryKey::Rest];
        assert_eq!(order(least_specific_last(entries.iter().collect())), expected);
        expected.reverse();
        assert_eq!(order(least_specific_first(entries.iter().collect())), expected);
    }
}
