//! Longest prefix match: entries with one prefix field beside exact fields.
//!
//! All prefixes are in a [`Trie`], a bitmap trie with steps of 6 bits, which supports any width and takes tens of bytes
//! per entry. A table that grows past [`INDEX_FROM`] prefixes of at most 32 bits gets a [`CompressedIndex`] as well,
//! where a lookup takes three loads, the first from a near cache. A table that shrinks below [`INDEX_UNTIL`] prefixes
//! drops the index.
//!
//! While many prefixes are loaded, there is no index; [`Lpm::finish_load`] builds it at once from the sorted prefixes
//! of the trie, in a fraction of the time that an update for each of them takes.
//!
//! If a key has exact fields too, they select a root of the trie by one hash, so a million combinations share one
//! trie's memory.

mod compressed;
mod trie;

use crate::exact::Exact;
use crate::key_layout::{FieldKind, KeyLayout};
use crate::simd::{Level, level};
use crate::{BATCH, MISS, PackedLookup};
use compressed::{CompressedIndex, IndexBuilder};
use smallvec::SmallVec;
use trie::Trie;

/// Number of prefixes from which on a table has an index.
pub const INDEX_FROM: usize = 16 * 1024;
/// Number of prefixes below which a table drops its index.
pub const INDEX_UNTIL: usize = 8 * 1024;
/// Exclusive upper bound of handles: the index reserves one bit.
pub const HANDLE_END: u32 = (1 << 31) - 1;

/// The prefixes for one combination of the exact fields.
#[derive(Clone, Debug)]
struct Branch {
    root: u32,
    len: usize,
    index: Option<Box<CompressedIndex>>,
}

/// A table with one prefix field; the others are exact.
#[derive(Clone, Debug)]
pub struct Lpm {
    words: usize,
    /// Width and position of the prefix field.
    width: u32,
    word: usize,
    shift: u32,
    /// Mask of the exact fields, and the branch for each of their values; without exact fields there is only branch 0.
    exact_mask: Box<[u64]>,
    by_exact: Option<Exact>,
    branches: Vec<Branch>,
    free: Vec<u32>,
    trie: Trie,
    len: usize,
    /// Whether indices are built when the load is finished.
    is_loading: bool,
    /// Instruction set: nodes are bitmaps, and not every processor has an instruction that counts bits.
    level: Level,
}

/// The prefix field with its first bit at the top, padded with zeros.
type AlignedBits = SmallVec<[u64; 4]>;

