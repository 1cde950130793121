//! Implements match tables: finds the entry for a packet's key, fast.
//!
//! Four structures map packed keys to handles:
//!
//! | fields of the key                   | structure                                                    |
//! |-------------------------------------|--------------------------------------------------------------|
//! | all exact                           | [`Exact`]: open addressing, 16 slots compared at once        |
//! | one prefix, the others exact        | [`Lpm`]: a bitmap trie; an index of runs for large tables    |
//! | one range to 64 bits, the others exact | [`Intervals`]: a hash, then a B+ tree of thresholds       |
//! | masks, ranges, several prefixes     | [`Ternary`]: a scan of a few rules, merged tuples for more   |
//!
//! A key is a slice of `u64` words; a [`KeyLayout`] gives the position of each field in them, and callers pack keys
//! accordingly. A handle is a `u32` that the caller chooses; [`Intervals`] needs small ones that differ. Every
//! structure answers through [`PackedLookup`], for single keys or batches.
//!
//! ```
//! use tables::{FieldKind, KeyLayout, Lpm, PackedLookup};
//!
//! let layout = KeyLayout::new([(32, FieldKind::Prefix)]);
//! let mut routes = Lpm::new(&layout);
//! routes.insert(&[0x0a00_0000], 8, 1);
//! routes.insert(&[0x0a01_0000], 16, 2);
//! assert_eq!(routes.lookup(&[0x0a01_0203]), Some(2));
//! let mut found = [0; 2];
//! routes.lookup_batch(&[0x0a02_0304, 0x0b00_0000], &mut found);
//! assert_eq!(found, [1, tables::MISS]);
//! ```
//!
//! # Cost of a lookup
//!
//! | structure                  | memory touched                                     | bytes per entry               |
//! |----------------------------|----------------------------------------------------|-------------------------------|
//! | [`Exact`]                  | a line of tags (1 byte per entry), the entry       | 22 to 28 (one-word keys)      |
//! | [`Exact`], dense keys      | one word                                           | 4 to 12 more                  |
//! | [`Lpm`], small             | a node of 24 bytes for each 6 bits, the result     | 40 to 130                     |
//! | [`Lpm`], large, to 32 bits | three words; the first is in a near cache          | 40 to 72, with the trie       |
//! | [`Intervals`]              | the group, 2 cache lines per 4 bits of its entries | 100 to 145, and 145 per group |
//! | [`Ternary`], to 64 rules   | all rules, eight per step                          | about 100                     |
//! | [`Ternary`]                | a filter word per merged tuple, rules on a hit     | about 120 for two words       |
//!
//! Each further word of a key adds 8 bytes to an entry of [`Exact`], divided by the load factor. [`Intervals`] touches
//! three cache lines instead of two if the range has more than 32 bits.
//!
//! Benchmarks in `benches/` print times, ratios to baselines and bytes. Batches pay off from about one megabyte on: the
//! memory of one key is prefetched while others are processed.
//!
//! # For executors
//!
//! Compiled code builds a key in the words of [`KeyLayout`] on its stack (each field is a shift and an or; the
//! positions are compile-time constants). It calls [`PackedLookup::lookup`], or collects the keys of a batch of
//! packets, one after the other, for [`PackedLookup::lookup_batch`]. A just-in-time compiler can avoid the call:
//! [`inline_lookup`] describes the memory of [`Exact`] and [`Intervals`] and the search in it. The handle is an index
//! into the caller's own entries. All structures are `Send + Sync`; lookups take `&self`.
//!
//! # Concurrent changes
//!
//! Structures are plain data and change in place. To change one while other threads read it, put it into a
//! [`publish::RcuWriter`], an RCU-style publication with two copies: readers pin a version once per batch, never block,
//! and see a batch of changes at once. The data that handles refer to belong into the same version, or a reused handle
//! would refer to the wrong data.
//!
//! [`flat`] has tables over the words of shared memory, for programs that cannot call this crate: those in the kernel.
//!
//! The crate knows nothing of programs, packets or actions. Entries come from the control plane and must have been
//! checked: a key of the wrong length panics.

mod arena;
pub mod classbench;
mod dense;
mod exact;
pub mod flat;
mod growth;
mod hash;
pub mod inline_lookup;
mod intervals;
mod key_layout;
mod lpm;
mod pattern;
mod prefetch;
pub mod publish;
mod simd;
mod ternary;

pub use exact::Exact;
pub use growth::reserve_gently;
pub use intervals::Intervals;
pub use key_layout::{FieldKind, KeyField, KeyLayout};
pub use lpm::{HANDLE_END, INDEX_FROM, INDEX_UNTIL, Lpm};
pub use pattern::RulePattern;
pub use prefetch::prefetch;
pub use ternary::{Classifier, SCAN_LIMIT, SmallScan, Ternary, TupleMerge};

/// Number of keys that are looked up together; longer batches are split into chunks of this size.
pub const BATCH: usize = 32;

/// Result of a batch lookup for a key without an entry.
pub const MISS: u32 = u32::MAX;

/// The lookup interface between executors, which pack keys, and match structures.
pub trait PackedLookup: std::fmt::Debug + Send + Sync {
    /// Returns the number of words of a key.
    fn words(&self) -> usize;

    /// Returns the handle of the entry for a key: of the matching ones, the one with the highest priority, and of these
    /// the oldest.
    fn lookup(&self, key: &[u64]) -> Option<u32>;

    /// Looks up `found.len()` keys, which lie one after the other in `keys`. The result of a key without an entry is
    /// [`MISS`].
    ///
    /// # Panics
    /// Panics if `keys` is too short.
    fn lookup_batch(&self, keys: &[u64], found: &mut [u32]);
}

/// Calls a method that is generic over the number of words of a key. Small numbers are passed as constants, so that
/// loops over words are unrolled; larger ones as 0.
macro_rules! for_words {
    ($words:expr, $self:ident.$method:ident($($argument:expr),*)) => {
        match $words {
            1 => $self.$method::<1>($($argument),*),
            2 => $self.$method::<2>($($argument),*),
            3 => $self.$method::<3>($($argument),*),
            4 => $self.$method::<4>($($argument),*),
            5 => $self.$method::<5>($($argument),*),
            _ => $self.$method::<0>($($argument),*),
        }
    };
}
pub(crate) use for_words;
