//! Exact match: open addressing in groups of 16 slots.
//!
//! Each slot has a tag of one byte in a separate array: 7 bits of the hash, or a mark for an empty or a deleted slot. A
//! lookup compares the 16 tags of a group at once and then usually one key; a miss usually compares none. The tags of a
//! million entries fit into a second-level cache, so a hit costs one access to distant memory and a miss none. A group
//! with an empty slot ends the search, since a key overflows to the next group only when its own is full.
//!
//! An entry takes `8 * words + 9` bytes, divided by the load factor, which is between 7/12 and 7/8 while a table grows.
//! Keys in a dense range take 4 to 12 bytes more.
//!
//! If keys are one word and form a dense range, an additional array holds their handles ([`Dense`]). The table checks
//! this condition whenever it grows.

use crate::dense::Dense;
use crate::hash::{hash_words, scale};
use crate::inline_lookup::{DenseKeys, HashedKeys, InlineLookup};
use crate::prefetch::prefetch;
use crate::{BATCH, MISS, PackedLookup, for_words};

/// Number of slots in a group.
pub const GROUP: usize = 16;
/// Maximum size in words of a table that stays in near caches, where prefetching only costs time.
const NEAR_WORDS: usize = 1 << 15;
/// Tag of an empty slot.
pub const EMPTY: u8 = 0xff;
/// Tag of a deleted slot in a group that was full: the search has to continue.
const GONE: u8 = 0x80;

/// A hash table over packed keys.
#[derive(Clone, Debug)]
pub struct Exact {
    words: usize,
    len: usize,
    /// Number of slots that are not empty, deleted ones included.
    used: usize,
    /// Tags of each group; there is at least one group.
    tags: Vec<[u8; GROUP]>,
    /// Words of the key and the handle, for each slot.
    slots: Vec<u64>,
    dense: Option<Dense>,
}

/// Returns a bitmap of the 16 tags that equal `tag`.
#[inline(always)]
fn matching(tags: &[u8; GROUP], tag: u8) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8};
        // SAFETY: the load reads the 16 bytes of the array, at any alignment; SSE2, which the intrinsics need, is part
        // of x86_64.
        unsafe {
            let all = _mm_loadu_si128(tags.as_ptr().cast());
            _mm_movemask_epi8(_mm_cmpeq_epi8(all, _mm_set1_epi8(tag as i8))) as u32
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    tags.iter().enumerate().fold(0, |mask, (at, other)| mask | u32::from(*other == tag) << at)
}

#[inline(always)]
fn tag_of(hash: u64) -> u8 {
    (hash & 0x7f) as u8
}

impl Exact {
    /// Creates an empty table for keys of `words` words (0 is allowed: one key, the empty one).
    pub fn new(words: usize) -> Self {
        Self::with_capacity(words, 0)
    }

    /// Creates an empty table with capacity for `entries`.
    pub fn with_capacity(words: usize, entries: usize) -> Self {
        let groups = (entries * 8).div_ceil(GROUP * 7).max(1);
        assert!(u32::try_from(groups).is_ok(), "a table has fewer than 2^36 slots");
        let slots = vec![0; groups * GROUP * (words + 1)];
        Exact { words, len: 0, used: 0, tags: vec![[EMPTY; GROUP]; groups], slots, dense: None }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Describes the table for inline lookups. An empty table with keys of one word counts as dense.
    pub fn inline_lookup(&self) -> InlineLookup<'_> {
        match &self.dense {
            Some(dense) => InlineLookup::Dense(dense.dense_keys()),
            None if self.words == 1 && self.is_empty() => {
                InlineLookup::Dense(DenseKeys { shift: 0, first: 0, handles: &[MISS] })
            }
            None => InlineLookup::Hashed(HashedKeys { tags: &self.tags, slots: &self.slots }),
        }
    }