impl Lpm {
    /// Creates an empty table.
    ///
    /// # Panics
    /// Panics if the layout does not have exactly one prefix field and only exact fields beside it.
    pub fn new(layout: &KeyLayout) -> Self {
        let prefixes: Vec<_> = layout.fields().iter().filter(|field| field.kind == FieldKind::Prefix).collect();
        let [field] = prefixes[..] else { panic!("one field is a prefix") };
        let mut exact_mask = vec![0; layout.words()].into_boxed_slice();
        let mut exact_fields = false;
        for (index, other) in layout.fields().iter().enumerate() {
            match other.kind {
                FieldKind::Prefix => {}
                FieldKind::Exact => {
                    layout.put(&mut exact_mask, index, &vec![u64::MAX; other.words()]);
                    exact_fields |= other.width > 0;
                }
                kind => panic!("{kind:?} beside a prefix"),
            }
        }
        let mut trie = Trie::new();
        let branches =
            if exact_fields { Vec::new() } else { vec![Branch { root: trie.new_root(), len: 0, index: None }] };
        Lpm {
            words: layout.words(),
            width: field.width,
            word: field.word,
            shift: field.shift,
            exact_mask,
            by_exact: exact_fields.then(|| Exact::new(layout.words())),
            branches,
            free: Vec::new(),
            trie,
            len: 0,
            is_loading: false,
            level: level(),
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the size of the table in bytes.
    pub fn memory_bytes(&self) -> usize {
        let indices: usize = self.branches.iter().flat_map(|branch| &branch.index).map(|it| it.memory_bytes()).sum();
        let exact = self.by_exact.as_ref().map_or(0, Exact::memory_bytes);
        self.trie.memory_bytes() + indices + exact + self.branches.capacity() * size_of::<Branch>()
    }

    fn exact_part(&self, key: &[u64]) -> SmallVec<[u64; 4]> {
        key.iter().zip(&self.exact_mask).map(|(word, mask)| word & mask).collect()
    }

    /// Returns a field of up to 64 bits as a number.
    #[inline(always)]
    fn narrow(&self, key: &[u64]) -> u64 {
        if self.width == 0 { 0 } else { key[self.word] >> self.shift & (u64::MAX >> (64 - self.width)) }
    }

    /// Returns a field of 65 to 128 bits, its first bit at the top.
    #[inline(always)]
    fn middle(&self, key: &[u64]) -> u128 {
        let value = u128::from(key[self.word]) | u128::from(key[self.word + 1]) << 64;
        value << (128 - self.width)
    }

    /// Returns the field with its first bit at the top of the first word.
    fn value(&self, key: &[u64]) -> AlignedBits {
        let count = (self.width as usize).div_ceil(64);
        let spare = (count * 64) as u32 - self.width;
        if count <= 1 {
            return if count == 0 { AlignedBits::new() } else { [self.narrow(key) << spare].into_iter().collect() };
        }
        let field = &key[self.word..self.word + count];
        let top_down = (0..count).rev();
        let aligned = top_down.map(|at| match (spare, at) {
            (0, _) => field[at],
            (_, 0) => field[0] << spare,
            _ => field[at] << spare | field[at - 1] >> (64 - spare),
        });
        aligned.collect()
    }

    #[inline(always)]
    fn branch(&self, key: &[u64]) -> Option<u32> {
        match &self.by_exact {
            None => Some(0),
            Some(by_exact) => by_exact.lookup(&self.exact_part(key)),
        }
    }

    #[inline(always)]
    fn lookup_in(&self, branch: &Branch, key: &[u64]) -> Option<u32> {
        if let Some(index) = &branch.index {
            return index.lookup(self.narrow(key) as u32);
        }
        match self.width {
            0..=64 => {
                let spare = (64 - self.width) & 63;
                self.trie.lookup_number(branch.root, self.narrow(key) << spare)
            }
            65..=128 => self.trie.lookup_number(branch.root, self.middle(key)),
            _ => self.trie.lookup(branch.root, &self.value(key)),
        }
    }

    /// Sets the handle of a prefix, whose bits beyond its length are 0. Returns its previous handle.
    ///
    /// # Panics
    /// Panics if the prefix is longer than the field, or the handle is not below [`HANDLE_END`].
    pub fn insert(&mut self, key: &[u64], prefix: u32, handle: u32) -> Option<u32> {
        assert!(prefix <= self.width && handle < HANDLE_END && key.len() == self.words);
        let at = self.branch(key).unwrap_or_else(|| self.new_branch(key));
        let value = self.value(key);
        let narrow = if self.width <= 32 { self.narrow(key) as u32 } else { 0 };
        let root = self.branches[at as usize].root;
        let before = self.trie.insert(root, &value, prefix, handle);
        let branch = &mut self.branches[at as usize];
        if let Some(index) = &mut branch.index {
            index.insert(narrow, prefix, handle);
        }
        if before.is_none() {
            branch.len += 1;
            self.len += 1;
            self.consider_index(at as usize);
        }
        before
    }

    fn new_branch(&mut self, key: &[u64]) -> u32 {
        let branch = Branch { root: self.trie.new_root(), len: 0, index: None };
        let at = match self.free.pop() {
            Some(at) => {
                self.branches[at as usize] = branch;
                at
            }
            None => {
                self.branches.push(branch);
                self.branches.len() as u32 - 1
            }
        };
        let exact = self.exact_part(key);
        self.by_exact.as_mut().expect("branches come with exact fields").insert(&exact, at);
        at
    }

    fn consider_index(&mut self, at: usize) {
        let Branch { root, len, ref index } = self.branches[at];
        if index.is_none() && len >= INDEX_FROM && self.may_have_index() && !self.is_loading {
            let mut builder = IndexBuilder::new(self.width);
            self.trie.for_each_in_order(root, &mut |value, prefix, handle| builder.push(value, prefix, handle));
            self.branches[at].index = Some(Box::new(builder.finish()));
        } else if index.is_some() && len < INDEX_UNTIL {
            self.branches[at].index = None;
        }
    }

    fn may_have_index(&self) -> bool {
        (9..=32).contains(&self.width)
    }

    /// Announces that about `more` prefixes will be inserted before [`Lpm::finish_load`]. If they are more than there
    /// are now, the table has no index in the meantime: lookups find the same, but take longer.
    pub fn begin_load(&mut self, more: usize) {
        if self.may_have_index() && more >= INDEX_FROM && more >= self.len {
            self.is_loading = true;
            self.branches.iter_mut().for_each(|branch| branch.index = None);
        }
    }

    /// Ends a load, and builds the indices that it deferred.
    pub fn finish_load(&mut self) {
        if std::mem::take(&mut self.is_loading) {
            (0..self.branches.len()).for_each(|at| self.consider_index(at));
        }
    }

    /// Returns the handle of exactly this prefix.
    pub fn find(&self, key: &[u64], prefix: u32) -> Option<u32> {
        let branch = self.branch(key)?;
        self.trie.find(self.branches[branch as usize].root, &self.value(key), prefix)
    }

    /// Removes a prefix and returns its handle.
    pub fn remove(&mut self, key: &[u64], prefix: u32) -> Option<u32> {
        let at = self.branch(key)?;
        let value = self.value(key);
        let root = self.branches[at as usize].root;
        let handle = self.trie.remove(root, &value, prefix)?;
        self.len -= 1;
        self.branches[at as usize].len -= 1;
        if self.branches[at as usize].index.is_some() {
            let cover = if prefix == 0 { None } else { self.trie.cover(root, &value, prefix - 1) };
            let narrow = self.narrow(key) as u32;
            if let Some(index) = &mut self.branches[at as usize].index {
                index.remove(narrow, prefix, cover);
            }
            self.consider_index(at as usize);
        }
        let exact = self.exact_part(key);
        if let (0, Some(by_exact)) = (self.branches[at as usize].len, &mut self.by_exact) {
            by_exact.remove(&exact);
            self.trie.free_root(root);
            self.free.push(at);
        }
        Some(handle)
    }
}

impl Lpm {
    #[inline(always)]
    fn lookup_one(&self, key: &[u64]) -> Option<u32> {
        self.lookup_in(&self.branches[self.branch(key)? as usize], key)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    fn lookup_one_fast(&self, key: &[u64]) -> Option<u32> {
        self.lookup_one(key)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    fn lookup_all_fast(&self, keys: &[u64], found: &mut [u32]) {
        self.lookup_all(keys, found);
    }

    #[inline(always)]
    fn lookup_all(&self, keys: &[u64], found: &mut [u32]) {
        let words = self.words;
        let only = match &self.by_exact {
            None => self.branches.first(),
            Some(_) => None,
        };
        let Some(branch) = only else {
            for (at, found) in found.iter_mut().enumerate() {
                *found = self.lookup_one(&keys[at * words..][..words]).unwrap_or(MISS);
            }
            return;
        };
        for (chunk, found) in found.chunks_mut(BATCH).enumerate() {
            let keys = &keys[chunk * BATCH * words..][..found.len() * words];
            let key = |at: usize| &keys[at * words..][..words];
            if let Some(index) = &branch.index {
                index.lookup_batch(found, |at| self.narrow(key(at)) as u32);
            } else if self.width <= 64 {
                let spare = (64 - self.width) & 63;
                self.trie.lookup_batch(branch.root, found, |at| self.narrow(key(at)) << spare);
            } else if self.width <= 128 {
                self.trie.lookup_batch(branch.root, found, |at| self.middle(key(at)));
            } else {
                for (at, found) in found.iter_mut().enumerate() {
                    *found = self.trie.lookup(branch.root, &self.value(key(at))).unwrap_or(MISS);
                }
            }
        }
    }
}

impl PackedLookup for Lpm {
    fn words(&self) -> usize {
        self.words
    }

    fn lookup(&self, key: &[u64]) -> Option<u32> {
        match self.level {
            Level::Baseline => self.lookup_one(key),
            // SAFETY: `level` found every feature that the function is compiled for.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 | Level::Avx512 => unsafe { self.lookup_one_fast(key) },
        }
    }

    fn lookup_batch(&self, keys: &[u64], found: &mut [u32]) {
        match self.level {
            Level::Baseline => self.lookup_all(keys, found),
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 | Level::Avx512 => unsafe { self.lookup_all_fast(keys, found) },
        }
    }
}
