//! Values as the controller writes them, and as the data plane has them: `@p4runtime_translation`.
//!
//! A type with that annotation has two forms (P4Runtime specification, sections on user-defined types and on the
//! translation of metadata). The controller's is a number of some width or a text; the data plane's is the `bit<w>` of
//! the program. The annotation's URI names the mapping between them; types with one URI share it. A [`Translator`] is
//! made of a P4Info and holds the mappings:
//!
//! - Pairs that the switch's configuration fixes ([`Translator::bind`]): the names of its ports, the reserved number of
//!   the CPU port. A mapping can be [closed](Translator::close); then it has no other pairs.
//! - A number without a pair stands for itself, as far as it fits into the data plane's width.
//! - A text without a pair gets one when it is first written: the number that it is in decimal, if it is one that is
//!   free, else the smallest free number from 1 on (0 is what metadata has that nothing was written to). It keeps it
//!   until another program is loaded, so that what is read back is what was written.
//!
//! A number of the data plane without a pair is read as itself: as a number, or as a text in decimal.
//!
//! Byte strings are canonical where they leave this crate: big-endian, as short as possible. It knows messages for the
//! forms of matches, and nothing of switches.

#![forbid(unsafe_code)]

mod error;
mod field;
mod mapping;

use std::collections::BTreeMap;

use p4runtime_proto::config::P4Info;
use p4runtime_proto::config::p4_new_type_spec::Representation;
use p4runtime_proto::config::p4_new_type_translation::SdnType;

pub use error::TranslationError;
use mapping::Mapping;

/// How the controller writes values of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As numbers of this many bits.
    Number(u32),
    /// As texts.
    Text,
}

/// The translated types of a program, and their mappings.
#[derive(Clone, Debug, Default)]
pub struct Translator {
    types: BTreeMap<String, (Form, String)>,
    mappings: BTreeMap<String, Mapping>,
}

impl Translator {
    /// Reads the types in `info`.
    pub fn new(info: &P4Info) -> Translator {
        let mut translator = Translator::default();
        for (name, spec) in info.type_info.iter().flat_map(|types| &types.new_types) {
            let Some(Representation::TranslatedType(translated)) = &spec.representation else { continue };
            let form = match &translated.sdn_type {
                Some(SdnType::SdnBitwidth(width)) => Form::Number(u32::try_from(*width).unwrap_or(0)),
                Some(SdnType::SdnString(_)) => Form::Text,
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

    /// How the controller writes values of the type with this name; `None` if it is not translated.
    pub fn form(&self, type_name: &str) -> Option<Form> {
        self.types.get(type_name).map(|(form, _)| *form)
    }

    /// The translated types: name, form and URI.
    pub fn types(&self) -> impl Iterator<Item = (&str, Form, &str)> {
        self.types.iter().map(|(name, (form, uri))| (name.as_str(), *form, uri.as_str()))
    }

    /// Fixes that `sdn` (a number's bytes, or a text) stands for `data` in the mapping with this URI. A mapping that no
    /// type of the program uses is left alone.
    ///
    /// # Errors
    /// If either has another partner already.
    pub fn bind(&mut self, uri: &str, sdn: &[u8], data: &[u8]) -> Result<(), TranslationError> {
        let Some(mapping) = self.mappings.get_mut(uri) else { return Ok(()) };
        let form = self.types.values().find(|(_, of)| of == uri).map_or(Form::Text, |(form, _)| *form);
        mapping.bind(&key(form, sdn), canonical(data))
    }

    /// Says that the mapping with this URI has no pairs besides those it has now.
    pub fn close(&mut self, uri: &str) {
        if let Some(mapping) = self.mappings.get_mut(uri) {
            mapping.close();
        }
    }

    /// The data plane's `width` bits for what the controller writes as `sdn` for a value of a type. Values of types that
    /// are not translated come back as they are.
    ///
    /// # Errors
    /// If there is no such value, in the controller's form or in the data plane.
    pub fn to_data(&mut self, type_name: &str, sdn: &[u8], width: u32) -> Result<Vec<u8>, TranslationError> {
        let Some((form, uri)) = self.types.get(type_name) else { return Ok(sdn.to_vec()) };
        let mapping = self.mappings.entry(uri.clone()).or_default();
        match form {
            Form::Number(sdn_width) => {
                if sdn.is_empty() || bit_length(sdn) > u64::from(*sdn_width) {
                    return Err(TranslationError::NotANumber { sdn: shown(sdn), width: *sdn_width });
                }
                mapping.number_to_data(&canonical(sdn), width)
            }
            Form::Text => match std::str::from_utf8(sdn) {
                Ok(text) if !text.is_empty() => mapping.text_to_data(text, width),
                _ => Err(TranslationError::NotAText { sdn: shown(sdn) }),
            },
        }
    }

    /// What the controller reads for a value of a type that is `data` in the data plane.
    pub fn to_sdn(&self, type_name: &str, data: &[u8]) -> Vec<u8> {
        let Some((form, uri)) = self.types.get(type_name) else { return data.to_vec() };
        let data = canonical(data);
        match self.mappings.get(uri).and_then(|mapping| mapping.sdn(&data)) {
            Some(sdn) => sdn.to_vec(),
            None if *form == Form::Text => mapping::decimal(&data).into_bytes(),
            None => data,
        }
    }
}

/// What a mapping keeps for a value of the controller: numbers in one form only.
fn key(form: Form, sdn: &[u8]) -> Vec<u8> {
    match form {
        Form::Number(_) => canonical(sdn),
        Form::Text => sdn.to_vec(),
    }
}

/// A number without the zeros in front; one zero for 0.
fn canonical(bytes: &[u8]) -> Vec<u8> {
    match bytes.iter().position(|byte| *byte != 0) {
        Some(at) => bytes[at..].to_vec(),
        None => vec![0],
    }
}

/// How many bits a number needs.
fn bit_length(bytes: &[u8]) -> u64 {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.get(zeros).map_or(0, |first| (bytes.len() - zeros) as u64 * 8 - u64::from(first.leading_zeros()))
}

/// A value for people.
fn shown(bytes: &[u8]) -> String {
    /// Longer values are cut.
    const SHOWN: usize = 40;
    let (start, rest) = (&bytes[..bytes.len().min(SHOWN)], if bytes.len() > SHOWN { "…" } else { "" });
    match std::str::from_utf8(start) {
        Ok(text) if !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() || c == ' ') => {
            format!("\"{text}{rest}\"")
        }
        _ => start.iter().fold("0x".to_owned(), |out, byte| out + &format!("{byte:02x}")) + rest,
    }
}
