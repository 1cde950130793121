//! Finds the rows of tables by their keys.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;
use smallvec::SmallVec;

/// A key: its elements, each in whole bytes, the most significant first.
pub(super) type RowKey = SmallVec<[u8; 24]>;

/// An index of keys. Packets choose the keys, so it is hashed only under a seed that they do not know.
#[derive(Debug)]
pub(super) enum RowIndex {
    Ordered(BTreeMap<RowKey, u32>),
    /// Nothing depends on the order of its keys.
    Hashed(HashMap<RowKey, u32, SeedableRandomState>),
}

impl Default for RowIndex {
    fn default() -> RowIndex {
        RowIndex::Ordered(BTreeMap::new())
    }
}

impl RowIndex {
    /// Creates a hashed index, which finds single keys only.
    pub fn hashed(seed: u64) -> RowIndex {
        RowIndex::Hashed(HashMap::with_hasher(SeedableRandomState::with_seed(seed, SharedSeed::global_fixed())))
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        match self {
            RowIndex::Ordered(keys) => keys.is_empty(),
            RowIndex::Hashed(keys) => keys.is_empty(),
        }
    }

    /// Returns the index of a key.
    pub fn get(&self, key: &[u8]) -> Option<u32> {
        match self {
            RowIndex::Ordered(keys) => keys.get(key).copied(),
            RowIndex::Hashed(keys) => keys.get(key).copied(),
        }
    }

    /// Adds a key.
    pub fn insert(&mut self, key: RowKey, index: u32) {
        match self {
            RowIndex::Ordered(keys) => keys.insert(key, index),
            RowIndex::Hashed(keys) => keys.insert(key, index),
        };
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &[u8]) {
        match self {
            RowIndex::Ordered(keys) => keys.remove(key),
            RowIndex::Hashed(keys) => keys.remove(key),
        };
    }

    /// Returns the indices of the keys from a first to a last one, both included.
    ///
    /// # Panics
    /// If it is hashed.
    pub fn range(&self, first: &[u8], last: &[u8]) -> Vec<u32> {
        let RowIndex::Ordered(keys) = self else { panic!("keys with prefixes are ordered") };
        let bounds = (Bound::Included(first), Bound::Included(last));
        keys.range::<[u8], _>(bounds).map(|(_, index)| *index).collect()
    }
}
