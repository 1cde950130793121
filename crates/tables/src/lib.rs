//! Finds the entry of a table for a packet's key, fast.
//!
//! Four structures map packed keys to handles:
//!
//! | fields of the key                   | structure                                                    |
//! |-------------------------------------|--------------------------------------------------------------|
//! | all exact                           | [`Exact`]: open addressing, 16 slots compared at once        |
//! | one prefix, the others exact        | [`Lpm`]: a bitmap trie; an index by 24 bits for large tables |
//! | one range to 64 bits, the others exact | [`Intervals`]: a hash, then a B+ tree of thresholds       |
//! | masks, ranges, several prefixes     | [`Ternary`]: a scan of a few rules, merged tuples for more   |
//!
//! A key is a slice of `u64` words; a [`Layout`] says where in them each field lies, and who packs keys writes them so.
//! A handle is a `u32` that the caller chose; [`Intervals`] wants small ones that differ. Every structure answers through [`PackedLookup`], alone or in batches.
//!
//! ```
//! use tables::{FieldKind, Layout, Lpm, PackedLookup};
//!
//! let layout = Layout::new([(32, FieldKind::Prefix)]);
//! let mut routes = Lpm::new(&layout);
//! routes.insert(&[0x0a00_0000], 8, 1);
//! routes.insert(&[0x0a01_0000], 16, 2);
//! assert_eq!(routes.lookup(&[0x0a01_0203]), Some(2));
//! let mut found = [0; 2];
//! routes.lookup_batch(&[0x0a02_0304, 0x0b00_0000], &mut found);
//! assert_eq!(found, [1, tables::MISS]);
//! ```
//!
//! # What a lookup costs
//!
//! | structure                 | memory touched                                                | bytes an entry              |
//! |---------------------------|---------------------------------------------------------------|-----------------------------|
//! | [`Exact`]                 | a line of tags (1 byte an entry), the entry                   | 22 to 28 for one word, 8 more a word at a load of 1 |
//! | [`Exact`], numbers close to each other | one word                                         | 4 to 12 more                |
//! | [`Lpm`], small            | a node of 24 bytes for each 6 bits, the result                | about 100                   |
//! | [`Lpm`], large, to 32 bits| one or two words                                              | 80 MB an index, and the trie |
//! | [`Intervals`]             | the group, two cache lines for each 4 bits of its entries, three if the range has more than 32 bits | 100 to 145, and 145 a group |
//! | [`Ternary`], to 64 rules  | all rules, eight a step                                       | about 100                   |
//! | [`Ternary`]               | a filter word for each merged tuple, the rules where it hits  | about 120 for two words     |
//!
//! Benchmarks in `benches/` print times, ratios to baselines and bytes. Batches pay from about a megabyte on: what a key
//! waits for is asked for while others are worked on.
//!
//! # For executors
//!
//! Compiled code builds a key in the words of [`Layout`] on its stack (each field is a shift and an or; the places are
//! known when it is compiled) and calls [`PackedLookup::lookup`], or collects the keys of a batch of packets, one after
//! the other, for [`PackedLookup::lookup_batch`]. Code that is made while a program runs can do without a call:
//! [`in_place`] says where [`Exact`] and [`Intervals`] lie and how keys are found there. The handle indexes whatever the
//! caller keeps for entries. All structures are `Send + Sync`; lookups take `&self`.
//!
//! # Changes while others read
//!
//! Structures change in place and are plain data. To change one while other threads read it, put it (together with
//! whatever its handles name, or a handle that is used again would name the wrong thing) into a [`publish::Writer`]:
//! readers pin a version once a batch, never block, and see a batch of changes at once.
//!
//! The crate knows nothing of programs, packets or actions. Entries come from the control plane and are trusted to have
//! been checked: a key of the wrong length asserts.

mod arena;
pub mod classbench;
mod dense;
mod exact;
mod hash;
pub mod in_place;
mod intervals;
mod layout;
mod lpm;
mod pattern;
mod prefetch;
pub mod publish;
mod simd;
mod ternary;

pub use exact::Exact;
pub use intervals::Intervals;
pub use layout::{Field, FieldKind, Layout};
pub use lpm::{DIRECT_FROM, DIRECT_MOST, DIRECT_UNTIL, HANDLE_END, Lpm};
pub use pattern::Pattern;
pub use prefetch::prefetch;
pub use ternary::{Classifier, SCAN_MOST, SmallScan, Ternary, TupleMerge};

/// How many keys are looked up together; more are cut into batches of this size.
pub const BATCH: usize = 32;

/// What a batch lookup says for a key without an entry.
pub const MISS: u32 = u32::MAX;

/// What an executor asks of a table: the narrow seam between match structures and the code that packs keys.
pub trait PackedLookup: std::fmt::Debug + Send + Sync {
    /// The words of a key.
    fn words(&self) -> usize;

    /// The handle of the entry for a key: of those that match, the one with the largest priority, of these the oldest.
    fn lookup(&self, key: &[u64]) -> Option<u32>;

    /// Looks up as many keys as `found` is long, which lie one after the other in `keys`; [`MISS`] where there is no
    /// entry.
    ///
    /// # Panics
    /// If `keys` is shorter than that.
    fn lookup_batch(&self, keys: &[u64], found: &mut [u32]);
}

/// Calls a method that is generic over the words of a key with their number where it is small, so that loops over them
/// are unrolled, and with 0 where it is not.
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
