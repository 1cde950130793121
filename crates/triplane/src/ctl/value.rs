//! Converts values as users write and read them, and as byte strings of P4Runtime.

use p4runtime_proto::bytestring;

/// Parses a value of `width` bits into a byte string. A width of 0 marks a text (a translated type).
///
/// # Errors
/// The mistake, as a sentence.
pub fn parse(text: &str, width: i32) -> Result<Vec<u8>, String> {
    match u32::try_from(width) {
        Ok(0) | Err(_) if text.is_empty() => Err("the string is empty".to_owned()),
        Ok(0) | Err(_) => Ok(text.as_bytes().to_vec()),
        Ok(width) => {
            let bits = entries_file::parse_value(text, width).map_err(|error| error.to_string())?;
            // P4Info does not say which fields are signed.
            if text.trim_start().starts_with('-') {
                Err(format!("{text} is negative, but this value is unsigned; the same bits are {bits:#x}"))
            } else {
                Ok(bytestring::print(&bits))
            }
        }
    }
}

/// Parses a signed value into the shortest byte string that keeps its sign.
///
/// # Errors
/// The mistake, as a sentence.
pub fn parse_signed(text: &str, width: i32) -> Result<Vec<u8>, String> {
    let width = u32::try_from(width).unwrap_or(0);
    let bits = entries_file::parse_value(text, width).map_err(|error| error.to_string())?;
    Ok(bytestring::print_signed(&bits))
}

/// Formats a byte string. Its name and width suggest the form.
pub fn show(name: &str, width: i32, bytes: &[u8]) -> String {
    match u32::try_from(width) {
        Ok(width) if width > 0 => match bytestring::parse(bytes, width) {
            Ok(bits) => switch::trace::TracedValue::new(name, &bits).shown,
            Err(_) => bytestring::hex(bytes),
        },
        _ => match std::str::from_utf8(bytes) {
            Ok(text) if text.chars().all(|c| c.is_ascii_graphic() && !",()=\"".contains(c)) => text.to_owned(),
            Ok(text) => format!("{text:?}"),
            Err(_) => bytestring::hex(bytes),
        },
    }
}

/// Formats the byte string of a signed value.
pub fn show_signed(width: i32, bytes: &[u8]) -> String {
    let width = u32::try_from(width).unwrap_or(0);
    match bytestring::parse_signed(bytes, width) {
        Ok(bits) => bits.to_signed_big().to_string(),
        Err(_) => bytestring::hex(bytes),
    }
}

/// Returns the mask of a prefix as a byte string of `width` bits.
pub fn prefix_mask(length: u32, width: u32) -> Vec<u8> {
    let zeros = bits::Bits::ones(width.saturating_sub(length)).resize(width);
    bytestring::print(&zeros.not())
}
