//! Scans linearly over entries of any kind, in the order of their rank.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use bits::Bits;
use ir::KeyValue;

use super::{Backend, Handle, KeyShape, Lookup, matches};
use crate::objects::FoldMap;

/// The rank of an entry: priority, then total length of all prefixes (for several prefixes without a priority), then
/// age.
type Rank = (Reverse<i32>, Reverse<u32>, u64);

#[derive(Clone, Debug)]
/// Entries in the order of their rank; the reference for the other backends.
pub struct Scan {
    shape: Vec<KeyShape>,
    rules: BTreeMap<Rank, (Box<[KeyValue]>, Handle)>,
    ranks: FoldMap<(Box<[KeyValue]>, i32), Rank>,
    inserted: u64,
}

impl Scan {
    /// Creates an empty table with a key of this shape.
    pub fn new(shape: &[KeyShape]) -> Self {
        Scan { shape: shape.to_vec(), rules: BTreeMap::new(), ranks: FoldMap::default(), inserted: 0 }
    }
}

impl Backend for Scan {
    fn copy(&self) -> Box<dyn Backend> {
        Box::new(self.clone())
    }

    fn lookup(&self, key: &[Bits]) -> Lookup {
        let rule = self.rules.values().find(|(values, _)| matches(&self.shape, values, key));
        rule.map_or(Lookup::Miss, |(_, handle)| Lookup::Hit(*handle))
    }

    fn find(&self, keys: &[KeyValue], priority: i32) -> Option<Handle> {
        let rank = self.ranks.get(&(keys.into(), priority))?;
        self.rules.get(rank).map(|(_, handle)| *handle)
    }

    fn insert(&mut self, keys: &[KeyValue], priority: i32, handle: Handle) {
        let prefixes = keys.iter().map(|key| if let KeyValue::Lpm(_, prefix) = key { *prefix } else { 0 }).sum();
        let rank = (Reverse(priority), Reverse(prefixes), self.inserted);
        self.inserted += 1;
        self.rules.insert(rank, (keys.into(), handle));
        self.ranks.insert((keys.into(), priority), rank);
    }

    fn remove(&mut self, keys: &[KeyValue], priority: i32) -> Option<Handle> {
        let rank = self.ranks.remove(&(keys.into(), priority))?;
        self.rules.remove(&rank).map(|(_, handle)| handle)
    }
}
