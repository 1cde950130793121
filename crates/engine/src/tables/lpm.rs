//! Tables with one prefix beside exact fields: the longest prefix that matches wins.

use ir::KeyValue;
use tables::Lpm;

use super::KeyShape;
use super::packed::{Packed, PackedEntries, pack_values};
use super::words::{KeyWords, Words};

pub(super) fn backend(shape: &[KeyShape]) -> Packed<Lpm> {
    Packed::new(shape, |_| Lpm::new(&KeyWords::layout(shape)))
}

impl PackedEntries for Lpm {
    /// The packed values and the prefix length.
    type Rule = (Words, u32);

    fn rule(words: &KeyWords, keys: &[KeyValue], _: i32) -> Option<(Words, u32)> {
        let mut length = 0;
        let values = pack_values(words, keys, |key| match key {
            KeyValue::Exact(value) => Some(value.clone()),
            KeyValue::Lpm(value, prefix) => {
                length = *prefix;
                Some(value.clone())
            }
            _ => None,
        })?;
        Some((values, length))
    }

    fn find_rule(&self, (key, prefix): &(Words, u32)) -> Option<u32> {
        self.find(key, *prefix)
    }

    fn insert_rule(&mut self, (key, prefix): &(Words, u32), handle: u32) {
        self.insert(key, *prefix, handle);
    }

    fn begin_load(&mut self, more: usize) {
        Lpm::begin_load(self, more);
    }

    fn finish_load(&mut self) {
        Lpm::finish_load(self);
    }

    fn remove_rule(&mut self, (key, prefix): &(Words, u32)) -> Option<u32> {
        self.remove(key, *prefix)
    }
}
