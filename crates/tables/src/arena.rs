//! Many short arrays in one vector, for nodes whose numbers of children and results change.
//!
//! An array has room for as many items as its size class says; a freed one waits for the next of its class.

/// Capacities of the classes. 64 is the most an array can have.
const CLASSES: [u32; 13] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 48, 64];

/// The class for every length from 0 (which has no array, and counts as class 0) to 64.
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

    /// A new array of `len` items (1 to 64), all of the default value.
    pub(crate) fn allocate(&mut self, len: usize) -> u32 {
        let class = Self::class(len);
        if let Some(base) = self.free[class].pop() {
            self.items[base as usize..][..len].fill(T::default());
            return base;
        }
        let base = u32::try_from(self.items.len()).expect("an arena has fewer than 2^32 items");
        self.items.resize(self.items.len() + CLASSES[class] as usize, T::default());
        base
    }

    /// Gives an array of `len` items back.
    pub(crate) fn release(&mut self, base: u32, len: usize) {
        if len > 0 {
            self.free[Self::class(len)].push(base);
        }
    }

    /// Inserts an item into an array of `len` (0 to 63) and returns where the array is now.
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

    /// Takes an item out of an array of `len` (1 to 64) and returns where the array is now.
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
