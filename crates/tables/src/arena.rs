//! Implements an arena of many short arrays in one vector, for nodes with varying numbers of children and results.
//!
//! The capacity of an array is that of its size class; a released array is reused for the next one of its class.

use crate::growth::reserve_gently;

/// Capacities of the size classes. The maximum length of an array is 64.
const CLASSES: [u32; 13] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 48, 64];

/// Size class of every length from 0 (which has no array, and counts as class 0) to 64.
const CLASS_OF: [u8; 65] = {
    let mut table = [0; 65];
    let mut len = 1;
    while len <= 64 {
        let mut class = 0;
        while CLASSES[class] < len as u32 {
            class += 1;
        }
        table[len] = class as u8;
        len += 1;
    }
    table
};

#[derive(Clone, Debug)]
pub(crate) struct Arena<T> {
    pub(crate) items: Vec<T>,
    free: [Vec<u32>; CLASSES.len()],
}

impl<T: Copy + Default> Arena<T> {
    pub(crate) fn new() -> Self {
        Arena { items: Vec::new(), free: Default::default() }
    }

    fn class(len: usize) -> usize {
        usize::from(CLASS_OF[len])
    }

    /// Allocates an array of `len` items (1 to 64) with default values.
    pub(crate) fn allocate(&mut self, len: usize) -> u32 {
        let class = Self::class(len);
        if let Some(base) = self.free[class].pop() {
            self.items[base as usize..][..len].fill(T::default());
            return base;
        }
        let base = u32::try_from(self.items.len()).expect("an arena has fewer than 2^32 items");
        let len = self.items.len() + CLASSES[class] as usize;
        reserve_gently(&mut self.items, CLASSES[class] as usize);
        self.items.resize(len, T::default());
        base
    }

    /// Releases an array of `len` items.
    pub(crate) fn release(&mut self, base: u32, len: usize) {
        if len > 0 {
            self.free[Self::class(len)].push(base);
        }
    }

    /// Changes the length of an array to 0 to 64 items; its items lose their values. Returns the new base of the array.
    pub(crate) fn reallocate(&mut self, base: u32, from: usize, to: usize) -> u32 {
        if from > 0 && to > 0 && Self::class(from) == Self::class(to) {
            return base;
        }
        self.release(base, from);
        if to == 0 { 0 } else { self.allocate(to) }
    }

    /// Inserts an item into an array of `len` items (0 to 63). Returns the new base of the array.
    pub(crate) fn insert(&mut self, base: u32, len: usize, at: usize, item: T) -> u32 {
        let mut to = base;
        if len == 0 || Self::class(len) != Self::class(len + 1) {
            to = self.allocate(len + 1);
            self.items.copy_within(base as usize..base as usize + len, to as usize);
            self.release(base, len);
        }
        let array = &mut self.items[to as usize..][..len + 1];
        array.copy_within(at..len, at + 1);
        array[at] = item;
        to
    }

    /// Removes an item from an array of `len` items (1 to 64). Returns the new base of the array.
    pub(crate) fn remove(&mut self, base: u32, len: usize, at: usize) -> u32 {
        self.items[base as usize..][..len].copy_within(at + 1.., at);
        if len > 1 && Self::class(len) == Self::class(len - 1) {
            return base;
        }
        let mut to = 0;
        if len > 1 {
            to = self.allocate(len - 1);
            self.items.copy_within(base as usize..base as usize + len - 1, to as usize);
        }
        self.release(base, len);
        to
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.items.capacity() * size_of::<T>() + self.free.iter().map(|list| list.capacity() * 4).sum::<usize>()
    }
}
