//! Implements numbers of fixed width and their operations (sections 7.1.6, 8.6, 8.7 and 8.9).

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint};
use num_traits::{One, ToPrimitive, Zero};

/// The bits of a `bit<w>` or `int<w>`. The type, not the number, says if the bits are read as two's complement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// Width in bits.
    pub width: u32,
    /// The bits as an unsigned number below `2^width`.
    pub bits: BigUint,
}

/// Returns `2^exponent`.
fn power(exponent: u32) -> BigInt {
    BigInt::one() << exponent
}

impl Number {
    /// Wraps a mathematical integer to `width` bits: its value modulo `2^width`.
    pub fn wrap(value: &BigInt, width: u32) -> Number {
        let modulus = power(width);
        let rest = ((value % &modulus) + &modulus) % &modulus;
        Number { width, bits: rest.to_biguint().unwrap_or_default() }
    }

    /// Wraps a small number to `width` bits.
    pub fn new(value: u64, width: u32) -> Number {
        Number::wrap(&BigInt::from(value), width)
    }

    /// Takes over a number of the crate `bits`, in which the front end keeps constants.
    pub fn from_bits(value: &bits::Bits) -> Number {
        Number { width: value.width(), bits: value.to_big() }
    }

    /// Returns the value as an unsigned number.
    pub fn unsigned(&self) -> BigInt {
        BigInt::from(self.bits.clone())
    }

    /// Returns the value as a two's complement number (section 7.1.6.4).
    pub fn signed(&self) -> BigInt {
        let value = self.unsigned();
        if self.width > 0 && self.bits.bit(u64::from(self.width - 1)) { value - power(self.width) } else { value }
    }

    /// Returns the value, read as signed or unsigned.
    pub fn value(&self, signed: bool) -> BigInt {
        if signed { self.signed() } else { self.unsigned() }
    }

    /// Returns the value, if it is below `2^64`.
    pub fn to_u64(&self) -> Option<u64> {
        self.bits.to_u64()
    }

    /// `e[high:low]` (section 8.6).
    pub fn slice(&self, high: u32, low: u32) -> Number {
        Number::wrap(&(self.unsigned() >> low), high - low + 1)
    }

    /// Returns this number with bits `high` to `low` replaced (section 12.1, an assignment to a slice).
    pub fn with_slice(&self, high: u32, low: u32, part: &Number) -> Number {
        let mut bits = self.bits.clone();
        for bit in low..=high {
            bits.set_bit(u64::from(bit), part.bits.bit(u64::from(bit - low)));
        }
        Number { width: self.width, bits }
    }

    /// `a ++ b`: `a` has the more significant bits (section 8.9.1).
    pub fn concat(&self, low: &Number) -> Number {
        Number { width: self.width + low.width, bits: (&self.bits << low.width) | &low.bits }
    }

    /// Returns the number as bits, most significant first.
    pub fn to_bit_list(&self) -> Vec<bool> {
        (0..self.width).rev().map(|bit| self.bits.bit(u64::from(bit))).collect()
    }

    /// Returns the number with these bits, most significant first.
    pub fn from_bit_list(list: &[bool]) -> Number {
        let digits: Vec<u8> = list.iter().map(|bit| u8::from(*bit)).collect();
        Number { width: list.len() as u32, bits: BigUint::from_radix_be(&digits, 2).unwrap_or_default() }
    }

    /// `a << amount` (section 8.9.2): the bits that leave are lost.
    pub fn shift_left(&self, amount: &BigInt) -> Number {
        match amount.to_u32().filter(|amount| *amount < self.width) {
            Some(amount) => Number::wrap(&(self.unsigned() << amount), self.width),
            None => Number::new(0, self.width),
        }
    }

    /// `a >> amount` (section 8.9.2): zeros come in, or copies of the sign if `signed`.
    pub fn shift_right(&self, amount: &BigInt, signed: bool) -> Number {
        let amount = amount.to_u32().unwrap_or(u32::MAX).min(self.width);
        // `>>` of a `BigInt` rounds towards negative infinity, as an arithmetic shift does.
        Number::wrap(&(self.value(signed) >> amount), self.width)
    }

    /// Clamps a mathematical integer to the range of the width (sections 8.6 and 8.7, saturating operators).
    pub fn saturate(value: BigInt, width: u32, signed: bool) -> Number {
        let (low, high) = if signed && width > 0 {
            (-power(width - 1), power(width - 1) - 1)
        } else {
            (BigInt::zero(), power(width) - 1)
        };
        Number::wrap(&value.clamp(low, high), width)
    }

    /// Compares two numbers of one type.
    pub fn compare(&self, other: &Number, signed: bool) -> Ordering {
        self.value(signed).cmp(&other.value(signed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_numbers_wrap_and_saturate() {
        let minus = Number::wrap(&BigInt::from(-1), 8);
        assert_eq!(minus.unsigned(), BigInt::from(255));
        assert_eq!(minus.signed(), BigInt::from(-1));
        assert_eq!(Number::saturate(BigInt::from(200), 8, true).unsigned(), BigInt::from(127));
        assert_eq!(Number::saturate(BigInt::from(-200), 8, true).signed(), BigInt::from(-128));
        assert_eq!(Number::saturate(BigInt::from(-2), 8, false).unsigned(), BigInt::from(0));
    }

    #[test]
    fn shifts_at_and_beyond_the_width() {
        let value = Number::new(0x81, 8);
        assert_eq!(value.shift_right(&BigInt::from(1), true), Number::new(0xc0, 8));
        assert_eq!(value.shift_right(&BigInt::from(9), true), Number::new(0xff, 8));
        assert_eq!(value.shift_right(&BigInt::from(9), false), Number::new(0, 8));
        assert_eq!(value.shift_left(&BigInt::from(8)), Number::new(0, 8));
        assert_eq!(value.shift_left(&BigInt::from(1)), Number::new(2, 8));
    }

    #[test]
    fn parts_of_a_number() {
        let value = Number::new(0xabcd, 16);
        assert_eq!(value.slice(11, 4), Number::new(0xbc, 8));
        assert_eq!(value.with_slice(11, 4, &Number::new(0x12, 8)), Number::new(0xa12d, 16));
        assert_eq!(Number::new(5, 4).concat(&Number::new(3, 2)), Number::new(0x17, 6));
        assert_eq!(Number::from_bit_list(&value.to_bit_list()), value);
    }
}
