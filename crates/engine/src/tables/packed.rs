//! Backends over the match structures of the `tables` crate that look up packed keys.

use bits::Bits;
use ir::KeyValue;
use smallvec::SmallVec;
use tables::PackedLookup;

use super::words::{KeyWords, Words};
use super::{Backend, Handle, InlineLookup, KeyShape, Lookup};

/// A match structure with the packing of its keys.
#[derive(Clone, Debug)]
pub(super) struct Packed<T> {
    words: KeyWords,
    entries: T,
}

/// The operations in which the match structures differ.
pub(super) trait PackedEntries: PackedLookup + Clone + 'static {
    /// An entry's values and priority in the structure's own form.
    type Rule;

    /// Converts an entry's values; `None` if the structure cannot hold such an entry.
    fn rule(words: &KeyWords, keys: &[KeyValue], priority: i32) -> Option<Self::Rule>;

    /// Returns the handle of exactly this entry.
    fn find_rule(&self, rule: &Self::Rule) -> Option<u32>;

    /// Adds an entry.
    fn insert_rule(&mut self, rule: &Self::Rule, handle: u32);

    /// Removes an entry and returns its handle.
    fn remove_rule(&mut self, rule: &Self::Rule) -> Option<u32>;

    /// Announces a number of entries to be added; see [`Backend::begin_load`].
    fn begin_load(&mut self, more: usize) {
        _ = more;
    }

    /// Ends a load.
    fn finish_load(&mut self) {}

    /// Returns a description for inline lookups, if the structure supports them.
    fn inline_lookup(&self) -> Option<InlineLookup<'_>> {
        None
    }
}

impl<T: PackedEntries> Packed<T> {
    pub(super) fn new(shape: &[KeyShape], entries: impl FnOnce(&KeyWords) -> T) -> Self {
        let words = KeyWords::new(shape.iter().map(|key| (key.width, key.kind)));
        Packed { entries: entries(&words), words }
    }
}

impl<T: PackedEntries> Backend for Packed<T> {
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
        self.entries.inline_lookup()
    }

    fn find(&self, keys: &[KeyValue], priority: i32) -> Option<Handle> {
        let rule = T::rule(&self.words, keys, priority)?;
        self.entries.find_rule(&rule).map(Handle)
    }

    fn insert(&mut self, keys: &[KeyValue], priority: i32, handle: Handle) {
        let rule = T::rule(&self.words, keys, priority).expect("values are of the kinds of their keys");
        self.entries.insert_rule(&rule, handle.0);
    }

    fn begin_load(&mut self, more: usize) {
        self.entries.begin_load(more);
    }

    fn finish_load(&mut self) {
        self.entries.finish_load();
    }

    fn remove(&mut self, keys: &[KeyValue], priority: i32) -> Option<Handle> {
        let rule = T::rule(&self.words, keys, priority)?;
        self.entries.remove_rule(&rule).map(Handle)
    }
}

/// Packs the words of an entry, given the value of each key element; `None` if an element has no value.
pub(super) fn pack_values(
    words: &KeyWords,
    keys: &[KeyValue],
    value: impl FnMut(&KeyValue) -> Option<Bits>,
) -> Option<Words> {
    let values: SmallVec<[Bits; 4]> = keys.iter().map(value).collect::<Option<_>>()?;
    Some(words.pack(&values))
}
