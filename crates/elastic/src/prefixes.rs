//! Expands prefixes to the lengths that are looked up (controlled prefix expansion; Srinivasan, Varghese, 1999).
//!
//! A prefix whose length is not served is expanded to all its continuations of the next served length. Where several
//! prefixes of one band (the lengths above a served one, up to the next) continue to the same cell key, the longest
//! owns it.

use foldhash::quality::RandomState;
use hashbrown::HashMap;

use crate::keys::{KeyForm, ProbeKey};

/// A change of a cell key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeChange {
    /// The cell key.
    pub key: ProbeKey,
    /// Its new record; `None` removes it.
    pub record: Option<Box<[u8]>>,
}

/// The prefixes of a table, as the controller wrote them.
#[derive(Debug)]
pub struct PrefixSet {
    keys: KeyForm,
    /// Records by masked key, which begins with the prefix's own length.
    prefixes: HashMap<ProbeKey, Box<[u8]>, RandomState>,
}

impl PrefixSet {
    /// Creates an empty set.
    pub fn new(keys: KeyForm) -> PrefixSet {
        PrefixSet { keys, prefixes: HashMap::default() }
    }

    /// Returns the number of prefixes.
    pub fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Whether there is no prefix.
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// Returns the record of a prefix.
    pub fn get(&self, key: &[u8], length: u32) -> Option<&[u8]> {
        self.prefixes.get(&self.keys.masked(key, length)).map(|record| &**record)
    }

    /// Sets the record of a prefix, or removes it (`None`). Returns the changes of cell keys.
    pub fn set(&mut self, key: &[u8], length: u32, record: Option<&[u8]>) -> Vec<ProbeChange> {
        let Some(served) = self.keys.served_length(length) else { return Vec::new() };
        let masked = self.keys.masked(key, length);
        match record {
            Some(record) => _ = self.prefixes.insert(masked, record.into()),
            None => _ = self.prefixes.remove(&masked),
        }
        let expanded = self.keys.expansions(key, length, served);
        let changes = expanded.iter().filter_map(|key| self.change(key, length, served));
        changes.collect()
    }

    /// Returns the change of one cell key after the prefix of `length` bits over it changed.
    fn change(&self, key: &[u8], length: u32, served: u32) -> Option<ProbeChange> {
        let lowest = self.keys.length_before(served).map_or(0, |before| before + 1);
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
