//! Splits a line into tokens.

use diagnostics::{FileId, Span};

use crate::script::Word;

/// A line's tokens: words (names and numbers) and signs.
pub(crate) struct TokenLine {
    tokens: Vec<Word>,
    at: usize,
    /// The ports that were read so far.
    pub(crate) ports: Vec<(u32, Span)>,
    /// The empty span after the last token.
    pub(crate) end: Span,
}

/// Signs of more than one character. All others are single characters.
const SIGNS: [&str; 6] = ["&&&", "==", "!=", "<=", ">=", "->"];

/// Whether a character can be part of a name or number.
fn in_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | '*' | '[' | ']')
}

impl TokenLine {
    /// Splits the text of a line, which begins at byte `start` of the file, into tokens. A comment ends it.
    pub(crate) fn new(file: FileId, start: u32, text: &str) -> TokenLine {
        let span = |from: usize, to: usize| Span::new(file, start + from as u32, start + to as u32);
        let mut tokens = Vec::new();
        let mut at = 0;
        let mut end = 0;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            if c == '#' {
                break;
            }
            if c.is_whitespace() {
                at += c.len_utf8();
                continue;
            }
            // A quoted name ends at the quote or, without one, at the end of the line.
            if c == '"' {
                let inner = rest[1..].split('"').next().unwrap_or_default();
                let to = (at + inner.len() + 2).min(text.len());
                tokens.push(Word { text: inner.to_owned(), span: span(at, to) });
                at = to;
            } else if in_word(c) {
                let length = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
                tokens.push(Word { text: rest[..length].to_owned(), span: span(at, at + length) });
                at += length;
            } else {
                let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
                let length = sign.map_or(c.len_utf8(), str::len);
                tokens.push(Word { text: rest[..length].to_owned(), span: span(at, at + length) });
                at += length;
            }
            end = at;
        }
        TokenLine { tokens, at: 0, ports: Vec::new(), end: span(end, end) }
    }

    /// Returns the next token without consuming it.
    pub(crate) fn peek(&self) -> Option<&Word> {
        self.tokens.get(self.at)
    }

    /// Returns the token after `ahead` others without consuming it.
    pub(crate) fn peek_at(&self, ahead: usize) -> Option<&Word> {
        self.tokens.get(self.at + ahead)
    }

    /// Consumes the next token.
    pub(crate) fn next(&mut self) -> Option<Word> {
        let word = self.tokens.get(self.at).cloned();
        self.at += usize::from(word.is_some());
        word
    }

    /// Consumes the next token if it is this sign.
    pub(crate) fn take(&mut self, sign: &str) -> bool {
        let there = self.peek().is_some_and(|word| word.text == sign);
        self.at += usize::from(there);
        there
    }

    /// Returns the span of the next token, or of the end.
    pub(crate) fn here(&self) -> Span {
        self.peek().map_or(self.end, |word| word.span)
    }

    /// Returns the span from the first token to the last.
    pub(crate) fn span(&self) -> Span {
        match (self.tokens.first(), self.tokens.last()) {
            (Some(first), Some(last)) => first.span.to(last.span),
            _ => self.end,
        }
    }
}

impl Word {
    /// Whether the token is a name or a number.
    pub(crate) fn is_word(&self) -> bool {
        self.text.chars().next().is_some_and(in_word)
    }

    /// Whether the token begins like a number.
    pub(crate) fn is_number(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_digit())
    }
}
