//! Arithmetic, logic, shifts, slices and comparisons. Binary operations expect operands of equal width and wrap modulo
//! `2^width` unless they are documented to saturate.

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint};
use num_traits::One;

use crate::{Bits, INLINE_BITS, Repr, inline_mask};

impl Bits {
    fn zip(&self, other: &Bits, small: fn(u128, u128) -> u128, big: fn(&BigUint, &BigUint) -> BigUint) -> Bits {
        debug_assert_eq!(self.width, other.width, "operands of different widths");
        match (&self.repr, &other.repr) {
            (Repr::Inline(a), Repr::Inline(b)) => {
                Bits { width: self.width, repr: Repr::Inline(small(*a, *b) & inline_mask(self.width)) }
            }
            _ => Bits::from_big(&big(&self.to_big(), &other.to_big()), self.width),
        }
    }

    /// Sum modulo `2^width`.
    pub fn add(&self, other: &Bits) -> Bits {
        self.zip(other, u128::wrapping_add, |a, b| a + b)
    }

    /// Difference modulo `2^width`.
    pub fn sub(&self, other: &Bits) -> Bits {
        if self.width <= INLINE_BITS {
            self.zip(other, u128::wrapping_sub, |a, b| a - b)
        } else {
            let modulus = BigUint::one() << self.width;
            Bits::from_big(&(self.to_big() + modulus - other.to_big()), self.width)
        }
    }

    /// Product modulo `2^width`.
    pub fn mul(&self, other: &Bits) -> Bits {
        self.zip(other, u128::wrapping_mul, |a, b| a * b)
    }

    /// Unsigned quotient; 0 when `other` is 0.
    pub fn div(&self, other: &Bits) -> Bits {
        if other.is_zero() {
            return Bits::zero(self.width);
        }
        self.zip(other, |a, b| a / b, |a, b| a / b)
    }

    /// Unsigned remainder; 0 when `other` is 0.
    pub fn rem(&self, other: &Bits) -> Bits {
        if other.is_zero() {
            return Bits::zero(self.width);
        }
        self.zip(other, |a, b| a % b, |a, b| a % b)
    }

    /// Bitwise and.
    pub fn and(&self, other: &Bits) -> Bits {
        self.zip(other, |a, b| a & b, |a, b| a & b)
    }

    /// Bitwise or.
    pub fn or(&self, other: &Bits) -> Bits {
        self.zip(other, |a, b| a | b, |a, b| a | b)
    }

    /// Bitwise exclusive or.
    pub fn xor(&self, other: &Bits) -> Bits {
        self.zip(other, |a, b| a ^ b, |a, b| a ^ b)
    }

    /// Every bit inverted.
    #[allow(clippy::should_implement_trait, reason = "the same verbs as the other operations, by reference")]
    pub fn not(&self) -> Bits {
        match &self.repr {
            Repr::Inline(value) => Bits { width: self.width, repr: Repr::Inline(!value & inline_mask(self.width)) },
            Repr::Big(value) => {
                let mask = (BigUint::one() << self.width) - BigUint::one();
                Bits { width: self.width, repr: Repr::Big(value ^ mask) }
            }
        }
    }

    /// Two's complement negation.
    #[allow(clippy::should_implement_trait, reason = "the same verbs as the other operations, by reference")]
    pub fn neg(&self) -> Bits {
        Bits::zero(self.width).sub(self)
    }

    /// Unsigned sum, clamped to the largest value.
    pub fn saturating_add(&self, other: &Bits) -> Bits {
        let sum = self.add(other);
        if sum.unsigned_cmp(self) == Ordering::Less { Bits::ones(self.width) } else { sum }
    }

    /// Unsigned difference, clamped to 0.
    pub fn saturating_sub(&self, other: &Bits) -> Bits {
        if self.unsigned_cmp(other) == Ordering::Less { Bits::zero(self.width) } else { self.sub(other) }
    }

    /// Signed sum, clamped to the signed range.
    pub fn signed_saturating_add(&self, other: &Bits) -> Bits {
        let sum = self.add(other);
        if self.sign_bit() == other.sign_bit() && sum.sign_bit() != self.sign_bit() {
            self.signed_limit(self.sign_bit())
        } else {
            sum
        }
    }

