//! Implements bit vectors of fixed width, the only kind of value in a running P4 program.
//!
//! The central type is [`Bits`]: an unsigned number together with its width in bits. Every operation keeps the
//! invariant that the number is smaller than `2^width`. Signedness is not a property of a value but of the operation
//! applied to it ([`Bits::signed_cmp`], [`Bits::sign_extend`], ...), as in hardware.
//!
//! Widths up to 128 bits live inline in a `u128`; wider ones use a big integer. This crate knows nothing of P4,
//! packets or programs.

mod arithmetic;
mod format;

use num_bigint::BigUint;
use num_traits::{One, Zero};

/// Width in bits of the widest value that is stored inline.
const INLINE_BITS: u32 = 128;

/// Width in bits of the widest bit vector that any part of Triplane accepts. Front ends reject wider types with a
/// diagnostic.
pub const MAX_WIDTH: u32 = 1 << 16;

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Repr {
    Inline(u128),
    Big(BigUint),
}

/// An unsigned number of `width` bits. Equality compares width and value.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Bits {
    width: u32,
    repr: Repr,
}

fn inline_mask(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1u128 << width) - 1 }
}

impl Bits {
    /// The value 0 of `width` bits (0 to [`MAX_WIDTH`]).
    pub fn zero(width: u32) -> Self {
        Self::new(0, width)
    }

    /// The value with all of its `width` bits set.
    pub fn ones(width: u32) -> Self {
        Self::zero(width).not()
    }

    /// `value` truncated to `width` bits.
    pub fn new(value: u128, width: u32) -> Self {
        debug_assert!(width <= MAX_WIDTH, "width {width} over the limit");
        let repr = if width <= INLINE_BITS {
            Repr::Inline(value & inline_mask(width))
        } else {
            Repr::Big(BigUint::from(value))
        };
        Bits { width, repr }
    }

    /// A single bit.
    pub fn bool(value: bool) -> Self {
        Self::new(u128::from(value), 1)
    }

    /// `value` truncated to `width` bits.
    pub fn from_big(value: &BigUint, width: u32) -> Self {
        if width <= INLINE_BITS {
            let low = value & BigUint::from(inline_mask(width));
            let digits = low.to_u64_digits();
            let word = |i: usize| u128::from(digits.get(i).copied().unwrap_or(0));
            Bits { width, repr: Repr::Inline(word(0) | word(1) << 64) }
        } else {
            let mask = (BigUint::one() << width) - BigUint::one();
            Bits { width, repr: Repr::Big(value & mask) }
        }
    }

    /// The big-endian number in `bytes`, truncated to `width` bits.
    pub fn from_be_bytes(bytes: &[u8], width: u32) -> Self {
        if width <= INLINE_BITS {
            let value = bytes.iter().rev().take(16).rev().fold(0u128, |acc, b| acc << 8 | u128::from(*b));
            Self::new(value, width)
        } else {
            Self::from_big(&BigUint::from_bytes_be(bytes), width)
        }
    }

    /// Reads numbers of these widths, one after the other, each in whole bytes, big-endian. `None` if `bytes` has
    /// another length.
    pub fn list_from_be_bytes(widths: &[u32], mut bytes: &[u8]) -> Option<Vec<Self>> {
        let mut numbers = Vec::with_capacity(widths.len());
        for width in widths {
            let (number, rest) = bytes.split_at_checked(width.div_ceil(8) as usize)?;
            numbers.push(Bits::from_be_bytes(number, *width));
            bytes = rest;
        }
        bytes.is_empty().then_some(numbers)
    }

    /// Reads the `width` bits that begin `bit_offset` bits into `data`, most significant bit first (network order).
    ///
    /// # Panics
    /// If `data` is shorter than `bit_offset + width` bits; callers check lengths first.
    pub fn read(data: &[u8], bit_offset: usize, width: u32) -> Self {
        if width == 0 {
            return Self::zero(0);
        }
        let first = bit_offset / 8;
        let end = bit_offset + width as usize;
        let last = end.div_ceil(8);
        let spare = (last * 8 - end) as u32;
        let bytes = &data[first..last];
        if bytes.len() <= 16 {
            let value = bytes.iter().fold(0u128, |acc, b| acc << 8 | u128::from(*b));
            Self::new(value >> spare, width)
        } else {
            Self::from_big(&(BigUint::from_bytes_be(bytes) >> spare), width)
        }
    }

