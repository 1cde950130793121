//! Computes the checksums and hashes of v1model, one bit at a time. This is independent of the implementation in
//! `engine`, which it checks.

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use crate::control_plane::CrcParameters;
use crate::number::Number;
use crate::packet::to_bytes;

/// CRC-16/ARC
pub const CRC16: CrcParameters =
    CrcParameters { width: 16, polynomial: 0x8005, initial: 0, final_xor: 0, reflect_in: true, reflect_out: true };

/// CRC-32 of IEEE 802.3
pub const CRC32: CrcParameters = CrcParameters {
    width: 32,
    polynomial: 0x04c1_1db7,
    initial: 0xffff_ffff,
    final_xor: 0xffff_ffff,
    reflect_in: true,
    reflect_out: true,
};

/// Returns the RFC 1071 checksum of the data, zero-padded to whole 16-bit words.
pub fn internet_checksum(data: &[bool]) -> Number {
    let mut sum = 0u64;
    for word in words(data) {
        sum += u64::from(word);
        if sum > 0xffff {
            sum = (sum & 0xffff) + 1;
        }
    }
    Number::new(!sum & 0xffff, 16)
}

/// Returns the XOR of the data's 16-bit words, zero-padded.
pub fn xor16(data: &[bool]) -> Number {
    Number::new(words(data).into_iter().fold(0, |acc, word| acc ^ word).into(), 16)
}

fn words(data: &[bool]) -> Vec<u16> {
    let bytes = to_bytes(data);
    bytes.chunks(2).map(|pair| u16::from(pair[0]) << 8 | u16::from(pair.get(1).copied().unwrap_or(0))).collect()
}

/// Returns the CRC of the data, zero-padded to whole bytes. It is computed one bit at a time.
pub fn crc(parameters: CrcParameters, data: &[bool]) -> Number {
    let width = parameters.width;
    let mut register = u64::from(parameters.initial);
    let top = 1u64 << (width - 1);
    for byte in to_bytes(data) {
        for bit in 0..8 {
            let bit = if parameters.reflect_in { byte >> bit & 1 } else { byte >> (7 - bit) & 1 };
            let feedback = (register & top != 0) != (bit == 1);
            register = (register << 1) & ((1u64 << width) - 1);
            if feedback {
                register ^= u64::from(parameters.polynomial);
            }
        }
    }
    if parameters.reflect_out {
        register = (0..width).fold(0, |reversed, bit| reversed << 1 | (register >> bit & 1));
    }
    Number::new((register ^ u64::from(parameters.final_xor)) & ((1u64 << width) - 1), width)
}

/// Returns `base + hash % max`, or `base` if `max` is 0, truncated to `width` bits.
pub fn reduce_to_range(hash: &Number, base: &Number, max: &Number, width: u32) -> Number {
    let remainder = match max.bits.to_u64() {
        Some(0) => BigInt::default(),
        _ => hash.unsigned() % max.unsigned(),
    };
    Number::wrap(&(base.unsigned() + remainder), width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::to_bits;

    #[test]
    fn catalogued_check_values() {
        let digits = to_bits(b"123456789");
        assert_eq!(crc(CRC16, &digits), Number::new(0xbb3d, 16));
        assert_eq!(crc(CRC32, &digits), Number::new(0xcbf4_3926, 32));
        let xmodem = CrcParameters { polynomial: 0x1021, reflect_in: false, reflect_out: false, ..CRC16 };
        assert_eq!(crc(xmodem, &digits), Number::new(0x31c3, 16));
    }

    #[test]
    fn the_example_of_rfc_1071() {
        let data = to_bits(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(internet_checksum(&data), Number::new(0x220d, 16));
        assert_eq!(xor16(&to_bits(&[0x12, 0x34, 0xff, 0x00, 0x01])), Number::new(0xec34, 16));
    }
}
