//! Entries with one range, otherwise exact: the largest priority wins, of equal ones the oldest.

use bits::Bits;
use ir::KeyValue;
use smallvec::SmallVec;
use tables::{KeyLayout, PackedLookup};

use super::words::{KeyWords, Words};
use super::{Backend, Handle, InlineLookup, KeyShape, Lookup};

#[derive(Clone, Debug)]
pub(super) struct Intervals {
    words: KeyWords,
    entries: tables::Intervals,
}

impl Intervals {
    /// Whether a table with this key can be one of these.
    pub(super) fn fits(shape: &[KeyShape]) -> bool {
        tables::Intervals::fits(&KeyWords::layout(shape))
    }

    pub(super) fn new(shape: &[KeyShape]) -> Self {
        let layout: KeyLayout = KeyWords::layout(shape);
        let words = KeyWords::new(shape.iter().map(|key| (key.width, key.kind)));
        Intervals { words, entries: tables::Intervals::new(&layout) }
    }

    /// The words of an entry's values with the beginning of the range, and its end.
    fn plain(&self, keys: &[KeyValue]) -> Option<(Words, u64)> {
        let mut end = None;
        let each = |key: &KeyValue| match key {
            KeyValue::Exact(value) => Some(value.clone()),
            KeyValue::Range(low, high) => {
                end = Some(high.low_u64());
                Some(low.clone())
            }
            _ => None,
        };
        let values: SmallVec<[Bits; 4]> = keys.iter().map(each).collect::<Option<_>>()?;
        Some((self.words.pack(&values), end?))
    }
}

/// Priorities are not below 0.
fn rank(priority: i32) -> u64 {
    u64::from(priority.max(0) as u32)
}

impl Backend for Intervals {
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

    fn find(&self, keys: &[KeyValue], priority: i32) -> Option<Handle> {
        let (key, end) = self.plain(keys)?;
        self.entries.find_entry(&key, end, rank(priority)).map(Handle)
    }

    fn insert(&mut self, keys: &[KeyValue], priority: i32, handle: Handle) {
        let (key, end) = self.plain(keys).expect("values of such a table are exact or ranges");
        self.entries.insert(&key, end, rank(priority), handle.0);
    }

    fn remove(&mut self, keys: &[KeyValue], priority: i32) -> Option<Handle> {
        let (key, end) = self.plain(keys)?;
        self.entries.remove(&key, end, rank(priority)).map(Handle)
    }
}
