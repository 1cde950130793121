//! Entries with one prefix: the longest that matches wins.

use bits::Bits;
use ir::KeyValue;
use smallvec::SmallVec;
use tables::PackedLookup;

use super::words::{KeyWords, Words};
use super::{Backend, Handle, KeyShape, Lookup};

#[derive(Clone, Debug)]
pub(super) struct Lpm {
    words: KeyWords,
    entries: tables::Lpm,
}

impl Lpm {
    pub(super) fn new(shape: &[KeyShape]) -> Self {
        let words = KeyWords::new(shape.iter().map(|key| (key.width, key.kind)));
        Lpm { words, entries: tables::Lpm::new(&KeyWords::layout(shape)) }
    }

    /// The words and the prefix length of an entry's values.
    fn plain(&self, keys: &[KeyValue]) -> Option<(Words, u32)> {
        let mut length = 0;
        let each = |key: &KeyValue| match key {
            KeyValue::Exact(value) => Some(value.clone()),
            KeyValue::Lpm(value, prefix) => {
                length = *prefix;
                Some(value.clone())
            }
            _ => None,
        };
        let values: SmallVec<[Bits; 4]> = keys.iter().map(each).collect::<Option<_>>()?;
        Some((self.words.pack(&values), length))
    }
}

impl Backend for Lpm {
    fn copy(&self) -> Box<dyn Backend> {
        Box::new(self.clone())
    }

    fn lookup(&self, key: &[Bits]) -> Lookup {
        Lookup::from(self.entries.lookup(&self.words.pack(key)))
    }

    fn lookup_words(&self, key: &[u64]) -> Option<Lookup> {
        Some(Lookup::from(self.entries.lookup(key)))
    }

    fn lookup_batch(&self, keys: &[u64], found: &mut [u32]) -> bool {
        self.entries.lookup_batch(keys, found);
        true
    }

    fn find(&self, keys: &[KeyValue], _: i32) -> Option<Handle> {
        let (key, prefix) = self.plain(keys)?;
        self.entries.find(&key, prefix).map(Handle)
    }

    fn insert(&mut self, keys: &[KeyValue], _: i32, handle: Handle) {
        let (key, prefix) = self.plain(keys).expect("an lpm table's values are exact or prefixes");
        self.entries.insert(&key, prefix, handle.0);
    }

    fn remove(&mut self, keys: &[KeyValue], _: i32) -> Option<Handle> {
        let (key, prefix) = self.plain(keys)?;
        self.entries.remove(&key, prefix).map(Handle)
    }
}
