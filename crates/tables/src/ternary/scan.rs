//! Scans a few rules linearly, several at a time, in the order of their rank.
//!
//! Values and masks are stored word by word in blocks of eight rules, so a block is one or two SIMD registers
//! wide. The loop is plain code, compiled for the baseline, for AVX2 and for AVX-512; the processor's features select
//! one.

use super::Classifier;
use super::rules::{Rank, RuleStore};
use crate::pattern::RulePattern;
use crate::simd::{Level, level};
use crate::{MISS, PackedLookup, for_words};

const BLOCK: usize = 8;

/// Rules that are scanned. Their number is not limited, but the structure suits 64 or fewer.
#[derive(Clone, Debug)]
pub struct SmallScan {
    rules: RuleStore,
    /// Rules by rank, highest first.
    order: Vec<u32>,
    /// Values of each block (one word of all its rules, then the next word), then its masks. Unused slots hold a value
    /// that their mask excludes, so they never match.
    blocks: Vec<u64>,
    level: Level,
}

impl SmallScan {
    /// Creates an empty classifier for keys of `words` words.
    pub fn new(words: usize) -> Self {
        SmallScan { rules: RuleStore::new(words), order: Vec::new(), blocks: Vec::new(), level: level() }
    }

    #[cfg(test)]
    pub(super) fn set_level(&mut self, level: Level) {
        self.level = level;
    }

    fn rebuild(&mut self) {
        let words = self.rules.words();
        let stride = 2 * words * BLOCK;
        self.blocks.clear();
        self.blocks.resize(self.order.len().div_ceil(BLOCK) * stride, 0);
        for place in 0..self.order.len().next_multiple_of(BLOCK) {
            let block = &mut self.blocks[place / BLOCK * stride..][..stride];
            for word in 0..words {
                let (value, mask) = match self.order.get(place) {
                    Some(rule) => (self.rules.value(*rule)[word], self.rules.mask(*rule)[word]),
                    None => (1, 0),
                };
                block[word * BLOCK + place % BLOCK] = value;
                block[(words + word) * BLOCK + place % BLOCK] = mask;
            }
        }
    }

    fn position(&self, pattern: &RulePattern, priority: u64) -> Option<usize> {
        self.order.iter().position(|rule| self.rules.has_pattern_and_priority(*rule, pattern, priority))
    }

    #[inline(always)]
    fn scan<const N: usize>(&self, key: &[u64]) -> u32 {
        let words = if N == 0 { self.rules.words() } else { N };
        if words == 0 {
            return self.order.first().map_or(MISS, |rule| self.rules.handle::<N>(*rule));
        }
        for (index, block) in self.blocks.chunks_exact(2 * words * BLOCK).enumerate() {
            let mut differ = [0u64; BLOCK];
            for word in 0..words {
                let values = &block[word * BLOCK..][..BLOCK];
                let masks = &block[(words + word) * BLOCK..][..BLOCK];
                for at in 0..BLOCK {
                    differ[at] |= key[word] & masks[at] ^ values[at];
                }
            }
            let mut hits = 0u32;
            for (at, differ) in differ.iter().enumerate() {
                hits |= u32::from(*differ == 0) << at;
            }
            while hits != 0 {
                let rule = self.order[index * BLOCK + hits.trailing_zeros() as usize];
                if self.rules.in_ranges::<N>(rule, key) {
                    return self.rules.handle::<N>(rule);
                }
                hits &= hits - 1;
            }
        }
        MISS
    }

    #[inline(always)]
    fn scan_all<const N: usize>(&self, keys: &[u64], found: &mut [u32]) {
        let words = if N == 0 { self.rules.words() } else { N };
        for (at, found) in found.iter_mut().enumerate() {
            *found = self.scan::<N>(&keys[at * words..][..words]);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn scan_all_avx2<const N: usize>(&self, keys: &[u64], found: &mut [u32]) {
        self.scan_all::<N>(keys, found);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn scan_all_avx512<const N: usize>(&self, keys: &[u64], found: &mut [u32]) {
        self.scan_all::<N>(keys, found);
    }

    fn lookup_batch_in<const N: usize>(&self, keys: &[u64], found: &mut [u32]) {
        match self.level {
            Level::Baseline => self.scan_all::<N>(keys, found),
            // SAFETY: `level` found every feature that the function is compiled for.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { self.scan_all_avx2::<N>(keys, found) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { self.scan_all_avx512::<N>(keys, found) },
        }
    }
}

impl PackedLookup for SmallScan {
    fn words(&self) -> usize {
        self.rules.words()
    }

    fn lookup(&self, key: &[u64]) -> Option<u32> {
        let mut found = [MISS];
        self.lookup_batch(key, &mut found);
        (found[0] != MISS).then_some(found[0])
    }

    fn lookup_batch(&self, keys: &[u64], found: &mut [u32]) {
        for_words!(self.rules.words(), self.lookup_batch_in(keys, found));
    }
}

impl Classifier for SmallScan {
    fn len(&self) -> usize {
        self.rules.len()
    }

    fn find(&self, pattern: &RulePattern, priority: u64) -> Option<u32> {
        self.position(pattern, priority).map(|at| self.rules.handle::<0>(self.order[at]))
    }

    fn insert(&mut self, pattern: &RulePattern, priority: u64, handle: u32) -> Option<u32> {
        if let Some(at) = self.position(pattern, priority) {
            return Some(self.rules.set_handle(self.order[at], handle));
        }
        let rule = self.rules.add(pattern, priority, handle);
        let rank: Rank = self.rules.rank::<0>(rule);
        let at = self.order.partition_point(|other| self.rules.rank::<0>(*other) > rank);
        self.order.insert(at, rule);
        self.rebuild();
        None
    }

    fn remove(&mut self, pattern: &RulePattern, priority: u64) -> Option<u32> {
        let at = self.position(pattern, priority)?;
        let rule = self.order.remove(at);
        let handle = self.rules.handle::<0>(rule);
        self.rules.drop_rule(rule);
        self.rebuild();
        Some(handle)
    }

    fn for_each(&self, visit: &mut dyn FnMut(&RulePattern, u64, u32)) {
        self.rules.visit_by_age(self.order.clone(), visit);
    }

    fn memory_bytes(&self) -> usize {
        self.rules.memory_bytes() + self.order.capacity() * 4 + self.blocks.capacity() * 8
    }
}
