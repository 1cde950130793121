//! The scanner: converts text to raw tokens.

use std::collections::HashSet;
use std::sync::Arc;

use diagnostics::{FileId, Span};

use super::literal::{TokenError, read_int, unescape};
use super::{SplicedText, TokenKind};

/// Operators and brackets; longer ones come before their prefixes.
const PUNCTUATION: [&str; 57] = [
    "|+|=", "|-|=", "<<=", ">>=", "&&&", "...", "{#}", "|+|", "|-|", "<<", ">>", "&&", "||", "==", "!=", ">=", "<=",
    "++", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "+:", "..", "##", "+", "-", "*", "/", "%", "|", "&", "^",
    "~", "(", ")", "[", "]", "{", "}", "<", ">", "!", ":", ",", "?", ".", "=", ";", "@", "#", "'", "\\",
];

/// A token before preprocessing.
#[derive(Clone, Debug)]
pub(crate) struct RawToken {
    /// Kind of the token.
    pub kind: RawKind,
    /// Source span.
    pub span: Span,
    /// Whether white space or a comment precedes it.
    pub spaced: bool,
    /// Error inside the token.
    pub error: Option<TokenError>,
}

/// The kinds of raw token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RawKind {
    /// A token of the language. `Punct` may be `#`, `##`, `'` or `\`, which have a meaning only to the preprocessor.
    Token(TokenKind),
    /// The end of a line.
    Newline,
    /// The end of the file.
    End,
}

/// Interner of the names of a compilation, so that tokens share their text.
#[derive(Default)]
pub(crate) struct Interner(HashSet<Arc<str>>);

impl Interner {
    /// Returns the shared copy of `word`.
    pub fn intern(&mut self, word: &str) -> Arc<str> {
        if let Some(known) = self.0.get(word) {
            return known.clone();
        }
        let word: Arc<str> = word.into();
        self.0.insert(word.clone());
        word
    }
}

/// Scans the raw tokens of one file.
pub(crate) struct Scanner {
    text: Arc<str>,
    /// `None` if the text has no line continuations and is scanned directly.
    spliced: Option<SplicedText<'static>>,
    file: FileId,
    at: usize,
    /// Whether strings end with their line. Set after a string without a closing quote, because repeated searches for
    /// one would take time quadratic in the text.
    one_line_strings: bool,
    /// Whether a string spans several lines and the number of quotes after it is even, so it is intended to do so.
    long_strings: bool,
}

impl Scanner {
    /// Creates a scanner at the beginning of `file`, which contains `text`.
    pub fn new(file: FileId, text: Arc<str>) -> Self {
        let spliced = match SplicedText::new(&text) {
            SplicedText { text: std::borrow::Cow::Borrowed(_), .. } => None,
            owned => Some(owned.into_owned()),
        };
        let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Scanner { text, spliced, file, at: start, one_line_strings: false, long_strings: false }
    }

    fn text(&self) -> &str {
        self.spliced.as_ref().map_or(&self.text, |spliced| &spliced.text)
    }

    /// Returns the file that is scanned.
    pub fn file(&self) -> FileId {
        self.file
    }

    fn span(&self, start: usize, end: usize) -> Span {
        let (start, end) = (start as u32, end as u32);
        match &self.spliced {
            None => Span::new(self.file, start, end),
            Some(spliced) => Span::new(self.file, spliced.original(start, false), spliced.original(end, true)),
        }
    }

    /// Returns the text that was not scanned yet.
    fn rest(&self) -> &str {
        &self.text()[self.at..]
    }

    /// Consumes the rest of the line, as written, except the line terminator.
    pub fn rest_of_line(&mut self) -> (String, Span) {
        let rest = self.rest();
        let length = rest.find('\n').unwrap_or(rest.len());
        let line = rest[..length].trim().to_owned();
        let span = self.span(self.at, self.at + length);
        self.at += length;
        (line, span)
    }

    /// Consumes the file name between `<` and `>` if it comes next on the line.
    pub fn angled_name(&mut self) -> Option<(String, Span)> {
        let rest = self.rest();
        let lead = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let inner = rest[lead..].strip_prefix('<')?;
        let length = inner.find(['>', '\n'])?;
        if inner.as_bytes()[length] == b'\n' {
            return None;
        }
        let name = inner[..length].trim().to_owned();
        let start = self.at + lead;
        self.at = start + length + 2;
        Some((name, self.span(start, self.at)))
    }

    /// Whether `word` comes next.
    pub fn at_word(&self, word: &str) -> bool {
        let rest = self.rest();
        rest.starts_with(word) && word_length(rest) == word.len()
    }

