//! Range match: entries with one range field beside exact fields.
//!
//! The exact fields select a group by one hash. Within a group, the result changes only where an entry begins or ends,
//! so the group is a step function ([`steps`]): from each threshold to the next, one entry wins, or none. A lookup is a
//! hash and a search for the last threshold, regardless of overlaps; adjacent entries share a threshold.
//!
//! The cost of a change is proportional to the number of steps that the entry covers. Entries that rarely overlap
//! change in about a microsecond, however many there are; an entry that spans n others costs n. An ordered list of all
//! entries finds the other candidates in the affected range. It is sorted by the size of the ranges first: of the
//! ranges of one size, only neighbours can reach a number.
//!
//! Steps hold the handles themselves, so a lookup does not touch any entry: handles are distinct, and entries are in an
//! array indexed by handle.
//!
//! An entry takes about 105 to 135 bytes in large groups, and a group takes 145 bytes and its key; ranges of more than
//! 32 bits take slightly more.

mod change;
mod nodes;
mod search;
mod steps;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use smallvec::SmallVec;

use crate::exact::Exact;
use crate::inline_lookup::{Called, InlineLookup};
use crate::key_layout::{FieldKind, KeyField, KeyLayout};
use crate::{BATCH, MISS, PackedLookup, for_words};
use nodes::{Nodes, Threshold};
#[cfg(target_arch = "x86_64")]
use search::SimdSearch;
use search::{BinarySearch, Search};
use steps::{AnyNodes, Root, Steps};

/// The rank of an entry: priority, then age.
type Rank = (u64, Reverse<u64>);

/// An entry, or one of the two parts of an entry that wraps around: group, size class of the range, its ends, priority,
/// handle.
type OrderKey = (u32, u8, u64, u64, u64, u32);

#[derive(Clone, Debug, Default)]
struct RangeEntry {
    rank: Rank,
    /// The given ends; the second is below the first if the range wraps around.
    ends: (u64, u64),
}

/// The entries for one combination of the exact fields.
#[derive(Clone, Debug, Default)]
struct RangeGroup {
    len: usize,
    /// Bitmap of the size classes that entries have or had.
    sizes: u128,
}

/// A table with one range field of up to 64 bits; the others are exact. Handles differ between entries, and memory is
/// proportional to the largest.
#[derive(Clone, Debug)]
pub struct Intervals {
    words: usize,
    field: KeyField,
    /// Mask of the exact fields, and the group for each of their values; without exact fields there is only group 0.
    exact_mask: Box<[u64]>,
    by_exact: Option<Exact>,
    groups: Vec<RangeGroup>,
    roots: Vec<Root>,
    free_groups: Vec<u32>,
    /// Step functions whose values are handles, or [`MISS`].
    steps: Steps,
    /// Entries, by handle.
    entries: Vec<RangeEntry>,
    order: BTreeSet<OrderKey>,
    #[cfg(target_arch = "x86_64")]
    simd: Option<SimdSearch>,
    len: usize,
    inserted: u64,
}

impl Intervals {
    /// Whether a key layout is supported: one range field of up to 64 bits, the others exact.
    pub fn fits(layout: &KeyLayout) -> bool {
        let ranges = || layout.fields().iter().filter(|field| field.kind == FieldKind::Range);
        ranges().count() == 1
            && ranges().all(|field| field.width <= 64)
            && layout.fields().iter().all(|field| matches!(field.kind, FieldKind::Range | FieldKind::Exact))
    }

    /// Creates an empty table.
    ///
    /// # Panics
    /// Panics if the layout does not [fit](Intervals::fits).
    pub fn new(layout: &KeyLayout) -> Self {
        assert!(Intervals::fits(layout), "one field is a range of up to 64 bits, the others are exact");
        let mut exact_mask = vec![0; layout.words()].into_boxed_slice();
        let mut range = None;
        for (index, field) in layout.fields().iter().enumerate() {
            match field.kind {
                FieldKind::Range => range = Some(*field),
                _ => layout.put(&mut exact_mask, index, &vec![u64::MAX; field.words()]),
            }
        }
        let has_exact = exact_mask.iter().any(|word| *word != 0);
        let field = range.expect("one field is a range");
        let mut table = Intervals {
            words: layout.words(),
            field,
            exact_mask,
            by_exact: has_exact.then(|| Exact::new(layout.words())),
            groups: Vec::new(),
            roots: Vec::new(),
            free_groups: Vec::new(),
            steps: Steps::new(field.width),
            entries: Vec::new(),
            order: BTreeSet::new(),
            #[cfg(target_arch = "x86_64")]
            simd: SimdSearch::new(),
            len: 0,
            inserted: 0,
        };
        if !has_exact {
            table.new_group();
        }
        table
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the size of the table in bytes, with the ordered list estimated at three quarters full.
    pub fn memory_bytes(&self) -> usize {
        self.by_exact.as_ref().map_or(0, Exact::memory_bytes)
            + self.groups.capacity() * size_of::<RangeGroup>()
            + self.roots.capacity() * size_of::<Root>()
            + self.steps.memory_bytes()
            + self.entries.capacity() * size_of::<RangeEntry>()
            + self.free_groups.capacity() * 4
            + self.order.len() * size_of::<OrderKey>() * 4 / 3
    }

    /// Describes the table for inline lookups.
    pub fn inline_lookup(&self) -> InlineLookup<'_> {
        InlineLookup::Called(for_words!(self.words, self.called()))
    }

