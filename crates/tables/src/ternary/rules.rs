//! Stores a classifier's rules: each rule is one contiguous record, so checking one costs a cache line or two.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::arena::Arena;
use crate::growth::reserve_gently;
use crate::key_layout::{FieldKind, KeyField};
use crate::pattern::{FieldRange, RulePattern};

/// The rank of a rule; the higher one wins. Ordered by priority, then by seniority: the older rule ranks higher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) priority: u64,
    pub(super) seniority: u64,
}

/// Index that stands for no rule.
pub(super) const NONE: u32 = u32::MAX;

/// A range of a field within one word.
#[derive(Clone, Copy, Debug, Default)]
struct NarrowRange {
    field_mask: u64,
    low: u64,
    /// Highest value minus lowest value.
    extent: u64,
    word: u32,
    shift: u32,
}

/// Offsets after the words of a rule's value and mask: a record ends with these four words.
const PRIORITY: usize = 0;
const SENIORITY: usize = 1;
/// The caller's handle for the rule in the low half; in the high half the next rule of the chain, the list of a tuple's
/// rules with the same hash.
const HANDLE: usize = 2;
/// First range in the low half, number of ranges in the high half; [`WIDE`] is set if the rule has ranges in
/// [`RuleStore::wide`] too.
const RANGES: usize = 3;
const TRAILER_WORDS: usize = 4;
const WIDE: u64 = 1 << 63;

/// The rules of a classifier. A rule is the index of its record: value and mask of `key_words` words each, then the
/// trailer. In the methods, `N` is the number of words of a key if it is known at compile time, else 0.
#[derive(Clone, Debug)]
pub(super) struct RuleStore {
    key_words: usize,
    records: Vec<u64>,
    free: Vec<u32>,
    ranges: Arena<NarrowRange>,
    /// Ranges that do not fit `ranges`: those of fields wider than 64 bits, and all of a rule with more than 64 narrow
    /// ones. Both are rare.
    wide: BTreeMap<u32, Box<[FieldRange]>>,
    inserted: u64,
    len: usize,
}

impl RuleStore {
    pub(super) fn new(key_words: usize) -> Self {
        RuleStore {
            key_words,
            records: Vec::new(),
            free: Vec::new(),
            ranges: Arena::new(),
            wide: BTreeMap::new(),
            inserted: 0,
            len: 0,
        }
    }

