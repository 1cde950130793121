//! Detects unbalanced braces: locates a missing or surplus one.
//!
//! ```text
//! apply {
//!     if (m.x == 1) {         this `{` has no `}` of its own,
//!         drop();
//! }                           because this one is where that of `apply` belongs
//! ```
//!
//! Indentation is considered only if the braces of the whole program are unbalanced, and only as many times as braces
//! are missing or surplus: a program with balanced braces may be laid out as its author likes.

use diagnostics::{Diagnostic, SourceMap, Span};

use super::SourceParser;
use super::recover::{ListContext, is_open_string};
use crate::lex::{Token, TokenKind};

/// Maximum number of tokens searched before a `{` for the beginning of its owner.
const MAX_HEAD: usize = 256;

/// Numbers of missing and surplus braces of a program.
#[derive(Clone, Copy, Default)]
pub(super) struct BraceBalance {
    /// `{` without a `}`.
    unclosed: usize,
    /// `}` without a `{`.
    surplus: usize,
    /// Whether a string without a closing quote may have swallowed braces; diagnostics about braces are then
    /// suppressed.
    is_blurred: bool,
}

impl BraceBalance {
    pub(super) fn of(tokens: &[Token], map: &SourceMap) -> Self {
        let count = |sign: &str| {
            let is_sign = |token: &&Token| matches!(token.kind, TokenKind::Punct(own) if own == sign);
            tokens.iter().filter(is_sign).count()
        };
        let (open, close) = (count("{"), count("}"));
        let is_blurred = tokens.iter().any(|token| is_open_string(token, map));
        BraceBalance { unclosed: open.saturating_sub(close), surplus: close.saturating_sub(open), is_blurred }
    }
}

impl SourceParser<'_> {
    /// Whether diagnostics about braces may be wrong.
    pub(super) fn is_blurred(&self) -> bool {
        self.balance.is_blurred
    }

    /// Whether the indentation of the next token, a `}` or a word that cannot occur in a block, shows that the `{`
    /// before token `begin` has no `}`. Reports it if so.
    pub(super) fn lacks_close(&mut self, open: Span, begin: usize, context: ListContext, what: &str) -> bool {
        if self.balance.unclosed == 0 || !(self.is("}") || self.is_word("else") || self.is_word("default")) {
            return false;
        }
        // No statement begins like a label of `switch`.
        let is_label = context == ListContext::Block && self.is_word("default") && self.nth_is(1, ":");
        let (own, here) = (self.owner_indent(begin), self.indent(self.span()));
        // It must match the indentation of an enclosing construct; otherwise the layout is merely unusual.
        let fits = |parser: &Self| parser.open.iter().any(|begin| parser.owner_indent(*begin) == here);
        let is_outside = if self.is("}") { here < own && fits(self) } else { self.is_word("else") && here == own };
        let is_shown = is_outside && self.begins_line() && self.span().file == open.file && !self.is_line_of(open);
        if !is_label && !is_shown {
            return false;
        }
        self.balance.unclosed -= 1;
        let why = if is_label { "a label of a `switch`" } else { "the indentation suggests that this is outside" };
        let diagnostic = Diagnostic::error("missing-brace", open, format!("expected `}}` at the end of {what}"))
            .label("this `{` is not closed")
            .also(self.span(), why);
        if !self.balance.is_blurred {
            self.report(diagnostic);
        }
        // Further mistakes at this token are separate ones.
        self.reported_at = None;
        true
    }

    /// Whether the indentation of the next token, a `}`, shows that it does not close the `{` before token `begin`. If
    /// so, reports and skips it.
    pub(super) fn is_surplus(&mut self, open: Span, begin: usize) -> bool {
        if self.balance.surplus == 0 || !self.is("}") || !self.begins_line() || self.is_line_of(open) {
            return false;
        }
        if self.span().file != open.file || self.indent(self.span()) <= self.owner_indent(begin) {
            return false;
        }
        self.balance.surplus -= 1;
        let diagnostic = Diagnostic::error("unmatched-brace", self.span(), "unmatched `}`");
        let is_branch = matches!(self.peek(1).kind, TokenKind::Ident(ref word) if &**word == "else");
        let help = if is_branch {
            "write a `{` after the `if` before it"
        } else {
            "remove it, or look for a `{` missing before it"
        };
        if !self.balance.is_blurred {
            self.report(diagnostic.help(help));
        }
        self.bump();
        // Of `} else {`, only the block remains.
        self.eat_word("else");
        true
    }

    /// Returns the indentation of the line in which the owner of the `{` before token `begin` starts.
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

    /// Whether the next token is on the same line as `span`.
    fn is_line_of(&self, span: Span) -> bool {
        let file = self.map.file(span.file);
        self.span().file == span.file && file.line_of(span.start) == file.line_of(self.span().start)
    }
}
