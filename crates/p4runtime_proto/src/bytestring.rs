//! Numbers as byte strings: big-endian, as short as possible (specification 8.4).

use bits::Bits;

/// A byte string that is not a number of the width. The specification demands `OUT_OF_RANGE` for both (8.4).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BytestringError {
    /// The string has no bytes.
    #[error("the value is empty; the number 0 is one byte, 00")]
    Empty,
    /// The number has too many bits.
    #[error("{width} bits; the value {} needs {needed}", hex(.bytes))]
    TooWide {
        /// The string.
        bytes: Vec<u8>,
        /// Number of bits that the number has.
        needed: u64,
        /// Number of bits that it may have.
        width: u32,
    },
}

/// Parses an unsigned number. Leading zeros are allowed, so that clients of an older or newer program work; the
/// number must fit.
///
/// # Errors
/// If the string is empty or the number has more than `width` bits.
pub fn parse(bytes: &[u8], width: u32) -> Result<Bits, BytestringError> {
    let significant = trimmed(bytes)?;
    let needed = bit_length(significant);
    if needed > u64::from(width) {
        return Err(too_wide(bytes, needed, width));
    }
    Ok(Bits::from_be_bytes(significant, width))
}

/// Parses a signed number in two's complement.
///
/// # Errors
/// As [`parse`].
pub fn parse_signed(bytes: &[u8], width: u32) -> Result<Bits, BytestringError> {
    if bytes.is_empty() {
        return Err(BytestringError::Empty);
    }
    let given = bytes.len() as u64 * 8;
    if given <= u64::from(width) {
        return Ok(Bits::from_be_bytes(bytes, given as u32).sign_extend(width));
    }
    let needed = signed_bit_length(bytes.iter().copied());
    if needed > u64::from(width.max(1)) {
        return Err(too_wide(bytes, needed, width));
    }
    Ok(Bits::from_be_bytes(&bytes[bytes.len() - width.div_ceil(8) as usize..], width))
}

/// Returns the shortest byte string of an unsigned number.
pub fn print(value: &Bits) -> Vec<u8> {
    shortest(&value.to_be_bytes())
}

/// Returns the shortest byte string of a signed number.
pub fn print_signed(value: &Bits) -> Vec<u8> {
    let bytes = value.sign_extend(value.width().next_multiple_of(8).max(8)).to_be_bytes();
    let redundant = |pair: &[u8]| pair[0] == if pair[1] >> 7 == 1 { 0xff } else { 0 };
    let start = bytes.windows(2).take_while(|pair| redundant(pair)).count();
    bytes[start..].to_vec()
}

/// Removes leading zeros. The number 0 keeps one.
pub fn shortest(bytes: &[u8]) -> Vec<u8> {
    match bytes.iter().position(|byte| *byte != 0) {
        Some(at) => bytes[at..].to_vec(),
        None => vec![0],
    }
}

/// Parses a small unsigned number, such as a port.
///
/// # Errors
/// As [`parse`].
pub fn parse_u32(bytes: &[u8]) -> Result<u32, BytestringError> {
    parse(bytes, 32).map(|value| value.low_u64() as u32)
}

/// Renders a byte string for messages: `0x0a000001`.
pub fn hex(bytes: &[u8]) -> String {
    /// Maximum number of bytes shown.
    const SHOWN: usize = 24;
    let digits: String = bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
    let rest = if bytes.len() > SHOWN { "..." } else { "" };
    format!("0x{digits}{rest}")
}

fn trimmed(bytes: &[u8]) -> Result<&[u8], BytestringError> {
    match bytes.iter().position(|byte| *byte != 0) {
        Some(at) => Ok(&bytes[at..]),
        None if bytes.is_empty() => Err(BytestringError::Empty),
        None => Ok(&[]),
    }
}

fn bit_length(significant: &[u8]) -> u64 {
    significant.first().map_or(0, |first| significant.len() as u64 * 8 - u64::from(first.leading_zeros()))
}

/// Returns the number of bits that a number in two's complement needs, at least 1. Only the first byte that does not
/// repeat the sign is compared bit by bit.
fn signed_bit_length(bytes: impl ExactSizeIterator<Item = u8>) -> u64 {
    let (count, mut sign) = (bytes.len() as u64, None);
    for (at, byte) in bytes.enumerate() {
        let sign = *sign.get_or_insert(if byte >> 7 == 1 { 0xff } else { 0 });
        if byte != sign {
            return (count - at as u64) * 8 - u64::from((byte ^ sign).leading_zeros()) + 1;
        }
    }
    1
}

