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
    /// Offset of the last token if it is a string of several lines.
    last_long: Option<usize>,
}

/// A line of a string that has several, after its first line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StringLine {
    /// A directive. It was not consumed yet.
    Directive,
    /// Text with its line terminator.
    Text(String, Span),
    /// The text before the closing quote.
    Last(String, Span),
    /// The end of the file.
    End,
}

impl Scanner {
    /// Creates a scanner at the beginning of `file`, which contains `text`.
    pub fn new(file: FileId, text: Arc<str>) -> Self {
        let spliced = match SplicedText::new(&text) {
            SplicedText { text: std::borrow::Cow::Borrowed(_), .. } => None,
            owned => Some(owned.into_owned()),
        };
        let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Scanner { text, spliced, file, at: start, one_line_strings: false, long_strings: false, last_long: None }
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
        self.last_long = None;
        if let Some(flawed) = self.skip_blank() {
            return flawed;
        }
        let spaced = self.at > begin;
        let start = self.at;
        let rest = &self.text()[start..];
        let Some(first) = rest.chars().next() else {
            return RawToken { kind: RawKind::End, span: self.span(start, start), spaced, error: None };
        };
        let (mut error, mut lost_quote, mut long_strings, mut last_long) = (None, false, false, None);
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
                last_long = (closed && rest[..length].contains('\n')).then_some(start);
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
        self.last_long = last_long;
        RawToken { kind, span: self.span(start, self.at), spaced, error }
    }

    /// Goes back to the second line of the last token if that is a string of several lines. Returns its first line with
    /// the line terminator, without the quote.
    pub fn reopen_string(&mut self) -> Option<String> {
        let start = self.last_long.take()? + 1;
        let length = self.text()[start..].find('\n')? + 1;
        self.at = start + length;
        Some(self.text()[start..self.at].to_owned())
    }

    /// Consumes the next line of a string of several lines, unless it is a directive. A quote ends the string, except
    /// in a line that is `skipped`.
    pub fn string_line(&mut self, skipped: bool) -> StringLine {
        let rest = self.rest();
        if rest.is_empty() {
            return StringLine::End;
        }
        if directive_name(rest).is_some_and(|name| STRING_DIRECTIVES.contains(&name)) {
            return StringLine::Directive;
        }
        let line = &rest[..rest.find('\n').map_or(rest.len(), |end| end + 1)];
        let quote = if skipped { None } else { closing_quote(line) };
        let text = line[..quote.unwrap_or(line.len())].to_owned();
        let (start, end) = (self.at, self.at + quote.map_or(line.len(), |at| at + 1));
        self.at = end;
        let span = self.span(start, end);
        if quote.is_some() { StringLine::Last(text, span) } else { StringLine::Text(text, span) }
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

/// Directives that are processed inside a string of several lines. Another line that begins with `#` is text.
const STRING_DIRECTIVES: [&str; 13] = [
    "if", "ifdef", "ifndef", "elif", "else", "endif", "define", "undef", "include", "error", "warning", "line",
    "pragma",
];

/// Returns the name of the directive if `text` begins with one.
fn directive_name(text: &str) -> Option<&str> {
    let after = text.trim_start_matches([' ', '\t']).strip_prefix('#')?.trim_start_matches([' ', '\t']);
    Some(&after[..word_length(after)])
}

/// Returns the offset of the first quote in `line` that is not escaped.
fn closing_quote(line: &str) -> Option<usize> {
    let mut escaped = false;
    line.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

/// Returns the length in bytes of the letters, digits and underscores at the start of `text`.
pub(crate) fn word_length(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// For a text that begins with a quote, returns the end of the string's content, the length of the token, and whether
/// the string has a closing quote. A string without one extends to the end of its line. Of the branches of an `#if`
/// inside the string, the first counts.
fn string_extent(text: &str, one_line: bool) -> (usize, usize, bool) {
    let mut escaped = false;
    let mut at = 1;
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return (at, at + 1, true),
            b'\n' if one_line => break,
            b'\n' if matches!(directive_name(&text[at + 1..]), Some("else" | "elif")) => {
                at += other_branches(&text[at + 1..]);
            }
            _ => {}
        }
        at += 1;
    }
    let end = text.find(['\n', '\r']).unwrap_or(text.len());
    (end, end, false)
}

/// Whether the text contains a string without a closing quote. If so, a multi-line string before it is the one that
/// lacks its quote, since every later quote is taken for its counterpart. Of the branches of an `#if`, which may each
/// have the quote that closes a string, the first counts.
fn ends_in_string(text: &str) -> bool {
    let mut at = 0;
    while let Some(next) = text[at..].find(['"', '/', '#']) {
        at += next;
        let rest = &text[at..];
        at += if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with('#') && begins_line(&text[..at]) {
            match directive_name(rest) {
                Some("else" | "elif") => other_branches(rest),
                _ => 1,
            }
        } else if rest.starts_with(['/', '#']) {
            1
        } else {
            match string_extent(rest, false) {
                (_, length, true) => length,
                _ => return true,
            }
        };
    }
    false
}

/// Whether a line begins after `before`, or has only white space so far.
fn begins_line(before: &str) -> bool {
    matches!(before.trim_end_matches([' ', '\t']).bytes().last(), None | Some(b'\n'))
}

/// For a text that begins with `#else` or `#elif`, returns the length up to its `#endif`.
fn other_branches(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0usize);
    for line in text.split_inclusive('\n') {
        match directive_name(line) {
            Some("if" | "ifdef" | "ifndef") => depth += 1,
            Some("endif") if depth == 0 => return at,
            Some("endif") => depth -= 1,
            _ => {}
        }
        at += line.len();
    }
    at
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
