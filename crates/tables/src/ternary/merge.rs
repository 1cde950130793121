//! TupleMerge (Daly, Bruschi, Linguaglossa, Pontarelli, Rossi, Tollet, Torng, Yourtchenko: TupleMerge, 2019), with
//! batches and filters.
//!
//! Rules with the same mask can be hashed by the bits under it: a *tuple* (tuple space search). Large rule sets have
//! hundreds of masks, and a key would have to be looked up in each tuple. So a tuple's mask is coarser than those of
//! its rules and serves many of them. Coarser masks mean fewer tuples to search but longer chains of rules to compare:
//!
//! - A new rule goes to a tuple that admits it (all bits of the tuple are in the rule's mask), if its chain there is
//!   short.
//! - Otherwise a tuple is created for the rule's mask relaxed to the steps of a grid; if that tuple exists and its
//!   chain is long, to a finer grid; finally for the mask itself.
//! - From [`MAX_TUPLES`] tuples on, chains may become long instead: rules with a mask each are compared one by one, in
//!   a tuple without bits if no other admits them.
//!
//! Tuples are searched in the order of the best rank in each, until none can have a better rule than the current
//! result. Ranges take part in hashing with the leading bits that all their values share, and are compared afterwards.
//!
//! A rule takes `16 * words + 32` bytes, 24 for each range that is more than a prefix, and about 25 in its tuple.

use smallvec::SmallVec;

use super::Classifier;
use super::grid::{GRIDS, relax};
use super::rules::{NONE, Rank, RuleStore};
use super::tuple::Tuple;
use crate::key_layout::KeyLayout;
use crate::pattern::RulePattern;
use crate::prefetch::prefetch;
use crate::simd::{Level, level};
use crate::{BATCH, MISS, PackedLookup, for_words};

/// Number of tuples from which on no new one is created, except one for all rules that no other admits.
pub const MAX_TUPLES: usize = 256;
/// Maximum chain length before a tuple is created for a rule, for masks from coarse to the rule's own. Every key pays
/// for a tuple, but few for a chain, so finer tuples, which hold fewer rules, have to save more.
const MAX_CHAIN: [usize; GRIDS] = [8, 16, 48];

/// Maximum size in words of rules that stay in near caches, where hardware prefetching suffices. Measured: single
/// lookups are faster there by a tenth to a third, and slower by a sixth at three times the size.
const NEAR_WORDS: usize = 1 << 18;
/// Number of tuples after which keys that cannot find a better rule are removed from a batch.
const REVIEW: usize = 4;
/// Number of remaining keys from which on they are looked up one by one: batch work would be wasted on finished keys.
const FEW: u32 = 6;

/// Iterates over the indices of the ones in a word.
fn ones(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (at < BATCH).then_some(at)
    })
}

/// A classifier for many rules.
#[derive(Clone, Debug)]
pub struct TupleMerge {
    layout: KeyLayout,
    rules: RuleStore,
    /// Tuples, best rank first.
    tuples: Vec<Tuple>,
    level: Level,
    near_words: usize,
}

impl TupleMerge {
    /// Creates an empty classifier.
    pub fn new(layout: &KeyLayout) -> Self {
        TupleMerge {
            layout: layout.clone(),
            rules: RuleStore::new(layout.words()),
            tuples: Vec::new(),
            level: level(),
            near_words: NEAR_WORDS,
        }
    }

    /// Sets the size of rules in words from which on batches are looked up together (default: 2 MiB of words, the size
    /// of a second-level cache). A rule takes two words for each word of its key, plus four.
    #[must_use]
    pub fn with_near_words(mut self, words: usize) -> Self {
        self.near_words = words;
        self
    }

    /// Returns the masks of the tuples in search order, with the number of rules in each.
    pub fn tuples(&self) -> impl Iterator<Item = (&[u64], usize)> {
        self.tuples.iter().map(|tuple| (&tuple.mask[..], tuple.len))
    }

    #[inline(never)]
    fn lookup_in<const N: usize>(&self, key: &[u64]) -> Option<u32> {
        let (mut found, mut best) = (NONE, Rank::default());
        self.search::<N>(&self.tuples, key, &mut found, &mut best);
        (found != NONE).then(|| self.rules.handle::<N>(found))
    }

    /// Searches tuples for a rule that wins over the current result.
    #[inline(always)]
    fn search<const N: usize>(&self, tuples: &[Tuple], key: &[u64], found: &mut u32, best: &mut Rank) {
        for tuple in tuples {
            if *found != NONE && *best > tuple.best {
                break;
            }
            let hash = tuple.hash::<N>(key);
            if tuple.may_have(hash) {
                self.walk::<N>(tuple.head(hash), key, found, best);
            }
        }
    }

