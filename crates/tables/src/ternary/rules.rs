//! Storage of a classifier's rules: each is one run of words, so that checking one costs a cache line or two.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::arena::Arena;
use crate::key_layout::{FieldKind, KeyField};
use crate::pattern::{RulePattern, Span};

/// The rank of a rule; the higher one wins. It compares priorities, then ages, inverted so that the older rule is
/// higher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) priority: u64,
    pub(super) seniority: u64,
}

/// Index that stands for no rule.
pub(super) const NONE: u32 = u32::MAX;

/// A range of a field within one word.
#[derive(Clone, Copy, Debug, Default)]
struct NarrowSpan {
    ones: u64,
    low: u64,
    length: u64,
    word: u32,
    shift: u32,
}

/// Offsets behind the words of a rule's value and mask: a rule ends with these four words.
const PRIORITY: usize = 0;
const SENIORITY: usize = 1;
/// Handle in the low half, next rule of the chain in the high half.
const HANDLE: usize = 2;
/// First range in the low half, number of ranges in the high half; [`WIDE`] is set if there are wide ranges too.
const SPANS: usize = 3;
const REST: usize = 4;
const WIDE: u64 = 1 << 63;

#[derive(Clone, Debug)]
pub(super) struct RuleStore {
    words: usize,
    records: Vec<u64>,
    free: Vec<u32>,
    spans: Arena<NarrowSpan>,
    /// Ranges of fields over 64 bits, which are rare.
    wide: BTreeMap<u32, Box<[Span]>>,
    inserted: u64,
    len: usize,
}

impl RuleStore {
    pub(super) fn new(words: usize) -> Self {
        RuleStore {
            words,
            records: Vec::new(),
            free: Vec::new(),
            spans: Arena::new(),
            wide: BTreeMap::new(),
            inserted: 0,
            len: 0,
        }
    }

