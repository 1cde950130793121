//! Packet sequence numbers (volume 1, section 9.7.2).

/// The bits of a sequence number.
pub const PSN_MASK: u32 = 0xff_ffff;

/// Number of sequence numbers that count as earlier than a given one: half of all.
const HALF: u32 = 1 << 23;

/// A sequence number of 24 bits. The number after 2^24 - 1 is 0, so numbers have no order; two of them have a distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Psn(u32);

impl Psn {
    /// Creates a number from the lower 24 bits.
    #[inline]
    pub const fn new(number: u32) -> Psn {
        Psn(number & PSN_MASK)
    }

    /// Returns the number, below 2^24.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns the number that comes `packets` later.
    #[must_use]
    #[inline]
    pub const fn plus(self, packets: u32) -> Psn {
        Psn::new(self.0.wrapping_add(packets))
    }

    /// Returns the number that comes `packets` earlier.
    #[must_use]
    #[inline]
    pub const fn minus(self, packets: u32) -> Psn {
        Psn::new(self.0.wrapping_sub(packets))
    }

    /// Returns the number of steps from `start` to this number, below 2^24.
    #[inline]
    pub const fn since(self, start: Psn) -> u32 {
        self.0.wrapping_sub(start.0) & PSN_MASK
    }

    /// Whether it is in the half of the space before `other`: if `other` is expected, it is a duplicate.
    #[inline]
    pub const fn is_before(self, other: Psn) -> bool {
        self.since(other) >= HALF
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_and_half_of_them_are_earlier() {
        let last = Psn::new(u32::MAX);
        assert_eq!((last.number(), last.plus(1), Psn::new(0).minus(1)), (PSN_MASK, Psn::new(0), last));
        assert_eq!(Psn::new(3).since(last), 4);
        for number in [0, 5, HALF - 1, HALF, PSN_MASK] {
            let number = Psn::new(number);
            assert!(!number.is_before(number) && !number.plus(1).is_before(number));
            assert!(number.minus(1).is_before(number) && number.minus(HALF).is_before(number));
            assert!(!number.plus(HALF - 1).is_before(number) && number.plus(HALF).is_before(number));
        }
    }
}
