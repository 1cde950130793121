//! Entries with one range, among fields that are exact.
//!
//! The exact fields choose a group by one hash. Within a group, what a number finds changes only where an entry begins or ends,
//! so the group is a step function ([`steps`]): from each threshold to the next one entry wins, or none. A lookup is a hash
//! and a search for the last threshold, whatever overlaps; entries that touch share theirs.
//!
//! Changing an entry costs the steps that it covers. So entries that rarely overlap are changed in about a microsecond,
//! however many there are; one that spans n others costs n. What else wins where an entry goes is told by an ordered list
//! of all entries, by the size of their ranges first: of those of a size only neighbours can reach a number.
//!
//! Steps give the handles of entries themselves, so that a lookup touches nothing of an entry: handles differ, and what is
//! kept of entries is in an array by them.
//!
//! An entry takes about 105 to 135 bytes where many are in a group, and a group 145 and its key; where the
//! range has more than 32 bits, some more.

mod change;
mod nodes;
mod search;
mod steps;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use smallvec::SmallVec;

use crate::exact::Exact;
use crate::in_place::{Called, InPlace};
use crate::layout::{Field, FieldKind, Layout};
use crate::{BATCH, MISS, PackedLookup, for_words};
use nodes::{Nodes, Threshold};
#[cfg(target_arch = "x86_64")]
use search::AtOnce;
use search::{Halving, Search};
use steps::{AnyNodes, Root, Steps};

/// What decides between entries: the larger priority, then the age.
type Rank = (u64, Reverse<u64>);

/// An entry, or one of the two parts of one that goes past the largest number: its group, the size of its range, its ends,
/// its priority; and its handle.
type Place = (u32, u8, u64, u64, u64, u32);

#[derive(Clone, Debug, Default)]
struct Entry {
    rank: Rank,
    /// The ends that it was given, the second below the first if it goes past the largest number.
    ends: (u64, u64),
}

/// What lies behind one combination of the exact fields.
#[derive(Clone, Debug, Default)]
struct Group {
    len: usize,
    /// A bit for each size that entries have or had.
    sizes: u128,
}

/// A table with one range field of up to 64 bits; the others are exact. Handles differ between entries, and memory grows
/// with the largest.
#[derive(Clone, Debug)]
pub struct Intervals {
    words: usize,
    field: Field,
    /// Ones for the bits of the exact fields, and the group for each of their values; without exact fields there is group 0
    /// alone.
    exact_mask: Box<[u64]>,
    by_exact: Option<Exact>,
    groups: Vec<Group>,
    roots: Vec<Root>,
    free_groups: Vec<u32>,
    /// Values are handles, or [`MISS`].
    steps: Steps,
    /// By their handles.
    entries: Vec<Entry>,
    order: BTreeSet<Place>,
    #[cfg(target_arch = "x86_64")]
    at_once: Option<AtOnce>,
    len: usize,
    inserted: u64,
}

impl Intervals {
    /// Whether a table with this layout can be one of these.
    pub fn fits(layout: &Layout) -> bool {
        let ranges = || layout.fields().iter().filter(|field| field.kind == FieldKind::Range);
        ranges().count() == 1
            && ranges().all(|field| field.width <= 64)
            && layout.fields().iter().all(|field| matches!(field.kind, FieldKind::Range | FieldKind::Exact))
    }

    /// An empty table.
    ///
    /// # Panics
    /// If the layout does not [fit](Intervals::fits).
    pub fn new(layout: &Layout) -> Self {
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
            at_once: AtOnce::new(),
            len: 0,
            inserted: 0,
        };
        if !has_exact {
            table.new_group();
        }
        table
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes that the table takes, the ordered list estimated at three quarters full.
    pub fn memory_bytes(&self) -> usize {
        self.by_exact.as_ref().map_or(0, Exact::memory_bytes)
            + self.groups.capacity() * size_of::<Group>()
            + self.roots.capacity() * size_of::<Root>()
            + self.steps.memory_bytes()
            + self.entries.capacity() * size_of::<Entry>()
            + self.free_groups.capacity() * 4
            + self.order.len() * size_of::<Place>() * 4 / 3
    }