    pub(super) fn words(&self) -> usize {
        self.words
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn count<const N: usize>(&self) -> usize {
        if N == 0 { self.words } else { N }
    }

    #[inline(always)]
    fn record<const N: usize>(&self, rule: u32) -> &[u64] {
        let stride = 2 * self.count::<N>() + REST;
        &self.records[rule as usize * stride..][..stride]
    }

    fn rest_mut(&mut self, rule: u32) -> &mut [u64] {
        let stride = 2 * self.words + REST;
        &mut self.records[rule as usize * stride + 2 * self.words..][..REST]
    }

    /// Returns the words of all rules, for prefetching, and the index at which a rule begins.
    #[inline(always)]
    pub(super) fn place<const N: usize>(&self, rule: u32) -> (&[u64], usize) {
        (&self.records, rule as usize * (2 * self.count::<N>() + REST))
    }

    /// Returns the size of all rules in words, without ranges.
    #[inline(always)]
    pub(super) fn record_words(&self) -> usize {
        self.records.len()
    }

    pub(super) fn add(&mut self, pattern: &RulePattern, priority: u64, handle: u32) -> u32 {
        let stride = 2 * self.words + REST;
        let rule = self.free.pop().unwrap_or_else(|| {
            let rule = self.records.len() / stride;
            self.records.resize(self.records.len() + stride, 0);
            u32::try_from(rule).ok().filter(|rule| *rule != NONE).expect("a classifier has fewer than 2^32 - 1 rules")
        });
        let narrow = || pattern.spans.iter().filter(|span| span.field.words() == 1);
        let count = narrow().count();
        // A rule with more ranges than an arena array can hold is checked like one with wide ranges.
        let (first, count) = if (1..=64).contains(&count) { (self.spans.allocate(count), count) } else { (0, 0) };
        for (at, span) in narrow().take(count).enumerate() {
            self.spans.items[first as usize + at] = NarrowSpan {
                ones: span.field.ones(0),
                low: span.low[0],
                length: span.length[0],
                word: span.field.word as u32,
                shift: span.field.shift,
            };
        }
        let others = pattern.spans.iter().filter(|span| count == 0 || span.field.words() != 1);
        let others: Box<[Span]> = others.cloned().collect();
        let wide = if others.is_empty() { 0 } else { WIDE };
        if wide != 0 {
            self.wide.insert(rule, others);
        }

        let words = self.words;
        let seniority = !self.inserted;
        self.inserted += 1;
        self.len += 1;
        let record = &mut self.records[rule as usize * stride..][..stride];
        record[..words].copy_from_slice(&pattern.value);
        record[words..2 * words].copy_from_slice(&pattern.mask);
        let rest = &mut record[2 * words..];
        rest[PRIORITY] = priority;
        rest[SENIORITY] = seniority;
        rest[HANDLE] = u64::from(handle) | u64::from(NONE) << 32;
        rest[SPANS] = u64::from(first) | (count as u64) << 32 | wide;
        rule
    }

    pub(super) fn drop_rule(&mut self, rule: u32) {
        let spans = self.rest_mut(rule)[SPANS];
        self.spans.release(spans as u32, (spans & !WIDE) as usize >> 32);
        if spans & WIDE != 0 {
            self.wide.remove(&rule);
        }
        self.len -= 1;
        self.free.push(rule);
    }

    #[inline(always)]
    pub(super) fn rank<const N: usize>(&self, rule: u32) -> Rank {
        let at = 2 * self.count::<N>();
        let record = self.record::<N>(rule);
        Rank { priority: record[at + PRIORITY], seniority: record[at + SENIORITY] }
    }

    #[inline(always)]
    pub(super) fn handle<const N: usize>(&self, rule: u32) -> u32 {
        self.record::<N>(rule)[2 * self.count::<N>() + HANDLE] as u32
    }

    #[inline(always)]
    pub(super) fn next<const N: usize>(&self, rule: u32) -> u32 {
        (self.record::<N>(rule)[2 * self.count::<N>() + HANDLE] >> 32) as u32
    }

    pub(super) fn set_next(&mut self, rule: u32, next: u32) {
        let word = &mut self.rest_mut(rule)[HANDLE];
        *word = *word & u64::from(u32::MAX) | u64::from(next) << 32;
    }

    /// Sets the handle of a rule and returns its previous handle.
    pub(super) fn set_handle(&mut self, rule: u32, handle: u32) -> u32 {
        let word = &mut self.rest_mut(rule)[HANDLE];
        let before = *word as u32;
        *word = *word & !u64::from(u32::MAX) | u64::from(handle);
        before
    }

    pub(super) fn value(&self, rule: u32) -> &[u64] {
        &self.record::<0>(rule)[..self.words]
    }

    pub(super) fn mask(&self, rule: u32) -> &[u64] {
        &self.record::<0>(rule)[self.words..2 * self.words]
    }

    #[inline(always)]
    pub(super) fn matches<const N: usize>(&self, rule: u32, key: &[u64]) -> bool {
        let words = self.count::<N>();
        let record = self.record::<N>(rule);
        let mut differ = 0;
        for at in 0..words {
            differ |= key[at] & record[words + at] ^ record[at];
        }
        differ == 0 && self.in_spans::<N>(rule, key)
    }

    /// Whether a key is in a rule's ranges.
    #[inline(always)]
    pub(super) fn in_spans<const N: usize>(&self, rule: u32, key: &[u64]) -> bool {
        let spans = self.record::<N>(rule)[2 * self.count::<N>() + SPANS];
        if spans >> 32 == 0 {
            return true;
        }
        let narrow = &self.spans.items[spans as u32 as usize..][..(spans & !WIDE) as usize >> 32];
        let inside = narrow.iter().all(|span| {
            let value = key[span.word as usize] >> span.shift;
            value.wrapping_sub(span.low) & span.ones <= span.length
        });
        inside && (spans & WIDE == 0 || self.wide[&rule].iter().all(|span| span.contains(key)))
    }

    /// Whether a rule has this pattern and priority.
    pub(super) fn is(&self, rule: u32, pattern: &RulePattern, priority: u64) -> bool {
        self.rank::<0>(rule).priority == priority
            && self.value(rule) == &pattern.value[..]
            && self.mask(rule) == &pattern.mask[..]
            && self.has_spans(rule, pattern)
    }

    fn has_spans(&self, rule: u32, pattern: &RulePattern) -> bool {
        let spans = self.record::<0>(rule)[2 * self.words + SPANS];
        let narrow = &self.spans.items[spans as u32 as usize..][..(spans & !WIDE) as usize >> 32];
        let wide: &[Span] = if spans & WIDE != 0 { &self.wide[&rule] } else { &[] };
        let same = |span: &Span| {
            let in_narrow = narrow.iter().any(|other| {
                span.field.words() == 1
                    && (span.field.word as u32, span.field.shift) == (other.word, other.shift)
                    && (span.low[0], span.length[0]) == (other.low, other.length)
            });
            in_narrow || wide.contains(span)
        };
        narrow.len() + wide.len() == pattern.spans.len() && pattern.spans.iter().all(same)
    }

    /// Visits rules, the oldest first: pattern, priority, handle.
    pub(super) fn visit_by_age(&self, mut rules: Vec<u32>, visit: &mut dyn FnMut(&RulePattern, u64, u32)) {
        rules.sort_by_key(|rule| std::cmp::Reverse(self.rank::<0>(*rule).seniority));
        for rule in rules {
            visit(&self.pattern(rule), self.rank::<0>(rule).priority, self.handle::<0>(rule));
        }
    }

    fn pattern(&self, rule: u32) -> RulePattern {
        let spans = self.record::<0>(rule)[2 * self.words + SPANS];
        let narrow = &self.spans.items[spans as u32 as usize..][..(spans & !WIDE) as usize >> 32];
        let widen = |span: &NarrowSpan| Span {
            field: KeyField {
                width: span.ones.count_ones(),
                kind: FieldKind::Range,
                word: span.word as usize,
                shift: span.shift,
            },
            low: [span.low].into_iter().collect(),
            length: [span.length].into_iter().collect(),
        };
        let mut all: SmallVec<[Span; 2]> = narrow.iter().map(widen).collect();
        if spans & WIDE != 0 {
            all.extend(self.wide[&rule].iter().cloned());
        }
        all.sort_by_key(|span| (span.field.word, span.field.shift));
        RulePattern { value: self.value(rule).into(), mask: self.mask(rule).into(), spans: all }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.records.capacity() * 8
            + self.free.capacity() * 4
            + self.spans.memory_bytes()
            + self.wide.values().map(|spans| size_of_val(&**spans) + 32).sum::<usize>()
    }
}
