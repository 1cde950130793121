//! Tables with any other combination of match kinds: prioritised rules.

use bits::Bits;
use ir::{KeyValue, MatchKind};
use tables::{Classifier, PackedLookup, RulePattern, Ternary};

use super::inline_lookup::DenseKeys;
use super::words::{KeyWords, Words};
use super::{Backend, Handle, InlineLookup, KeyShape, Lookup, MISS};

/// Maximum width in bits of keys whose results are enumerated.
pub const LISTED_BITS: u32 = 6;

#[derive(Clone, Debug)]
pub(super) struct RuleTable {
    shape: Vec<KeyShape>,
    words: KeyWords,
    layout: tables::KeyLayout,
    rules: Ternary,
    /// Results of all keys, if keys are that short.
    listed: Option<Box<[u32]>>,
}

fn words_of(value: &Bits) -> Words {
    (0..value.width().div_ceil(64) as usize).map(|index| value.word(index)).collect()
}

impl RuleTable {
    pub(super) fn new(shape: &[KeyShape]) -> Self {
        let layout = KeyWords::layout(shape);
        let words = KeyWords::new(shape.iter().map(|key| (key.width, key.kind)));
        let bits: u32 = shape.iter().map(|key| key.width).sum();
        // Fields lie one after the other, from the lowest bit on.
        let listed = (bits <= LISTED_BITS && words.matched == 1).then(|| vec![MISS; 1 << bits].into_boxed_slice());
        RuleTable { shape: shape.to_vec(), words, rules: Ternary::new(&layout), layout, listed }
    }

    fn list(&mut self) {
        for (key, found) in self.listed.iter_mut().flatten().enumerate() {
            *found = self.rules.lookup(&[key as u64]).unwrap_or(MISS);
        }
    }

    /// Converts an entry to a pattern and its rank: priority, then total length of all prefixes.
    fn rule(&self, keys: &[KeyValue], priority: i32) -> Option<(RulePattern, u64)> {
        let mut pattern = RulePattern::any(&self.layout);
        let mut prefixes = 0;
        for (field, (key, shape)) in keys.iter().zip(&self.shape).enumerate() {
            match (key, shape.kind) {
                (KeyValue::Exact(value), _) => pattern.exact(&self.layout, field, &words_of(value)),
                (KeyValue::Lpm(value, length), _) => {
                    pattern.prefix(&self.layout, field, &words_of(value), *length);
                    prefixes += u64::from(*length);
                }
                (KeyValue::Ternary(value, mask), _) => {
                    pattern.masked(&self.layout, field, &words_of(value), &words_of(mask));
                }
                (KeyValue::Range(low, high), MatchKind::Range) => {
                    pattern.range(&self.layout, field, &words_of(low), &words_of(high));
                }
                (KeyValue::Any, _) => {}
                (KeyValue::Range(..), _) => return None,
            }
        }
        Some((pattern, (u64::from(priority.max(0) as u32) << 32) + prefixes))
    }
}

impl Backend for RuleTable {
    fn copy(&self) -> Box<dyn Backend> {
        Box::new(self.clone())
    }

    fn lookup(&self, key: &[Bits]) -> Lookup {
        Lookup::from(self.rules.lookup(&self.words.pack(key)))
    }

    fn inline_lookup(&self) -> Option<InlineLookup<'_>> {
        self.listed.as_ref().map(|handles| InlineLookup::Dense(DenseKeys { shift: 0, first: 0, handles }))
    }

    fn lookup_words(&self, key: &[u64]) -> Option<Lookup> {
        Some(Lookup::from(self.rules.lookup(key)))
    }

    fn lookup_batch(&self, keys: &[u64], found: &mut [u32]) -> bool {
        self.rules.lookup_batch(keys, found);
        true
    }

    fn find(&self, keys: &[KeyValue], priority: i32) -> Option<Handle> {
        let (pattern, rank) = self.rule(keys, priority)?;
        self.rules.find(&pattern, rank).map(Handle)
    }

    fn insert(&mut self, keys: &[KeyValue], priority: i32, handle: Handle) {
        let (pattern, rank) = self.rule(keys, priority).expect("values are of the kinds of their keys");
        self.rules.insert(&pattern, rank, handle.0);
        self.list();
    }

    fn remove(&mut self, keys: &[KeyValue], priority: i32) -> Option<Handle> {
        let (pattern, rank) = self.rule(keys, priority)?;
        let handle = self.rules.remove(&pattern, rank).map(Handle);
        self.list();
        handle
    }
}
