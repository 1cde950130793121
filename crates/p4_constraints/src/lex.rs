//! Splits a restriction into tokens.

use num_bigint::BigInt;
use num_traits::Num;

/// Maximum length of a numeral in characters: enough for the widest field in binary.
const MAX_NUMERAL: usize = (1 << 16) + 2;

/// Bytes `start..end` of a restriction's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextRange {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl TextRange {
    /// Returns the smallest range that covers both.
    pub(crate) fn to(self, other: TextRange) -> TextRange {
        TextRange { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A problem in a restriction, and its position in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) at: TextRange,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// Whether the restriction is usable all the same.
    pub(crate) harmless: bool,
}

impl Finding {
    pub(crate) fn error(code: &'static str, at: TextRange, message: impl Into<String>) -> Finding {
        Finding { at, code, message: message.into(), help: None, harmless: false }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Finding {
        self.help = Some(help.into());
        self
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RestrictionToken {
    True,
    False,
    Number(BigInt),
    Word(String),
    /// A text in single quotes, without the quotes.
    Quoted(String),
    /// An operator or other punctuation, as written.
    Sign(&'static str),
    End,
}

impl RestrictionToken {
    /// Returns its description for messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            RestrictionToken::True => "`true`".to_owned(),
            RestrictionToken::False => "`false`".to_owned(),
            RestrictionToken::Number(_) => "a number".to_owned(),
            RestrictionToken::Word(word) => format!("`{word}`"),
            RestrictionToken::Quoted(_) => "a quoted string".to_owned(),
            RestrictionToken::Sign(sign) => format!("`{sign}`"),
            RestrictionToken::End => "the end".to_owned(),
        }
    }
}

/// Longer signs come before their prefixes.
const SIGNS: [&str; 17] = ["&&", "||", "->", "::", "==", "!=", ">=", "<=", "!", "(", ")", ">", "<", ".", ";", "-", ","];

/// Splits `text` into tokens; the last one is [`RestrictionToken::End`].
pub(crate) fn tokens(text: &str) -> Result<Vec<(RestrictionToken, TextRange)>, Finding> {
    let mut out = Vec::new();
    let mut at = 0;
    loop {
        at += blank(&text[at..]).map_err(|offset| {
            let at = TextRange { start: at + offset, end: at + offset + 2 };
            Finding::error("restriction-syntax", at, "unterminated comment").help("end it with `*/`")
        })?;
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else {
            out.push((RestrictionToken::End, TextRange { start: at, end: at }));
            return Ok(out);
        };
        let (token, length) = match first {
            'a'..='z' | 'A'..='Z' | '_' => {
                let word = word(rest);
                let token = match word {
                    "true" => RestrictionToken::True,
                    "false" => RestrictionToken::False,
                    _ => RestrictionToken::Word(word.to_owned()),
                };
                (token, word.len())
            }
            '0'..='9' => {
                let word = word(rest);
                let number = number(word).ok_or_else(|| {
                    let shown: String = word.chars().take(40).collect();
                    Finding::error(
                        "restriction-syntax",
                        TextRange { start: at, end: at + word.len() },
                        format!("`{shown}` is not a number"),
                    )
                    .help("write a number as `42`, `0x2a`, `0o52` or `0b101010`")
                })?;
                (RestrictionToken::Number(number), word.len())
            }
            '\'' => match rest[1..].find('\'') {
                Some(length) => (RestrictionToken::Quoted(rest[1..1 + length].to_owned()), length + 2),
                None => {
                    return Err(Finding::error(
                        "restriction-syntax",
                        TextRange { start: at, end: at + 1 },
                        "unterminated quote",
                    ));
                }
            },
            _ => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => (RestrictionToken::Sign(sign), sign.len()),
                None => {
                    let at = TextRange { start: at, end: at + first.len_utf8() };
                    let finding = Finding::error("restriction-syntax", at, format!("unexpected `{first}`"));
                    return Err(match first {
                        '&' => finding.help("use `&&` for a conjunction"),
                        '|' => finding.help("use `||` for a disjunction"),
                        '=' => finding.help("use `==` for equality"),
                        '+' | '*' | '/' => finding.help("the only arithmetic operator is unary `-`"),
                        _ => finding,
                    });
                }
            },
        };
        out.push((token, TextRange { start: at, end: at + length }));
        at += length;
    }
}

/// Returns the length of the white space and comments that `text` begins with. The error is the offset of a comment
/// that does not end.
pub(crate) fn blank(text: &str) -> Result<usize, usize> {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start();
        if trimmed.len() < rest.len() {
            at += rest.len() - trimmed.len();
        } else if rest.starts_with("//") {
            at += rest.find(['\n', '\r']).unwrap_or(rest.len());
        } else if let Some(body) = rest.strip_prefix("/*") {
            at += body.find("*/").ok_or(at)? + 4;
        } else {
            return Ok(at);
        }
    }
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

fn number(word: &str) -> Option<BigInt> {
    let (radix, digits) = match word.get(..2) {
        Some("0x" | "0X") => (16, &word[2..]),
        Some("0o" | "0O") => (8, &word[2..]),
        Some("0b" | "0B") => (2, &word[2..]),
        Some("0d" | "0D") => (10, &word[2..]),
        _ => (10, word),
    };
    // `from_str_radix` accepts signs and underscores, which the language does not have.
    let plain = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    (plain && digits.len() <= MAX_NUMERAL).then(|| BigInt::from_str_radix(digits, radix).ok()).flatten()
}