    /// Processes each tuple in three steps: hashes and filters of all keys for which it can improve the result, then
    /// the slots of the keys that pass, then the rules. So memory for one key is prefetched while others are processed.
    #[inline(always)]
    fn lookup_chunks<const N: usize>(&self, keys: &[u64], found: &mut [u32]) {
        let words = if N == 0 { self.rules.words() } else { N };
        let mut columns: SmallVec<[[u64; BATCH]; 4]> = SmallVec::from_elem([0; BATCH], words);
        for (chunk, found) in found.chunks_mut(BATCH).enumerate() {
            let keys = &keys[chunk * BATCH * words..][..found.len() * words];
            for (word, column) in columns.iter_mut().enumerate() {
                for at in 0..found.len() {
                    column[at] = keys[at * words + word];
                }
            }
            self.lookup_chunk::<N>(keys, &columns, found);
        }
    }

    #[inline(always)]
    fn lookup_chunk<const N: usize>(&self, keys: &[u64], columns: &[[u64; BATCH]], found: &mut [u32]) {
        let words = if N == 0 { self.rules.words() } else { N };
        let key = |at: usize| &keys[at * words..][..words];
        let mut best = [Rank::default(); BATCH];
        let mut rules = [NONE; BATCH];
        let mut hashes = [0u64; BATCH];
        let mut chains = [(NONE, 0u8); BATCH];
        // A bitmap of the keys whose result can still improve.
        let mut open = u32::MAX >> (BATCH - found.len());
        for (number, tuple) in self.tuples.iter().enumerate() {
            if number % REVIEW == 0 {
                for at in ones(open) {
                    let is_settled = rules[at] != NONE && best[at] > tuple.best;
                    open &= !(u32::from(is_settled) << at);
                }
                if open.count_ones() <= FEW {
                    for at in ones(open) {
                        self.search::<N>(&self.tuples[number..], key(at), &mut rules[at], &mut best[at]);
                    }
                    break;
                }
            }
            tuple.hash_batch::<N>(columns, &mut hashes);
            let passing = tuple.may_have_each(&hashes) & open;
            for at in ones(passing) {
                tuple.prefetch_slot(hashes[at]);
            }
            let mut heads = 0;
            for at in ones(passing) {
                let head = tuple.head(hashes[at]);
                if head != NONE {
                    let (records, first) = self.rules.record_offset::<N>(head);
                    prefetch(records, first);
                    chains[heads % BATCH] = (head, at as u8);
                    heads += 1;
                }
            }
            for (head, at) in &chains[..heads.min(BATCH)] {
                let at = usize::from(*at) % BATCH;
                self.walk::<N>(*head, key(at), &mut rules[at], &mut best[at]);
            }
        }
        for (found, rule) in found.iter_mut().zip(rules) {
            *found = if rule == NONE { MISS } else { self.rules.handle::<N>(rule) };
        }
    }

