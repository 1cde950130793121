//! Defines the values that a field may take.

use rng::mix;

/// A set of values of a field, of up to 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// From the first to the second, both inclusive. They are less than 2^64 apart.
    Range(u128, u128),
    /// Values with the bits of `value` outside `free` and any bits inside.
    Free {
        /// The fixed bits.
        value: u128,
        /// The free bits.
        free: u128,
    },
}

impl Choice {
    /// Returns the set of this value only.
    pub fn one(value: u128) -> Choice {
        Choice::Range(value, value)
    }

    /// Returns the values of `width` bits that begin with the first `length` bits of `value`.
    pub fn prefix(value: u128, length: u32, width: u32) -> Choice {
        let all = u128::MAX.checked_shr(128 - width).unwrap_or(0);
        let free = all & u128::MAX.checked_shr(128 - width + length).unwrap_or(0);
        Choice::Free { value: value & !free, free }
    }

    /// Returns the number of values; 0 for 2^64 or more.
    fn count(&self) -> u64 {
        match *self {
            Choice::Range(low, high) => ((high - low) as u64).wrapping_add(1),
            Choice::Free { free, .. } => 1u64.checked_shl(free.count_ones()).unwrap_or(0),
        }
    }

    /// Returns the value of flow `number`. `salt` separates fields. Flows have distinct values while there are enough;
    /// beyond that, all values have equally many flows.
    pub fn value(&self, seed: u64, salt: u64, number: u64) -> u128 {
        let count = self.count();
        let index = match count {
            0 => mix([seed, salt, number]),
            1 => 0,
            _ => {
                let first = mix([seed, salt, 0]) % count;
                let step = coprime(mix([seed, salt, 1]) % count, count);
                ((u128::from(first) + u128::from(number) * u128::from(step)) % u128::from(count)) as u64
            }
        };
        match *self {
            Choice::Range(low, _) => low + u128::from(index),
            Choice::Free { value, free } => {
                let more = if count == 0 { mix([index, salt, seed]) } else { 0 };
                value & !free | scatter(u128::from(more) << 64 | u128::from(index), free)
            }
        }
    }
}

/// Returns the first number from `near` on that is coprime to `count`, which exceeds 1.
fn coprime(near: u64, count: u64) -> u64 {
    let divisor = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    (near.max(1)..count).find(|step| divisor(*step, count) == 1).unwrap_or(1)
}

/// Moves the low bits of `bits` to the positions of the set bits of `places`.
fn scatter(mut bits: u128, mut places: u128) -> u128 {
    let mut out = 0;
    while places != 0 {
        let lowest = places & places.wrapping_neg();
        if bits & 1 != 0 {
            out |= lowest;
        }
        bits >>= 1;
        places ^= lowest;
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn flows_have_different_values_while_there_are_enough() {
        let choices = [
            (Choice::Range(100, 1099), 1000),
            (Choice::Range(0, 6), 7),
            (Choice::prefix(0x0a00_0000, 20, 32), 4096),
            (Choice::Free { value: 0x8000, free: 0x0f0f }, 256),
            (Choice::one(5), 1),
        ];
        for (choice, count) in choices {
            let values: HashSet<u128> = (0..count).map(|number| choice.value(1, 2, number)).collect();
            assert_eq!(values.len() as u64, count, "{choice:?}");
            let again: HashSet<u128> = (count..2 * count).map(|number| choice.value(1, 2, number)).collect();
            assert_eq!(again, values, "{choice:?} has no others");
        }
    }

    #[test]
    fn values_stay_inside() {
        let net = Choice::prefix(0x2001_0db8 << 96 | 77, 32, 128);
        for number in 0..1000 {
            let value = net.value(3, 4, number);
            assert_eq!(value >> 96, 0x2001_0db8);
            assert_eq!(Choice::Free { value: 0x10, free: 0x3 }.value(3, 4, number) & !0x3, 0x10);
            assert!(Choice::prefix(0, 0, 32).value(3, 4, number) < 1 << 32);
        }
        assert_ne!(net.value(3, 4, 1) << 64, net.value(3, 4, 2) << 64);
        assert_ne!(net.value(3, 4, 1) >> 64, net.value(3, 4, 2) >> 64);
        assert_eq!(Choice::prefix(9, 32, 32), Choice::Free { value: 9, free: 0 });
    }
}
