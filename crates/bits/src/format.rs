//! Formats values: `0x2a:8` (value, colon, width); hexadecimal and decimal on request.

use std::fmt;

use crate::Bits;

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}:{}", self.to_big(), self.width())
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::LowerHex for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.to_big(), f)
    }
}

impl Bits {
    /// Parses the form that `Display` writes: `0x2a:8` or `42:8`. Returns `None` for anything else, or if the value
    /// needs more bits than the width.
    pub fn parse(text: &str) -> Option<Bits> {
        let (value, width) = text.split_once(':')?;
        let width: u32 = width.parse().ok().filter(|width| *width <= crate::MAX_WIDTH)?;
        let number = match value.strip_prefix("0x") {
            Some(digits) => num_bigint::BigUint::parse_bytes(digits.as_bytes(), 16)?,
            None => num_bigint::BigUint::parse_bytes(value.as_bytes(), 10)?,
        };
        (number.bits() <= u64::from(width)).then(|| Bits::from_big(&number, width))
    }
}
