//! Finds the position of a row.

use std::hash::BuildHasher;

use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;

use crate::row::RowId;

/// A slot of the table: the upper half of a hash and a position, or [`FREE`].
type IndexSlot = u64;

const FREE: IndexSlot = u64::MAX;

/// Number of slots at the start, a power of two.
const FIRST_SLOTS: usize = 16;

/// A hash table from rows to positions, with linear probing. It holds no keys: a slot takes 8 bytes, so a search misses
/// the cache once before it reads the row itself.
#[cfg_attr(feature = "simulation", derive(Clone))]
#[derive(Debug)]
pub(super) struct RowIndex {
    slots: Vec<IndexSlot>,
    rows: usize,
    hasher: SeedableRandomState,
}

impl RowIndex {
    /// Creates an index. Clients that do not know the seed cannot choose rows that collide.
    pub fn new(seed: u64) -> RowIndex {
        let hasher = SeedableRandomState::with_seed(seed, SharedSeed::global_fixed());
        RowIndex { slots: vec![FREE; FIRST_SLOTS], rows: 0, hasher }
    }

    /// Returns the hash function.
    pub fn hasher(&self) -> SeedableRandomState {
        self.hasher.clone()
    }

    /// Returns the hash of a row.
    pub fn hash(&self, row: &RowId) -> u64 {
        self.hasher.hash_one(row)
    }

    /// Returns the position that has this hash and satisfies the condition.
    pub fn find(&self, hash: u64, is_row: impl Fn(usize) -> bool) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == FREE {
                return None;
            }
            let position = (slot & u64::from(u32::MAX)) as usize;
            if slot >> 32 == hash >> 32 && is_row(position) {
                return Some(position);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a position that is not in the index. `hash_of` returns the hash of the row at a position.
    pub fn insert(&mut self, hash: u64, position: u32, hash_of: impl Fn(usize) -> u64) {
        self.rows += 1;
        if self.rows * 2 > self.slots.len() {
            let slots = vec![FREE; self.slots.len() * 2];
            for slot in std::mem::replace(&mut self.slots, slots).into_iter().filter(|slot| *slot != FREE) {
                self.place(hash_of((slot & u64::from(u32::MAX)) as usize), slot);
            }
        }
        self.place(hash, hash >> 32 << 32 | u64::from(position));
    }

    /// Removes a position that is in the index. Entries after it that it has displaced move up, so that searches find
    /// them.
    pub fn remove(&mut self, hash: u64, position: u32, hash_of: impl Fn(usize) -> u64) {
        let mask = self.slots.len() - 1;
        let of = |slot: IndexSlot| (slot & u64::from(u32::MAX)) as usize;
        let mut gap = hash as usize & mask;
        while self.slots[gap] == FREE || of(self.slots[gap]) != position as usize {
            gap = (gap + 1) & mask;
        }
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            if self.slots[at] == FREE {
                break;
            }
            let home = hash_of(of(self.slots[at])) as usize & mask;
            // Whether the search that begins at its home passes the gap.
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(gap) & mask {
                self.slots[gap] = self.slots[at];
                gap = at;
            }
        }
        self.slots[gap] = FREE;
        self.rows -= 1;
    }

    fn place(&mut self, hash: u64, slot: IndexSlot) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != FREE {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_after_others_were_removed() {
        let mut index = RowIndex::new(5);
        let row = |position: usize| RowId::of_index(1, position as u32);
        let hasher = index.hasher();
        let hash_of = |position: usize| hasher.hash_one(row(position));
        let mut known = std::collections::BTreeSet::new();
        let mut random = rng::SplitMix64::new(7);
        for _ in 0..20_000 {
            let position = random.below(300) as usize;
            if known.insert(position) {
                index.insert(hash_of(position), position as u32, hash_of);
            } else {
                known.remove(&position);
                index.remove(hash_of(position), position as u32, hash_of);
            }
            let probe = random.below(300) as usize;
            let found = index.find(hash_of(probe), |at| row(at) == row(probe));
            assert_eq!(found, known.contains(&probe).then_some(probe));
        }
    }

    #[test]
    fn all_rows_are_found_and_no_others() {
        let mut index = RowIndex::new(3);
        let row = |position: usize| RowId::of_index(1, position as u32);
        for position in 0..5000 {
            let hash = index.hash(&row(position));
            assert_eq!(index.find(hash, |at| row(at) == row(position)), None);
            let hasher = index.hasher();
            index.insert(hash, position as u32, |at| hasher.hash_one(row(at)));
        }
        for position in 0..5000 {
            assert_eq!(index.find(index.hash(&row(position)), |at| row(at) == row(position)), Some(position));
        }
        assert_eq!(index.find(index.hash(&row(5000)), |at| row(at) == row(5000)), None);
    }
}
