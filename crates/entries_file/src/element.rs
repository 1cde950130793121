//! Parses one element of an array, fast if it has the usual form.

use std::borrow::Cow;

use jsonc_parser::ast::{Array, BooleanLit, NumberLit, Object, ObjectProp, ObjectPropName, StringLit, Value};
use jsonc_parser::common::Range;

use crate::json;

/// Maximum nesting depth of an element of the usual form.
const MAX_DEPTH: u32 = 16;

/// Parses the text of an element; `None` if it has a syntax error.
pub(crate) fn parse(text: &str) -> Option<Value<'_>> {
    whole(text).or_else(|| json::parse(text).ok().flatten())
}

/// Parses a text that is an object of the form that [`plain`] accepts.
fn whole(text: &str) -> Option<Value<'_>> {
    plain(text.as_bytes()).filter(|(_, len)| *len == text.len()).map(|(value, _)| value)
}

/// Parses an object at the start of a text and returns it with its length. The object is without comments, escapes,
/// trailing commas, and numbers other than decimal integers; its value is that of the general parser. `None` if it has
/// any of these, does not end, or has an error.
pub(crate) fn plain(bytes: &[u8]) -> Option<(Value<'_>, usize)> {
    let mut parser = PlainParser { bytes, at: 0 };
    if parser.peek() != Some(b'{') {
        return None;
    }
    let object = parser.object(0)?;
    Some((Value::Object(object), parser.at))
}

struct PlainParser<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl<'t> PlainParser<'t> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Skips a byte, if it is the next one.
    fn skip(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self, depth: u32) -> Option<Value<'t>> {
        let start = self.at;
        match self.peek()? {
            b'"' => self.string().map(Value::StringLit),
            b'{' if depth < MAX_DEPTH => self.object(depth).map(Value::Object),
            b'[' if depth < MAX_DEPTH => self.array(depth).map(Value::Array),
            b'0'..=b'9' => self.number().map(Value::NumberLit),
            b't' => self.word("true").map(|range| Value::BooleanLit(BooleanLit { range, value: true })),
            b'f' => self.word("false").map(|range| Value::BooleanLit(BooleanLit { range, value: false })),
            _ => {
                self.at = start;
                None
            }
        }
    }

    /// Returns text in which no byte is above 0x7e.
    fn text(&self, from: usize, to: usize) -> &'t str {
        std::str::from_utf8(&self.bytes[from..to]).expect("ASCII is UTF-8")
    }

    fn word(&mut self, word: &str) -> Option<Range> {
        let start = self.at;
        self.at += word.len();
        let is_whole = self.bytes[start..].starts_with(word.as_bytes()) && self.ends_here();
        is_whole.then(|| Range::new(start, self.at))
    }

    /// Whether no letter, digit or other sign follows that could belong to a number or word.
    fn ends_here(&self) -> bool {
        matches!(self.peek(), None | Some(b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r'))
    }

    fn number(&mut self) -> Option<NumberLit<'t>> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        let value = self.text(start, self.at);
        let is_plain = (value == "0" || !value.starts_with('0')) && self.ends_here();
        is_plain.then(|| NumberLit { range: Range::new(start, self.at), value })
    }

    fn string(&mut self) -> Option<StringLit<'t>> {
        let start = self.at;
        let rest = &self.bytes[start + 1..];
        let len = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f | 0x7f..))?;
        if rest[len] != b'"' {
            return None;
        }
        self.at = start + len + 2;
        let value = Cow::Borrowed(self.text(start + 1, self.at - 1));
        Some(StringLit { range: Range::new(start, self.at), value })
    }

    fn array(&mut self, depth: u32) -> Option<Array<'t>> {
        let start = self.at;
        self.at += 1;
        let mut elements = Vec::with_capacity(2);
        self.skip_blank();
        if !self.skip(b']') {
            loop {
                elements.push(self.value(depth + 1)?);
                self.skip_blank();
                if self.skip(b']') {
                    break;
                }
                if !self.skip(b',') {
                    return None;
                }
                self.skip_blank();
            }
        }
        Some(Array { range: Range::new(start, self.at), elements })
    }

    fn object(&mut self, depth: u32) -> Option<Object<'t>> {
        let start = self.at;
        self.at += 1;
        let mut properties = Vec::with_capacity(4);
        self.skip_blank();
        if !self.skip(b'}') {
            loop {
                if self.peek() != Some(b'"') {
                    return None;
                }
                let name = self.string()?;
                let begin = name.range.start;
                self.skip_blank();
                if !self.skip(b':') {
                    return None;
                }
                self.skip_blank();
                let value = self.value(depth + 1)?;
                let range = Range::new(begin, self.at);
                properties.push(ObjectProp { range, name: ObjectPropName::String(name), value });
                self.skip_blank();
                if self.skip(b'}') {
                    break;
                }
                if !self.skip(b',') {
                    return None;
                }
                self.skip_blank();
            }
        }
        Some(Object { range: Range::new(start, self.at), properties })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: &str = r#"{ "table": "I.t", "match": { "a.b": ["10.0.0.0", 8], "c" : 7 } , "empty": {}, "none": [ ],
        "yes":true,"no":false, "deep": [[[[{"x": [0]}]]]], "text": "a b" }"#;

    /// Bytes that replace others.
    const SIGNS: &[u8] = b"{}[]\",:0123456789-+.xetrufalsn/*\\\n\t ";

    #[test]
    fn the_usual_form_is_parsed_as_by_the_general_parser() {
        assert_eq!(whole(USUAL), json::parse(USUAL).unwrap());
        let more = format!("{USUAL}, {{");
        let (value, len) = plain(more.as_bytes()).unwrap();
        assert_eq!((Some(value), len), (whole(USUAL), USUAL.len()));
        assert!((0..USUAL.len()).all(|len| plain(&USUAL.as_bytes()[..len]).is_none()), "it does not end");
    }

    #[test]
    fn a_changed_text_is_parsed_as_by_the_general_parser_or_left_to_it() {
        let mut random = rng::SplitMix64::new(3);
        let mut parsed = 0;
        for _ in 0..20_000 {
            let mut bytes = USUAL.as_bytes().to_vec();
            for _ in 0..1 + random.below(3) {
                let at = random.below(bytes.len() as u64) as usize;
                match random.below(3) {
                    0 => bytes[at] = SIGNS[random.below(SIGNS.len() as u64) as usize],
                    1 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, bytes[random.below(bytes.len() as u64) as usize]),
                }
            }
            let text = String::from_utf8(bytes).unwrap();
            if let Some(value) = whole(&text) {
                assert_eq!(json::parse(&text).ok().flatten(), Some(value), "{text}");
                parsed += 1;
            }
        }
        assert!(parsed > 1000, "only {parsed} of the texts were parsed");
    }
}
