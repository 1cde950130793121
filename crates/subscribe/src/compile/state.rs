//! Encodes state numbers. The highest bits, the *tag*, name the first stage that looks the state up.
//!
//! ```text
//! 31      24 23                   0
//! [   tag   |        number       ]
//! 0: initial state, or no match      n: stage n - 1 looks it up (253: stage 252 or a later one)
//!  254: a leaf whose messages update state      255: another leaf
//! ```
//!
//! A program can therefore skip the tables of other stages, the leaf table if nothing matched, and state updates for
//! messages that do not count.

use crate::tables::StateId;

/// Tag of states after the last stage.
pub const LEAF: u32 = 255;
/// Tag of states after the last stage whose messages update a counter or an aggregate.
pub const STATEFUL_LEAF: u32 = 254;
/// Number of bits below the tag.
pub const NUMBER_BITS: u32 = 24;

/// Returns the tag of states that a stage looks up. Stages after the 252nd share one tag.
pub fn stage_tag(stage: usize) -> u32 {
    u32::try_from(stage + 1).unwrap_or(LEAF).min(STATEFUL_LEAF - 1)
}

/// Returns the tag of a state.
pub fn tag(state: StateId) -> u32 {
    state >> NUMBER_BITS
}

/// Returns the number of a state within its tag.
pub fn number(state: StateId) -> u32 {
    state & ((1 << NUMBER_BITS) - 1)
}

/// Returns the state with a tag and a number.
///
/// # Panics
/// If the number is too large.
pub fn of(tag: u32, number: u32) -> StateId {
    assert!(tag <= LEAF && number < 1 << NUMBER_BITS, "state {tag}.{number}");
    tag << NUMBER_BITS | number
}
