//! Entries by their whole key.

use bits::Bits;
use ir::KeyValue;
use smallvec::SmallVec;
use tables::PackedLookup;

use super::words::{KeyWords, Words};
use super::{Backend, Handle, InlineLookup, KeyShape, Lookup};

#[derive(Clone, Debug)]
pub(super) struct Exact {
    words: KeyWords,
    entries: tables::Exact,
}

impl Exact {
    pub(super) fn new(shape: &[KeyShape]) -> Self {
        let words = KeyWords::new(shape.iter().map(|key| (key.width, key.kind)));
        Exact { entries: tables::Exact::new(words.matched), words }
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

    fn inline_lookup(&self) -> Option<InlineLookup<'_>> {
        Some(self.entries.inline_lookup())
    }

    fn find(&self, keys: &[KeyValue], _: i32) -> Option<Handle> {
        self.entries.lookup(&self.plain(keys)?).map(Handle)
    }

    fn insert(&mut self, keys: &[KeyValue], _: i32, handle: Handle) {
        let key = self.plain(keys).expect("an exact table's values are exact");
        self.entries.insert(&key, handle.0);
    }

    fn remove(&mut self, keys: &[KeyValue], _: i32) -> Option<Handle> {
        self.entries.remove(&self.plain(keys)?).map(Handle)
    }
}