    /// Follows a chain to the first matching rule, if that wins over the current result.
    #[inline(always)]
    fn walk<const N: usize>(&self, head: u32, key: &[u64], found: &mut u32, best: &mut Rank) {
        let mut rule = head;
        while rule != NONE {
            let rank = self.rules.rank::<N>(rule);
            if *found != NONE && rank < *best {
                return;
            }
            if self.rules.matches::<N>(rule, key) {
                *best = rank;
                *found = rule;
                return;
            }
            rule = self.rules.next::<N>(rule);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn lookup_avx2<const N: usize>(&self, keys: &[u64], found: &mut [u32]) {
        self.lookup_chunks::<N>(keys, found);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn lookup_avx512<const N: usize>(&self, keys: &[u64], found: &mut [u32]) {
        self.lookup_chunks::<N>(keys, found);
    }

    fn lookup_batch_in<const N: usize>(&self, keys: &[u64], found: &mut [u32]) {
        if self.rules.record_words() < self.near_words {
            let words = self.rules.words();
            for (at, found) in found.iter_mut().enumerate() {
                *found = self.lookup_in::<N>(&keys[at * words..][..words]).unwrap_or(MISS);
            }
            return;
        }
        match self.level {
            Level::Baseline => self.lookup_chunks::<N>(keys, found),
            // SAFETY: `level` found every feature that the function is compiled for.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { self.lookup_avx2::<N>(keys, found) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { self.lookup_avx512::<N>(keys, found) },
        }
    }

    fn position(&self, pattern: &RulePattern, priority: u64) -> Option<(usize, u32)> {
        let is = |rule| self.rules.has_pattern_and_priority(rule, pattern, priority);
        self.tuples.iter().enumerate().find_map(|(at, tuple)| {
            if !tuple.admits(&pattern.mask) {
                return None;
            }
            Some((at, tuple.find(&self.rules, &pattern.value, is)?))
        })
    }

    /// Returns the tuple for a new rule, creating it if necessary.
    fn choose(&mut self, pattern: &RulePattern) -> usize {
        let mut shortest: Option<(usize, usize)> = None;
        for (at, tuple) in self.tuples.iter().enumerate() {
            if tuple.admits(&pattern.mask) {
                let chained = tuple.chained(&self.rules, &pattern.value, MAX_CHAIN[GRIDS - 1]);
                if chained < MAX_CHAIN[0] {
                    return at;
                }
                if shortest.is_none_or(|(least, _)| chained < least) {
                    shortest = Some((chained, at));
                }
            }
        }
        if shortest.is_none() && self.tuples.len() >= MAX_TUPLES {
            // One tuple for all other rules, which admits every rule from now on.
            self.tuples.push(Tuple::new(SmallVec::from_elem(0, self.rules.words())));
            return self.tuples.len() - 1;
        }
        for (grid, most) in MAX_CHAIN.iter().enumerate() {
            if let Some((chained, at)) = shortest
                && (chained < *most || self.tuples.len() >= MAX_TUPLES)
            {
                return at;
            }
            let mask = relax(&self.layout, &pattern.mask, grid);
            if !self.tuples.iter().any(|tuple| tuple.mask == mask) {
                self.tuples.push(Tuple::new(mask));
                return self.tuples.len() - 1;
            }
        }
        shortest.map(|(_, at)| at).expect("the tuple with the rule's own mask admits it")
    }

    /// Moves a tuple whose best rank has changed to its position in the order.
    fn settle(&mut self, at: usize) {
        let tuple = self.tuples.remove(at);
        let place = self.tuples.partition_point(|other| other.best > tuple.best);
        self.tuples.insert(place, tuple);
    }
}

impl PackedLookup for TupleMerge {
    fn words(&self) -> usize {
        self.rules.words()
    }

    fn lookup(&self, key: &[u64]) -> Option<u32> {
        for_words!(self.rules.words(), self.lookup_in(key))
    }

    fn lookup_batch(&self, keys: &[u64], found: &mut [u32]) {
        for_words!(self.rules.words(), self.lookup_batch_in(keys, found));
    }
}

impl Classifier for TupleMerge {
    fn len(&self) -> usize {
        self.rules.len()
    }

    fn find(&self, pattern: &RulePattern, priority: u64) -> Option<u32> {
        self.position(pattern, priority).map(|(_, rule)| self.rules.handle::<0>(rule))
    }

    fn insert(&mut self, pattern: &RulePattern, priority: u64, handle: u32) -> Option<u32> {
        if let Some((_, rule)) = self.position(pattern, priority) {
            return Some(self.rules.set_handle(rule, handle));
        }
        let at = self.choose(pattern);
        let rule = self.rules.add(pattern, priority, handle);
        self.tuples[at].add(&mut self.rules, rule);
        self.settle(at);
        None
    }

    fn remove(&mut self, pattern: &RulePattern, priority: u64) -> Option<u32> {
        let (at, rule) = self.position(pattern, priority)?;
        let handle = self.rules.handle::<0>(rule);
        self.tuples[at].remove(&mut self.rules, rule);
        self.rules.drop_rule(rule);
        if self.tuples[at].len == 0 {
            self.tuples.remove(at);
        } else {
            self.settle(at);
        }
        Some(handle)
    }

    fn for_each(&self, visit: &mut dyn FnMut(&RulePattern, u64, u32)) {
        let all = self.tuples.iter().flat_map(|tuple| tuple.rules(&self.rules)).collect();
        self.rules.visit_by_age(all, visit);
    }

    fn memory_bytes(&self) -> usize {
        self.rules.memory_bytes() + self.tuples.iter().map(Tuple::memory_bytes).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SmallScan;
    use crate::classbench::{self, Family};

    /// Results must not depend on the instruction set that the code is compiled for.
    #[test]
    fn every_level_says_the_same() {
        let mut levels = vec![Level::Baseline];
        #[cfg(target_arch = "x86_64")]
        match level() {
            Level::Baseline => {}
            Level::Avx2 => levels.push(Level::Avx2),
            Level::Avx512 => levels.extend([Level::Avx2, Level::Avx512]),
        }
        let layout = classbench::layout();
        let rules = classbench::rules(Family::Ipc, 2000, 3);
        let mut keys: Vec<u64> = Vec::new();
        classbench::headers(&rules, 1001, 4).iter().for_each(|header| keys.extend(header.key()));
        let mut merge = TupleMerge::new(&layout).with_near_words(0);
        let mut scan = SmallScan::new(2);
        for (rule, handle) in rules.iter().zip(0u32..) {
            merge.insert(&rule.pattern(&layout), u64::from(9999 - handle), handle);
            scan.insert(&rule.pattern(&layout), u64::from(9999 - handle), handle);
        }
        let one_by_one: Vec<u32> = keys.chunks(2).map(|key| merge.lookup(key).unwrap_or(MISS)).collect();
        for level in levels {
            let mut found = vec![0; 1001];
            merge.level = level;
            merge.lookup_batch(&keys, &mut found);
            assert_eq!(found, one_by_one, "merged tuples, {level:?}");
            found.fill(0);
            scan.set_level(level);
            scan.lookup_batch(&keys, &mut found);
            assert_eq!(found, one_by_one, "scan, {level:?}");
        }
    }
}
