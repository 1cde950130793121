//! Expands prefixes to the lengths that have cells (controlled prefix expansion; Srinivasan, Varghese, 1999).
//!
//! A prefix whose length is not served is expanded to all its continuations of the next served length. Where several
//! prefixes of one band (the lengths that are expanded to a served one) continue to the same cell key, the longest owns
//! it. Prefixes that would take too many cells stay here and are answered by the switch.

use foldhash::quality::RandomState;
use hashbrown::HashMap;

use crate::keys::{KeyForm, ProbeKey};
use crate::mutant::{ElasticMutant, ElasticMutation};

/// A change of a cell key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeChange {
    /// The cell key.
    pub key: ProbeKey,
    /// Its new record; `None` removes it.
    pub record: Option<Box<[u8]>>,
}

/// A prefix length at which a lookup may find something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedLength {
    /// The length: that of cells, or of prefixes that stay in the switch.
    pub bits: u32,
    /// Whether the prefixes of this length stay in the switch.
    pub is_kept: bool,
    /// Number of prefixes that need a lookup of this length.
    prefixes: u32,
}

/// The prefixes of a table, as the controller wrote them.
#[derive(Debug)]
pub struct PrefixSet {
    keys: KeyForm,
    /// Records by masked key, which begins with the prefix's own length.
    prefixes: HashMap<ProbeKey, Box<[u8]>, RandomState>,
    /// Lengths with prefixes, the longest first.
    used: Vec<UsedLength>,
    kept: usize,
    mutation: ElasticMutation,
}

impl PrefixSet {
    /// Creates an empty set.
    pub fn new(keys: KeyForm) -> PrefixSet {
        let mutation = ElasticMutation::default();
        PrefixSet { keys, prefixes: HashMap::default(), used: Vec::new(), kept: 0, mutation }
    }

    pub(crate) fn mutated(self, mutation: ElasticMutation) -> PrefixSet {
        PrefixSet { mutation, ..self }
    }

    /// Returns the number of prefixes.
    pub fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Whether there is no prefix.
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// Returns the number of prefixes that stay in the switch.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Returns the lengths at which a lookup may find something, the longest first.
    pub fn used(&self) -> &[UsedLength] {
        &self.used
    }

    /// Returns the record of a prefix.
    pub fn get(&self, key: &[u8], length: u32) -> Option<&[u8]> {
        self.prefixes.get(&self.keys.masked(key, length)).map(|record| &**record)
    }

    /// Sets the record of a prefix, or removes it (`None`). Returns the changes of cell keys: none if it stays in the
    /// switch.
    pub fn set(&mut self, key: &[u8], length: u32, record: Option<&[u8]>) -> Vec<ProbeChange> {
        let masked = self.keys.masked(key, length);
        let was_there = match record {
            Some(record) => self.prefixes.insert(masked, record.into()).is_some(),
            None => self.prefixes.remove(&masked).is_some(),
        };
        if was_there != record.is_some() {
            self.count(length, record.is_some());
        }
        let Some(served) = self.keys.served_length(length) else { return Vec::new() };
        let expanded = self.keys.expansions(key, length, served);
        let changes = expanded.iter().filter_map(|key| self.change(key, length, served));
        changes.collect()
    }

    /// Counts a prefix that was added or removed.
    fn count(&mut self, length: u32, is_added: bool) {
        let served = self.keys.served_length(length);
        let (bits, is_kept) = (served.unwrap_or(length), served.is_none());
        let at = self.used.partition_point(|used| used.bits > bits);
        if self.used.get(at).is_none_or(|used| used.bits != bits) {
            self.used.insert(at, UsedLength { bits, is_kept, prefixes: 0 });
        }
        let used = &mut self.used[at];
        if is_added {
            used.prefixes += 1;
            self.kept += usize::from(is_kept);
        } else {
            used.prefixes -= 1;
            self.kept -= usize::from(is_kept);
            if used.prefixes == 0 {
                self.used.remove(at);
            }
        }
    }

    /// Returns the change of one cell key after the prefix of `length` bits over it changed.
    fn change(&self, key: &[u8], length: u32, served: u32) -> Option<ProbeChange> {
        let lowest = match self.mutation.is(ElasticMutant::ShorterForgotten) {
            true => length,
            false => self.keys.shortest_of(served),
        };
        let owner = (lowest..=served).rev().find_map(|owner| Some((owner, self.get(key, owner)?)));
        match owner {
            Some((owner, _)) if owner > length => None,
            owner => {
                let record = owner.map(|(_, record)| record.into());
                Some(ProbeChange { key: self.keys.masked(key, served), record })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(set: &mut PrefixSet, key: u8, length: u32, record: Option<u8>) -> Vec<(Vec<u8>, Option<u8>)> {
        let changes = set.set(&[key], length, record.as_ref().map(std::slice::from_ref));
        changes.into_iter().map(|change| (change.key.to_vec(), change.record.map(|record| record[0]))).collect()
    }

    #[test]
    fn the_longest_prefix_of_a_band_owns_a_cell_key() {
        let keys = KeyForm::Prefix { exact_bytes: 0, bits: 8, lengths: vec![4, 8], expansion_bits: 2 };
        let mut set = PrefixSet::new(keys);
        assert_eq!(changes(&mut set, 0xa0, 3, Some(1)), [(vec![4, 0xa0], Some(1)), (vec![4, 0xb0], Some(1))]);
        assert_eq!(changes(&mut set, 0xb0, 4, Some(2)), [(vec![4, 0xb0], Some(2))]);
        assert_eq!(changes(&mut set, 0xa0, 3, Some(3)), [(vec![4, 0xa0], Some(3))]);
        assert_eq!(changes(&mut set, 0xb0, 4, None), [(vec![4, 0xb0], Some(3))]);
        // A length of 1 would take eight cells, and one of 5 as well.
        assert_eq!(changes(&mut set, 0x80, 1, Some(4)), []);
        assert_eq!(changes(&mut set, 0xa8, 5, Some(5)), []);
        let used = |set: &PrefixSet| set.used().iter().map(|used| (used.bits, used.is_kept)).collect::<Vec<_>>();
        assert_eq!((used(&set), set.kept(), set.len()), (vec![(5, true), (4, false), (1, true)], 2, 3));
        assert_eq!(changes(&mut set, 0xa8, 5, None), []);
        assert_eq!(changes(&mut set, 0xa8, 5, None), [], "it is gone already");
        assert_eq!(changes(&mut set, 0xa0, 3, None), [(vec![4, 0xa0], None), (vec![4, 0xb0], None)]);
        assert_eq!((used(&set), set.kept(), set.get(&[0xff], 1)), (vec![(1, true)], 1, Some(&[4][..])));
    }
}
