//! The order in which the entries of one state change, so that each message meets the old entry or the new one.

use std::collections::BTreeMap;

use subscribe::{Entry, EntryKey, State};

use crate::entries::Update;

/// Which entry it is.
type Key = (u16, State, EntryKey);

/// Entries that overlap others of their state for as long as those are there: with a priority above theirs. (The new
/// entries of a state do not overlap one another, nor do the old ones.)
#[derive(Clone, Debug, Default)]
pub(crate) struct Raised(BTreeMap<Key, u32>);

impl Raised {
    fn key(entry: &Entry) -> Key {
        (entry.stage, entry.state, entry.key.clone())
    }

    pub fn priority(&self, entry: &Entry) -> u32 {
        if self.0.is_empty() {
            return 1;
        }
        self.0.get(&Raised::key(entry)).copied().unwrap_or(1)
    }

    pub fn remove(&mut self, entry: &Entry) {
        if !self.0.is_empty() {
            self.0.remove(&Raised::key(entry));
        }
    }

    pub fn extend(&mut self, entries: Vec<(Key, u32)>) {
        self.0.extend(entries);
    }
}

/// The priorities of new entries that overlap old ones, of states that stay.
pub(crate) fn overlapped(new: &[&Entry], old: &[&Entry], raised: &Raised) -> Vec<(Key, u32)> {
    let mut by_state: BTreeMap<(u16, State), Vec<&Entry>> = BTreeMap::new();
    for entry in old {
        by_state.entry((entry.stage, entry.state)).or_default().push(entry);
    }
    let above = |entry: &Entry| {
        let others = by_state.get(&(entry.stage, entry.state))?;
        let below = others.iter().filter(|other| overlap(&entry.key, &other.key));
        Some((Raised::key(entry), 1 + below.map(|other| raised.priority(other)).max()?))
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

/// Of two entries of a state that match a value, the one with the larger number is looked up before the other.
fn specificity(entry: &Entry) -> u32 {
    match entry.key {
        EntryKey::Exact(_) => u32::MAX,
        EntryKey::Prefix { length, .. } => length + 1,
        EntryKey::Range(..) | EntryKey::Validity(_) => 1,
        EntryKey::Rest => 0,
    }
}

/// In the order in which they are inserted.
pub(crate) fn least_specific_last(mut entries: Vec<&Entry>) -> Vec<&Entry> {
    entries.sort_by_key(|entry| std::cmp::Reverse(specificity(entry)));
    entries
}

/// In the order in which they are deleted.
pub(crate) fn least_specific_first(mut entries: Vec<&Entry>) -> Vec<&Entry> {
    entries.sort_by_key(|entry| specificity(entry));
    entries
}

/// Which of a state's tables a message looks into before others: the stage, and within it exact, wide, rest.
pub(crate) type Place = (u16, u8);

fn place(entry: &Entry) -> Place {
    let part = match entry.key {
        EntryKey::Exact(_) => 0,
        EntryKey::Range(..) | EntryKey::Prefix { .. } | EntryKey::Validity(_) => 1,
        EntryKey::Rest => 2,
    };
    (entry.stage, part)
}

/// The leaf table comes behind all stages.
pub(crate) const LEAF: Place = (u16::MAX, 0);

/// Writes to states that stay, with pauses between: a message that missed an entry before it was inserted has to find what
/// it finds in the tables behind as it was then.
#[derive(Default)]
pub(crate) struct Rounds {
    rounds: Vec<Vec<Update>>,
    /// By state, the first table into which the last round inserts.
    inserted: BTreeMap<State, Place>,
}

impl Rounds {
    pub fn entry(&mut self, entry: &Entry, update: Update) {
        self.write(entry.state, place(entry), update);
    }

    pub fn leaf(&mut self, state: State, updates: Vec<Update>) {
        updates.into_iter().for_each(|update| self.write(state, LEAF, update));
    }

    /// A write that has nothing to do with the others.
    pub fn besides(&mut self, update: Update) {
        if self.rounds.is_empty() {
            self.rounds.push(Vec::new());
        }
        self.rounds.last_mut().expect("there is one").push(update);
    }

    /// A write to a table of a state.
    pub fn write(&mut self, state: State, place: Place, update: Update) {
        if self.inserted.get(&state).is_some_and(|first| *first < place) {
            self.rounds.push(Vec::new());
            self.inserted.clear();
        }
        if matches!(update, Update::Insert(_)) {
            let first = self.inserted.entry(state).or_insert(place);
            *first = place.min(*first);
        }
        self.besides(update);
    }

    pub fn done(self) -> Vec<Vec<Update>> {
        self.rounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_up_first_is_inserted_first_and_deleted_last() {
        let prefix = |length| EntryKey::Prefix { value: 0, length };
        let keys = [EntryKey::Rest, prefix(8), EntryKey::Exact(7), prefix(16), EntryKey::Range(1, 9)];
        let entries = keys.map(|key| Entry { stage: 1, state: 2, key, next: 3 });
        let order = |entries: Vec<&Entry>| entries.into_iter().map(|entry| entry.key.clone()).collect::<Vec<_>>();
        let mut expected = [EntryKey::Exact(7), prefix(16), prefix(8), EntryKey::Range(1, 9), EntryKey::Rest];
        assert_eq!(order(least_specific_last(entries.iter().collect())), expected);
        expected.reverse();
        assert_eq!(order(least_specific_first(entries.iter().collect())), expected);
    }
}
