//! Reads values and checks them against a width in bits.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use bits::Bits;
use jsonc_parser::ast::Value;
use num_bigint::{BigInt, BigUint};
use num_traits::{Num, Signed};

use crate::json::FileReader;

/// A text that is not a value of a width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueError {
    /// The JSON value is neither a number nor a string.
    NotAScalar,
    /// The text is neither a number nor an address; its first 40 characters.
    NotANumberOrAddress(String),
    /// The text has colons, and is neither a MAC nor an IPv6 address.
    NotAnAddress(String),
    /// The number is negative, and lower than the lowest signed value.
    TooLow {
        /// The first 40 characters of the number.
        number: String,
        /// The lowest value.
        lowest: BigInt,
    },
    /// The number is higher than the highest value.
    TooHigh {
        /// The first 40 characters of the number.
        number: String,
        /// The highest value.
        highest: Bits,
    },
    /// The address is wider than the value.
    WideAddress {
        /// The address.
        address: String,
        /// The kind of address: "a MAC address".
        kind: &'static str,
        /// The number of bits of the address.
        bits: u32,
    },
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueError::NotAScalar => f.write_str("a value must be a number or a string"),
            ValueError::NotANumberOrAddress(text) => write!(f, "`{text}` is not a number or an address"),
            ValueError::NotAnAddress(text) => write!(f, "`{text}` is neither a MAC nor an IPv6 address"),
            ValueError::TooLow { number, lowest } => write!(f, "{number} does not fit; the minimum is {lowest}"),
            ValueError::TooHigh { number, highest } => {
                write!(f, "{number} does not fit; the maximum is {highest:#x}")
            }
            ValueError::WideAddress { address, kind, bits } => write!(f, "`{address}` is {kind} of {bits} bits"),
        }
    }
}

impl std::error::Error for ValueError {}

/// Returns the term for an object in messages. Most objects have no mistake, and their terms are never made.
pub(crate) type Term<'a> = &'a dyn Fn() -> String;

/// Reads a value of `width` bits for the object `what`, or reports an error.
pub(crate) fn read(reader: &mut FileReader<'_>, value: &Value<'_>, width: u32, what: Term<'_>) -> Option<Bits> {
    let span = reader.span(value);
    let result = match value {
        Value::NumberLit(number) => text(number.value, width),
        Value::StringLit(string) => text(&string.value, width),
        Value::BooleanLit(boolean) => Ok(Bits::new(u128::from(boolean.value), width)),
        Value::Array(array) if array.elements.len() == 1 => return read(reader, &array.elements[0], width, what),
        _ => Err(ValueError::NotAScalar),
    };
    result
        .map_err(|reason| reader.error("entries-value", span, format!("{} is {width} bits wide: {reason}", what())))
        .ok()
}

/// Renders a value in the notation of a text: as an address if the text is one, else in hexadecimal.
pub(crate) fn in_notation_of(text: &str, value: &Bits) -> String {
    let bytes = value.to_be_bytes();
    let octets = <[u8; 4]>::try_from(&*bytes).ok().filter(|_| text.contains('.'));
    let segments = <[u8; 16]>::try_from(&*bytes).ok();
    match (octets, segments) {
        (Some(octets), _) => Ipv4Addr::from(octets).to_string(),
        (None, Some(segments)) if text.contains(':') => Ipv6Addr::from(segments).to_string(),
        (None, None) if text.contains(':') && bytes.len() == 6 => {
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
        }
        _ => format!("{value:#x}"),
    }
}

/// Parses a number or an address as a value of `width` bits.
///
/// # Errors
/// If the text is not a number or address, or does not fit.
pub fn text(text: &str, width: u32) -> Result<Bits, ValueError> {
    let text = text.trim();
    if let Some(bytes) = mac(text) {
        return address(&bytes, width, text, "a MAC address");
    }
    if let Ok(ip) = text.parse::<Ipv4Addr>() {
        return address(&ip.octets(), width, text, "an IPv4 address");
    }
    if text.contains(':') {
        return match text.parse::<Ipv6Addr>() {
            Ok(ip) => address(&ip.octets(), width, text, "an IPv6 address"),
            Err(_) => Err(ValueError::NotAnAddress(text.to_owned())),
        };
    }
    integer(text, width)
}

