//! Sets of small numbers, as bits.

/// A set of numbers below a limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct BitSet(Vec<u64>);

impl BitSet {
    /// Returns the empty set of numbers below `limit`.
    pub(crate) fn new(limit: usize) -> BitSet {
        BitSet(vec![0; limit.div_ceil(64)])
    }

    pub(crate) fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    pub(crate) fn remove(&mut self, number: usize) {
        self.0[number / 64] &= !(1 << (number % 64));
    }

    pub(crate) fn contains(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 == 1
    }

    /// Adds another set. Returns whether this one has changed.
    pub(crate) fn add_all(&mut self, other: &BitSet) -> bool {
        self.add(other.0.iter().copied())
    }

    /// Adds those of `other` that are not in `without`. Returns whether this set has changed.
    pub(crate) fn add_difference(&mut self, other: &BitSet, without: &BitSet) -> bool {
        self.add(other.0.iter().zip(&without.0).map(|(other, without)| other & !without))
    }

    fn add(&mut self, words: impl Iterator<Item = u64>) -> bool {
        let mut new = 0;
        for (word, other) in self.0.iter_mut().zip(words) {
            new |= other & !*word;
            *word |= other;
        }
        new != 0
    }
}
