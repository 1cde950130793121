//! Translates values between controller and data plane: `@p4runtime_translation`.
//!
//! A type with that annotation has two forms (P4Runtime specification, sections on user-defined types and on the
//! translation of metadata). The controller's form is a number of some width or a text; the data plane's is the
//! `bit<w>` of the program. The annotation's URI names the mapping between them; types with one URI share it. A
//! [`ValueTranslator`] is made from a P4Info and holds the mappings:
//!
//! - Pairs that the switch's configuration fixes ([`ValueTranslator::bind`]): the names of its ports, the reserved
//!   number of the CPU port. A mapping can be [closed](ValueTranslator::close); then it has no other pairs.
//! - A number without a pair maps to itself, if it fits into the data plane's width.
//! - A text without a pair is assigned a number when it is first written: the number that it denotes in decimal, if
//!   that is free, else the smallest free number from 1 on (0 is the value of metadata that was never written). It
//!   keeps the number until another program is loaded, so that what is read back is what was written.
//!
//! A number of the data plane without a pair is read as itself: as a number, or as a text in decimal.
//!
//! Byte strings are canonical where they leave this module: big-endian, as short as possible. It knows the messages
//! of match fields, and nothing of switches.

mod error;
mod field;
mod mapping;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use p4runtime_proto::config::P4Info;
use p4runtime_proto::config::p4_new_type_spec::Representation;
use p4runtime_proto::config::p4_new_type_translation::SdnType;

pub use error::TranslationError;
use mapping::ValueMapping;

/// The controller's form of a type's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueForm {
    /// Numbers of this many bits.
    Number(u32),
    /// Texts.
    Text,
}

/// The translated types of a program, and their mappings.
#[derive(Clone, Debug, Default)]
pub struct ValueTranslator {
    types: BTreeMap<String, (ValueForm, String)>,
    mappings: BTreeMap<String, ValueMapping>,
}

impl ValueTranslator {
    /// Reads the translated types of `info`.
    pub fn new(info: &P4Info) -> ValueTranslator {
        let mut translator = ValueTranslator::default();
        for (name, spec) in info.type_info.iter().flat_map(|types| &types.new_types) {
            let Some(Representation::TranslatedType(translated)) = &spec.representation else { continue };
            let form = match &translated.sdn_type {
                Some(SdnType::SdnBitwidth(width)) => ValueForm::Number(u32::try_from(*width).unwrap_or(0)),
                Some(SdnType::SdnString(_)) => ValueForm::Text,
                None => continue,
            };
            translator.mappings.entry(translated.uri.clone()).or_default();
            translator.types.insert(name.clone(), (form, translated.uri.clone()));
        }
        translator
    }

    /// Whether no type is translated.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// Returns the controller's form of a type; `None` if the type is not translated.
    pub fn form(&self, type_name: &str) -> Option<ValueForm> {
        self.types.get(type_name).map(|(form, _)| *form)
    }

    /// Returns the translated types: name, form and URI.
    pub fn types(&self) -> impl Iterator<Item = (&str, ValueForm, &str)> {
        self.types.iter().map(|(name, (form, uri))| (name.as_str(), *form, uri.as_str()))
    }

    /// Adds the pair of `sdn` (a number's bytes, or a text) and `data` to the mapping with this URI. Mappings that no
    /// type of the program uses are ignored.
    ///
    /// # Errors
    /// If either value is in another pair.
    pub fn bind(&mut self, uri: &str, sdn: &[u8], data: &[u8]) -> Result<(), TranslationError> {
        let Some(mapping) = self.mappings.get_mut(uri) else { return Ok(()) };
        let form = self.types.values().find(|(_, of)| of == uri).map_or(ValueForm::Text, |(form, _)| *form);
        mapping.bind(&key(form, sdn), canonical(data))
    }

    /// Closes the mapping with this URI: it gets no further pairs.
    pub fn close(&mut self, uri: &str) {
        if let Some(mapping) = self.mappings.get_mut(uri) {
            mapping.close();
        }
    }

    /// Translates the controller's value `sdn` of a type to `width` bits of the data plane. Values of types that are
    /// not translated are returned unchanged.
    ///
    /// # Errors
    /// If the value does not exist in the controller's form or in the data plane.
    pub fn to_data(&mut self, type_name: &str, sdn: &[u8], width: u32) -> Result<Vec<u8>, TranslationError> {
        let Some((form, uri)) = self.types.get(type_name) else { return Ok(sdn.to_vec()) };
        let mapping = self.mappings.entry(uri.clone()).or_default();
        match form {
            ValueForm::Number(sdn_width) => {
                if sdn.is_empty() || bit_length(sdn) > u64::from(*sdn_width) {
                    return Err(TranslationError::NotANumber { sdn: shown(sdn), width: *sdn_width });
                }
                mapping.number_to_data(&canonical(sdn), width)
            }
            ValueForm::Text => match std::str::from_utf8(sdn) {
                Ok(text) if !text.is_empty() => mapping.text_to_data(text, width),
                _ => Err(TranslationError::NotAText { sdn: shown(sdn) }),
            },
        }
    }

    /// Translates the data plane's value `data` of a type to the controller's form.
    pub fn to_sdn(&self, type_name: &str, data: &[u8]) -> Vec<u8> {
        let Some((form, uri)) = self.types.get(type_name) else { return data.to_vec() };
        let data = canonical(data);
        match self.mappings.get(uri).and_then(|mapping| mapping.sdn(&data)) {
            Some(sdn) => sdn.to_vec(),
            None if *form == ValueForm::Text => mapping::decimal(&data).into_bytes(),
            None => data,
        }
    }
}

/// Returns the key of a controller's value in a mapping: numbers are canonical.
fn key(form: ValueForm, sdn: &[u8]) -> Vec<u8> {
    match form {
        ValueForm::Number(_) => canonical(sdn),
        ValueForm::Text => sdn.to_vec(),
    }
}

/// Removes leading zeros. The number 0 keeps one.
fn canonical(bytes: &[u8]) -> Vec<u8> {
    match bytes.iter().position(|byte| *byte != 0) {
        Some(at) => bytes[at..].to_vec(),
        None => vec![0],
    }
}

/// Returns the number of bits that a number needs.
fn bit_length(bytes: &[u8]) -> u64 {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.get(zeros).map_or(0, |first| (bytes.len() - zeros) as u64 * 8 - u64::from(first.leading_zeros()))
}

/// Renders a value for messages.
fn shown(bytes: &[u8]) -> String {
    /// Maximum number of bytes shown.
    const SHOWN: usize = 40;
    let (start, rest) = (&bytes[..bytes.len().min(SHOWN)], if bytes.len() > SHOWN { "…" } else { "" });
    match std::str::from_utf8(start) {
        Ok(text) if !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() || c == ' ') => {
            format!("\"{text}{rest}\"")
        }
        _ => start.iter().fold("0x".to_owned(), |out, byte| out + &format!("{byte:02x}")) + rest,
    }
}
