//! Braces that do not match: where one is missing, and where there is one too many.
//!
//! ```text
//! apply {
//!     if (m.x == 1) {         this `{` has no `}` of its own,
//!         drop();
//! }                           for this one stands where that of `apply` belongs
//! ```
//!
//! Indentation is only asked when the braces of the whole program do not come out even, and no more often than they are
//! off: a program whose braces match may be laid out as its author likes.

use diagnostics::{Diagnostic, SourceMap, Span};

use super::Parser;
use super::recover::{Place, is_open_string};
use crate::lex::{Token, TokenKind};

/// How many tokens before a `{` are looked through for the beginning of what it belongs to.
const MAX_HEAD: usize = 256;

/// How many braces a program lacks, or has too many.
#[derive(Clone, Copy, Default)]
pub(super) struct Balance {
    /// `{` without a `}`.
    unclosed: usize,
    /// `}` without a `{`.
    surplus: usize,
    /// Whether a string without an end may have swallowed some: then nothing is said of braces.
    is_blurred: bool,
}

impl Balance {
    pub(super) fn of(tokens: &[Token], map: &SourceMap) -> Self {
        let count = |sign: &str| {
            let is_sign = |token: &&Token| matches!(token.kind, TokenKind::Punct(own) if own == sign);
            tokens.iter().filter(is_sign).count()
        };
        let (open, close) = (count("{"), count("}"));
        let is_blurred = tokens.iter().any(|token| is_open_string(token, map));
        Balance { unclosed: open.saturating_sub(close), surplus: close.saturating_sub(open), is_blurred }
    }
}

impl Parser<'_> {
    /// Whether what is said of braces may be wrong.
    pub(super) fn is_blurred(&self) -> bool {
        self.balance.is_blurred
    }

    /// Whether the next token, a `}` or a word that cannot stand in a block, shows by its indentation that the `{` before
    /// token `begin` has no `}`. That is reported.
    pub(super) fn lacks_close(&mut self, open: Span, begin: usize, place: Place, what: &str) -> bool {
        if self.balance.unclosed == 0 || !(self.is("}") || self.is_word("else") || self.is_word("default")) {
            return false;
        }
        // No statement begins like a label of `switch`.
        let is_label = place == Place::Block && self.is_word("default") && self.nth_is(1, ":");
        let (own, here) = (self.owner_indent(begin), self.indent(self.span()));
        // It must fit something that is open further out, or it is only laid out oddly.
        let fits = |parser: &Self| parser.open.iter().any(|begin| parser.owner_indent(*begin) == here);
        let is_outside = match self.is("}") {
            true => here < own && fits(self),
            false => self.is_word("else") && here == own,
        };
        let is_shown = is_outside && self.begins_line() && self.span().file == open.file && !self.is_line_of(open);
        if !is_label && !is_shown {
            return false;
        }
        self.balance.unclosed -= 1;
        let why =
            if is_label { "this stands in a `switch`" } else { "this belongs further out, as its indentation shows" };
        let diagnostic = Diagnostic::error("missing-brace", open, format!("expected `}}` at the end of {what}"))
            .label("this is not closed")
            .also(self.span(), why);
        if !self.balance.is_blurred {
            self.report(diagnostic);
        }
        // What follows here is no mistake of its own.
        self.reported_at = None;
        true
    }

    /// Whether the next token, a `}`, shows by its indentation that it does not close the `{` before token `begin`. It is
    /// reported and skipped.
    pub(super) fn is_surplus(&mut self, open: Span, begin: usize) -> bool {
        if self.balance.surplus == 0 || !self.is("}") || !self.begins_line() || self.is_line_of(open) {
            return false;
        }
        if self.span().file != open.file || self.indent(self.span()) <= self.owner_indent(begin) {
            return false;
        }
        self.balance.surplus -= 1;
        let diagnostic = Diagnostic::error("unmatched-brace", self.span(), "this `}` closes nothing");
        let is_branch = matches!(self.peek(1).kind, TokenKind::Ident(ref word) if &**word == "else");
        let help = if is_branch {
            "write a `{` behind the `if` before it"
        } else {
            "remove it, or look for a `{` missing before it"
        };
        if !self.balance.is_blurred {
            self.report(diagnostic.help(help));
        }
        self.bump();
        // Of `} else {` the block is left.
        self.eat_word("else");
        true
    }

    /// How far the line is indented in which what the `{` before token `begin` belongs to begins.
    fn owner_indent(&self, begin: usize) -> usize {
        let ends = |token: &Token| matches!(token.kind, TokenKind::Punct(";" | "{" | "}"));
        let brace = begin.saturating_sub(1);
        let mut first = brace;
        while first > brace.saturating_sub(MAX_HEAD)
            && !ends(&self.tokens[first - 1])
            && self.tokens[first - 1].span.file == self.tokens[first].span.file
        {
            first -= 1;
        }
        self.indent(self.tokens[first].span)
    }

    /// Whether the next token stands in the line of `place`.
    fn is_line_of(&self, place: Span) -> bool {
        let file = self.map.file(place.file);
        self.span().file == place.file && file.line_of(place.start) == file.line_of(self.span().start)
    }
}
