//! Numbers of multicast groups: whose they are.

use crate::write::EVERYONE;

/// Groups with the controller. Behind them comes [`EVERYONE`]; all others are the compiler's. BMv2's P4Runtime server takes only
/// groups below 2^15: these have to be there, while the compiler's come to the others only once rules need so many.
pub(crate) const WITH_CONTROLLER: std::ops::Range<u32> = 0x7000..EVERYONE as u32;

/// The numbers that are not the compiler's.
const TAKEN: u32 = WITH_CONTROLLER.end + 1 - WITH_CONTROLLER.start;

/// The highest number that the compiler may give a group.
pub(crate) const COMPILED: u32 = 0xffff - TAKEN;

/// The switch's number for a group that the compiler numbered, from 1 on.
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
        assert!(WITH_CONTROLLER.chain([EVERYONE.into()]).all(|number| number < 1 << 15 && all.insert(number)));
        assert!((1..28_000).all(|number| compiled(number) < 1 << 15));
    }
}