    /// Writes the value into `data` at `bit_offset`, most significant bit first. The surrounding bits keep their
    /// values.
    ///
    /// # Panics
    /// If `data` is shorter than `bit_offset + width` bits.
    pub fn write(&self, data: &mut [u8], bit_offset: usize) {
        let width = self.width as usize;
        if width == 0 {
            return;
        }
        let end = bit_offset + width;
        let (first, last) = (bit_offset / 8, end.div_ceil(8));
        let spare = last * 8 - end;
        let bytes = (self.resize(self.width + spare as u32).shl(spare as u32)).to_be_bytes();
        let slots = last - first;
        for i in 0..slots {
            let mut mask = 0xffu8;
            if i == 0 {
                mask &= 0xff >> (bit_offset % 8);
            }
            if i == slots - 1 {
                mask &= 0xffu8 << spare;
            }
            let from_end = slots - 1 - i;
            let byte = bytes.len().checked_sub(1 + from_end).map_or(0, |at| bytes[at]);
            let slot = &mut data[first + i];
            *slot = (*slot & !mask) | (byte & mask);
        }
    }

    /// The width in bits.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Whether every bit is clear.
    pub fn is_zero(&self) -> bool {
        match &self.repr {
            Repr::Inline(value) => *value == 0,
            Repr::Big(value) => value.is_zero(),
        }
    }

    /// Whether any bit is set: the truth of a one-bit value.
    pub fn is_true(&self) -> bool {
        !self.is_zero()
    }

    /// The low 128 bits.
    pub fn low_u128(&self) -> u128 {
        match &self.repr {
            Repr::Inline(value) => *value,
            Repr::Big(value) => {
                let mut digits = value.iter_u64_digits();
                let low = u128::from(digits.next().unwrap_or(0));
                low | u128::from(digits.next().unwrap_or(0)) << 64
            }
        }
    }

    /// The low 64 bits.
    pub fn low_u64(&self) -> u64 {
        self.low_u128() as u64
    }

    /// Returns bits `64 * index` to `64 * index + 63` as a word, counted from the least significant bit; 0 beyond the
    /// width.
    pub fn word(&self, index: usize) -> u64 {
        match &self.repr {
            Repr::Inline(value) => match index {
                0 => *value as u64,
                1 => (*value >> 64) as u64,
                _ => 0,
            },
            Repr::Big(value) => value.iter_u64_digits().nth(index).unwrap_or(0),
        }
    }

    /// The value with these words, least significant first, truncated to `width` bits.
    pub fn from_words(words: &[u64], width: u32) -> Self {
        if width <= INLINE_BITS {
            let word = |i: usize| u128::from(words.get(i).copied().unwrap_or(0));
            return Self::new(word(0) | word(1) << 64, width);
        }
        let digits = words.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]).collect();
        Self::from_big(&BigUint::new(digits), width)
    }

    /// The value, if it fits in 64 bits.
    pub fn to_u64(&self) -> Option<u64> {
        match &self.repr {
            Repr::Inline(value) => u64::try_from(*value).ok(),
            Repr::Big(value) => u64::try_from(value).ok(),
        }
    }

    /// The value as a big unsigned integer.
    pub fn to_big(&self) -> BigUint {
        match &self.repr {
            Repr::Inline(value) => BigUint::from(*value),
            Repr::Big(value) => value.clone(),
        }
    }

    /// The value in `ceil(width / 8)` bytes, most significant first.
    pub fn to_be_bytes(&self) -> Vec<u8> {
        let len = (self.width as usize).div_ceil(8);
        match &self.repr {
            Repr::Inline(value) => value.to_be_bytes()[16 - len..].to_vec(),
            Repr::Big(value) => {
                let digits = value.to_bytes_be();
                let mut out = vec![0; len.saturating_sub(digits.len())];
                out.extend_from_slice(&digits[digits.len().saturating_sub(len)..]);
                out
            }
        }
    }

    /// Bit `index`, counted from the least significant; false beyond the width.
    pub fn bit(&self, index: u32) -> bool {
        match &self.repr {
            Repr::Inline(value) => index < 128 && value >> index & 1 == 1,
            Repr::Big(value) => value.bit(u64::from(index)),
        }
    }

    /// The most significant bit, the sign of a two's complement number; false for width 0.
    pub fn sign_bit(&self) -> bool {
        self.width > 0 && self.bit(self.width - 1)
    }
}

#[cfg(test)]
mod tests;
