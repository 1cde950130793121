//! Implements direct-indexed arrays of handles, for keys that form a dense range of numbers.
//!
//! States of a pipeline, ports and VLANs are such keys. One access finds the handle, where a hash table needs a tag and
//! a key as well. The array supplements a hash table that holds all entries, and is created and dropped as the set of
//! keys changes.

use crate::MISS;
use crate::inline_lookup::DenseKeys;
use crate::prefetch::prefetch;

/// Maximum ratio of array slots to entries.
const MAX_SPREAD: u64 = 2;
/// Number of array slots allowed beyond that ratio.
const SPARE_SLOTS: u64 = 64;

/// Handles of a range of keys.
#[derive(Clone, Debug)]
pub(crate) struct Dense {
    /// Number of low bits that are zero in every key; keys are rotated right by it, so that other keys become large
    /// numbers.
    shift: u32,
    first: u64,
    handles: Vec<u32>,
}

impl Dense {
    /// Creates the array of these keys, if they form a dense range.
    pub fn new(keys: impl Iterator<Item = (u64, u32)> + Clone) -> Option<Dense> {
        let all = keys.clone().fold(0, |all, (key, _)| all | key);
        let shift = if all == 0 { 0 } else { all.trailing_zeros() };
        let (mut count, mut first, mut last) = (0, u64::MAX, 0);
        for (key, _) in keys.clone() {
            (count, first, last) = (count + 1, first.min(key >> shift), last.max(key >> shift));
        }
        if count == 0 || last - first >= MAX_SPREAD * count + SPARE_SLOTS {
            return None;
        }
        let mut dense = Dense { shift, first, handles: vec![MISS; (last - first + 1) as usize] };
        keys.for_each(|(key, handle)| dense.set(key, handle));
        Some(dense)
    }

    pub fn bytes(&self) -> usize {
        self.handles.capacity() * size_of::<u32>()
    }

    pub fn dense_keys(&self) -> DenseKeys<'_> {
        DenseKeys { shift: self.shift, first: self.first, handles: &self.handles }
    }

    #[inline(always)]
    fn place(&self, key: u64) -> usize {
        key.rotate_right(self.shift).wrapping_sub(self.first) as usize
    }

    /// Returns the handle of a key, or [`MISS`].
    #[inline(always)]
    pub fn get(&self, key: u64) -> u32 {
        self.handles.get(self.place(key)).copied().unwrap_or(MISS)
    }

    /// Prefetches the handle of a key.
    #[inline(always)]
    pub fn prefetch(&self, key: u64) {
        prefetch(&self.handles, self.place(key));
    }

    /// Sets the handle of a key that has a slot; [`MISS`] removes it.
    pub fn set(&mut self, key: u64, handle: u32) {
        let place = self.place(key);
        self.handles[place] = handle;
    }

    /// Extends the array to a key, given the number of entries. Returns false if the key is too far from the others.
    pub fn reach(&mut self, key: u64, entries: usize) -> bool {
        let place = self.place(key);
        if place < self.handles.len() {
            return true;
        }
        let number = key.rotate_right(self.shift);
        let (before, last) = (self.first, self.first + (self.handles.len() - 1) as u64);
        let span = number.max(last) - number.min(before);
        if span >= MAX_SPREAD * entries as u64 + SPARE_SLOTS {
            return false;
        }
        // Grow by another half on the side of the new key.
        let more = (self.handles.len() / 2) as u64;
        if number < before {
            self.first = number.saturating_sub(more);
            let added = (before - self.first) as usize;
            self.handles.reserve_exact(added);
            self.handles.splice(0..0, std::iter::repeat_n(MISS, added));
        } else {
            let len = (number.saturating_add(more) - before + 1) as usize;
            self.handles.reserve_exact(len - self.handles.len());
            self.handles.resize(len, MISS);
        }
        true
    }
}
