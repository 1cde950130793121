//! Constants in rules, and values of fields.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::format::{Padding, ValueKind, max_of};

/// A constant as written, before the compared field is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constant {
    /// `42`.
    Number(u128),
    /// `0x2a`, `0b101010`.
    Bits(u128),
    /// `"GOOGL"`, or a word without quotes.
    Text(String),
    /// `10.0.0.1`.
    Ipv4(u32),
    /// `fe80::1`.
    Ipv6(u128),
    /// `00:11:22:33:44:55`.
    Mac(u64),
}

impl Constant {
    /// Returns a description for messages.
    pub fn describe(&self) -> &'static str {
        match self {
            Constant::Number(_) | Constant::Bits(_) => "a number",
            Constant::Text(_) => "a string",
            Constant::Ipv4(_) => "an IPv4 address",
            Constant::Ipv6(_) => "an IPv6 address",
            Constant::Mac(_) => "an Ethernet address",
        }
    }

    /// Returns the width in bits that the notation implies, if any.
    pub fn width(&self) -> Option<u32> {
        match self {
            Constant::Ipv4(_) => Some(32),
            Constant::Ipv6(_) => Some(128),
            Constant::Mac(_) => Some(48),
            _ => None,
        }
    }

    /// Returns the value of the constant in a field of this kind and width.
    ///
    /// # Errors
    /// If the field has no such value.
    pub fn value(&self, kind: ValueKind, width: u32) -> Result<u128, ConstantMismatch> {
        let fits = |number: u128| {
            if number <= max_of(width) { Ok(number) } else { Err(ConstantMismatch::TooLarge { width }) }
        };
        match (self, kind) {
            (Constant::Text(text), ValueKind::Text(padding)) => pad(text, padding, width),
            (Constant::Number(_), ValueKind::Text(_)) => Err(ConstantMismatch::NotText),
            (Constant::Number(number) | Constant::Bits(number), _) => fits(*number),
            (Constant::Ipv4(address), ValueKind::Ipv4 | ValueKind::Unsigned) if width == 32 => Ok(u128::from(*address)),
            (Constant::Ipv6(address), ValueKind::Ipv6 | ValueKind::Unsigned) if width == 128 => Ok(*address),
            (Constant::Mac(address), ValueKind::Mac | ValueKind::Unsigned) if width == 48 => Ok(u128::from(*address)),
            _ => Err(ConstantMismatch::OtherKind { found: self.describe(), kind, width }),
        }
    }
}

/// Reason that a constant is no value of a field. As text it is a clause that follows the constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstantMismatch {
    /// The number needs more bits than the field has.
    #[error("does not fit in {width} bits: the maximum is {}", max_of(*width))]
    TooLarge {
        /// The width of the field.
        width: u32,
    },
    /// The constant is a number, and the field is text.
    #[error("is a number, expected a string: put it in quotes")]
    NotText,
    /// The string is longer than the field.
    #[error("has {length} bytes, but the field has {max}")]
    TooLong {
        /// The length of the string in bytes.
        length: usize,
        /// The length of the field in bytes.
        max: usize,
    },
    /// The constant is of another kind than the field.
    #[error("is {found}, expected {}", expected(*kind, *width))]
    OtherKind {
        /// The description of the constant.
        found: &'static str,
        /// The kind of the field.
        kind: ValueKind,
        /// The width of the field.
        width: u32,
    },
}

/// Describes the constants that a kind accepts, for messages.
pub fn expected(kind: ValueKind, width: u32) -> String {
    match kind {
        ValueKind::Unsigned => format!("a number of {width} bits"),
        ValueKind::Text(_) => format!("a string of up to {} bytes", width / 8),
        ValueKind::Ipv4 => "an IPv4 address".to_owned(),
        ValueKind::Ipv6 => "an IPv6 address".to_owned(),
        ValueKind::Mac => "an Ethernet address".to_owned(),
    }
}

fn pad(text: &str, padding: Padding, width: u32) -> Result<u128, ConstantMismatch> {
    let (length, max) = (text.len(), (width / 8) as usize);
    let missing = max.checked_sub(length).ok_or(ConstantMismatch::TooLong { length, max })?;
    let fill = vec![padding.byte; missing];
    let bytes = if padding.left { [&fill, text.as_bytes()].concat() } else { [text.as_bytes(), &fill].concat() };
    Ok(bytes.into_iter().fold(0, |value, byte| value << 8 | u128::from(byte)))
}

/// Formats a value as in rules.
pub fn show(value: u128, kind: ValueKind, width: u32) -> String {
    match kind {
        ValueKind::Unsigned => value.to_string(),
        ValueKind::Ipv4 => Ipv4Addr::from(value as u32).to_string(),
        ValueKind::Ipv6 => Ipv6Addr::from(value).to_string(),
        ValueKind::Mac => {
            let bytes = (value as u64).to_be_bytes();
            bytes[2..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
        }
        ValueKind::Text(padding) => {
            let bytes: Vec<u8> = value.to_be_bytes()[16 - (width / 8) as usize..].to_vec();
            let is_text = |byte: &u8| (b' '..=b'~').contains(byte) && *byte != b'"' && *byte != b'\\';
            let text: &[u8] = if padding.left {
                &bytes[bytes.iter().take_while(|byte| **byte == padding.byte).count()..]
            } else {
                &bytes[..bytes.len() - bytes.iter().rev().take_while(|byte| **byte == padding.byte).count()]
            };
            if text.iter().all(is_text) {
                format!("\"{}\"", text.iter().map(|byte| char::from(*byte)).collect::<String>())
            } else {
                format!("{value:#x}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_filled_up_as_the_field_says() {
        let text = |text: &str, padding| Constant::Text(text.to_owned()).value(ValueKind::Text(padding), 32);
        assert_eq!(text("AB", Padding::SPACES), Ok(0x4142_2020));
        assert_eq!(text("AB", Padding { byte: b'0', left: true }), Ok(0x3030_4142));
        assert_eq!(text("ABCD", Padding::ZEROS), Ok(0x4142_4344));
        assert_eq!(text("ABCDE", Padding::ZEROS), Err(ConstantMismatch::TooLong { length: 5, max: 4 }));
        assert_eq!(show(0x4142_2020, ValueKind::Text(Padding::SPACES), 32), "\"AB\"");
        assert_eq!(show(0x4142_0020, ValueKind::Text(Padding::SPACES), 32), "0x41420020");
    }

    #[test]
    fn constants_fit_their_fields() {
        assert_eq!(Constant::Ipv4(1).value(ValueKind::Unsigned, 32), Ok(1));
        let error =
            |constant: Constant, width| constant.value(ValueKind::Unsigned, width).map_err(|why| why.to_string());
        let message = "is an IPv4 address, expected a number of 16 bits";
        assert_eq!(error(Constant::Ipv4(1), 16), Err(message.to_owned()));
        assert_eq!(error(Constant::Number(256), 8), Err("does not fit in 8 bits: the maximum is 255".to_owned()));
        assert_eq!(show(0x0011_2233_4455, ValueKind::Mac, 48), "00:11:22:33:44:55");
        assert_eq!(show(1, ValueKind::Ipv6, 128), "::1");
    }
}
