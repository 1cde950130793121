//! Entries with one prefix: a hash map for each prefix length, asked from the longest to the shortest.

use bits::Bits;
use ir::{KeyValue, MatchKind};
use smallvec::SmallVec;

use super::map::WordMap;
use super::words::{KeyWords, Words};
use super::{Backend, Handle, KeyShape, Lookup, prefix_mask};

#[derive(Debug)]
pub(super) struct Lpm {
    /// Which element is the prefix, and its width.
    at: usize,
    width: u32,
    words: KeyWords,
    /// By prefix length, the longest first; none is empty.
    lengths: Vec<Length>,
}

#[derive(Debug)]
struct Length {
    prefix: u32,
    /// The bits of the key that count.
    mask: Words,
    entries: WordMap,
}

impl Lpm {
    pub(super) fn new(shape: &[KeyShape]) -> Self {
        let at = shape.iter().position(|key| key.kind == MatchKind::Lpm).expect("one element is a prefix");
        let words = KeyWords::new(shape.iter().map(|key| (key.width, key.kind)));
        Lpm { at, width: shape[at].width, words, lengths: Vec::new() }
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

    fn position(&self, prefix: u32) -> Result<usize, usize> {
        self.lengths.binary_search_by(|length| prefix.cmp(&length.prefix))
    }

    fn look_up(&self, key: &[u64]) -> Lookup {
        let mut masked: Words = SmallVec::from_elem(0, key.len());
        for length in &self.lengths {
            for (masked, (word, mask)) in masked.iter_mut().zip(key.iter().zip(&length.mask)) {
                *masked = word & mask;
            }
            if let Some(handle) = length.entries.get(&masked) {
                return Lookup::Hit(handle);
            }
        }
        Lookup::Miss
    }
}

impl Backend for Lpm {
    fn lookup(&self, key: &[Bits]) -> Lookup {
        self.look_up(&self.words.pack(key))
    }

    fn lookup_words(&self, key: &[u64]) -> Option<Lookup> {
        Some(self.look_up(key))
    }

    fn find(&self, keys: &[KeyValue], _: i32) -> Option<Handle> {
        let (key, prefix) = self.plain(keys)?;
        let at = self.position(prefix).ok()?;
        self.lengths[at].entries.get(&key)
    }

    fn insert(&mut self, keys: &[KeyValue], _: i32, handle: Handle) {
        let (key, prefix) = self.plain(keys).expect("an lpm table's values are exact or prefixes");
        let at = self.position(prefix).unwrap_or_else(|at| {
            let mask = |(index, place): (usize, &super::words::WordPlace)| match index == self.at {
                true => prefix_mask(self.width, prefix),
                false => Bits::ones(place.width),
            };
            let masks: SmallVec<[Bits; 4]> = self.words.places.iter().enumerate().map(mask).collect();
            let (mask, entries) = (self.words.pack(&masks), WordMap::new(self.words.words));
            self.lengths.insert(at, Length { prefix, mask, entries });
            at
        });
        self.lengths[at].entries.insert(&key, handle);
    }

    fn remove(&mut self, keys: &[KeyValue], _: i32) -> Option<Handle> {
        let (key, prefix) = self.plain(keys)?;
        let at = self.position(prefix).ok()?;
        let handle = self.lengths[at].entries.remove(&key);
        if self.lengths[at].entries.is_empty() {
            self.lengths.remove(at);
        }
        handle
    }
}
