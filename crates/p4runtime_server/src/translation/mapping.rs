//! Implements a mapping between the controller's values and the data plane's.

use std::collections::HashMap;

use super::error::TranslationError;
use super::{bit_length, canonical, shown};

/// Maximum number of texts with a number, since memory is finite.
const MAX_NAMES: usize = 1 << 20;
/// Maximum length of a text, in bytes.
const MAX_NAME_BYTES: usize = 1024;

/// Pairs of values, each in at most one pair.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValueMapping {
    to_data: HashMap<Vec<u8>, Vec<u8>>,
    to_sdn: HashMap<Vec<u8>, Vec<u8>>,
    closed: bool,
    /// All smaller numbers except 0 are taken.
    next: u64,
}

impl ValueMapping {
    pub(crate) fn bind(&mut self, sdn: &[u8], data: Vec<u8>) -> Result<(), TranslationError> {
        let same = self.to_data.get(sdn) == Some(&data);
        if !same && (self.to_data.contains_key(sdn) || self.to_sdn.contains_key(&data)) {
            return Err(TranslationError::Conflict { sdn: shown(sdn) });
        }
        self.to_sdn.insert(data.clone(), sdn.to_vec());
        self.to_data.insert(sdn.to_vec(), data);
        Ok(())
    }

    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    pub(crate) fn sdn(&self, data: &[u8]) -> Option<&[u8]> {
        self.to_sdn.get(data).map(Vec::as_slice)
    }

    /// Returns the data plane's value for the canonical number `sdn`.
    pub(crate) fn number_to_data(&self, sdn: &[u8], width: u32) -> Result<Vec<u8>, TranslationError> {
        let wide = |data: &[u8]| bit_length(data) > u64::from(width);
        let (sdn_shown, too_wide) = (|| shown(sdn), || TranslationError::TooWide { sdn: shown(sdn), width });
        if let Some(data) = self.to_data.get(sdn) {
            return if wide(data) { Err(too_wide()) } else { Ok(data.clone()) };
        }
        if self.closed {
            return Err(TranslationError::Unknown { sdn: sdn_shown() });
        }
        if wide(sdn) {
            return Err(too_wide());
        }
        match self.to_sdn.get(sdn) {
            Some(name) => Err(TranslationError::Taken { sdn: sdn_shown(), name: shown(name) }),
            None => Ok(sdn.to_vec()),
        }
    }

    /// Returns the data plane's value for a text, and assigns one if there is none.
    pub(crate) fn text_to_data(&mut self, text: &str, width: u32) -> Result<Vec<u8>, TranslationError> {
        if let Some(data) = self.to_data.get(text.as_bytes()) {
            let fits = bit_length(data) <= u64::from(width);
            return if fits { Ok(data.clone()) } else { Err(TranslationError::Exhausted { width }) };
        }
        if self.closed {
            return Err(TranslationError::Unknown { sdn: shown(text.as_bytes()) });
        }
        if text.len() > MAX_NAME_BYTES {
            return Err(TranslationError::TooLong { length: text.len(), limit: MAX_NAME_BYTES });
        }
        if self.to_data.len() >= MAX_NAMES {
            return Err(TranslationError::Exhausted { width });
        }
        let data = self.number_in(text, width).or_else(|| self.free(width));
        let data = data.ok_or(TranslationError::Exhausted { width })?;
        self.bind(text.as_bytes(), data.clone())?;
        Ok(data)
    }

    /// Returns the number that a text denotes, if the text is in the form in which numbers are read back and the
    /// number is free.
    fn number_in(&self, text: &str, width: u32) -> Option<Vec<u8>> {
        let number: u64 = text.parse().ok().filter(|number: &u64| number.to_string() == text)?;
        let data = canonical(&number.to_be_bytes());
        (bit_length(&data) <= u64::from(width) && !self.to_sdn.contains_key(&data)).then_some(data)
    }

    fn free(&mut self, width: u32) -> Option<Vec<u8>> {
        let last = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
        self.next = self.next.max(1);
        while self.next <= last {
            let data = canonical(&self.next.to_be_bytes());
            if !self.to_sdn.contains_key(&data) {
                return Some(data);
            }
            self.next += 1;
        }
        None
    }
}

/// Converts a number of the data plane to a text: in decimal or, beyond 128 bits, in hexadecimal.
pub(crate) fn decimal(data: &[u8]) -> String {
    if data.len() > 16 {
        return shown_hex(data);
    }
    data.iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte)).to_string()
}

fn shown_hex(data: &[u8]) -> String {
    data.iter().fold("0x".to_owned(), |out, byte| out + &format!("{byte:02x}"))
}