    /// How keys are looked up in place.
    pub fn in_place(&self) -> InPlace<'_> {
        InPlace::Called(for_words!(self.words, self.called()))
    }

    fn called<const N: usize>(&self) -> Called<'_> {
        let exact = self.by_exact.as_ref().map_or(0, |by_exact| by_exact.in_place().bytes());
        let bytes = exact + size_of_val(&self.roots[..]) + self.steps.lookup_bytes();
        #[cfg(target_arch = "x86_64")]
        if self.at_once.is_some() {
            // SAFETY: the function takes the address of a table that has found all at once to be possible, and as many
            // words as keys have.
            return unsafe { Called::new(self, (self.words, bytes), find_in_at_once::<N>) };
        }
        // SAFETY: the function takes the address of such a table, and as many words as keys have.
        unsafe { Called::new(self, (self.words, bytes), find_in::<N>) }
    }

    /// The range field of a key.
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

    /// The groups of all keys, then level by level a node of each: what one waits for is asked for while others are worked
    /// on.
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
        // For each key that goes on: its place, the node, and the levels below it.
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

/// [`Called::function`] of a table whose keys have so many words, or any number.
///
/// # Safety
/// `table` is the address of such a table, which is borrowed meanwhile, and `key` that of the words of a key.
unsafe extern "C" fn find_in<const N: usize>(table: *const (), key: *const u64) -> u32 {
    // SAFETY: the caller's promise: it is such a table, and nobody changes it.
    let table = unsafe { &*table.cast::<Intervals>() };
    // SAFETY: the caller's promise: so many words are a key of this table.
    let key = unsafe { std::slice::from_raw_parts(key, if N == 0 { table.words } else { N }) };
    table.find_one::<N>(Halving, key).unwrap_or(MISS)
}

/// The same where thresholds can be compared with at once.
///
/// # Safety
/// As of [`find_in`], and the table has found all at once to be possible, so that the processor has what the function is
/// compiled for.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe extern "C" fn find_in_at_once<const N: usize>(table: *const (), key: *const u64) -> u32 {
    // SAFETY: the caller's promise: it is such a table, and nobody changes it.
    let table = unsafe { &*table.cast::<Intervals>() };
    // SAFETY: the caller's promise: so many words are a key of this table.
    let key = unsafe { std::slice::from_raw_parts(key, if N == 0 { table.words } else { N }) };
    let search = table.at_once.expect("the function belongs to tables that can");
    table.find_one::<N>(search, key).unwrap_or(MISS)
}

impl Intervals {
    #[inline(never)]
    fn look_up<const N: usize>(&self, key: &[u64]) -> Option<u32> {
        self.find_one::<N>(Halving, key)
    }

    #[inline(never)]
    fn look_up_all<const N: usize>(&self, keys: &[u64], found: &mut [u32]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(search) = self.at_once {
            // SAFETY: there is such a value only where the processor has what the function is compiled for.
            return unsafe { self.look_up_all_at_once::<N>(search, keys, found) };
        }
        self.find_all::<N>(Halving, keys, found);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn look_up_all_at_once<const N: usize>(&self, search: AtOnce, keys: &[u64], found: &mut [u32]) {
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

    /// How thresholds are compared with must not change what is found, in keys of a number of words that has code of its
    /// own and in others.
    #[test]
    fn halving_finds_the_same() {
        for exact in [0, 1, 6] {
            let fields = std::iter::repeat_n((64, FieldKind::Exact), exact).chain([(64, FieldKind::Range)]);
            let layout = Layout::new(fields);
            let mut table = Intervals::new(&layout);
            let mut rng = rng::SplitMix64::new(exact as u64);
            let mut key = || (0..=exact).map(|at| rng.below(if at < exact { 2 } else { 3000 })).collect::<Vec<_>>();
            for handle in 0..300 {
                let key = key();
                table.insert(&key, key[exact] + 5, 1, handle);
            }
            let keys: Vec<u64> = (0..1000).flat_map(|_| key()).collect();
            let answers = |table: &Intervals| {
                let (mut found, InPlace::Called(function)) = (vec![0; 1000], table.in_place()) else { unreachable!() };
                table.lookup_batch(&keys, &mut found);
                let called = keys.chunks(exact + 1).map(|key| function.call(key).unwrap_or(MISS));
                assert!(called.eq(found.iter().copied()), "{exact} exact fields, one by one");
                found
            };
            let best = answers(&table);
            assert!(best.contains(&MISS) && best.iter().any(|found| *found != MISS), "some keys find nothing, some do");
            table.at_once = None;
            assert_eq!(answers(&table), best, "{exact} exact fields");
        }
    }
}
