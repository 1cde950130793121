//! Entries of any kind, by priority.

use bits::Bits;
use ir::{KeyValue, MatchKind};
use tables::{Classifier, PackedLookup, Pattern, Ternary};

use super::in_place::CloseKeys;
use super::words::{KeyWords, Words};
use super::{Backend, Handle, InPlace, KeyShape, Lookup, MISS};

/// Keys of no more bits have a list of what each of them finds.
pub const LISTED_BITS: u32 = 6;

#[derive(Clone, Debug)]
pub(super) struct Rules {
    shape: Vec<KeyShape>,
    words: KeyWords,
    layout: tables::Layout,
    rules: Ternary,
    /// What each key finds, if keys are that short.
    listed: Option<Box<[u32]>>,
}

fn words_of(value: &Bits) -> Words {
    (0..value.width().div_ceil(64) as usize).map(|index| value.word(index)).collect()
}

impl Rules {
    pub(super) fn new(shape: &[KeyShape]) -> Self {
        let layout = KeyWords::layout(shape);
        let words = KeyWords::new(shape.iter().map(|key| (key.width, key.kind)));
        let bits: u32 = shape.iter().map(|key| key.width).sum();
        // Fields lie one after the other, from the lowest bit on.
        let listed = (bits <= LISTED_BITS && words.matched == 1).then(|| vec![MISS; 1 << bits].into_boxed_slice());
        Rules { shape: shape.to_vec(), words, rules: Ternary::new(&layout), layout, listed }
    }

    fn list(&mut self) {
        for (key, found) in self.listed.iter_mut().flatten().enumerate() {
            *found = self.rules.lookup(&[key as u64]).unwrap_or(MISS);
        }
    }

    /// What a rule asks, and its rank: priority, then the lengths of all prefixes together.
    fn rule(&self, keys: &[KeyValue], priority: i32) -> Option<(Pattern, u64)> {
        let mut pattern = Pattern::any(&self.layout);
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

impl Backend for Rules {
    fn copy(&self) -> Box<dyn Backend> {
        Box::new(self.clone())
    }

    fn lookup(&self, key: &[Bits]) -> Lookup {
        Lookup::from(self.rules.lookup(&self.words.pack(key)))
    }

    fn in_place(&self) -> Option<InPlace<'_>> {
        self.listed.as_ref().map(|handles| InPlace::Close(CloseKeys { shift: 0, first: 0, handles }))
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
