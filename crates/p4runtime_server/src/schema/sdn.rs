//! Values of types with `@p4runtime_translation`.

use std::sync::{Arc, Mutex, MutexGuard};

use bits::Bits;
use p4runtime_proto::v1::field_match::FieldMatchType;
use translation::{TranslationError, Translator};

use crate::bytestring;
use crate::status::{Code, Refusal};

/// A translated type of a program, with the mapping that all of the program's values share. Texts get their numbers when
/// they are first written, so that the mapping lives as long as the program.
#[derive(Clone, Debug)]
pub struct Translated {
    translator: Arc<Mutex<Translator>>,
    type_name: String,
}

impl Translated {
    /// The type with this name; `None` if it is not translated.
    pub(super) fn of(translator: &Arc<Mutex<Translator>>, type_name: &str) -> Option<Translated> {
        let form = translator.lock().unwrap_or_else(std::sync::PoisonError::into_inner).form(type_name);
        form.map(|_| Translated { translator: translator.clone(), type_name: type_name.to_owned() })
    }

    fn translator(&self) -> MutexGuard<'_, Translator> {
        self.translator.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The program's bits for what a controller writes.
    ///
    /// # Errors
    /// If it stands for nothing in the program.
    pub fn parse(&self, bytes: &[u8], width: u32) -> Result<Bits, Refusal> {
        let data = self.translator().to_data(&self.type_name, bytes, width).map_err(|error| self.refusal(&error))?;
        bytestring::parse(&data, width)
    }

    /// What a controller reads for the program's bits.
    pub fn print(&self, value: &Bits) -> Vec<u8> {
        self.translator().to_sdn(&self.type_name, &bytestring::print(value))
    }

    /// A match as the program has it.
    ///
    /// # Errors
    /// If its values stand for nothing in the program, or it is on some bits only.
    pub fn match_to_data(&self, given: &FieldMatchType, width: u32) -> Result<FieldMatchType, Refusal> {
        let mut data = given.clone();
        let done = self.translator().field_to_data(&self.type_name, &mut data, width);
        done.map(|()| data).map_err(|error| self.refusal(&error))
    }

    /// A match as the controller wrote it.
    pub fn match_to_sdn(&self, mut given: FieldMatchType) -> FieldMatchType {
        self.translator().field_to_sdn(&self.type_name, &mut given);
        given
    }

    fn refusal(&self, error: &TranslationError) -> Refusal {
        let code = match error {
            TranslationError::NotANumber { .. } | TranslationError::TooWide { .. } => Code::OutOfRange,
            TranslationError::Exhausted { .. } => Code::ResourceExhausted,
            _ => Code::InvalidArgument,
        };
        Refusal::new(code, format!("of the translated type `{}`: {error}", self.type_name))
    }
}