    /// Scans the next raw token. In text that is skipped a string ends with its line, because an apostrophe or quote in
    /// prose must not swallow the `#endif`.
    pub fn next(&mut self, words: &mut Interner, skipped: bool) -> RawToken {
        let begin = self.at;
        if let Some(flawed) = self.skip_blank() {
            return flawed;
        }
        let spaced = self.at > begin;
        let start = self.at;
        let rest = &self.text()[start..];
        let Some(first) = rest.chars().next() else {
            return RawToken { kind: RawKind::End, span: self.span(start, start), spaced, error: None };
        };
        let (mut error, mut lost_quote, mut long_strings) = (None, false, false);
        let (kind, length) = match first {
            '\n' => (RawKind::Newline, 1),
            'a'..='z' | 'A'..='Z' | '_' => {
                let length = word_length(rest);
                (RawKind::Token(TokenKind::Ident(words.intern(&rest[..length]))), length)
            }
            '0'..='9' => {
                let length = word_length(rest);
                let (literal, found) = read_int(&rest[..length]);
                error = found;
                (RawKind::Token(TokenKind::Int(literal)), length)
            }
            '"' => {
                let (inner, length, closed) = string_extent(rest, skipped || self.one_line_strings);
                let goes_on = closed && !skipped && !self.long_strings && rest[..length].contains('\n');
                let is_open = goes_on && ends_in_string(&rest[length..]);
                long_strings = goes_on && !is_open;
                let (inner, length, closed) = if is_open { string_extent(rest, true) } else { (inner, length, closed) };
                lost_quote = !closed && !skipped;
                error = (!closed).then_some(TokenError::UnterminatedString);
                (RawKind::Token(TokenKind::String(unescape(&rest[1..inner]).into())), length)
            }
            _ => match PUNCTUATION.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => (RawKind::Token(TokenKind::Punct(sign)), sign.len()),
                None => (RawKind::Token(TokenKind::Unknown(first)), first.len_utf8()),
            },
        };
        self.at = start + length;
        self.one_line_strings |= lost_quote;
        self.long_strings |= long_strings;
        RawToken { kind, span: self.span(start, self.at), spaced, error }
    }

    /// Skips white space (except line terminators) and comments. A comment without an end is the last token of the
    /// file.
    fn skip_blank(&mut self) -> Option<RawToken> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\u{b}', '\u{c}']).len();
            if blank > 0 {
                self.at += blank;
            } else if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(body) = rest.strip_prefix("/*") {
                match body.find("*/") {
                    Some(length) => self.at += length + 4,
                    None => {
                        let span = self.span(self.at, self.at + 2);
                        self.at = self.text().len();
                        return Some(RawToken {
                            kind: RawKind::End,
                            span,
                            spaced: true,
                            error: Some(TokenError::UnterminatedComment),
                        });
                    }
                }
            } else {
                return None;
            }
        }
    }
}

/// Returns the length in bytes of the letters, digits and underscores at the start of `text`.
fn word_length(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// For a text that begins with a quote, returns the end of the string's content, the length of the token, and whether
/// the string has a closing quote. A string without one extends to the end of its line.
fn string_extent(text: &str, one_line: bool) -> (usize, usize, bool) {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return (at, at + 1, true),
            b'\n' if one_line => break,
            _ => {}
        }
    }
    let end = text.find(['\n', '\r']).unwrap_or(text.len());
    (end, end, false)
}

/// Whether the text contains a string without a closing quote. If so, a multi-line string before it is the one that
/// lacks its quote, since every later quote is taken for its counterpart.
fn ends_in_string(mut text: &str) -> bool {
    while let Some(at) = text.find(['"', '/']) {
        text = &text[at..];
        let length = if text.starts_with("//") {
            text.find('\n').unwrap_or(text.len())
        } else if text.starts_with("/*") {
            text.find("*/").map_or(text.len(), |end| end + 2)
        } else if text.starts_with('/') {
            1
        } else {
            match string_extent(text, false) {
                (_, length, true) => length,
                _ => return true,
            }
        };
        text = &text[length..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> String {
        let mut scanner = Scanner::new(FileId(0), text.into());
        let mut words = Interner::default();
        let mut out = Vec::new();
        loop {
            let raw = scanner.next(&mut words, false);
            match raw.kind {
                RawKind::End => return out.join(" "),
                RawKind::Newline => out.push("NL".to_owned()),
                RawKind::Token(kind) => out.push(format!("{kind}")),
            }
        }
    }

    #[test]
    fn the_longest_operator_wins() {
        assert_eq!(scan("a|+|=b>>=c&&&d...e..f{#}+:"), "a |+|= b >>= c &&& d ... e .. f {#} +:");
        for (i, long) in PUNCTUATION.iter().enumerate() {
            for earlier in &PUNCTUATION[..i] {
                assert!(!long.starts_with(earlier), "{earlier} hides {long}");
            }
        }
    }

    #[test]
    fn comments_and_continuations_separate_as_the_specification_says() {
        assert_eq!(scan("bi/**/t // x\nli\\\nne \"a\\\nb\""), "bi t NL line \"ab\"");
    }

    #[test]
    fn unterminated_tokens_are_errors() {
        let mut words = Interner::default();
        let mut scanner = Scanner::new(FileId(0), "x \"abc\ny /* z".into());
        let flaws: Vec<_> = std::iter::from_fn(|| {
            let raw = scanner.next(&mut words, false);
            (raw.kind != RawKind::End || raw.error.is_some()).then_some(raw.error)
        })
        .take(5)
        .flatten()
        .collect();
        assert_eq!(flaws, [TokenError::UnterminatedString, TokenError::UnterminatedComment]);
    }
}