fn too_wide(bytes: &[u8], needed: u64, width: u32) -> BytestringError {
    BytestringError::TooWide { bytes: bytes.to_vec(), needed, width }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables of section 8.4.
    #[test]
    fn the_specifications_examples_are_read_and_refused_as_it_says() {
        for (width, bytes, value) in [
            (8, &[0x63][..], 99),
            (16, &[0, 0x63], 99),
            (16, &[0x63], 99),
            (16, &[0x30, 0x64], 12388),
            (16, &[0, 0x30, 0x64], 12388),
            (12, &[0, 0x63], 99),
            (12, &[0, 0, 0x63], 99),
        ] {
            assert_eq!(parse(bytes, width).unwrap(), Bits::new(value, width), "{bytes:x?}");
        }
        for (width, bytes) in [
            (8, &[1, 0x63][..]),
            (8, &[]),
            (16, &[1, 0, 0x63]),
            (12, &[0x10, 0x63]),
            (12, &[1, 0, 0x63]),
            (12, &[0, 0x40, 0x63]),
        ] {
            assert!(parse(bytes, width).is_err(), "{bytes:x?}");
        }
        let signed = [
            (8, &[0x63][..], 99i128),
            (8, &[0x9d], -99),
            (8, &[0xff, 0x9d], -99),
            (12, &[0xfd, 0x1d], -739),
            (16, &[0, 0], 0),
            (16, &[0], 0),
        ];
        for (width, bytes, value) in signed {
            assert_eq!(parse_signed(bytes, width).unwrap(), Bits::new(value as u128, width), "{bytes:x?}");
        }
        for (width, bytes) in [(8, &[0, 0x9d][..]), (12, &[0x8d, 0x1d]), (16, &[])] {
            assert!(parse_signed(bytes, width).is_err(), "{bytes:x?}");
        }
        assert_eq!(parse(&[], 8), Err(BytestringError::Empty));
        let needed = |bytes| parse_signed(bytes, 8).unwrap_err().to_string();
        assert_eq!(needed(&[0, 0x9d]), "8 bits; the value 0x009d needs 9");
    }

    /// All strings of two bytes at all widths below theirs, against the definition: every bit above the width equals
    /// the sign bit.
    #[test]
    fn signed_numbers_fit_if_the_bits_above_repeat_the_sign() {
        for value in 0..=u16::MAX {
            let bytes = value.to_be_bytes();
            let needed = (1..16).find(|bits| i32::from(value as i16) >> (bits - 1) == i32::from(value as i16) >> 15);
            let needed = needed.unwrap_or(16);
            for width in 1..16 {
                let parsed = parse_signed(&bytes, width);
                let expected = if needed <= width {
                    Ok(Bits::new(u128::from(value), width))
                } else {
                    Err(too_wide(&bytes, u64::from(needed), width))
                };
                assert_eq!(parsed, expected, "{bytes:x?} in {width} bits");
            }
        }
    }

    #[test]
    fn every_byte_of_a_signed_number_is_read_once() {
        for last in [0, 1, 0x80] {
            let mut read = 0;
            let bytes: Vec<u8> = [vec![0; 1 << 16], vec![last]].concat();
            let needed = signed_bit_length(bytes.iter().map(|byte| {
                read += 1;
                *byte
            }));
            assert_eq!(needed, 1 + u64::from(8 - u8::leading_zeros(last)));
            assert_eq!(read, bytes.len());
        }
    }

    #[test]
    fn printed_byte_strings_are_minimal_and_round_trip() {
        assert_eq!(print(&Bits::new(99, 16)), [0x63]);
        assert_eq!(print(&Bits::zero(48)), [0]);
        assert_eq!(print_signed(&Bits::new(-99i128 as u128, 16)), [0x9d]);
        assert_eq!(print_signed(&Bits::new(-739i128 as u128, 12)), [0xfd, 0x1d]);
        assert_eq!(print_signed(&Bits::new(128, 16)), [0, 0x80]);
        for width in [1u32, 7, 8, 9, 12, 16, 31, 64] {
            for value in [0u128, 1, 2, 99, 0x7f, 0x80, 0xff, 0x100, u128::MAX, u128::MAX - 128] {
                let bits = Bits::new(value, width);
                assert_eq!(parse(&print(&bits), width).unwrap(), bits);
                assert_eq!(parse_signed(&print_signed(&bits), width).unwrap(), bits);
            }
        }
    }
}