    pub(super) fn words(&self) -> usize {
        self.key_words
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn key_words<const N: usize>(&self) -> usize {
        if N == 0 { self.key_words } else { N }
    }

    #[inline(always)]
    fn record<const N: usize>(&self, rule: u32) -> &[u64] {
        let stride = 2 * self.key_words::<N>() + TRAILER_WORDS;
        &self.records[rule as usize * stride..][..stride]
    }

    fn trailer_mut(&mut self, rule: u32) -> &mut [u64] {
        let stride = 2 * self.key_words + TRAILER_WORDS;
        &mut self.records[rule as usize * stride + 2 * self.key_words..][..TRAILER_WORDS]
    }

    /// Returns the words of all rules, for prefetching, and the index at which a rule begins.
    #[inline(always)]
    pub(super) fn record_offset<const N: usize>(&self, rule: u32) -> (&[u64], usize) {
        (&self.records, rule as usize * (2 * self.key_words::<N>() + TRAILER_WORDS))
    }

    /// Returns the size of all rules in words, without ranges.
    #[inline(always)]
    pub(super) fn record_words(&self) -> usize {
        self.records.len()
    }

    pub(super) fn add(&mut self, pattern: &RulePattern, priority: u64, handle: u32) -> u32 {
        let stride = 2 * self.key_words + TRAILER_WORDS;
        let rule = self.free.pop().unwrap_or_else(|| {
            let rule = self.records.len() / stride;
            reserve_gently(&mut self.records, stride);
            self.records.resize(self.records.len() + stride, 0);
            u32::try_from(rule).ok().filter(|rule| *rule != NONE).expect("a classifier has fewer than 2^32 - 1 rules")
        });
        let narrow = || pattern.ranges.iter().filter(|range| range.field.words() == 1);
        let count = narrow().count();
        // A rule with more ranges than an arena array can hold keeps all of them in `wide`.
        let (first, count) = if (1..=64).contains(&count) { (self.ranges.allocate(count), count) } else { (0, 0) };
        for (at, range) in narrow().take(count).enumerate() {
            self.ranges.items[first as usize + at] = NarrowRange {
                field_mask: range.field.ones(0),
                low: range.low[0],
                extent: range.extent[0],
                word: range.field.word as u32,
                shift: range.field.shift,
            };
        }
        let others = pattern.ranges.iter().filter(|range| count == 0 || range.field.words() != 1);
        let others: Box<[FieldRange]> = others.cloned().collect();
        let wide = if others.is_empty() { 0 } else { WIDE };
        if wide != 0 {
            self.wide.insert(rule, others);
        }

        let words = self.key_words;
        let seniority = !self.inserted;
        self.inserted += 1;
        self.len += 1;
        let record = &mut self.records[rule as usize * stride..][..stride];
        record[..words].copy_from_slice(&pattern.value);
        record[words..2 * words].copy_from_slice(&pattern.mask);
        let trailer = &mut record[2 * words..];
        trailer[PRIORITY] = priority;
        trailer[SENIORITY] = seniority;
        trailer[HANDLE] = u64::from(handle) | u64::from(NONE) << 32;
        trailer[RANGES] = u64::from(first) | (count as u64) << 32 | wide;
        rule
    }

    pub(super) fn drop_rule(&mut self, rule: u32) {
        let ranges = self.trailer_mut(rule)[RANGES];
        self.ranges.release(ranges as u32, (ranges & !WIDE) as usize >> 32);
        if ranges & WIDE != 0 {
            self.wide.remove(&rule);
        }
        self.len -= 1;
        self.free.push(rule);
    }

    #[inline(always)]
    pub(super) fn rank<const N: usize>(&self, rule: u32) -> Rank {
        let at = 2 * self.key_words::<N>();
        let record = self.record::<N>(rule);
        Rank { priority: record[at + PRIORITY], seniority: record[at + SENIORITY] }
    }

    #[inline(always)]
    pub(super) fn handle<const N: usize>(&self, rule: u32) -> u32 {
        self.record::<N>(rule)[2 * self.key_words::<N>() + HANDLE] as u32
    }

    #[inline(always)]
    pub(super) fn next<const N: usize>(&self, rule: u32) -> u32 {
        (self.record::<N>(rule)[2 * self.key_words::<N>() + HANDLE] >> 32) as u32
    }

    pub(super) fn set_next(&mut self, rule: u32, next: u32) {
        let word = &mut self.trailer_mut(rule)[HANDLE];
        *word = *word & u64::from(u32::MAX) | u64::from(next) << 32;
    }

    /// Sets the handle of a rule and returns its previous handle.
    pub(super) fn set_handle(&mut self, rule: u32, handle: u32) -> u32 {
        let word = &mut self.trailer_mut(rule)[HANDLE];
        let before = *word as u32;
        *word = *word & !u64::from(u32::MAX) | u64::from(handle);
        before
    }

    pub(super) fn value(&self, rule: u32) -> &[u64] {
        &self.record::<0>(rule)[..self.key_words]
    }

    pub(super) fn mask(&self, rule: u32) -> &[u64] {
        &self.record::<0>(rule)[self.key_words..2 * self.key_words]
    }

    #[inline(always)]
    pub(super) fn matches<const N: usize>(&self, rule: u32, key: &[u64]) -> bool {
        let words = self.key_words::<N>();
        let record = self.record::<N>(rule);
        let mut differ = 0;
        for at in 0..words {
            differ |= key[at] & record[words + at] ^ record[at];
        }
        differ == 0 && self.in_ranges::<N>(rule, key)
    }

    /// Whether a key is in a rule's ranges.
    #[inline(always)]
    pub(super) fn in_ranges<const N: usize>(&self, rule: u32, key: &[u64]) -> bool {
        let ranges = self.record::<N>(rule)[2 * self.key_words::<N>() + RANGES];
        if ranges >> 32 == 0 {
            return true;
        }
        let narrow = &self.ranges.items[ranges as u32 as usize..][..(ranges & !WIDE) as usize >> 32];
        let inside = narrow.iter().all(|range| {
            let value = key[range.word as usize] >> range.shift;
            value.wrapping_sub(range.low) & range.field_mask <= range.extent
        });
        inside && (ranges & WIDE == 0 || self.wide[&rule].iter().all(|range| range.contains(key)))
    }

    /// Whether a rule has this pattern and priority.
    pub(super) fn has_pattern_and_priority(&self, rule: u32, pattern: &RulePattern, priority: u64) -> bool {
        self.rank::<0>(rule).priority == priority
            && self.value(rule) == &pattern.value[..]
            && self.mask(rule) == &pattern.mask[..]
            && self.has_ranges(rule, pattern)
    }

    fn has_ranges(&self, rule: u32, pattern: &RulePattern) -> bool {
        let ranges = self.record::<0>(rule)[2 * self.key_words + RANGES];
        let narrow = &self.ranges.items[ranges as u32 as usize..][..(ranges & !WIDE) as usize >> 32];
        let wide: &[FieldRange] = if ranges & WIDE != 0 { &self.wide[&rule] } else { &[] };
        let same = |range: &FieldRange| {
            let in_narrow = narrow.iter().any(|other| {
                range.field.words() == 1
                    && (range.field.word as u32, range.field.shift) == (other.word, other.shift)
                    && (range.low[0], range.extent[0]) == (other.low, other.extent)
            });
            in_narrow || wide.contains(range)
        };
        narrow.len() + wide.len() == pattern.ranges.len() && pattern.ranges.iter().all(same)
    }

    /// Visits rules, the oldest first: pattern, priority, handle.
    pub(super) fn visit_by_age(&self, mut rules: Vec<u32>, visit: &mut dyn FnMut(&RulePattern, u64, u32)) {
        rules.sort_by_key(|rule| std::cmp::Reverse(self.rank::<0>(*rule).seniority));
        for rule in rules {
            visit(&self.pattern(rule), self.rank::<0>(rule).priority, self.handle::<0>(rule));
        }
    }

    fn pattern(&self, rule: u32) -> RulePattern {
        let ranges = self.record::<0>(rule)[2 * self.key_words + RANGES];
        let narrow = &self.ranges.items[ranges as u32 as usize..][..(ranges & !WIDE) as usize >> 32];
        let widen = |range: &NarrowRange| FieldRange {
            field: KeyField {
                width: range.field_mask.count_ones(),
                kind: FieldKind::Range,
                word: range.word as usize,
                shift: range.shift,
            },
            low: [range.low].into_iter().collect(),
            extent: [range.extent].into_iter().collect(),
        };
        let mut all: SmallVec<[FieldRange; 2]> = narrow.iter().map(widen).collect();
        if ranges & WIDE != 0 {
            all.extend(self.wide[&rule].iter().cloned());
        }
        all.sort_by_key(|range| (range.field.word, range.field.shift));
        RulePattern { value: self.value(rule).into(), mask: self.mask(rule).into(), ranges: all }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.records.capacity() * 8
            + self.free.capacity() * 4
            + self.ranges.memory_bytes()
            + self.wide.values().map(|ranges| size_of_val(&**ranges) + 32).sum::<usize>()
    }
}
