//! Translates matches on translated fields.

use p4runtime_proto::v1::field_match::FieldMatchType;

use super::{TranslationError, ValueForm, ValueTranslator, canonical};

/// Returns the number with `width` bits set.
fn ones(width: u32) -> Vec<u8> {
    let mut bytes = vec![0xff; width.div_ceil(8) as usize];
    if let Some(first) = bytes.first_mut() {
        *first >>= (8 - width % 8) % 8;
    }
    canonical(&bytes)
}

impl ValueTranslator {
    /// Translates a match on a field whose type has `width` bits in the data plane. A match on all bits stays one on
    /// all bits; a match on only some bits cannot be translated.
    ///
    /// # Errors
    /// As [`ValueTranslator::to_data`].
    pub fn field_to_data(
        &mut self,
        type_name: &str,
        field: &mut FieldMatchType,
        width: u32,
    ) -> Result<(), TranslationError> {
        let Some(form) = self.form(type_name) else { return Ok(()) };
        let sdn_width = match form {
            ValueForm::Number(sdn_width) => sdn_width,
            // A text has no bits.
            ValueForm::Text => 0,
        };
        let numeric = form != ValueForm::Text;
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

    /// Translates a match on a field back. It is the inverse of [`ValueTranslator::field_to_data`].
    pub fn field_to_sdn(&self, type_name: &str, field: &mut FieldMatchType) {
        let sdn_width = match self.form(type_name) {
            Some(ValueForm::Number(sdn_width)) => sdn_width,
            Some(ValueForm::Text) => 0,
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
