//! Parses numbers of scripts, with a width in bits.

use std::net::Ipv4Addr;

use bits::Bits;
use num_bigint::{BigInt, BigUint};
use num_traits::Num;

/// Maximum length of a number, in characters: enough for the widest value in binary.
const MAX_DIGITS: usize = bits::MAX_WIDTH as usize + 8;

/// Splits a number into base, bits per digit (0 for decimal) and digits.
pub(crate) fn digits(text: &str) -> (u32, u32, &str) {
    match text.get(..2) {
        Some("0x" | "0X") => (16, 4, &text[2..]),
        Some("0b" | "0B") => (2, 1, &text[2..]),
        Some("0o" | "0O") => (8, 3, &text[2..]),
        _ => (10, 0, text),
    }
}

/// Parses a value of `width` bits; a negative one is in two's complement. An IPv4 address (`10.0.0.1`) is a number of
/// 32 bits. The error is a message.
pub(crate) fn read(text: &str, width: u32) -> Result<Bits, String> {
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return read(&u32::from(address).to_string(), width)
            .map_err(|_| format!("{text} does not fit in {width} bits"));
    }
    let (negative, number) = match text.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, text),
    };
    let (base, _, digits) = digits(number);
    let shown: String = text.chars().take(40).collect();
    if !negative && matches!(text, "true" | "false") && width == 1 {
        return Ok(Bits::bool(text == "true"));
    }
    if digits.contains('*') {
        return Err(format!("`{shown}` has wildcard digits, which only ternary and longest-prefix matches allow"));
    }
    let plain = !digits.is_empty() && digits.len() <= MAX_DIGITS && digits.chars().all(|c| c.is_digit(base));
    let magnitude = plain.then(|| BigUint::from_str_radix(digits, base).ok()).flatten();
    let magnitude = magnitude.ok_or_else(|| format!("`{shown}` is not a number"))?;
    if negative {
        let value = -BigInt::from(magnitude);
        let lowest = -(BigInt::from(1) << width.saturating_sub(1));
        if value < lowest {
            return Err(format!("{shown} does not fit in {width} bits"));
        }
        return Ok(Bits::from_signed_big(&value, width));
    }
    if magnitude.bits() > u64::from(width) {
        return Err(format!("{shown} does not fit in {width} bits"));
    }
    Ok(Bits::from_big(&magnitude, width))
}
