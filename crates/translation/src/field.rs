//! Matches on translated fields.

use p4runtime_proto::v1::field_match::FieldMatchType;

use crate::{Form, TranslationError, Translator, canonical};

/// The number with `width` bits set.
fn ones(width: u32) -> Vec<u8> {
    let mut bytes = vec![0xff; width.div_ceil(8) as usize];
    if let Some(first) = bytes.first_mut() {
        *first >>= (8 - width % 8) % 8;
    }
    canonical(&bytes)
}

impl Translator {
    /// Translates a match on a field of a type, whose data plane's form has `width` bits. A match that says something of
    /// some bits only cannot be translated; one on all bits stays one on all bits.
    ///
    /// # Errors
    /// As [`Translator::to_data`].
    pub fn field_to_data(
        &mut self,
        type_name: &str,
        field: &mut FieldMatchType,
        width: u32,
    ) -> Result<(), TranslationError> {
        let Some(form) = self.form(type_name) else { return Ok(()) };
        let sdn_width = match form {
            Form::Number(sdn_width) => sdn_width,
            // A text has no bits.
            Form::Text => 0,
        };
        let numeric = form != Form::Text;
        match field {
            FieldMatchType::Exact(exact) => exact.value = self.to_data(type_name, &exact.value, width)?,
            FieldMatchType::Optional(optional) => optional.value = self.to_data(type_name, &optional.value, width)?,
            FieldMatchType::Ternary(ternary) if numeric && canonical(&ternary.mask) == ones(sdn_width) => {
                ternary.value = self.to_data(type_name, &ternary.value, width)?;
                ternary.mask = ones(width);
            }
            FieldMatchType::Lpm(lpm) if numeric && u32::try_from(lpm.prefix_len) == Ok(sdn_width) => {
                lpm.value = self.to_data(type_name, &lpm.value, width)?;
                lpm.prefix_len = i32::try_from(width).unwrap_or(i32::MAX);
            }
            FieldMatchType::Range(range) if numeric && canonical(&range.low) == canonical(&range.high) => {
                range.low = self.to_data(type_name, &range.low, width)?;
                range.high = range.low.clone();
            }
            _ => return Err(TranslationError::SomeBits),
        }
        Ok(())
    }

    /// Translates a match on a field of a type back: the reverse of [`Translator::field_to_data`].
    pub fn field_to_sdn(&self, type_name: &str, field: &mut FieldMatchType) {
        let sdn_width = match self.form(type_name) {
            Some(Form::Number(sdn_width)) => sdn_width,
            Some(Form::Text) => 0,
            None => return,
        };
        match field {
            FieldMatchType::Exact(exact) => exact.value = self.to_sdn(type_name, &exact.value),
            FieldMatchType::Optional(optional) => optional.value = self.to_sdn(type_name, &optional.value),
            FieldMatchType::Ternary(ternary) => {
                ternary.value = self.to_sdn(type_name, &ternary.value);
                ternary.mask = ones(sdn_width);
            }
            FieldMatchType::Lpm(lpm) => {
                lpm.value = self.to_sdn(type_name, &lpm.value);
                lpm.prefix_len = i32::try_from(sdn_width).unwrap_or(i32::MAX);
            }
            FieldMatchType::Range(range) => {
                range.low = self.to_sdn(type_name, &range.low);
                range.high = range.low.clone();
            }
            FieldMatchType::Other(_) => {}
        }
    }
}
