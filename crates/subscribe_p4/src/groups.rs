//! Allocates multicast group numbers.

use crate::write::{EVERYONE, FLOOD};

/// Numbers of groups that include the controller. [`FLOOD`] and [`EVERYONE`] follow; all others belong to the compiler.
/// BMv2's P4Runtime server accepts only groups below 2^15. The groups here must be available there, whereas the
/// compiler uses numbers beyond that limit only if rules need them.
pub(crate) const WITH_CONTROLLER: std::ops::Range<u32> = 0x7000..FLOOD as u32;

/// Number of group numbers that do not belong to the compiler.
const TAKEN: u32 = EVERYONE as u32 + 1 - WITH_CONTROLLER.start;

/// Largest group number that the compiler may assign.
pub(crate) const COMPILED: u32 = 0xffff - TAKEN;

/// Maps a group number of the compiler, counted from 1, to a number of the switch.
pub(crate) fn compiled(number: u32) -> u32 {
    if number < WITH_CONTROLLER.start { number } else { number + TAKEN }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_groups_have_one_number_and_what_every_program_needs_is_below_two_to_the_fifteenth() {
        let mut all: BTreeSet<u32> = (1..=COMPILED).map(compiled).collect();
        assert_eq!((all.len(), all.last()), (COMPILED as usize, Some(&0xffff)));
        assert!(
            WITH_CONTROLLER.chain([FLOOD.into(), EVERYONE.into()]).all(|number| number < 1 << 15 && all.insert(number))
        );
        assert!((1..28_000).all(|number| compiled(number) < 1 << 15));
    }
}
