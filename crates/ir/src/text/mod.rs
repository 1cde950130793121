//! Defines the vocabulary of the text form. The printer and the reader share it, so they cannot disagree.

mod names;

pub(crate) use names::{Index, NameIndex, NamedValue, field_named, index};

use std::fmt::{self, Write};

use crate::{Algorithm, BinaryOp, MatchKind, SlotKind, Unit};

/// Reserved words. A name that equals one of them is printed in quotes.
pub(crate) const KEYWORDS: &[&str] = &[
    "_",
    "action",
    "action_body",
    "advance",
    "apply",
    "argument",
    "assert",
    "begin_atomic",
    "block",
    "body",
    "branch",
    "bytes",
    "choose",
    "clone",
    "compute",
    "const",
    "const_entries",
    "control",
    "copy",
    "copy_varbit",
    "count",
    "counter",
    "crc16",
    "crc16_custom",
    "crc32",
    "crc32_custom",
    "csum16",
    "default",
    "default_only",
    "digest",
    "direct",
    "egress",
    "else",
    "emit",
    "end_atomic",
    "entry",
    "errors",
    "exact",
    "execute_meter",
    "exit",
    "extract",
    "field_list",
    "from",
    "goto",
    "hash",
    "header",
    "header_type",
    "hit",
    "identity",
    "idle_timeout",
    "in",
    "ingress",
    "keep",
    "key",
    "largest_priority_wins",
    "local",
    "log",
    "lookahead",
    "lpm",
    "metadata",
    "meter",
    "next",
    "optional",
    "packet_length",
    "packets",
    "packets_and_bytes",
    "parser",
    "payload",
    "places",
    "priority",
    "profile",
    "program",
    "random",
    "range",
    "read",
    "read_meter",
    "recirculate",
    "register",
    "reject",
    "resubmit",
    "return",
    "role",
    "select",
    "selector",
    "session",
    "set_invalid",
    "set_valid",
    "sext",
    "signed",
    "size",
    "skip",
    "slot",
    "stack",
    "state",
    "switch",
    "table",
    "table_only",
    "ternary",
    "truncate",
    "valid",
    "value_set",
    "varbit",
    "varbit_eq",
    "varbit_width",
    "verify",
    "write",
    "xor16",
    "zext",
];

/// Whether a character may occur in an unquoted word (apart from dots and indices in brackets).
pub(crate) fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

/// Returns the length in bytes of the unquoted word at the start of `text`, or 0 if there is none. A word consists of
/// letters, digits, `_` and `$`, single dots followed by another such character, and decimal indices in brackets
/// (`hdr.vlan[1]`). It does not begin with a digit.
pub(crate) fn word_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let word_at = |at: usize| bytes.get(at).is_some_and(|b| is_word_char(char::from(*b)));
    let mut at = 0;
    match bytes.first() {
        Some(b'.') if word_at(1) => at = 1,
        Some(b) if is_word_char(char::from(*b)) && !b.is_ascii_digit() => {}
        _ => return 0,
    }
    loop {
        match bytes.get(at) {
            Some(b'.') if word_at(at + 1) => at += 2,
            Some(b'[') => {
                let digits = bytes[at + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
                if digits == 0 || bytes.get(at + 1 + digits) != Some(&b']') {
                    return at;
                }
                at += digits + 2;
            }
            Some(b) if is_word_char(char::from(*b)) => at += 1,
            _ => return at,
        }
    }
}

/// Writes a name: unquoted if it can be read back as one word that is not a keyword, else in quotes.
pub(crate) fn write_name(out: &mut dyn Write, name: &str) -> fmt::Result {
    let bare = !name.is_empty() && word_length(name) == name.len() && KEYWORDS.binary_search(&name).is_err();
    if bare { out.write_str(name) } else { write_string(out, name) }
}

/// Writes a name where no keyword can occur: after `@`, after `role`, or after the dot before a field.
pub(crate) fn write_label(out: &mut dyn Write, name: &str) -> fmt::Result {
    let bare = !name.is_empty() && !name.starts_with('.') && word_length(name) == name.len();
    if bare { out.write_str(name) } else { write_string(out, name) }
}

/// Writes a string in quotes, on one line whatever characters it contains.
pub(crate) fn write_string(out: &mut dyn Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            c if c.is_control() => write!(out, "\\u{{{:x}}}", u32::from(c))?,
            c => out.write_char(c)?,
        }
    }
    out.write_char('"')
}

