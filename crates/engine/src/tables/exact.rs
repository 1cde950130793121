//! Tables of exact keys: a hash table.

use ir::KeyValue;
use tables::{Exact, PackedLookup};

use super::packed::{Packed, PackedEntries, pack_values};
use super::words::{KeyWords, Words};
use super::{InlineLookup, KeyShape};

pub(super) fn backend(shape: &[KeyShape]) -> Packed<Exact> {
    Packed::new(shape, |words| Exact::new(words.matched))
}

impl PackedEntries for Exact {
    type Rule = Words;

    fn rule(words: &KeyWords, keys: &[KeyValue], _: i32) -> Option<Words> {
        pack_values(words, keys, |key| match key {
            KeyValue::Exact(value) => Some(value.clone()),
            _ => None,
        })
    }

    fn find_rule(&self, key: &Words) -> Option<u32> {
        self.lookup(key)
    }

    fn insert_rule(&mut self, key: &Words, handle: u32) {
        self.insert(key, handle);
    }

    fn remove_rule(&mut self, key: &Words) -> Option<u32> {
        self.remove(key)
    }

    fn inline_lookup(&self) -> Option<InlineLookup<'_>> {
        Some(self.inline_lookup())
    }
}
