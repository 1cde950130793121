//! Inline lookups: the memory layout of tables, for just-in-time compilers.
//!
//! Compiled code looks keys up without a call through a trait: in an array, in a hash table of known layout, or by
//! calling one function. The addresses are valid as long as the compiler's user borrows the table.

use std::marker::PhantomData;

use crate::MISS;
pub use crate::exact::{EMPTY, GROUP};
pub use crate::hash::SECRET;

/// The inline lookup that a table supports.
#[derive(Clone, Copy, Debug)]
pub enum InlineLookup<'t> {
    /// The key is one word and is an index into an array of handles.
    Dense(DenseKeys<'t>),
    /// The key's hash selects the group of slots to search.
    Hashed(HashedKeys<'t>),
    /// A function searches the table.
    Called(Called<'t>),
}

/// The handles of a table whose keys form a dense range.
///
/// The index of a key is `key.rotate_right(shift) - first`, with wrap-around; a key whose index is beyond the end has
/// no handle.
#[derive(Clone, Copy, Debug)]
pub struct DenseKeys<'t> {
    /// Number of low bits that are zero in every key.
    pub shift: u32,
    /// Rotated key of the first element.
    pub first: u64,
    /// Handles, [`MISS`] for an element without a key.
    pub handles: &'t [u32],
}

/// The groups of an [`Exact`](crate::Exact) table; there is at least one.
///
/// Let `fold(a, b)` be the exclusive or of the two halves of the product of two words. With [`SECRET`], the hash of
/// words a, b, c, d, … starts as `fold(a ^ SECRET[0], b ^ SECRET[1])`, with b = 0 for a single word. Each further pair
/// makes it `fold(c ^ hash, d ^ SECRET[2])`, and a last single word `fold(c ^ hash, SECRET[3])`.
///
/// The high 32 bits of the hash times the number of groups, shifted right by 32 bits, is the group of the key. The low
/// 7 bits of the hash are its tag. Of the slots with this tag, the one with the same key has the handle. If there is
/// none and the group has an [`EMPTY`] tag, the key has no handle; otherwise it may be in one of the next groups.
#[derive(Clone, Copy, Debug)]
pub struct HashedKeys<'t> {
    /// Tags of the slots of each group.
    pub tags: &'t [[u8; GROUP]],
    /// Words of the key and the handle in 64 bits, for each slot; there are as many slots as tags.
    pub slots: &'t [u64],
}

/// A function that returns the handle of a key, or [`MISS`], given [`Called::table`] and the address of the key's
/// words.
///
/// # Safety
/// `table` belongs to this function and is borrowed during the call, and `key` is the address of as many words as keys
/// have.
pub type Function = unsafe extern "C" fn(table: *const (), key: *const u64) -> u32;

/// A table with a lookup function.
#[derive(Clone, Copy, Debug)]
pub struct Called<'t> {
    function: Function,
    table: *const (),
    words: usize,
    bytes: usize,
    _table: PhantomData<&'t ()>,
}

impl InlineLookup<'_> {
    /// Returns the number of bytes of the table that lookups can touch.
    pub fn bytes(&self) -> usize {
        match self {
            InlineLookup::Dense(close) => size_of_val(close.handles),
            InlineLookup::Hashed(hashed) => size_of_val(hashed.tags) + size_of_val(hashed.slots),
            InlineLookup::Called(called) => called.bytes,
        }
    }
}

impl<'t> Called<'t> {
    /// Describes a lookup function for keys of `words` words that touches at most `bytes` bytes of the table.
    ///
    /// # Safety
    /// The function may be called with the address of `table` and that of a key of `words` words.
    pub(crate) unsafe fn new<T>(table: &'t T, (words, bytes): (usize, usize), function: Function) -> Called<'t> {
        Called { function, table: std::ptr::from_ref(table).cast(), words, bytes, _table: PhantomData }
    }

    /// Returns the function.
    pub fn function(&self) -> Function {
        self.function
    }

    /// Returns the first argument of the function.
    pub fn table(&self) -> *const () {
        self.table
    }

    /// Returns the number of words of a key.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Looks a key up.
    ///
    /// # Panics
    /// Panics if the key does not have the table's number of words.
    pub fn call(&self, key: &[u64]) -> Option<u32> {
        assert_eq!(key.len(), self.words, "keys have the table's number of words");
        // SAFETY: table and function belong together, by the promise of [`Called::new`]'s caller. The table is borrowed
        // for as long as `self` lives, and the key has the table's number of words.
        let found = unsafe { (self.function)(self.table, key.as_ptr()) };
        (found != MISS).then_some(found)
    }
}
