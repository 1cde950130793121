//! Stores one merged tuple: rules whose masks include certain bits, hashed by their values of these bits.
//!
//! Rules with the same hash form a chain, highest rank first. A slot holds half of the hash and the head of the chain;
//! the rest is compared with the rule itself. The filter uses only that half too, because rules of one chain may differ
//! in the other. In front of the slots is a filter of single bits, at least 16 per chain, which is small enough for the
//! nearest caches and rejects most keys.

use super::rules::{NONE, Rank, RuleStore};
use crate::BATCH;
use crate::pattern::Words;
use crate::prefetch::prefetch;

const EMPTY: u64 = u64::MAX;

/// Odd multipliers without a pattern, used for the words in turn.
const FACTORS: [u64; 4] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53];

/// Returns the contribution of a word to a hash. The high bits of a product depend on all lower bits of its factors, so
/// the high half of the word is folded down first.
#[inline(always)]
fn term(at: usize, word: u64) -> u64 {
    (word ^ word >> 32).wrapping_mul(FACTORS[at % 4].wrapping_add(at as u64 & !3))
}

/// Returns the hash for the sum of the terms. It uses only operations that SIMD has, unlike the hash of exact tables.
#[inline(always)]
fn finish(sum: u64) -> u64 {
    (sum ^ sum >> 32).wrapping_mul(FACTORS[2])
}

#[derive(Clone, Debug)]
pub(super) struct Tuple {
    pub(super) mask: Words,
    /// Upper bound of the ranks here: exact after a rebuild, possibly too high after removals.
    pub(super) best: Rank,
    pub(super) len: usize,
    chains: usize,
    /// Number of chains removed since the filter was built.
    gone: usize,
    /// Filter; its length in words is a power of two.
    filter: Vec<u64>,
    /// Slots, a power of two: the high half of the hash in the high half, the head of the chain in the low half.
    slots: Vec<u64>,
}

impl Tuple {
    pub(super) fn new(mask: Words) -> Self {
        Tuple { mask, best: Rank::default(), len: 0, chains: 0, gone: 0, filter: vec![0; 8], slots: vec![EMPTY; 16] }
    }

    /// Whether a rule with this mask can be stored here.
    pub(super) fn admits(&self, mask: &[u64]) -> bool {
        self.mask.iter().zip(mask).all(|(mine, rule)| mine & rule == *mine)
    }

    #[inline(always)]
    pub(super) fn hash<const N: usize>(&self, key: &[u64]) -> u64 {
        let words = if N == 0 { self.mask.len() } else { N };
        let mask = &self.mask[..words];
        finish((0..words).fold(0, |sum: u64, at| sum.wrapping_add(term(at, key[at] & mask[at]))))
    }

    /// Computes the hashes of a batch, whose keys are stored word by word.
    #[inline(always)]
    pub(super) fn hash_batch<const N: usize>(&self, keys: &[[u64; BATCH]], hashes: &mut [u64; BATCH]) {
        let words = if N == 0 { self.mask.len() } else { N };
        let (mask, keys) = (&self.mask[..words], &keys[..words]);
        let mut sums = [0u64; BATCH];
        for word in 0..words {
            for at in 0..BATCH {
                sums[at] = sums[at].wrapping_add(term(word, keys[word][at] & mask[word]));
            }
        }
        for at in 0..BATCH {
            hashes[at] = finish(sums[at]);
        }
    }

    /// Whether the filter accepts a hash.
    #[inline(always)]
    pub(super) fn may_have(&self, hash: u64) -> bool {
        let bit = (hash >> 32) as usize & (self.filter.len() * 64 - 1);
        self.filter[bit / 64] >> (bit % 64) & 1 != 0
    }

    /// Returns a bitmap of the hashes that the filter accepts.
    #[inline(always)]
    pub(super) fn may_have_each(&self, hashes: &[u64; BATCH]) -> u32 {
        let filter = &self.filter[..];
        let mask = filter.len() * 64 - 1;
        let mut passing = 0;
        for (at, hash) in hashes.iter().enumerate() {
            let bit = (hash >> 32) as usize & mask;
            passing |= ((filter[bit / 64] >> (bit % 64)) as u32 & 1) << at;
        }
        passing
    }

    #[inline(always)]
    fn first_slot(&self, hash: u64) -> usize {
        (hash >> (64 - self.slots.len().trailing_zeros())) as usize
    }

    #[inline(always)]
    pub(super) fn prefetch_slot(&self, hash: u64) {
        prefetch(&self.slots, self.first_slot(hash));
    }

    /// Returns the first rule of a chain, or [`NONE`].
    #[inline(always)]
    pub(super) fn head(&self, hash: u64) -> u32 {
        let mut at = self.first_slot(hash);
        loop {
            let slot = self.slots[at & (self.slots.len() - 1)];
            if slot == EMPTY {
                return NONE;
            }
            if slot >> 32 == hash >> 32 {
                return slot as u32;
            }
            at += 1;
        }
    }