    fn called<const N: usize>(&self) -> Called<'_> {
        let exact = self.by_exact.as_ref().map_or(0, |by_exact| by_exact.inline_lookup().bytes());
        let bytes = exact + size_of_val(&self.roots[..]) + self.steps.lookup_bytes();
        #[cfg(target_arch = "x86_64")]
        if self.simd.is_some() {
            // SAFETY: the function takes the address of a table that has detected AVX-512, and that of as many words as
            // keys have.
            return unsafe { Called::new(self, (self.words, bytes), find_in_at_once::<N>) };
        }
        // SAFETY: the function takes the address of such a table, and that of as many words as keys have.
        unsafe { Called::new(self, (self.words, bytes), find_in::<N>) }
    }

    /// Returns the range field of a key.
    #[inline(always)]
    fn number(&self, key: &[u64]) -> u64 {
        if self.field.width == 0 { 0 } else { key[self.field.word] >> self.field.shift & self.field.ones(0) }
    }

    fn exact_part(&self, key: &[u64]) -> SmallVec<[u64; 5]> {
        key.iter().zip(&self.exact_mask).map(|(word, mask)| word & mask).collect()
    }

    #[inline(always)]
    fn group<const N: usize>(&self, key: &[u64]) -> Option<u32> {
        let Some(by_exact) = &self.by_exact else { return Some(0) };
        if N == 0 {
            return by_exact.lookup(&self.exact_part(key));
        }
        let part: [u64; N] = std::array::from_fn(|at| key[at] & self.exact_mask[at]);
        by_exact.lookup_in::<N>(&part)
    }

    #[inline(always)]
    fn find_one<const N: usize>(&self, search: impl Search, key: &[u64]) -> Option<u32> {
        let group = self.group::<N>(key)?;
        let found = self.steps.value(search, self.roots[group as usize], self.number(key));
        (found != MISS).then_some(found)
    }

    #[inline(always)]
    fn find_all<const N: usize>(&self, search: impl Search, keys: &[u64], found: &mut [u32]) {
        steps::with!(&self.steps.nodes, nodes => self.find_all_among::<N, _>(nodes, search, keys, found));
    }

    /// Looks up the groups of all keys, then descends level by level, one node of each key at a time, so that memory
    /// accesses of different keys overlap.
    #[inline(always)]
    fn find_all_among<const N: usize, T: Threshold>(
        &self,
        nodes: &Nodes<T>,
        search: impl Search,
        keys: &[u64],
        found: &mut [u32],
    ) {
        let words = if N == 0 { self.words } else { N };
        let mut parts: SmallVec<[u64; 128]> = SmallVec::new();
        let mut numbers = [0u64; BATCH];
        // For each unfinished key: its index, the node, and the levels below it.
        let mut walks = [(0u8, Root { node: 0, height: 0 }); BATCH];
        for (chunk, found) in found.chunks_mut(BATCH).enumerate() {
            let keys = &keys[chunk * BATCH * words..][..found.len() * words];
            match &self.by_exact {
                None => found.fill(0),
                Some(by_exact) => {
                    parts.resize(keys.len(), 0);
                    for (at, part) in parts.iter_mut().enumerate() {
                        *part = keys[at] & self.exact_mask[at % words];
                    }
                    by_exact.lookup_batch(&parts, found);
                }
            }
            let mut count = 0;
            for (at, found) in found.iter().enumerate() {
                if *found != MISS {
                    numbers[at] = self.number(&keys[at * words..][..words]);
                    let root = self.roots[*found as usize];
                    nodes.prefetch(root.node);
                    walks[count] = (at as u8, root);
                    count += 1;
                }
            }
            while count > 0 {
                let mut kept = 0;
                for walk in 0..count {
                    let (at, Root { node, height }) = walks[walk];
                    let place = usize::from(at) % BATCH;
                    let next = nodes.follow(search, node, numbers[place]);
                    if height == 0 {
                        found[place] = next;
                    } else {
                        nodes.prefetch(next);
                        walks[kept] = (at, Root { node: next, height: height - 1 });
                        kept += 1;
                    }
                }
                count = kept;
            }
        }
    }
}

