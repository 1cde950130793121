//! From text to raw tokens.

use std::collections::HashSet;
use std::sync::Arc;

use diagnostics::{FileId, Span};

use super::literal::{Flaw, read_int, unescape};
use super::{Spliced, TokenKind};

/// Operators and brackets, longer ones before their beginnings.
const PUNCTUATION: [&str; 57] = [
    "|+|=", "|-|=", "<<=", ">>=", "&&&", "...", "{#}", "|+|", "|-|", "<<", ">>", "&&", "||", "==", "!=", ">=", "<=",
    "++", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "+:", "..", "##", "+", "-", "*", "/", "%", "|", "&", "^",
    "~", "(", ")", "[", "]", "{", "}", "<", ">", "!", ":", ",", "?", ".", "=", ";", "@", "#", "'", "\\",
];

/// A token before preprocessing.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    /// What it is.
    pub kind: RawKind,
    /// Where it stands.
    pub span: Span,
    /// Whether white space or a comment stands before it.
    pub spaced: bool,
    /// What is wrong inside.
    pub flaw: Option<Flaw>,
}

/// The kinds of raw token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RawKind {
    /// A token of the language. `Punct` may be `#`, `##`, `'` or `\`, which only the preprocessor gives a meaning.
    Token(TokenKind),
    /// The end of a line.
    Newline,
    /// The end of the file.
    End,
}

/// Every name of a compilation once, so that tokens share their text.
#[derive(Default)]
pub(crate) struct Words(HashSet<Arc<str>>);

impl Words {
    /// The shared copy of `word`.
    pub fn intern(&mut self, word: &str) -> Arc<str> {
        if let Some(known) = self.0.get(word) {
            return known.clone();
        }
        let word: Arc<str> = word.into();
        self.0.insert(word.clone());
        word
    }
}

/// Reads one file's raw tokens one after the other.
pub(crate) struct Scanner {
    text: Arc<str>,
    /// `None` if the text has no line continuations and is scanned as it is.
    spliced: Option<Spliced<'static>>,
    file: FileId,
    at: usize,
    /// Whether strings end with their line: after one had no end at all, searching again and again would take time
    /// quadratic in the text.
    one_line_strings: bool,
    /// Whether a string goes over several lines, and the quotes behind it come out even, so that it is meant so.
    long_strings: bool,
}

impl Scanner {
    /// A scanner at the beginning of `file`, whose text is `text`.
    pub fn new(file: FileId, text: Arc<str>) -> Self {
        let spliced = match Spliced::new(&text) {
            Spliced { text: std::borrow::Cow::Borrowed(_), .. } => None,
            owned => Some(owned.into_owned()),
        };
        let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Scanner { text, spliced, file, at: start, one_line_strings: false, long_strings: false }
    }

    fn text(&self) -> &str {
        self.spliced.as_ref().map_or(&self.text, |spliced| &spliced.text)
    }

    /// The file this scanner reads.
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

    /// The bytes not yet read.
    fn rest(&self) -> &str {
        &self.text()[self.at..]
    }

    /// The rest of the line as written, without the line end; it is read by this.
    pub fn rest_of_line(&mut self) -> (String, Span) {
        let rest = self.rest();
        let length = rest.find('\n').unwrap_or(rest.len());
        let line = rest[..length].trim().to_owned();
        let span = self.span(self.at, self.at + length);
        self.at += length;
        (line, span)
    }

    /// The file name between `<` and `>` if that is what the line goes on with; it is read by this.
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

    /// Whether the text goes on with `word`, right here.
    pub fn at_word(&self, word: &str) -> bool {
        let rest = self.rest();
        rest.starts_with(word) && word_length(rest) == word.len()
    }

    /// The next raw token. In text that is skipped a string ends with its line, since an apostrophe or quote in prose
    /// must not swallow the `#endif`.
    pub fn next(&mut self, words: &mut Words, skipped: bool) -> Raw {
        let begin = self.at;
        if let Some(flawed) = self.skip_blank() {
            return flawed;
        }
        let spaced = self.at > begin;
        let start = self.at;
        let rest = &self.text()[start..];
        let Some(first) = rest.chars().next() else {
            return Raw { kind: RawKind::End, span: self.span(start, start), spaced, flaw: None };
        };
        let (mut flaw, mut lost_quote, mut long_strings) = (None, false, false);
        let (kind, length) = match first {
            '\n' => (RawKind::Newline, 1),
            'a'..='z' | 'A'..='Z' | '_' => {
                let length = word_length(rest);
                (RawKind::Token(TokenKind::Ident(words.intern(&rest[..length]))), length)
            }
            '0'..='9' => {
                let length = word_length(rest);
                let (literal, found) = read_int(&rest[..length]);
                flaw = found;
                (RawKind::Token(TokenKind::Int(literal)), length)
            }
            '"' => {
                let (inner, length, closed) = string_extent(rest, skipped || self.one_line_strings);
                let goes_on = closed && !skipped && !self.long_strings && rest[..length].contains('\n');
                let is_open = goes_on && ends_in_string(&rest[length..]);
                long_strings = goes_on && !is_open;
                let (inner, length, closed) = if is_open { string_extent(rest, true) } else { (inner, length, closed) };
                lost_quote = !closed && !skipped;
                flaw = (!closed).then_some(Flaw::UnterminatedString);
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
        Raw { kind, span: self.span(start, self.at), spaced, flaw }
    }

    /// Skips white space (but no line end) and comments. A comment without an end is the file's last token.
    fn skip_blank(&mut self) -> Option<Raw> {
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
                        return Some(Raw {
                            kind: RawKind::End,
                            span,
                            spaced: true,
                            flaw: Some(Flaw::UnterminatedComment),
                        });
                    }
                }
            } else {
                return None;
            }
        }
    }
}

/// How many bytes of letters, digits and underscores `text` begins with.
fn word_length(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// For a text that begins with a quote: where its inside ends, how long the token is, and whether it has an end. A
/// string without one reaches to the end of its line.
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

/// Whether a string without an end is in the text. Then a string before it that goes over several lines is the one that
/// lacks its quote: every quote behind it is taken for its counterpart.
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
        let mut words = Words::default();
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
    fn what_has_no_end_is_flawed() {
        let mut words = Words::default();
        let mut scanner = Scanner::new(FileId(0), "x \"abc\ny /* z".into());
        let flaws: Vec<_> = std::iter::from_fn(|| {
            let raw = scanner.next(&mut words, false);
            (raw.kind != RawKind::End || raw.flaw.is_some()).then_some(raw.flaw)
        })
        .take(5)
        .flatten()
        .collect();
        assert_eq!(flaws, [Flaw::UnterminatedString, Flaw::UnterminatedComment]);
    }
}