    /// Signed difference, clamped to the signed range.
    pub fn signed_saturating_sub(&self, other: &Bits) -> Bits {
        let difference = self.sub(other);
        if self.sign_bit() != other.sign_bit() && difference.sign_bit() != self.sign_bit() {
            self.signed_limit(self.sign_bit())
        } else {
            difference
        }
    }

    fn signed_limit(&self, negative: bool) -> Bits {
        if self.width == 0 {
            return self.clone();
        }
        let lowest = Bits::new(1, self.width).shl(self.width - 1);
        if negative { lowest } else { lowest.not() }
    }

    /// Shift left by `amount` bits, filling with zeros; 0 when `amount >= width`.
    pub fn shl(&self, amount: u32) -> Bits {
        if amount >= self.width {
            return Bits::zero(self.width);
        }
        match &self.repr {
            Repr::Inline(value) => {
                Bits { width: self.width, repr: Repr::Inline((value << amount) & inline_mask(self.width)) }
            }
            Repr::Big(value) => Bits::from_big(&(value << amount), self.width),
        }
    }

    /// Logical shift right; 0 when `amount >= width`.
    pub fn shr(&self, amount: u32) -> Bits {
        if amount >= self.width {
            return Bits::zero(self.width);
        }
        match &self.repr {
            Repr::Inline(value) => Bits { width: self.width, repr: Repr::Inline(value >> amount) },
            Repr::Big(value) => Bits { width: self.width, repr: Repr::Big(value >> amount) },
        }
    }

    /// Arithmetic shift right: vacated bits take the value of the sign bit.
    pub fn signed_shr(&self, amount: u32) -> Bits {
        if !self.sign_bit() {
            return self.shr(amount);
        }
        let kept = self.width.saturating_sub(amount);
        let fill = Bits::ones(self.width).shl(kept);
        self.shr(amount).or(&fill)
    }

    /// Bits `high` down to `low`, both inclusive.
    ///
    /// # Panics
    /// If `high < low`.
    pub fn slice(&self, high: u32, low: u32) -> Bits {
        assert!(high >= low, "slice [{high}:{low}]");
        self.shr(low).resize(high - low + 1)
    }

    /// The value with bits `high` down to `low` replaced by `part`, which has `high - low + 1` bits.
    pub fn with_slice(&self, high: u32, low: u32, part: &Bits) -> Bits {
        assert!(high >= low && high < self.width, "slice [{high}:{low}] of {} bits", self.width);
        let mask = Bits::ones(high - low + 1).resize(self.width).shl(low);
        self.and(&mask.not()).or(&part.resize(self.width).shl(low))
    }

    /// `self` followed by `low`: `self` becomes the most significant part.
    pub fn concat(&self, low: &Bits) -> Bits {
        let width = self.width + low.width;
        self.resize(width).shl(low.width).or(&low.resize(width))
    }

    /// The value zero-extended or truncated to `width` bits.
    pub fn resize(&self, width: u32) -> Bits {
        match &self.repr {
            Repr::Inline(value) => Bits::new(*value, width),
            Repr::Big(value) => Bits::from_big(value, width),
        }
    }

    /// The value sign-extended or truncated to `width` bits.
    pub fn sign_extend(&self, width: u32) -> Bits {
        if width <= self.width || !self.sign_bit() {
            return self.resize(width);
        }
        self.resize(width).or(&Bits::ones(width).shl(self.width))
    }

    /// Compares as unsigned numbers.
    pub fn unsigned_cmp(&self, other: &Bits) -> Ordering {
        match (&self.repr, &other.repr) {
            (Repr::Inline(a), Repr::Inline(b)) => a.cmp(b),
            _ => self.to_big().cmp(&other.to_big()),
        }
    }

    /// Compares as two's complement numbers.
    pub fn signed_cmp(&self, other: &Bits) -> Ordering {
        match (self.sign_bit(), other.sign_bit()) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            _ => self.unsigned_cmp(other),
        }
    }

    /// The value as a two's complement number.
    pub fn to_signed_big(&self) -> BigInt {
        let value = BigInt::from(self.to_big());
        if self.sign_bit() { value - (BigInt::one() << self.width) } else { value }
    }

    /// `value` modulo `2^width`, in two's complement.
    pub fn from_signed_big(value: &BigInt, width: u32) -> Bits {
        let modulus = BigInt::one() << width;
        let wrapped = ((value % &modulus) + &modulus) % &modulus;
        Bits::from_big(wrapped.magnitude(), width)
    }
}
