//! Tuple merging (Daly, Bruschi, Linguaglossa, Pontarelli, Rossi, Tollet, Torng, Yourtchenko: TupleMerge, 2019), with
//! batches and filters.
//!
//! Rules that have the same mask can be hashed by the bits of it: a *tuple*. Large rule sets have hundreds of masks, and
//! a key would have to ask each tuple. So a tuple's mask is coarser than those of its rules, and serves many of them;
//! how much coarser is a choice between asking more tuples and comparing longer chains of rules:
//!
//! - A new rule goes to a tuple that admits it (all bits of the tuple are in the rule's mask), if its chain there is
//!   short.
//! - If there is none, a tuple is opened for the rule's own mask cut down to steps of a grid; if that is there and
//!   its chain is long, to a finer grid; in the end to the mask itself.
//! - From [`TUPLES_MOST`] tuples on, chains may become long instead: rules with a mask each are compared one by one, in
//!   a tuple that has no bits if no other admits them.
//!
//! Tuples are asked in the order of the best rank that they have, until none can have a better rule than the one that
//! was found. Ranges take part in hashing with the bits in front that all their values share, and are compared behind it.
//!
//! A rule takes `16 * words + 32` bytes, 24 for each range that is more than a prefix, and about 25 in its tuple.

use smallvec::SmallVec;

use super::Classifier;
use super::rules::{NONE, Rank, Rules};
use super::tuple::Tuple;
use crate::layout::{Field, Layout};
use crate::pattern::{Pattern, Words};
use crate::prefetch::prefetch;
use crate::simd::{Level, level};
use crate::{BATCH, MISS, PackedLookup, for_words};

/// From how many tuples on no new one is opened, but one for all rules that no other admits.
pub const TUPLES_MOST: usize = 256;
/// How long a chain is at most before a tuple is opened for a rule, for masks from coarse to the rule's own. Every
/// key pays for a tuple, but few for a chain, so finer tuples, which hold fewer rules, have to save more.
const CHAIN_MOST: [usize; GRIDS] = [8, 16, 48];

/// A classifier for many rules.
#[derive(Clone, Debug)]
pub struct TupleMerge {
    layout: Layout,
    rules: Rules,
    /// The best first.
    tuples: Vec<Tuple>,
    level: Level,
}

impl TupleMerge {
    /// An empty classifier.
    pub fn new(layout: &Layout) -> Self {
        TupleMerge { layout: layout.clone(), rules: Rules::new(layout.words()), tuples: Vec::new(), level: level() }
    }

    /// The masks of the tuples in the order in which they are asked, with the number of rules in each.
    pub fn tuples(&self) -> impl Iterator<Item = (&[u64], usize)> {
        self.tuples.iter().map(|tuple| (&tuple.mask[..], tuple.len))
    }

    #[inline(always)]
    fn lookup_in<const N: usize>(&self, key: &[u64]) -> Option<u32> {
        let mut best = Rank::default();
        let mut found = NONE;
        for tuple in &self.tuples {
            if found != NONE && best > tuple.best {
                break;
            }
            let hash = tuple.hash::<N>(key);
            if tuple.may_have(hash) {
                self.walk::<N>(tuple.head(hash), key, &mut found, &mut best);
            }
        }
        (found != NONE).then(|| self.rules.handle::<N>(found))
    }