/// Maximum length of a number in characters: enough for the widest value in binary.
const MAX_DIGITS: usize = bits::MAX_WIDTH as usize + 8;

fn integer(text: &str, width: u32) -> Result<Bits, ValueError> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        _ => (10, digits),
    };
    let shown = || text.chars().take(40).collect::<String>();
    let plain = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    if !plain || digits.len() > MAX_DIGITS {
        return Err(ValueError::NotANumberOrAddress(shown()));
    }
    if let (false, Ok(value)) = (negative, u64::from_str_radix(digits, radix)) {
        let bits = u64::BITS - value.leading_zeros();
        if bits <= width {
            return Ok(Bits::new(u128::from(value), width));
        }
    }
    let magnitude = BigUint::from_str_radix(digits, radix).expect("these are digits of the radix");
    if negative {
        let value = -BigInt::from(magnitude);
        let lowest = -(BigInt::from(1) << width.saturating_sub(1));
        if value < lowest {
            return Err(ValueError::TooLow { number: shown(), lowest });
        }
        debug_assert!(!value.is_positive());
        return Ok(Bits::from_signed_big(&value, width));
    }
    if magnitude.bits() > u64::from(width) {
        return Err(ValueError::TooHigh { number: shown(), highest: Bits::ones(width) });
    }
    Ok(Bits::from_big(&magnitude, width))
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let mut bytes = [0; 6];
    let mut parts = text.split([':', '-']);
    for byte in &mut bytes {
        let part = parts.next().filter(|part| part.len() == 2 && part.chars().all(|c| c.is_ascii_hexdigit()))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(bytes)
}

/// Returns an address as a value: it has a width of its own and is zero-extended to a wider field, as numbers are.
fn address(bytes: &[u8], width: u32, text: &str, kind: &'static str) -> Result<Bits, ValueError> {
    let own = bytes.len() as u32 * 8;
    if width < own {
        return Err(ValueError::WideAddress { address: text.to_owned(), kind, bits: own });
    }
    Ok(Bits::from_be_bytes(bytes, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_addresses() {
        assert_eq!(text("10", 8), Ok(Bits::new(10, 8)));
        assert_eq!(text("0xff", 8), Ok(Bits::new(255, 8)));
        assert_eq!(text("0b101", 3), Ok(Bits::new(5, 3)));
        assert_eq!(text("-1", 8), Ok(Bits::new(255, 8)));
        assert_eq!(text("-128", 8), Ok(Bits::new(128, 8)));
        assert_eq!(text("10.0.1.1", 32), Ok(Bits::new(0x0a00_0101, 32)));
        assert_eq!(text("08:00:00:00:01:11", 48), Ok(Bits::new(0x0800_0000_0111, 48)));
        assert_eq!(text("::1", 128), Ok(Bits::new(1, 128)));
    }

    #[test]
    fn values_are_shown_in_the_notation_of_their_text() {
        for (written, width, shown) in [
            ("10.0.1.0", 32, "10.0.1.0"),
            ("0xa000100", 32, "0xa000100"),
            ("167772416", 32, "0xa000100"),
            ("08:00:00:00:01:00", 48, "08:00:00:00:01:00"),
            ("2001:db8::", 128, "2001:db8::"),
            ("10.0.1.0", 40, "0xa000100"),
        ] {
            assert_eq!(in_notation_of(written, &text(written, width).unwrap()), shown);
        }
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        for (bad, width) in [("256", 8), ("-129", 8), ("10.0.0.1", 16), ("1.5", 8), ("", 8), ("0x", 8), ("1e9", 64)] {
            assert!(text(bad, width).is_err(), "{bad:?} in {width} bits");
        }
        let why = |bad, width| text(bad, width).unwrap_err().to_string();
        assert_eq!(why("256", 8), "256 does not fit; the maximum is 0xff");
        assert_eq!(why("-129", 8), "-129 does not fit; the minimum is -128");
        assert_eq!(why("10.0.0.1", 16), "`10.0.0.1` is an IPv4 address of 32 bits");
        assert_eq!(why("1:2", 48), "`1:2` is neither a MAC nor an IPv6 address");
        assert_eq!(why("1e9", 64), "`1e9` is not a number or an address");
    }
}
