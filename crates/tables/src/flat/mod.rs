//! Implements tables over words of shared memory: no pointers, no allocation, and lookups that need only loads,
//! shifts, multiplications of 64 bits and loops with constant bounds.
//!
//! Programs that cannot call Rust code look keys up in them: see the crate `bpf`. A table is a *shape*, which says
//! where the words are, and a slice of words, which may lie at any address. All words of an empty table are 0.
//! [`FlatExact::lookup`], [`FlatPrefixes::lookup`] and [`FlatRules::lookup`] are the reference for the generated
//! lookups.
//!
//! [`FlatChoices`] selects one of several numbers by a hash.
//!
//! A table maps keys to *numbers* from 1 on. 0 means that no entry matches, so that the record of a miss can lie in
//! front of the records of the entries.
//!
//! Writers change words one by one. A reader that runs at the same time finds only numbers that were in the table,
//! but may miss an entry that is being moved: readers that must not need two copies of the table.

mod choices;
mod exact;
mod prefixes;
mod rules;

pub use choices::{BLOCK_SIZE_BITS, ChoiceWriter, FlatChoices, MAX_CHOICES};
pub use exact::{ElementPlace, FlatExact, HASH_MULTIPLIER, HOME_MULTIPLIER, MAX_ELEMENTS, NUMBER_BITS, PROBES};
pub use prefixes::{
    FlatPrefixes, LEAF_BITS, LENGTH_BITS, LENGTH_SHIFT, NODE_BITS, NODE_WORDS, PrefixWriter, TARGET_BITS,
};
pub use rules::{FlatRule, FlatRules, MAX_RULES, MAX_STEPS, MAX_TUPLES, RuleElement, RuleWriter};

use std::sync::atomic::{AtomicU64, Ordering};

/// A table has no room for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatFull;

fn load(words: &[AtomicU64], at: usize) -> u64 {
    words[at].load(Ordering::Relaxed)
}

fn store(words: &[AtomicU64], at: usize, value: u64) {
    words[at].store(value, Ordering::Relaxed);
}
