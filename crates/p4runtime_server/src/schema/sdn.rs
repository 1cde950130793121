//! Describes values of types with `@p4runtime_translation`.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::translation::{TranslationError, ValueTranslator};
use bits::Bits;
use p4runtime_proto::bytestring;
use p4runtime_proto::v1::field_match::FieldMatchType;

use crate::status::{Code, Refusal};

/// A translated type of a program. All values of the program share its mapping. It lives as long as the program,
/// since texts are assigned numbers when they are first written.
#[derive(Clone, Debug)]
pub struct Translated {
    translator: Arc<Mutex<ValueTranslator>>,
    type_name: String,
}

impl Translated {
    /// Returns the type with this name; `None` if it is not translated.
    pub(super) fn of(translator: &Arc<Mutex<ValueTranslator>>, type_name: &str) -> Option<Translated> {
        let form = translator.lock().unwrap_or_else(std::sync::PoisonError::into_inner).form(type_name);
        form.map(|_| Translated { translator: translator.clone(), type_name: type_name.to_owned() })
    }

    fn translator(&self) -> MutexGuard<'_, ValueTranslator> {
        self.translator.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Parses a controller's value.
    ///
    /// # Errors
    /// If it has no counterpart in the program.
    pub fn parse(&self, bytes: &[u8], width: u32) -> Result<Bits, Refusal> {
        let data = self.translator().to_data(&self.type_name, bytes, width).map_err(|error| self.refusal(&error))?;
        Ok(bytestring::parse(&data, width)?)
    }

    /// Converts bits of the program to the controller's form.
    pub fn print(&self, value: &Bits) -> Vec<u8> {
        self.translator().to_sdn(&self.type_name, &bytestring::print(value))
    }

    /// Translates a match to the program's values.
    ///
    /// # Errors
    /// If a value has no counterpart in the program, or the match covers only some bits.
    pub fn match_to_data(&self, given: &FieldMatchType, width: u32) -> Result<FieldMatchType, Refusal> {
        let mut data = given.clone();
        let done = self.translator().field_to_data(&self.type_name, &mut data, width);
        done.map(|()| data).map_err(|error| self.refusal(&error))
    }

    /// Translates a match to the controller's values.
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
