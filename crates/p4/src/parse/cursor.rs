//! Implements the token cursor.

use std::sync::Arc;

use diagnostics::Span;

use super::{ParseResult, Skip, SourceParser};
use crate::ast::Ident;
use crate::lex::{Token, TokenKind};

/// Whether a word is reserved. `apply`, `key`, `actions`, `entries`, `state`, `type`, `priority` and `list` are
/// keywords only where the grammar requires them.
pub(crate) fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "_" | "abstract"
            | "action"
            | "bit"
            | "bool"
            | "break"
            | "const"
            | "continue"
            | "control"
            | "default"
            | "else"
            | "enum"
            | "error"
            | "exit"
            | "extern"
            | "false"
            | "for"
            | "header"
            | "header_union"
            | "if"
            | "in"
            | "inout"
            | "int"
            | "match_kind"
            | "out"
            | "package"
            | "parser"
            | "return"
            | "select"
            | "string"
            | "struct"
            | "switch"
            | "table"
            | "this"
            | "transition"
            | "true"
            | "tuple"
            | "typedef"
            | "value_set"
            | "varbit"
            | "void"
    )
}

impl SourceParser<'_> {
    /// Returns the token `n` positions after the next one.
    pub(super) fn peek(&self, n: usize) -> &Token {
        match &self.half {
            Some(half) if n == 0 => half,
            _ => &self.tokens[(self.at + n).min(self.tokens.len() - 1)],
        }
    }

    pub(super) fn kind(&self) -> &TokenKind {
        &self.peek(0).kind
    }

    pub(super) fn span(&self) -> Span {
        self.peek(0).span
    }

    /// Returns the span of the token before the next one.
    pub(super) fn before(&self) -> Span {
        match self.at.checked_sub(1).and_then(|at| self.tokens.get(at)) {
            Some(token) => token.span,
            None => Span { end: self.span().start, ..self.span() },
        }
    }

    /// Returns the span from `start` to the token read last.
    pub(super) fn since(&self, start: Span) -> Span {
        start.to(self.before())
    }

    pub(super) fn bump(&mut self) {
        self.half = None;
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    pub(super) fn at_end(&self) -> bool {
        matches!(self.kind(), TokenKind::End)
    }

    pub(super) fn is(&self, sign: &str) -> bool {
        self.nth_is(0, sign)
    }

    pub(super) fn nth_is(&self, n: usize, sign: &str) -> bool {
        matches!(&self.peek(n).kind, TokenKind::Punct(own) if *own == sign)
    }

    pub(super) fn word(&self) -> Option<&str> {
        self.nth_word(0)
    }

    pub(super) fn nth_word(&self, n: usize) -> Option<&str> {
        match &self.peek(n).kind {
            TokenKind::Ident(name) => Some(name),
            _ => None,
        }
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.word() == Some(word)
    }

    /// Whether the token `n` positions after the next one can be a name.
    pub(super) fn nth_is_name(&self, n: usize) -> bool {
        self.nth_word(n).is_some_and(|word| !is_reserved(word))
    }

    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.bump();
        }
        found
    }

    /// Consumes `sign`, which must come next. `context` completes the message, as in "after the condition".
    pub(super) fn expect(&mut self, sign: &str, context: &str) -> ParseResult<Span> {
        let span = self.span();
        if self.eat(sign) {
            return Ok(span);
        }
        Err(self.unexpected(&format!("`{sign}`"), context))
    }

    /// Consumes a closing `sign`. If it is missing, reports this and continues without it.
    pub(super) fn expect_close(&mut self, sign: &str, open: Span, context: &str) {
        if !self.eat(sign) {
            self.missing_close(sign, open, context);
        }
    }

    /// Consumes the word `word`.
    pub(super) fn expect_word(&mut self, word: &str, context: &str) -> ParseResult<Span> {
        let span = self.span();
        if self.eat_word(word) {
            return Ok(span);
        }
        Err(self.unexpected(&format!("`{word}`"), context))
    }

    /// Consumes a `>` that ends type arguments, and keeps the rest of `>>`, `>=` or `>>=`.
    pub(super) fn expect_angle(&mut self, context: &str) -> ParseResult<()> {
        let rest = match self.kind() {
            TokenKind::Punct(">") => {
                self.bump();
                return Ok(());
            }
            TokenKind::Punct(">>") => ">",
            TokenKind::Punct(">=") => "=",
            TokenKind::Punct(">>=") => ">=",
            _ => return Err(self.unexpected("`>`", context)),
        };
        let mut span = self.span();
        span.start = (span.start + 1).min(span.end);
        self.half = Some(Token { kind: TokenKind::Punct(rest), span });
        Ok(())
    }

    /// Consumes the name of `what`, as in "a table". A keyword in its place is reported and used as the name.
    pub(super) fn name(&mut self, what: &str) -> ParseResult<Ident> {
        let span = self.span();
        let TokenKind::Ident(word) = self.kind() else {
            return Err(self.unexpected(&format!("the name of {what}"), ""));
        };
        let word: Arc<str> = word.clone();
        if is_reserved(&word) {
            let goes_on =
                ["{", "(", ")", ";", "=", ",", "<", "[", ":", "}", ">"].iter().any(|sign| self.nth_is(1, sign));
            if !goes_on {
                return Err(self.unexpected(&format!("the name of {what}"), ""));
            }
            self.keyword_as_name(&word, what);
        }
        self.bump();
        Ok(Ident { name: word, span })
    }

    /// Runs `parse` one level deeper.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        if self.depth >= super::MAX_DEPTH {
            return Err(self.too_deep());
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Records the height of a tree whose subtrees have height `below`.
    pub(super) fn grow(&mut self, below: usize) -> ParseResult<()> {
        self.height = below + 1;
        if self.depth + self.height > super::MAX_DEPTH {
            return Err(self.too_deep());
        }
        Ok(())
    }

    /// Runs `parse` with `angle_ends` set to `ends`.
    pub(super) fn with_angle<T>(
        &mut self,
        ends: bool,
        parse: impl FnOnce(&mut Self) -> ParseResult<T>,
    ) -> ParseResult<T> {
        let before = std::mem::replace(&mut self.angle_ends, ends);
        let result = parse(self);
        self.angle_ends = before;
        result
    }

    /// Parses `item`s separated by `,` up to and including `close`. A trailing `,` is allowed.
    pub(super) fn list<T>(
        &mut self,
        open: Span,
        close: &str,
        context: &str,
        mut item: impl FnMut(&mut Self) -> ParseResult<T>,
    ) -> ParseResult<Vec<T>> {
        let mut items = Vec::new();
        let mut tallest = 0;
        while !self.is(close) {
            self.height = 0;
            items.push(item(self)?);
            tallest = tallest.max(self.height);
            if !self.eat(",") {
                break;
            }
        }
        self.height = tallest;
        self.expect_close(close, open, context);
        Ok(items)
    }

    /// Gives up on the current item without a message; one has been reported already.
    pub(super) fn skip<T>(&self) -> ParseResult<T> {
        Err(Skip)
    }
}
