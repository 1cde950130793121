//! Entries with one prefix: a hash map for each prefix length, asked from the longest to the shortest.

use bits::Bits;
use ir::{KeyValue, MatchKind};
use smallvec::SmallVec;

use super::{Backend, Handle, KeyShape, Lookup, prefix_mask};
use crate::objects::FoldMap;

#[derive(Debug)]
pub(super) struct Lpm {
    /// Which element is the prefix, and its width.
    at: usize,
    width: u32,
    /// By prefix length, the longest first; none is empty.
    lengths: Vec<Length>,
}

#[derive(Debug)]
struct Length {
    prefix: u32,
    mask: Bits,
    entries: FoldMap<Box<[Bits]>, Handle>,
}

impl Lpm {
    pub(super) fn new(shape: &[KeyShape]) -> Self {
        let at = shape.iter().position(|key| key.kind == MatchKind::Lpm).expect("one element is a prefix");
        Lpm { at, width: shape[at].width, lengths: Vec::new() }
    }

    /// The bits and the prefix length of an entry's values.
    fn plain(keys: &[KeyValue]) -> Option<(Box<[Bits]>, u32)> {
        let mut length = 0;
        let each = |key: &KeyValue| match key {
            KeyValue::Exact(value) => Some(value.clone()),
            KeyValue::Lpm(value, prefix) => {
                length = *prefix;
                Some(value.clone())
            }
            _ => None,
        };
        let key = keys.iter().map(each).collect::<Option<_>>()?;
        Some((key, length))
    }

    fn position(&self, prefix: u32) -> Result<usize, usize> {
        self.lengths.binary_search_by(|length| prefix.cmp(&length.prefix))
    }
}

impl Backend for Lpm {
    fn lookup(&self, key: &[Bits]) -> Lookup {
        let mut masked: SmallVec<[Bits; 4]> = key.into();
        for length in &self.lengths {
            masked[self.at] = key[self.at].and(&length.mask);
            if let Some(handle) = length.entries.get(&masked[..]) {
                return Lookup::Hit(*handle);
            }
        }
        Lookup::Miss
    }

    fn find(&self, keys: &[KeyValue], _: i32) -> Option<Handle> {
        let (key, prefix) = Self::plain(keys)?;
        let at = self.position(prefix).ok()?;
        self.lengths[at].entries.get(&key).copied()
    }

    fn insert(&mut self, keys: &[KeyValue], _: i32, handle: Handle) {
        let (key, prefix) = Self::plain(keys).expect("an lpm table's values are exact or prefixes");
        let at = self.position(prefix).unwrap_or_else(|at| {
            let mask = prefix_mask(self.width, prefix);
            self.lengths.insert(at, Length { prefix, mask, entries: FoldMap::default() });
            at
        });
        self.lengths[at].entries.insert(key, handle);
    }

    fn remove(&mut self, keys: &[KeyValue], _: i32) -> Option<Handle> {
        let (key, prefix) = Self::plain(keys)?;
        let at = self.position(prefix).ok()?;
        let handle = self.lengths[at].entries.remove(&key);
        if self.lengths[at].entries.is_empty() {
            self.lengths.remove(at);
        }
        handle
    }
}
