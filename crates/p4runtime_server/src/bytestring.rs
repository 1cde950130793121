//! Numbers as byte strings: big-endian, as short as possible (specification 8.4).

use bits::Bits;

use crate::status::{Code, Refusal};

/// Parses an unsigned number. Leading zeros are allowed, so that clients of an older or newer program work; the
/// number must fit.
///
/// # Errors
/// `OUT_OF_RANGE` if the string is empty or the number has more than `width` bits.
pub fn parse(bytes: &[u8], width: u32) -> Result<Bits, Refusal> {
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
pub fn parse_signed(bytes: &[u8], width: u32) -> Result<Bits, Refusal> {
    if bytes.is_empty() {
        return Err(empty());
    }
    let given = bytes.len() as u64 * 8;
    if given <= u64::from(width) {
        return Ok(Bits::from_be_bytes(bytes, given as u32).sign_extend(width));
    }
    // Every bit above the width must equal the sign bit.
    let sign = bytes[0] >> 7;
    let bit = |index: u64| bytes[bytes.len() - 1 - (index / 8) as usize] >> (index % 8) & 1;
    let lowest = u64::from(width.max(1)) - 1;
    if (lowest..given).all(|index| bit(index) == sign) {
        Ok(Bits::from_be_bytes(&bytes[bytes.len() - width.div_ceil(8) as usize..], width))
    } else {
        let needed = (0..given).rev().find(|index| bit(*index) != sign).map_or(1, |index| index + 2);
        Err(too_wide(bytes, needed, width))
    }
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
pub fn parse_u32(bytes: &[u8]) -> Result<u32, Refusal> {
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

fn trimmed(bytes: &[u8]) -> Result<&[u8], Refusal> {
    match bytes.iter().position(|byte| *byte != 0) {
        Some(at) => Ok(&bytes[at..]),
        None if bytes.is_empty() => Err(empty()),
        None => Ok(&[]),
    }
}

fn bit_length(significant: &[u8]) -> u64 {
    significant.first().map_or(0, |first| significant.len() as u64 * 8 - u64::from(first.leading_zeros()))
}

fn empty() -> Refusal {
    Refusal::new(Code::OutOfRange, "the value is empty; the number 0 is one byte, 00")
}

fn too_wide(bytes: &[u8], needed: u64, width: u32) -> Refusal {
    Refusal::new(Code::OutOfRange, format!("{width} bits; the value {} needs {needed}", hex(bytes)))
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
            assert_eq!(parse(bytes, width).unwrap_err().code, Code::OutOfRange, "{bytes:x?}");
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
            assert_eq!(parse_signed(bytes, width).unwrap_err().code, Code::OutOfRange, "{bytes:x?}");
        }
    }

    #[test]
    fn what_is_written_is_the_shortest_and_reads_back() {
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