    fn slot_of(&self, hash: u64) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let mut at = self.first_slot(hash);
        while self.slots[at & mask] != EMPTY {
            if self.slots[at & mask] >> 32 == hash >> 32 {
                return Some(at & mask);
            }
            at += 1;
        }
        None
    }

    fn chain<'a>(&self, rules: &'a RuleStore, hash: u64) -> impl Iterator<Item = u32> + use<'a> {
        let first = Some(self.head(hash)).filter(|rule| *rule != NONE);
        std::iter::successors(first, |rule| Some(rules.next::<0>(*rule)).filter(|rule| *rule != NONE))
    }

    /// Returns the length of the chain that a new rule with this value would join, at most `most`.
    pub(super) fn chained(&self, rules: &RuleStore, value: &[u64], most: usize) -> usize {
        self.chain(rules, self.hash::<0>(value)).take(most).count()
    }

    /// Returns a rule with this value for which `is` holds.
    pub(super) fn find(&self, rules: &RuleStore, value: &[u64], is: impl Fn(u32) -> bool) -> Option<u32> {
        self.chain(rules, self.hash::<0>(value)).find(|rule| is(*rule))
    }

    pub(super) fn add(&mut self, rules: &mut RuleStore, rule: u32) {
        let hash = self.hash::<0>(rules.value(rule));
        let rank = rules.rank::<0>(rule);
        self.len += 1;
        match self.slot_of(hash) {
            None => {
                rules.set_next(rule, NONE);
                self.add_chain(rules, hash, rule);
            }
            Some(slot) => {
                let head = self.slots[slot] as u32;
                if rules.rank::<0>(head) < rank {
                    rules.set_next(rule, head);
                    self.slots[slot] = hash >> 32 << 32 | u64::from(rule);
                } else {
                    let mut before = head;
                    loop {
                        let next = rules.next::<0>(before);
                        if next == NONE || rules.rank::<0>(next) < rank {
                            break;
                        }
                        before = next;
                    }
                    rules.set_next(rule, rules.next::<0>(before));
                    rules.set_next(before, rule);
                }
            }
        }
        self.best = self.best.max(rank);
    }

    fn add_chain(&mut self, rules: &RuleStore, hash: u64, head: u32) {
        if (self.chains + 1) * 2 > self.slots.len() {
            self.rebuild(rules, self.slots.len() * 2);
        }
        self.chains += 1;
        self.put(hash, head);
    }

    fn put(&mut self, hash: u64, head: u32) {
        let mask = self.slots.len() - 1;
        let mut at = self.first_slot(hash);
        while self.slots[at & mask] != EMPTY {
            at += 1;
        }
        self.slots[at & mask] = hash >> 32 << 32 | u64::from(head);
        let bit = (hash >> 32) as usize & (self.filter.len() * 64 - 1);
        self.filter[bit / 64] |= 1 << (bit % 64);
    }

    /// Removes a rule from its chain.
    pub(super) fn remove(&mut self, rules: &mut RuleStore, rule: u32) {
        let hash = self.hash::<0>(rules.value(rule));
        let slot = self.slot_of(hash).expect("the rule is here");
        let head = self.slots[slot] as u32;
        let next = rules.next::<0>(rule);
        self.len -= 1;
        if head != rule {
            let mut before = head;
            while rules.next::<0>(before) != rule {
                before = rules.next::<0>(before);
            }
            rules.set_next(before, next);
        } else if next != NONE {
            self.slots[slot] = hash >> 32 << 32 | u64::from(next);
        } else {
            self.close_up(slot);
            self.chains -= 1;
        }
        self.gone += 1;
        // Removals leave the filter and the best rank stale.
        if self.gone > self.len + 8 {
            let wanted = (self.chains * 2 + 2).next_power_of_two().max(16);
            self.rebuild(rules, wanted);
        }
    }

    /// Empties a slot and moves later ones up (backward shift), so that no search stops too early.
    fn close_up(&mut self, slot: usize) {
        let mask = self.slots.len() - 1;
        let mut hole = slot;
        let mut at = slot;
        loop {
            at = (at + 1) & mask;
            let moving = self.slots[at];
            if moving == EMPTY {
                break;
            }
            let home = self.first_slot(moving);
            // A slot may move unless its home lies between the hole and its position.
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.slots[hole] = moving;
                hole = at;
            }
        }
        self.slots[hole] = EMPTY;
    }

    /// Rebuilds slots, filter and best rank.
    fn rebuild(&mut self, rules: &RuleStore, slots: usize) {
        let old = std::mem::replace(&mut self.slots, vec![EMPTY; slots]);
        self.filter = vec![0; (slots * 8 / 64).max(8)];
        self.gone = 0;
        self.best = Rank::default();
        for slot in old.into_iter().filter(|slot| *slot != EMPTY) {
            let head = slot as u32;
            self.best = self.best.max(rules.rank::<0>(head));
            self.put(self.hash::<0>(rules.value(head)), head);
        }
    }

    /// Returns every rule here.
    pub(super) fn rules(&self, rules: &RuleStore) -> Vec<u32> {
        let mut all = Vec::with_capacity(self.len);
        for slot in self.slots.iter().filter(|slot| **slot != EMPTY) {
            let mut rule = *slot as u32;
            while rule != NONE {
                all.push(rule);
                rule = rules.next::<0>(rule);
            }
        }
        all
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.filter.capacity() * 8 + self.slots.capacity() * 8
    }
}
