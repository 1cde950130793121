//! Tables with one range beside exact fields: the highest priority wins, and of equal priorities the oldest entry.

use ir::KeyValue;
use tables::Intervals;

use super::packed::{Packed, PackedEntries, pack_values};
use super::words::{KeyWords, Words};
use super::{InlineLookup, KeyShape};

/// Whether a table with this key can be an interval table.
pub(super) fn fits(shape: &[KeyShape]) -> bool {
    Intervals::fits(&KeyWords::layout(shape))
}

pub(super) fn backend(shape: &[KeyShape]) -> Packed<Intervals> {
    Packed::new(shape, |_| Intervals::new(&KeyWords::layout(shape)))
}

impl PackedEntries for Intervals {
    /// The packed values with the start of the range, the end of the range, and the priority.
    type Rule = (Words, u64, u64);

    fn rule(words: &KeyWords, keys: &[KeyValue], priority: i32) -> Option<(Words, u64, u64)> {
        let mut end = None;
        let values = pack_values(words, keys, |key| match key {
            KeyValue::Exact(value) => Some(value.clone()),
            KeyValue::Range(low, high) => {
                end = Some(high.low_u64());
                Some(low.clone())
            }
            _ => None,
        })?;
        // Priorities are not negative.
        Some((values, end?, u64::from(priority.max(0) as u32)))
    }

    fn find_rule(&self, (key, end, priority): &(Words, u64, u64)) -> Option<u32> {
        self.find_entry(key, *end, *priority)
    }

    fn insert_rule(&mut self, (key, end, priority): &(Words, u64, u64), handle: u32) {
        self.insert(key, *end, *priority, handle);
    }

    fn remove_rule(&mut self, (key, end, priority): &(Words, u64, u64)) -> Option<u32> {
        self.remove(key, *end, *priority)
    }

    fn inline_lookup(&self) -> Option<InlineLookup<'_>> {
        Some(self.inline_lookup())
    }
}