/// [`Called::function`] of a table whose keys have `N` words, or any number if `N` is 0.
///
/// # Safety
/// `table` is the address of such a table, borrowed during the call, and `key` the address of the words of a key.
unsafe extern "C" fn find_in<const N: usize>(table: *const (), key: *const u64) -> u32 {
    // SAFETY: by the caller's promise this is such a table, and nobody changes it.
    let table = unsafe { &*table.cast::<Intervals>() };
    // SAFETY: by the caller's promise these words are a key of this table.
    let key = unsafe { std::slice::from_raw_parts(key, if N == 0 { table.words } else { N }) };
    table.find_one::<N>(BinarySearch, key).unwrap_or(MISS)
}

/// Like [`find_in`], with all thresholds of a node compared at once.
///
/// # Safety
/// As for [`find_in`]. In addition, the table has detected the instructions that the function is compiled for.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe extern "C" fn find_in_at_once<const N: usize>(table: *const (), key: *const u64) -> u32 {
    // SAFETY: by the caller's promise this is such a table, and nobody changes it.
    let table = unsafe { &*table.cast::<Intervals>() };
    // SAFETY: by the caller's promise these words are a key of this table.
    let key = unsafe { std::slice::from_raw_parts(key, if N == 0 { table.words } else { N }) };
    let search = table.simd.expect("the function belongs to tables that can");
    table.find_one::<N>(search, key).unwrap_or(MISS)
}

impl Intervals {
    #[inline(never)]
    fn look_up<const N: usize>(&self, key: &[u64]) -> Option<u32> {
        self.find_one::<N>(BinarySearch, key)
    }

    #[inline(never)]
    fn look_up_all<const N: usize>(&self, keys: &[u64], found: &mut [u32]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(search) = self.simd {
            // SAFETY: such a value exists only where the processor has the instructions that the function is compiled
            // for.
            return unsafe { self.look_up_all_at_once::<N>(search, keys, found) };
        }
        self.find_all::<N>(BinarySearch, keys, found);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn look_up_all_at_once<const N: usize>(&self, search: SimdSearch, keys: &[u64], found: &mut [u32]) {
        self.find_all::<N>(search, keys, found);
    }
}

impl PackedLookup for Intervals {
    fn words(&self) -> usize {
        self.words
    }

    fn lookup(&self, key: &[u64]) -> Option<u32> {
        for_words!(self.words, self.look_up(key))
    }

    fn lookup_batch(&self, keys: &[u64], found: &mut [u32]) {
        for_words!(self.words, self.look_up_all(keys, found));
    }
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    /// The search method must not change the results, for numbers of words with and without a specialised function.
    #[test]
    fn halving_finds_the_same() {
        for exact in [0, 1, 6] {
            let fields = std::iter::repeat_n((64, FieldKind::Exact), exact).chain([(64, FieldKind::Range)]);
            let layout = KeyLayout::new(fields);
            let mut table = Intervals::new(&layout);
            let mut rng = rng::SplitMix64::new(exact as u64);
            let mut key = || (0..=exact).map(|at| rng.below(if at < exact { 2 } else { 3000 })).collect::<Vec<_>>();
            for handle in 0..300 {
                let key = key();
                table.insert(&key, key[exact] + 5, 1, handle);
            }
            let keys: Vec<u64> = (0..1000).flat_map(|_| key()).collect();
            let answers = |table: &Intervals| {
                let (mut found, InlineLookup::Called(function)) = (vec![0; 1000], table.inline_lookup()) else {
                    unreachable!()
                };
                table.lookup_batch(&keys, &mut found);
                let called = keys.chunks(exact + 1).map(|key| function.call(key).unwrap_or(MISS));
                assert!(called.eq(found.iter().copied()), "{exact} exact fields, one by one");
                found
            };
            let best = answers(&table);
            assert!(best.contains(&MISS) && best.iter().any(|found| *found != MISS), "some keys find nothing, some do");
            table.simd = None;
            assert_eq!(answers(&table), best, "{exact} exact fields");
        }
    }
}
