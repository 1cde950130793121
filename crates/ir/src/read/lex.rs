//! Splits the text form into tokens.
//!
//! [`crate::text`] defines unquoted words. `//` begins a comment that ends with the line. `;` begins a position in the
//! P4 source, which also ends with the line.

use diagnostics::{Diagnostic, Diagnostics, FileId, Span};

use crate::text::{is_word_char, word_length};

/// Kind of a token. Its text is that of its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// An unquoted name or a keyword.
    Word,
    /// A quoted name or text.
    Quoted,
    /// Digits, possibly hexadecimal.
    Number,
    /// `#` and the word after it, directly after a name: the number of the entity of that name.
    Tag,
    /// As `Tag`, but without a preceding name.
    Nameless,
    /// `;` and the rest of the line.
    Position,
    /// Anything of [`PUNCTUATION`].
    Punct,
    /// The end of the tokens being read.
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct TextToken {
    pub(super) kind: TokenKind,
    /// Whether it is the first token of its line.
    pub(super) first: bool,
    pub(super) start: u32,
    pub(super) end: u32,
}

/// Longer tokens come first, so that the first match is the longest. Those that end in `s` are signed operators, unless
/// the `s` begins a longer word.
const PUNCTUATION: &[&str] = &[
    "|+|s", "|-|s", "&&&", "|+|", "|-|", ">>s", "<=s", "..s", ">>", "<<", "<=", "==", "!=", "->", "++", "..", "<s",
    "+", "-", "*", "/", "%", "&", "|", "^", "~", "<", "=", "(", ")", "[", "]", "{", "}", ",", ":", ".", "@",
];

/// Splits the text of a file into tokens. Characters that form no token are reported and skipped.
pub(super) fn tokens(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> Vec<TextToken> {
    let mut lexer = Lexer { file, text, at: 0, diagnostics };
    let mut tokens = Vec::new();
    let mut first = true;
    while let Some(c) = lexer.rest().chars().next() {
        if c.is_whitespace() {
            first |= c == '\n';
            lexer.at += c.len_utf8();
            continue;
        }
        if lexer.rest().starts_with("//") {
            lexer.at += lexer.line_length();
            continue;
        }
        let start = lexer.at;
        if let Some(mut kind) = lexer.token(c) {
            let behind_name = |last: &TextToken| {
                matches!(last.kind, TokenKind::Word | TokenKind::Quoted) && last.end as usize == start
            };
            if kind == TokenKind::Tag && !tokens.last().is_some_and(behind_name) {
                kind = TokenKind::Nameless;
            }
            // Callers limit the text to less than 4 GiB.
            tokens.push(TextToken { kind, first, start: start as u32, end: lexer.at as u32 });
            first = false;
        }
    }
    tokens
}

struct Lexer<'s, 'd> {
    file: FileId,
    text: &'s str,
    at: usize,
    diagnostics: &'d mut Diagnostics,
}

impl Lexer<'_, '_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn line_length(&self) -> usize {
        self.rest().find('\n').unwrap_or(self.rest().len())
    }

    /// Moves past the next token, or past characters that form none.
    fn token(&mut self, c: char) -> Option<TokenKind> {
        let word = word_length(self.rest());
        if word > 0 {
            self.at += word;
            return Some(TokenKind::Word);
        }
        if c.is_ascii_digit() {
            self.at += self.rest().find(|c| !is_word_char(c)).unwrap_or(self.rest().len());
            return Some(TokenKind::Number);
        }
        match c {
            '"' => return self.quoted(),
            ';' => {
                self.at += self.rest()[..self.line_length()].trim_end().len();
                return Some(TokenKind::Position);
            }
            '#' => {
                self.at += 1;
                self.at += self.rest().find(|c| !is_word_char(c)).unwrap_or(self.rest().len());
                return Some(TokenKind::Tag);
            }
            _ => {}
        }
        let rest = self.rest();
        let fits = |punct: &&&str| {
            rest.strip_prefix(**punct)
                .is_some_and(|behind| !punct.ends_with('s') || !behind.starts_with(|c| is_word_char(c) || c == '.'))
        };
        if let Some(punct) = PUNCTUATION.iter().find(fits) {
            self.at += punct.len();
            return Some(TokenKind::Punct);
        }
        self.at += c.len_utf8();
        self.error(self.at - c.len_utf8(), format!("unexpected character {c:?}"));
        None
    }

    fn quoted(&mut self) -> Option<TokenKind> {
        let start = self.at;
        let line = self.line_length();
        let mut escaped = false;
        for (at, c) in self.rest()[..line].char_indices().skip(1) {
            match c {
                '"' if !escaped => {
                    self.at += at + 1;
                    return Some(TokenKind::Quoted);
                }
                _ => escaped = c == '\\' && !escaped,
            }
        }
        self.at += line;
        self.error(start, "unterminated string".to_owned());
        None
    }

    fn error(&mut self, start: usize, message: String) {
        let span = Span::new(self.file, start as u32, self.at as u32);
        self.diagnostics.push(Diagnostic::error("ir-syntax", span, message));
    }
}

/// Returns the text that a quoted token denotes, or `None` if an escape is invalid.
pub(super) fn unquoted(quoted: &str) -> Option<String> {
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        text.push(match chars.next()? {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            c @ ('"' | '\\') => c,
            'u' => {
                let (digits, rest) = chars.as_str().strip_prefix('{')?.split_once('}')?;
                chars = rest.chars();
                u32::from_str_radix(digits, 16).ok().filter(|_| digits.len() <= 6).and_then(char::from_u32)?
            }
            _ => return None,
        });
    }
    Some(text)
}
