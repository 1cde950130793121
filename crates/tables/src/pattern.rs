//! Represents the condition of a rule: bits under a mask, and ranges.

use smallvec::SmallVec;

use crate::key_layout::{KeyField, KeyLayout, low_ones};

/// A few words, usually without an allocation.
pub(crate) type Words = SmallVec<[u64; 4]>;

/// A range of a field. Arithmetic is modulo the field's width, so a range from a negative to a positive number needs no
/// special case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldRange {
    pub(crate) field: KeyField,
    pub(crate) low: Words,
    /// Highest value minus lowest value.
    pub(crate) extent: Words,
}

/// The condition of a rule over all fields of a key. Equal conditions that were built with the same match kinds are
/// equal patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulePattern {
    pub(crate) value: Words,
    pub(crate) mask: Words,
    /// Ranges that are not prefixes, by field.
    pub(crate) ranges: SmallVec<[FieldRange; 2]>,
}

impl RulePattern {
    /// Creates a pattern that matches every key. Each field can be narrowed once.
    pub fn any(layout: &KeyLayout) -> Self {
        let zeros: Words = std::iter::repeat_n(0, layout.words()).collect();
        RulePattern { value: zeros.clone(), mask: zeros, ranges: SmallVec::new() }
    }

    /// Requires the field to have this value (low word first).
    pub fn exact(&mut self, layout: &KeyLayout, field: usize, value: &[u64]) {
        let ones: Words = std::iter::repeat_n(u64::MAX, layout.fields()[field].words()).collect();
        self.masked(layout, field, value, &ones);
    }

    /// Requires the field to equal this value under the mask.
    pub fn masked(&mut self, layout: &KeyLayout, field: usize, value: &[u64], mask: &[u64]) {
        let value: Words = value.iter().zip(mask).map(|(value, mask)| value & mask).collect();
        layout.put(&mut self.value, field, &value);
        layout.put(&mut self.mask, field, mask);
    }

    /// Requires the field to begin with the first `length` bits of this value.
    pub fn prefix(&mut self, layout: &KeyLayout, field: usize, value: &[u64], length: u32) {
        let mask = prefix_mask(&layout.fields()[field], length);
        self.masked(layout, field, value, &mask);
    }

    /// Requires the field to be in a range, both ends included. If the low end is above the high end, the range wraps
    /// around from the largest value to 0, as ranges of signed numbers do.
    pub fn range(&mut self, layout: &KeyLayout, index: usize, low: &[u64], high: &[u64]) {
        let field = layout.fields()[index];
        let part = |value: &[u64], at: usize| value.get(at).copied().unwrap_or(0) & field.ones(at);
        let count = field.words();
        let mut extent = Words::new();
        let mut borrow = false;
        for at in 0..count {
            let (less, first) = part(high, at).overflowing_sub(part(low, at));
            let (less, second) = less.overflowing_sub(u64::from(borrow));
            borrow = first || second;
            extent.push(less & field.ones(at));
        }
        if (0..count).all(|at| extent[at] == field.ones(at)) {
            return;
        }
        if !borrow {
            // All values of the range agree up to the first bit in which the ends differ.
            let differ = |at: usize| part(low, at) ^ part(high, at);
            let highest = (0..count).rev().find(|at| differ(*at) != 0);
            let free_bits = highest.map_or(0, |at| 64 * at as u32 + differ(at).ilog2() + 1);
            let prefix = field.width - free_bits;
            self.prefix(layout, index, low, prefix);
            let mask = prefix_mask(&field, prefix);
            let is_prefix = (0..count).all(|at| extent[at] == field.ones(at) & !mask[at]);
            if is_prefix {
                return;
            }
        }
        let low = (0..count).map(|at| part(low, at)).collect();
        self.ranges.push(FieldRange { field, low, extent });
        self.ranges.sort_by_key(|range| (range.field.word, range.field.shift));
    }

    /// Whether a key meets the condition.
    pub fn matches(&self, key: &[u64]) -> bool {
        let masked = self.value.iter().zip(&self.mask).zip(key).all(|((value, mask), key)| key & mask == *value);
        masked && self.ranges.iter().all(|range| range.contains(key))
    }
}

/// Returns the mask of the first `length` bits of a field, without the shift.
fn prefix_mask(field: &KeyField, length: u32) -> Words {
    let spare = field.width - length.min(field.width);
    let below = |at: usize| low_ones(spare.saturating_sub(64 * at as u32).min(64));
    (0..field.words()).map(|at| field.ones(at) & !below(at)).collect()
}

impl FieldRange {
    pub(crate) fn contains(&self, key: &[u64]) -> bool {
        let mut borrow = false;
        let mut order = std::cmp::Ordering::Equal;
        for at in 0..self.field.words() {
            let ones = self.field.ones(at);
            let value = key[self.field.word + at] >> self.field.shift & ones;
            let (less, first) = value.overflowing_sub(self.low[at]);
            let (less, second) = less.overflowing_sub(u64::from(borrow));
            borrow = first || second;
            // Higher words take precedence over lower ones.
            order = (less & ones).cmp(&self.extent[at]).then(order);
        }
        order.is_le()
    }
}
