//! Keeps every change of an entry that a READ could still miss, in the switch.
//!
//! A change enters the overlay when it is accepted, so that each later lookup sees it. An entry is *pinned* while a
//! write that concerns its key is not yet acknowledged by all copies; entries that move are pinned too. An unpinned
//! entry stays for the *grace period*: until all lookups that had begun before have ended, since their READs may have
//! been executed before the write. The stash is pinned for good.

use std::collections::VecDeque;

use foldhash::quality::RandomState;
use hashbrown::HashMap;

use crate::mutant::{ElasticMutant, ElasticMutation};

#[derive(Debug)]
struct OverlayEntry {
    /// The record, or `None` for a deleted entry.
    record: Option<Box<[u8]>>,
    pins: u32,
    /// Number of the last change of `pins` or `record`.
    version: u64,
}

#[derive(Debug)]
struct RetiringEntry {
    /// Lookups before this number may still miss the entry.
    before: u64,
    version: u64,
    key: Box<[u8]>,
}

/// Entries and tombstones in flight, and the stash.
#[derive(Debug, Default)]
pub struct Overlay {
    entries: HashMap<Box<[u8]>, OverlayEntry, RandomState>,
    retiring: VecDeque<RetiringEntry>,
    versions: u64,
    mutation: ElasticMutation,
}

impl Overlay {
    pub(crate) fn mutated(mutation: ElasticMutation) -> Overlay {
        Overlay { mutation, ..Overlay::default() }
    }

    /// Returns the number of entries and tombstones, including the stash.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is in flight and the stash is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the record of a key: `Some(None)` if it is deleted, `None` if remote memory has to be read.
    pub fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        self.entries.get(key).map(|entry| entry.record.as_deref())
    }

    /// Sets the record of a key, or deletes it (`None`), and pins it.
    pub fn put(&mut self, key: &[u8], record: Option<&[u8]>) {
        self.pin(key, record);
        self.entries.get_mut(key).expect("it was pinned").record = record.map(Box::from);
    }

    /// Pins a key. `record` is its current record, in case the overlay does not have it.
    pub fn pin(&mut self, key: &[u8], record: Option<&[u8]>) {
        self.versions += 1;
        if let Some(entry) = self.entries.get_mut(key) {
            entry.pins += 1;
            entry.version = self.versions;
            return;
        }
        let entry = OverlayEntry { record: record.map(Box::from), pins: 1, version: self.versions };
        self.entries.insert(key.into(), entry);
    }

    /// Removes a pin of a key. Without another one the entry leaves once all lookups before the number
    /// `next_lookup` have ended.
    pub fn unpin(&mut self, key: &[u8], next_lookup: u64) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.pins = entry.pins.saturating_sub(1);
        if entry.pins > 0 {
            return;
        }
        if self.mutation.is(ElasticMutant::NoGracePeriod) {
            self.entries.remove(key);
            return;
        }
        self.retiring.push_back(RetiringEntry { before: next_lookup, version: entry.version, key: key.into() });
    }

    /// Removes the entries whose grace period is over. `oldest` is the number of the oldest lookup in progress.
    pub fn retire(&mut self, oldest: u64) {
        while self.retiring.front().is_some_and(|retiring| retiring.before <= oldest) {
            let retiring = self.retiring.pop_front().expect("there is a first");
            let is_unchanged = |entry: &OverlayEntry| entry.pins == 0 && entry.version == retiring.version;
            if self.entries.get(&retiring.key).is_some_and(is_unchanged) {
                self.entries.remove(&retiring.key);
            }
        }
    }
}

/// Numbers lookups, and keeps the oldest one in progress.
#[derive(Debug, Default)]
pub struct LookupNumbers {
    /// Number of the first element of `ended`.
    first: u64,
    ended: VecDeque<bool>,
}

impl LookupNumbers {
    /// Returns the number of the next lookup.
    pub fn next(&self) -> u64 {
        self.first + self.ended.len() as u64
    }

    /// Begins a lookup.
    pub fn begin(&mut self) -> u64 {
        self.ended.push_back(false);
        self.next() - 1
    }

    /// Ends a lookup.
    pub fn end(&mut self, number: u64) {
        if let Some(ended) = number.checked_sub(self.first).and_then(|at| self.ended.get_mut(at as usize)) {
            *ended = true;
        }
        while self.ended.front() == Some(&true) {
            self.ended.pop_front();
            self.first += 1;
        }
    }

    /// Returns the number of the oldest lookup in progress, or of the next one.
    pub fn oldest(&self) -> u64 {
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_stays_until_all_earlier_lookups_have_ended() {
        let (mut overlay, mut lookups) = (Overlay::default(), LookupNumbers::default());
        let (first, second) = (lookups.begin(), lookups.begin());
        overlay.put(b"k", Some(b"1"));
        overlay.unpin(b"k", lookups.next());
        let third = lookups.begin();
        lookups.end(second);
        overlay.retire(lookups.oldest());
        assert_eq!(overlay.get(b"k"), Some(Some(&b"1"[..])));
        lookups.end(first);
        overlay.retire(lookups.oldest());
        assert_eq!(overlay.get(b"k"), None, "lookup {third} began after the acknowledgement");
    }

    #[test]
    fn a_change_during_the_grace_period_begins_a_new_one() {
        let (mut overlay, mut lookups) = (Overlay::default(), LookupNumbers::default());
        let first = lookups.begin();
        overlay.put(b"k", Some(b"1"));
        overlay.unpin(b"k", lookups.next());
        let second = lookups.begin();
        overlay.put(b"k", None);
        lookups.end(first);
        overlay.retire(lookups.oldest());
        assert_eq!(overlay.get(b"k"), Some(None));
        overlay.unpin(b"k", lookups.next());
        overlay.retire(lookups.oldest());
        assert_eq!(overlay.get(b"k"), Some(None));
        lookups.end(second);
        overlay.retire(lookups.oldest());
        assert!(overlay.is_empty());
    }
}
