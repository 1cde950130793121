//! Reads the comma-separated items of a specification.

use diagnostics::{FileId, Span};

/// A word, or a key with a value, and their locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecItem<'a> {
    pub key: &'a str,
    pub key_span: Span,
    pub value: Option<&'a str>,
    pub value_span: Span,
}

/// Splits a text into items. Surrounding white space and a trailing comma are ignored.
pub fn items(text: &str, file: FileId) -> Vec<SpecItem<'_>> {
    let mut items = Vec::new();
    let mut at = 0;
    for part in text.split(',') {
        let start = at;
        at += part.len() + 1;
        if part.trim().is_empty() && at > text.len() {
            continue;
        }
        let (key, value) = match part.split_once('=') {
            Some((key, value)) => (key, Some((value, start + key.len() + 1))),
            None => (part, None),
        };
        let (key, key_span) = trimmed(key, start, file);
        let (value, value_span) = match value {
            Some((value, at)) => {
                let (value, span) = trimmed(value, at, file);
                (Some(value), span)
            }
            None => (None, key_span),
        };
        items.push(SpecItem { key, key_span, value, value_span });
    }
    items
}

fn trimmed(part: &str, start: usize, file: FileId) -> (&str, Span) {
    let begin = start + part.len() - part.trim_start().len();
    let text = part.trim();
    (text, Span::new(file, begin as u32, (begin + text.len()) as u32))
}