    /// Returns the size of the table in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.tags.capacity() * GROUP + self.slots.capacity() * 8 + self.dense.as_ref().map_or(0, Dense::bytes)
    }

    #[inline(always)]
    fn slot<const N: usize>(&self, slot: usize) -> &[u64] {
        let stride = self.count::<N>() + 1;
        &self.slots[slot * stride..][..stride]
    }

    #[inline(always)]
    fn count<const N: usize>(&self) -> usize {
        if N == 0 { self.words } else { N }
    }

    #[inline(always)]
    fn hash<const N: usize>(&self, key: &[u64]) -> u64 {
        hash_words(self.count::<N>(), |at| key[at])
    }

    /// Returns the slot of a key in a group; the value of `Err` is whether the search continues.
    #[inline(always)]
    fn locate_in_group<const N: usize>(&self, key: &[u64], hash: u64, group: usize) -> Result<usize, bool> {
        let words = self.count::<N>();
        let tags = &self.tags[group];
        let mut candidates = matching(tags, tag_of(hash));
        while candidates != 0 {
            let slot = group * GROUP + candidates.trailing_zeros() as usize;
            if self.slot::<N>(slot)[..words] == key[..words] {
                return Ok(slot);
            }
            candidates &= candidates - 1;
        }
        Err(matching(tags, EMPTY) == 0)
    }

    /// Returns the slot of a key.
    #[inline(always)]
    fn locate<const N: usize>(&self, key: &[u64], hash: u64) -> Option<usize> {
        let group = scale(hash, self.tags.len());
        match self.locate_in_group::<N>(key, hash, group) {
            Ok(slot) => Some(slot),
            Err(false) => None,
            Err(true) => self.locate_behind(key, hash, group),
        }
    }

    /// Returns the slot of a key that overflowed from its own group.
    #[cold]
    #[inline(never)]
    fn locate_behind(&self, key: &[u64], hash: u64, home: usize) -> Option<usize> {
        let mut group = home;
        for _ in 1..self.tags.len() {
            group += 1;
            if group == self.tags.len() {
                group = 0;
            }
            match self.locate_in_group::<0>(key, hash, group) {
                Ok(slot) => return Some(slot),
                Err(false) => return None,
                Err(true) => {}
            }
        }
        None
    }

    #[inline(always)]
    pub(crate) fn lookup_in<const N: usize>(&self, key: &[u64]) -> Option<u32> {
        match &self.dense {
            Some(dense) if N == 1 => {
                let handle = dense.get(key[0]);
                (handle != MISS).then_some(handle)
            }
            _ => self.lookup_hashed::<N>(key),
        }
    }

    // A separate function for each number of words avoids register spills.
    #[inline(never)]
    fn lookup_hashed<const N: usize>(&self, key: &[u64]) -> Option<u32> {
        let slot = self.locate::<N>(key, self.hash::<N>(key))?;
        Some(self.slot::<N>(slot)[self.count::<N>()] as u32)
    }

    /// Prefetches the tags of all keys, then the slots they select, then compares the keys.
    fn lookup_batch_in<const N: usize>(&self, keys: &[u64], found: &mut [u32]) {
        let words = self.count::<N>();
        if N == 1
            && let Some(dense) = &self.dense
        {
            keys[..found.len()].iter().for_each(|key| dense.prefetch(*key));
            found.iter_mut().zip(keys).for_each(|(found, key)| *found = dense.get(*key));
            return;
        }
        if self.slots.len() < NEAR_WORDS {
            for (at, found) in found.iter_mut().enumerate() {
                *found = self.lookup_in::<N>(&keys[at * words..][..words]).unwrap_or(MISS);
            }
            return;
        }
        let mut hashes = [0u64; BATCH];
        for (chunk, found) in found.chunks_mut(BATCH).enumerate() {
            let keys = &keys[chunk * BATCH * words..][..found.len() * words];
            for (at, hash) in hashes[..found.len()].iter_mut().enumerate() {
                *hash = self.hash::<N>(&keys[at * words..][..words]);
                prefetch(&self.tags, scale(*hash, self.tags.len()));
            }
            for hash in &hashes[..found.len()] {
                let group = scale(*hash, self.tags.len());
                let candidates = matching(&self.tags[group], tag_of(*hash));
                if candidates != 0 {
                    let slot = group * GROUP + candidates.trailing_zeros() as usize;
                    prefetch(&self.slots, slot * (words + 1));
                }
            }
            for ((at, found), hash) in found.iter_mut().enumerate().zip(&hashes) {
                let slot = self.locate::<N>(&keys[at * words..][..words], *hash);
                *found = slot.map_or(MISS, |slot| self.slot::<N>(slot)[words] as u32);
            }
        }
    }

    /// Sets the handle of a key. Returns its previous handle.
    pub fn insert(&mut self, key: &[u64], handle: u32) -> Option<u32> {
        assert_eq!(key.len(), self.words, "keys have the table's number of words");
        let hash = self.hash::<0>(key);
        if let Some(slot) = self.locate::<0>(key, hash) {
            let stored = &mut self.slots[slot * (self.words + 1) + self.words];
            let old = std::mem::replace(stored, u64::from(handle)) as u32;
            self.dense.iter_mut().for_each(|dense| dense.set(key[0], handle));
            return Some(old);
        }
        if (self.used + 1) * 8 > self.tags.len() * GROUP * 7 {
            self.grow();
        }
        self.place(key, hash, handle);
        if self.words == 1 && self.len == 1 {
            self.dense = Dense::new(std::iter::once((key[0], handle)));
        } else if let Some(dense) = &mut self.dense {
            if dense.reach(key[0], self.len) { dense.set(key[0], handle) } else { self.dense = None }
        }
        None
    }

    /// Writes a new entry into the first free slot.
    fn place(&mut self, key: &[u64], hash: u64, handle: u32) {
        let mut group = scale(hash, self.tags.len());
        let at = loop {
            let tags = &self.tags[group];
            let free = matching(tags, EMPTY) | matching(tags, GONE);
            if free != 0 {
                break free.trailing_zeros() as usize;
            }
            group = (group + 1) % self.tags.len();
        };
        self.used += usize::from(self.tags[group][at] == EMPTY);
        self.len += 1;
        self.tags[group][at] = tag_of(hash);
        let slot = &mut self.slots[(group * GROUP + at) * (self.words + 1)..][..self.words + 1];
        slot[..self.words].copy_from_slice(key);
        slot[self.words] = u64::from(handle);
    }

    /// Rehashes into a table that is larger by half, or of the same size if many slots are marked as deleted.
    fn grow(&mut self) {
        let room =
            if self.len * 4 > self.used * 3 { self.len + self.len / 2 + 14 } else { self.len + self.len / 8 + 14 };
        let mut new = Exact::with_capacity(self.words, room);
        self.for_each(|key, handle| {
            let hash = new.hash::<0>(key);
            new.place(key, hash, handle);
        });
        *self = new;
        self.dense = self.beside();
    }

    /// Creates the dense array, if the keys form a dense range.
    fn beside(&self) -> Option<Dense> {
        let stride = self.words + 1;
        let slots = self.tags.iter().flatten().zip(self.slots.chunks_exact(stride));
        let keys = slots.filter(|(tag, _)| **tag < GONE).map(|(_, slot)| (slot[0], slot[stride - 1] as u32));
        if self.words == 1 { Dense::new(keys) } else { None }
    }

    /// Removes an entry and returns its handle.
    pub fn remove(&mut self, key: &[u64]) -> Option<u32> {
        assert_eq!(key.len(), self.words, "keys have the table's number of words");
        let slot = self.locate::<0>(key, self.hash::<0>(key))?;
        let tags = &mut self.tags[slot / GROUP];
        let was_never_full = matching(tags, EMPTY) != 0;
        tags[slot % GROUP] = if was_never_full { EMPTY } else { GONE };
        self.used -= usize::from(was_never_full);
        self.len -= 1;
        self.dense.iter_mut().for_each(|dense| dense.set(key[0], MISS));
        Some(self.slot::<0>(slot)[self.words] as u32)
    }

    /// Visits every entry, in no particular order.
    pub fn for_each(&self, mut visit: impl FnMut(&[u64], u32)) {
        for (slot, tag) in self.tags.iter().flatten().enumerate() {
            if *tag < GONE {
                let (handle, key) = self.slot::<0>(slot).split_last().expect("slots end in the handle");
                visit(key, *handle as u32);
            }
        }
    }
}

impl PackedLookup for Exact {
    fn words(&self) -> usize {
        self.words
    }

    fn lookup(&self, key: &[u64]) -> Option<u32> {
        for_words!(self.words, self.lookup_in(key))
    }

    fn lookup_batch(&self, keys: &[u64], found: &mut [u32]) {
        for_words!(self.words, self.lookup_batch_in(keys, found))
    }
}