/// The infix operators; `++`, concatenation, is not among them because it is an expression of its own.
pub(crate) const BINARY: &[(BinaryOp, &str)] = &[
    (BinaryOp::Add, "+"),
    (BinaryOp::Sub, "-"),
    (BinaryOp::Mul, "*"),
    (BinaryOp::Div, "/"),
    (BinaryOp::Rem, "%"),
    (BinaryOp::AddSat, "|+|"),
    (BinaryOp::SubSat, "|-|"),
    (BinaryOp::AddSatSigned, "|+|s"),
    (BinaryOp::SubSatSigned, "|-|s"),
    (BinaryOp::And, "&"),
    (BinaryOp::Or, "|"),
    (BinaryOp::Xor, "^"),
    (BinaryOp::Shl, "<<"),
    (BinaryOp::Shr, ">>"),
    (BinaryOp::ShrSigned, ">>s"),
    (BinaryOp::Eq, "=="),
    (BinaryOp::Ne, "!="),
    (BinaryOp::Lt, "<"),
    (BinaryOp::Le, "<="),
    (BinaryOp::LtSigned, "<s"),
    (BinaryOp::LeSigned, "<=s"),
];

pub(crate) const ALGORITHMS: &[(Algorithm, &str)] = &[
    (Algorithm::Csum16, "csum16"),
    (Algorithm::Crc16, "crc16"),
    (Algorithm::Crc16Custom, "crc16_custom"),
    (Algorithm::Crc32, "crc32"),
    (Algorithm::Crc32Custom, "crc32_custom"),
    (Algorithm::Xor16, "xor16"),
    (Algorithm::Identity, "identity"),
];

pub(crate) const MATCH_KINDS: &[(MatchKind, &str)] = &[
    (MatchKind::Exact, "exact"),
    (MatchKind::Lpm, "lpm"),
    (MatchKind::Ternary, "ternary"),
    (MatchKind::Range, "range"),
    (MatchKind::Optional, "optional"),
    (MatchKind::Selector, "selector"),
];

pub(crate) const UNITS: &[(Unit, &str)] =
    &[(Unit::Packets, "packets"), (Unit::Bytes, "bytes"), (Unit::PacketsAndBytes, "packets_and_bytes")];

pub(crate) const SLOT_KINDS: &[(SlotKind, &str)] =
    &[(SlotKind::Metadata, "metadata"), (SlotKind::Local, "local"), (SlotKind::Argument, "argument")];

/// Returns the word for a member of one of the tables above.
pub(crate) fn word_for<T: PartialEq>(table: &'static [(T, &'static str)], value: &T) -> &'static str {
    table.iter().find(|(member, _)| member == value).map(|(_, word)| *word).expect("every member has a word")
}

/// Returns the member of one of the tables above that a word denotes.
pub(crate) fn meaning_of<T: Copy>(table: &[(T, &'static str)], word: &str) -> Option<T> {
    table.iter().find(|(_, known)| *known == word).map(|(member, _)| *member)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_sorted_for_the_search() {
        assert!(KEYWORDS.windows(2).all(|pair| pair[0] < pair[1]));
        for (_, word) in ALGORITHMS {
            assert!(KEYWORDS.contains(word), "{word}");
        }
    }

    #[test]
    fn words_end_where_they_should() {
        for (text, word) in [
            ("hdr.vlan[1].vid + 1", "hdr.vlan[1].vid"),
            ("x[7:0]", "x"),
            ("a..b", "a"),
            (".b3:", ".b3"),
            ("..s", ""),
            ("9a", ""),
            ("$next ", "$next"),
            ("a.[1]", "a"),
        ] {
            assert_eq!(&text[..word_length(text)], word, "{text}");
        }
    }

    #[test]
    fn odd_names_are_quoted() {
        let show = |name: &str| {
            let mut out = String::new();
            write_name(&mut out, name).unwrap();
            out
        };
        assert_eq!(show("hdr.ipv4"), "hdr.ipv4");
        assert_eq!(show("emit"), "\"emit\"");
        assert_eq!(show(""), "\"\"");
        assert_eq!(show("a b\n\u{7}\""), "\"a b\\n\\u{7}\\\"\"");
    }
}