    /// For each tuple: hashes and filters of all keys that it can still serve better, then the slots of those that
    /// pass, then the rules. So what a key waits for is asked for while others are worked on.
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
        let key = |at: u8| &keys[usize::from(at) * words..][..words];
        let mut best = [Rank::default(); BATCH];
        let mut active = [0u8; BATCH];
        let mut hashes = [0u64; BATCH];
        let mut passing = [0u8; BATCH];
        let mut chains = [(NONE, 0u8); BATCH];
        let mut count = found.len();
        for (at, active) in active.iter_mut().enumerate() {
            *active = at as u8;
        }
        found.fill(NONE);
        for tuple in &self.tuples {
            tuple.hash_batch::<N>(columns, &mut hashes);
            let mut kept = 0;
            let mut pass = 0;
            for place in 0..count {
                let at = active[place];
                let index = usize::from(at) % BATCH;
                active[kept] = at;
                let useful = best[index].priority <= tuple.best.priority;
                kept += usize::from(useful);
                passing[pass] = at;
                pass += usize::from(useful & tuple.may_have(hashes[index]));
            }
            count = kept;
            if count == 0 {
                break;
            }
            if pass == 0 {
                continue;
            }
            for at in &passing[..pass] {
                tuple.prefetch_slot(hashes[usize::from(*at) % BATCH]);
            }
            let mut heads = 0;
            for at in &passing[..pass] {
                let head = tuple.head(hashes[usize::from(*at) % BATCH]);
                if head != NONE {
                    let (records, first) = self.rules.place::<N>(head);
                    prefetch(records, first);
                    chains[heads] = (head, *at);
                    heads += 1;
                }
            }
            for (head, at) in &chains[..heads] {
                let index = usize::from(*at) % BATCH;
                self.walk::<N>(*head, key(*at), &mut found[index], &mut best[index]);
            }
        }
        for found in found.iter_mut() {
            *found = if *found == NONE { MISS } else { self.rules.handle::<N>(*found) };
        }
    }

    /// Follows a chain to the first rule that matches, if it wins over what was found.
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

    fn position(&self, pattern: &Pattern, priority: u64) -> Option<(usize, u32)> {
        let is = |rule| self.rules.is(rule, pattern, priority);
        self.tuples.iter().enumerate().find_map(|(at, tuple)| {
            if !tuple.admits(&pattern.mask) {
                return None;
            }
            Some((at, tuple.find(&self.rules, &pattern.value, is)?))
        })
    }

    /// The tuple that a new rule goes to, opened if need be.
    fn choose(&mut self, pattern: &Pattern) -> usize {
        let mut shortest: Option<(usize, usize)> = None;
        for (at, tuple) in self.tuples.iter().enumerate() {
            if tuple.admits(&pattern.mask) {
                let chained = tuple.chained(&self.rules, &pattern.value, CHAIN_MOST[GRIDS - 1]);
                if chained < CHAIN_MOST[0] {
                    return at;
                }
                if shortest.is_none_or(|(least, _)| chained < least) {
                    shortest = Some((chained, at));
                }
            }
        }
        if shortest.is_none() && self.tuples.len() >= TUPLES_MOST {
            // One for all the rest, which admits every rule from now on.
            self.tuples.push(Tuple::new(SmallVec::from_elem(0, self.rules.words())));
            return self.tuples.len() - 1;
        }
        for (grid, most) in CHAIN_MOST.iter().enumerate() {
            if let Some((chained, at)) = shortest
                && (chained < *most || self.tuples.len() >= TUPLES_MOST)
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

    /// Puts a tuple whose best rank has changed to its place.
    fn settle(&mut self, at: usize) {
        let tuple = self.tuples.remove(at);
        let place = self.tuples.partition_point(|other| other.best > tuple.best);
        self.tuples.insert(place, tuple);
    }
}

/// How many masks are tried for a new tuple, from coarse to the rule's own.
const GRIDS: usize = 3;

/// A rule's mask cut down for a tuple: prefixes to steps of a grid. Masks that are no prefixes stay, since those who
/// write them mostly use one of them for many rules.
fn relax(layout: &Layout, mask: &[u64], grid: usize) -> Words {
    let mut relaxed: Words = mask.into();
    if grid + 1 == GRIDS {
        return relaxed;
    }
    let lengths: SmallVec<[Option<u32>; 8]> = layout.fields().iter().map(|field| prefix_length(field, mask)).collect();
    let shares = layout.fields().iter().zip(&lengths).filter(|(field, _)| field.width > NARROW);
    let longest = shares.filter_map(|(field, length)| Some(share(field.width, (*length)?))).max().unwrap_or(0);
    for (field, length) in layout.fields().iter().zip(lengths) {
        if let Some(length) = length {
            keep_prefix(field, &mut relaxed, cut(field.width, length, longest, grid));
        }
    }
    relaxed
}

/// Fields of up to this many bits are in a tuple as a whole or not at all.
const NARROW: u32 = 16;

/// How much of a field a prefix fixes, in 64ths.
fn share(width: u32, length: u32) -> u32 {
    length * 64 / width.max(1)
}

/// The length that a prefix has in a tuple, given the longest share among the rule's.
fn cut(width: u32, length: u32, longest: u32, grid: usize) -> u32 {
    if width <= NARROW {
        return if length == width { width } else { 0 };
    }
    if grid > 0 {
        let step = width / 8;
        return length / step * step;
    }
    // Beside a long prefix a short one tells little apart.
    if share(width, length) + 32 <= longest {
        return 0;
    }
    let step = width / 4;
    (length / step * step).min(step * 3)
}

/// How many of a field's first bits are in a mask, if no others are.
fn prefix_length(field: &Field, mask: &[u64]) -> Option<u32> {
    let mut length = 0;
    let mut ended = false;
    for part in (0..field.words()).rev() {
        let bits = field.ones(part).count_ones();
        let word = (mask[field.word + part] >> field.shift & field.ones(part)) << (64 - bits);
        let ones = word.leading_ones();
        if word.count_ones() != ones || (ended && ones > 0) {
            return None;
        }
        length += ones;
        ended |= ones < bits;
    }
    Some(length)
}

/// Takes a field's bits behind a prefix out of a mask.
fn keep_prefix(field: &Field, mask: &mut [u64], length: u32) {
    let spare = field.width - length;
    for part in 0..field.words() {
        let out = spare.saturating_sub(64 * part as u32).min(64);
        mask[field.word + part] &= !((crate::layout::low_ones(out) & field.ones(part)) << field.shift);
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

    fn find(&self, pattern: &Pattern, priority: u64) -> Option<u32> {
        self.position(pattern, priority).map(|(_, rule)| self.rules.handle::<0>(rule))
    }

    fn insert(&mut self, pattern: &Pattern, priority: u64, handle: u32) -> Option<u32> {
        if let Some((_, rule)) = self.position(pattern, priority) {
            return Some(self.rules.set_handle(rule, handle));
        }
        let at = self.choose(pattern);
        let rule = self.rules.add(pattern, priority, handle);
        self.tuples[at].add(&mut self.rules, rule);
        self.settle(at);
        None
    }

    fn remove(&mut self, pattern: &Pattern, priority: u64) -> Option<u32> {
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

    fn for_each(&self, visit: &mut dyn FnMut(&Pattern, u64, u32)) {
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
    use crate::classbench::{self, Family};
    use crate::{FieldKind, SmallScan};

    #[test]
    fn masks_are_cut_to_steps() {
        let layout = Layout::new([(32, FieldKind::Prefix), (16, FieldKind::Range), (100, FieldKind::Masked)]);
        let relaxed = |masks: [u128; 3], grid| {
            let mut mask = vec![0; layout.words()];
            for (field, value) in masks.into_iter().enumerate() {
                layout.put(&mut mask, field, &[value as u64, (value >> 64) as u64]);
            }
            relax(&layout, &mask, grid).to_vec()
        };
        let all = (1u128 << 100) - 1;
        // Full, nearly full and gapped masks; then what each grid leaves.
        assert_eq!(
            relaxed([0xffff_ffff, 0xffff, all], 0),
            [0xffff_ff00 | 0xffff << 32, all as u64 & !0 << 25, all as u64 >> 28]
        );
        assert_eq!(relaxed([0xffff_f800, 0xfff0, 0xff], 0), [0xffff_0000, 0xff, 0]);
        assert_eq!(relaxed([0xffff_f800, 0xfff0, 0xff], 1), [0xffff_f000, 0xff, 0]);
        assert_eq!(relaxed([0xffff_f800, 0xfff0, 0xff], 2), [0xffff_f800 | 0xfff0 << 32, 0xff, 0]);
        assert_eq!(relaxed([0xff00_00ff, 0, 0], 0), [0xff00_00ff, 0, 0]);
    }

    /// What the code is compiled for must not change what it says.
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
        let mut merge = TupleMerge::new(&layout);
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
