//! Handles by keys that are numbers close to each other: an array.
//!
//! States of a pipeline, ports and VLANs are such keys. One access finds the handle, where a hash needs a tag and a key
//! besides. The array is beside a hash table that has all entries, and comes and goes with what the keys are like.

use crate::MISS;
use crate::in_place::CloseKeys;
use crate::prefetch::prefetch;

/// An array may have so many times as many places as there are entries.
const SPREAD: u64 = 2;
/// And so many more.
const SPARE: u64 = 64;

/// Handles of keys from a first one on.
#[derive(Clone, Debug)]
pub(crate) struct Dense {
    /// Low bits that are zero in every key; they are turned to the top, where others make a number too large.
    shift: u32,
    first: u64,
    handles: Vec<u32>,
}

impl Dense {
    /// The array of these keys, if they are close to each other.
    pub fn new(keys: impl Iterator<Item = (u64, u32)> + Clone) -> Option<Dense> {
        let all = keys.clone().fold(0, |all, (key, _)| all | key);
        let shift = if all == 0 { 0 } else { all.trailing_zeros() };
        let (mut count, mut first, mut last) = (0, u64::MAX, 0);
        for (key, _) in keys.clone() {
            (count, first, last) = (count + 1, first.min(key >> shift), last.max(key >> shift));
        }
        if count == 0 || last - first >= SPREAD * count + SPARE {
            return None;
        }
        let mut dense = Dense { shift, first, handles: vec![MISS; (last - first + 1) as usize] };
        keys.for_each(|(key, handle)| dense.set(key, handle));
        Some(dense)
    }

    pub fn bytes(&self) -> usize {
        self.handles.capacity() * size_of::<u32>()
    }

    pub fn close_keys(&self) -> CloseKeys<'_> {
        CloseKeys { shift: self.shift, first: self.first, handles: &self.handles }
    }

    #[inline(always)]
    fn place(&self, key: u64) -> usize {
        key.rotate_right(self.shift).wrapping_sub(self.first) as usize
    }

    /// The handle of a key, or [`MISS`].
    #[inline(always)]
    pub fn get(&self, key: u64) -> u32 {
        self.handles.get(self.place(key)).copied().unwrap_or(MISS)
    }

    /// Asks for the memory of a key's handle.
    #[inline(always)]
    pub fn prefetch(&self, key: u64) {
        prefetch(&self.handles, self.place(key));
    }

    /// Gives a key that has a place a handle; [`MISS`] for none.
    pub fn set(&mut self, key: u64, handle: u32) {
        let place = self.place(key);
        self.handles[place] = handle;
    }

    /// Makes room for a key among so many entries. `false` if it is too far from the others.
    pub fn reach(&mut self, key: u64, entries: usize) -> bool {
        let place = self.place(key);
        if place < self.handles.len() {
            return true;
        }
        let number = key.rotate_right(self.shift);
        let (before, last) = (self.first, self.first + (self.handles.len() - 1) as u64);
        let span = number.max(last) - number.min(before);
        if span >= SPREAD * entries as u64 + SPARE {
            return false;
        }
        // Half as much again on the side where keys come.
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
