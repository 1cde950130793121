//! What the number of a state says: in the highest bits, its *tag*, which stage asks it first.
//!
//! ```text
//! 31      24 23                   0
//! [   tag   |        number       ]
//!  0: no state yet, or nothing matches      n: stage n - 1 asks it (and 253: that one, or a later one)
//!  254: a leaf whose messages are remembered      255: another leaf
//! ```
//!
//! So a program skips the tables of stages that a message's state does not ask, the leaf table where nothing matches, and what
//! counts messages where they do not count.

use crate::tables::State;

/// The tag of states behind the last stage.
pub const LEAF: u32 = 255;
/// The same, where messages update a counter or count for an aggregate.
pub const REMEMBERED: u32 = 254;
/// Bits of a number below its tag.
pub const NUMBER_BITS: u32 = 24;

/// The tag of states that a stage asks. Stages beyond the 252nd share one.
pub fn stage_tag(stage: usize) -> u32 {
    u32::try_from(stage + 1).unwrap_or(LEAF).min(REMEMBERED - 1)
}

/// The tag of a state.
pub fn tag(state: State) -> u32 {
    state >> NUMBER_BITS
}

/// The number of a state among those of its tag.
pub fn number(state: State) -> u32 {
    state & ((1 << NUMBER_BITS) - 1)
}

/// The state of a tag and a number.
///
/// # Panics
/// If the number is too large.
pub fn of(tag: u32, number: u32) -> State {
    assert!(tag <= LEAF && number < 1 << NUMBER_BITS, "state {tag}.{number}");
    tag << NUMBER_BITS | number
}
