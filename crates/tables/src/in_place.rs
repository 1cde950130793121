//! Lookups for code that is made while a program runs.
//!
//! Such code looks keys up where it is, without going through a trait: in an array, in a hash table whose layout it
//! knows, or by calling one function. Whoever makes it takes the addresses from here for as long as it borrows the
//! table.

use std::marker::PhantomData;

use crate::MISS;
pub use crate::exact::{EMPTY, GROUP};
pub use crate::hash::SECRET;

/// How a table's keys are looked up in place.
#[derive(Clone, Copy, Debug)]
pub enum InPlace<'t> {
    /// The key is one word, and says where in an array its handle is.
    Close(CloseKeys<'t>),
    /// The key's hash says where to look for it.
    Hashed(HashedKeys<'t>),
    /// A function finds it.
    Called(Called<'t>),
}

/// The handles of all keys of a table whose keys are close to each other.
///
/// The handle of a key is at the place `key.rotate_right(shift) - first`, with wrap-around; of a key whose place is
/// beyond the end there is none.
#[derive(Clone, Copy, Debug)]
pub struct CloseKeys<'t> {
    /// Low bits that are zero in every key.
    pub shift: u32,
    /// The key, turned, of the first place.
    pub first: u64,
    /// [`MISS`] where a place has no key.
    pub handles: &'t [u32],
}

/// The groups of an [`Exact`](crate::Exact) table, of which there is one at least.
///
/// With `fold(a, b)` for the halves of the product of two words, one over the other by exclusive or, and [`SECRET`]:
/// the hash of words a, b, c, d, … is `fold(a ^ SECRET[0], b ^ SECRET[1])`, where a word alone has no b (0 in its
/// place); then each further pair makes it `fold(c ^ hash, d ^ SECRET[2])`, and a last word alone `fold(c ^ hash,
/// SECRET[3])`.
///
/// The high 32 bits of the hash times the number of groups, without the low 32 bits of the product, are the group of
/// the key. The low 7 bits are its tag. Of the slots whose tag is the key's, the one with the key has its handle. If
/// there is none in a group with an [`EMPTY`] tag, the key has no handle; else it may be in one of the groups behind.
#[derive(Clone, Copy, Debug)]
pub struct HashedKeys<'t> {
    /// The tags of the slots of each group.
    pub tags: &'t [[u8; GROUP]],
    /// For each slot the words of its key and the handle, in 64 bits: as many slots as there are tags.
    pub slots: &'t [u64],
}

/// Gives the handle of a key, or [`MISS`], for [`Called::table`] and the address of the key's words.
///
/// # Safety
/// The table is the one that the function belongs to, while it is borrowed, and so many words may be read at the address
/// as keys have.
pub type Function = unsafe extern "C" fn(table: *const (), key: *const u64) -> u32;

/// A table as a function.
#[derive(Clone, Copy, Debug)]
pub struct Called<'t> {
    function: Function,
    table: *const (),
    words: usize,
    bytes: usize,
    _table: PhantomData<&'t ()>,
}

impl InPlace<'_> {
    /// How many bytes lookups touch of the table in all.
    pub fn bytes(&self) -> usize {
        match self {
            InPlace::Close(close) => size_of_val(close.handles),
            InPlace::Hashed(hashed) => size_of_val(hashed.tags) + size_of_val(hashed.slots),
            InPlace::Called(called) => called.bytes,
        }
    }
}

impl<'t> Called<'t> {
    /// Calls touch so many bytes of the table.
    ///
    /// # Safety
    /// The function may be called with the address of `table`, and that of a key of so many words.
    pub(crate) unsafe fn new<T>(table: &'t T, (words, bytes): (usize, usize), function: Function) -> Called<'t> {
        Called { function, table: std::ptr::from_ref(table).cast(), words, bytes, _table: PhantomData }
    }

    /// The function.
    pub fn function(&self) -> Function {
        self.function
    }

    /// What the function is given.
    pub fn table(&self) -> *const () {
        self.table
    }

    /// The words of a key.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Looks a key up.
    ///
    /// # Panics
    /// If the key does not have the table's number of words.
    pub fn call(&self, key: &[u64]) -> Option<u32> {
        assert_eq!(key.len(), self.words, "keys have the table's number of words");
        // SAFETY: table and function belong to each other, as whoever made this has promised; the table is borrowed for
        // as long as `self` lives, and the key has its words.
        let found = unsafe { (self.function)(self.table, key.as_ptr()) };
        (found != MISS).then_some(found)
    }
}
