//! Entries by their whole key.

use bits::Bits;
use ir::KeyValue;
use smallvec::SmallVec;

use super::map::WordMap;
use super::words::{KeyWords, Words};
use super::{Backend, Handle, KeyShape, Lookup};

#[derive(Debug)]
pub(super) struct Exact {
    words: KeyWords,
    entries: WordMap,
}

impl Exact {
    pub(super) fn new(shape: &[KeyShape]) -> Self {
        let words = KeyWords::new(shape.iter().map(|key| (key.width, key.kind)));
        Exact { entries: WordMap::new(words.words), words }
    }

    /// The words of values that are all exact.
    fn plain(&self, keys: &[KeyValue]) -> Option<Words> {
        let each = |key: &KeyValue| match key {
            KeyValue::Exact(value) => Some(value.clone()),
            _ => None,
        };
        let values: SmallVec<[Bits; 4]> = keys.iter().map(each).collect::<Option<_>>()?;
        Some(self.words.pack(&values))
    }
}

impl Backend for Exact {
    fn lookup(&self, key: &[Bits]) -> Lookup {
        self.entries.get(&self.words.pack(key)).map_or(Lookup::Miss, Lookup::Hit)
    }

    fn lookup_words(&self, key: &[u64]) -> Option<Lookup> {
        Some(self.entries.get(key).map_or(Lookup::Miss, Lookup::Hit))
    }

    fn find(&self, keys: &[KeyValue], _: i32) -> Option<Handle> {
        self.entries.get(&self.plain(keys)?)
    }

    fn insert(&mut self, keys: &[KeyValue], _: i32, handle: Handle) {
        let key = self.plain(keys).expect("an exact table's values are exact");
        self.entries.insert(&key, handle);
    }

    fn remove(&mut self, keys: &[KeyValue], _: i32) -> Option<Handle> {
        self.entries.remove(&self.plain(keys)?)
    }
}
