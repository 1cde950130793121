//! Expands macros.
//!
//! A macro's body is pushed in front of the remaining input as a [`TokenContext`], and scanning continues there, which
//! finds macros in the body. While the context lasts, the macro is disabled; occurrences of its name in the meantime
//! are painted and never expanded again. This guarantees termination.

use std::rc::Rc;

use diagnostics::{Diagnostic, FileId, Span};
use num_bigint::BigInt;

use super::macros::Macro;
use super::{NextItem, PpToken, Preprocessor};
use crate::ast::IntLiteral;
use crate::lex::{RawKind, Scanner, TokenError, TokenKind};

/// Maximum nesting depth of macro calls in arguments of macros.
const MAX_ARGUMENT_DEPTH: usize = 200;
/// Maximum length in bytes of a token made by `#` or `##`.
const MAX_MADE_BYTES: usize = 1 << 16;

/// Tokens that are read before the rest of the file.
pub(super) struct TokenContext {
    tokens: Rc<[PpToken]>,
    next: usize,
    /// Span assigned to all of the tokens: that of the macro's use.
    span: Option<Span>,
    /// The macro they come from, which is enabled again after them.
    source: Option<Rc<Macro>>,
    /// Whether reading stops after them, because they are an argument that is expanded separately.
    barrier: bool,
}

impl TokenContext {
    /// Creates a context of tokens that no macro made.
    pub fn plain(tokens: Vec<PpToken>) -> Self {
        TokenContext { tokens: tokens.into(), next: 0, span: None, source: None, barrier: false }
    }
}

impl Preprocessor<'_> {
    /// Returns the next token without expanding it.
    pub(super) fn take(&mut self) -> NextItem {
        let mut tok = loop {
            if self.stopped {
                return NextItem::End;
            }
            let Some(context) = self.contexts.last_mut() else {
                match self.take_from_file() {
                    NextItem::Token(tok) => break tok,
                    other => return other,
                }
            };
            if let Some(tok) = context.tokens.get(context.next) {
                context.next += 1;
                let tok = PpToken { span: context.span.unwrap_or(tok.span), ..tok.clone() };
                self.spend(1, tok.span);
                break tok;
            }
            if context.barrier {
                return NextItem::End;
            }
            self.leave_context();
        };
        if let TokenKind::Ident(name) = &tok.kind
            && self.macros.get(name).is_some_and(|known| known.disabled.get())
        {
            tok.painted = true;
        }
        NextItem::Token(tok)
    }

    fn leave_context(&mut self) {
        if let Some(TokenContext { source: Some(source), .. }) = self.contexts.pop() {
            source.disabled.set(false);
        }
    }

    /// Returns the next token with macros expanded, or `None` at the end.
    pub(super) fn expanded(&mut self) -> Option<PpToken> {
        loop {
            let tok = match self.take() {
                NextItem::Token(tok) => tok,
                NextItem::FileEnd => continue,
                NextItem::End => return None,
            };
            let TokenKind::Ident(name) = &tok.kind else { return Some(tok) };
            if tok.painted {
                return Some(tok);
            }
            match &**name {
                "__LINE__" => {
                    let value = BigInt::from(self.map.position(tok.span).line);
                    return Some(PpToken { kind: TokenKind::Int(IntLiteral { value, width: None }), ..tok });
                }
                "__FILE__" => {
                    let file = self.map.position(tok.span).file;
                    return Some(PpToken { kind: TokenKind::String(file.into()), ..tok });
                }
                _ => {}
            }
            let Some(found) = self.macros.get(name).cloned() else { return Some(tok) };
            if !self.enter(&found, &tok) {
                return Some(tok);
            }
        }
    }

    /// Begins the expansion of `found`, used at `tok`. Returns false if it is the name of a function-like macro without
    /// arguments, which is not expanded.
    fn enter(&mut self, found: &Rc<Macro>, tok: &PpToken) -> bool {
        let (tokens, span) = match &found.params {
            None if found.body.iter().any(|tok| tok.is("##")) => {
                (self.substitute(found, &[], tok.span).into(), Some(tok.span))
            }
            None => (found.body.clone(), Some(tok.span)),
            Some(_) => {
                if !self.arguments_follow() {
                    return false;
                }
                // On an error, the name stands for the call, so that the parser finds a token there.
                let Some((args, end)) = self.arguments(found, tok) else { return false };
                (self.substitute(found, &args, tok.span.to(end)).into(), None)
            }
        };
        found.disabled.set(true);
        self.contexts.push(TokenContext { tokens, next: 0, span, source: Some(found.clone()), barrier: false });
        true
    }

    /// Consumes the next token if it is `(`, and returns whether it is.
    fn arguments_follow(&mut self) -> bool {
        match self.take() {
            NextItem::Token(tok) if tok.is("(") => true,
            NextItem::Token(tok) => {
                self.contexts.push(TokenContext::plain(vec![tok]));
                false
            }
            NextItem::FileEnd | NextItem::End => false,
        }
    }

    /// Reads the arguments of a macro after its `(` without expanding them. Also returns the span of the `)`.
    fn arguments(&mut self, found: &Macro, used: &PpToken) -> Option<(Vec<Vec<PpToken>>, Span)> {
        let params = found.params.as_ref().map_or(0, Vec::len);
        let mut args = vec![Vec::new()];
        let mut depth = 0usize;
        let end = loop {
            let NextItem::Token(tok) = self.take() else {
                if self.stopped {
                    return None;
                }
                let message = format!("missing `)` after the arguments of macro `{}`", found.name);
                let diagnostic = Diagnostic::error("macro-arguments", used.span, message);
                self.diagnostics.push(diagnostic.also(found.span, "the macro is defined here"));
                return None;
            };
            let rest = found.variadic && args.len() == params;
            match &tok.kind {
                TokenKind::Punct(")") if depth == 0 => break tok.span,
                TokenKind::Punct(",") if depth == 0 && !rest => {
                    args.push(Vec::new());
                    continue;
                }
                TokenKind::Punct("(") => depth += 1,
                TokenKind::Punct(")") => depth -= 1,
                _ => {}
            }
            if let Some(arg) = args.last_mut() {
                arg.push(tok);
            }
        };
        if params == 0 && args.len() == 1 && args[0].is_empty() {
            args.clear();
        }
        if found.variadic && args.len() + 1 == params {
            args.push(Vec::new());
        }
        if args.len() != params {
            let plural = if params == 1 { "" } else { "s" };
            let message = format!("macro `{}` takes {params} argument{plural}, found {}", found.name, args.len());
            let diagnostic = Diagnostic::error("macro-arguments", used.span.to(end), message);
            self.diagnostics.push(diagnostic.also(found.span, "the macro is defined here"));
            return None;
        }
        Some((args, end))
    }

    /// Expands the macros in `list`, independently of the tokens after it.
    pub(super) fn expand_list(&mut self, list: &[PpToken]) -> Vec<PpToken> {
        if self.argument_depth >= MAX_ARGUMENT_DEPTH {
            let span = list.first().map_or_else(|| Span::new(FileId(0), 0, 0), |tok| tok.span);
            let message = format!("macro calls are nested more than {MAX_ARGUMENT_DEPTH} deep in macro arguments");
            self.stop(Diagnostic::error("macro-depth", span, message));
            return Vec::new();
        }
        self.argument_depth += 1;
        self.spend(list.len(), list.first().map_or_else(Span::default, |tok| tok.span));
        let height = self.contexts.len();
        self.contexts.push(TokenContext { barrier: true, ..TokenContext::plain(list.to_vec()) });
        let mut out = Vec::new();
        while let Some(tok) = self.expanded() {
            out.push(tok);
        }
        while self.contexts.len() > height {
            self.leave_context();
        }
        self.argument_depth -= 1;
        out
    }

    /// Returns the body of `found` with its parameters replaced by `args`, and with `#` and `##` applied.
    fn substitute(&mut self, found: &Macro, args: &[Vec<PpToken>], used: Span) -> Vec<PpToken> {
        let body = &found.body;
        let mut expanded: Vec<Option<Vec<PpToken>>> = vec![None; args.len()];
        let mut out: Vec<PpToken> = Vec::new();
        // Whether the operand before `##` was an empty argument, so that there is nothing to paste to.
        let mut nothing = false;
        let mut at = 0;
        while let Some(tok) = body.get(at) {
            if self.stopped {
                return Vec::new();
            }
            let pastes = tok.is("##") && at > 0;
            let operand = if pastes { at + 1 } else { at };
            let Some(tok) = body.get(operand) else { break };
            let (mut piece, next) = match (tok.is("#") && found.params.is_some(), found.param(tok)) {
                (true, _) => {
                    let arg = body.get(operand + 1).and_then(|tok| found.param(tok)).and_then(|i| args.get(i));
                    (vec![self.stringify(arg.map_or(&[], Vec::as_slice), tok, used)], operand + 2)
                }
                (false, None) => (vec![PpToken { span: used, ..tok.clone() }], operand + 1),
                (false, Some(param)) => {
                    let raw = pastes || body.get(operand + 1).is_some_and(|tok| tok.is("##"));
                    let arg = args.get(param).map_or(&[][..], Vec::as_slice);
                    let mut piece = if raw {
                        arg.to_vec()
                    } else {
                        if expanded[param].is_none() {
                            expanded[param] = Some(self.expand_list(arg));
                        }
                        expanded[param].clone().unwrap_or_default()
                    };
                    if let Some(first) = piece.first_mut() {
                        first.spaced = tok.spaced;
                    }
                    (piece, operand + 1)
                }
            };
            self.spend(piece.len(), used);
            if pastes && !nothing && !piece.is_empty() && !out.is_empty() {
                let right = piece.remove(0);
                if let Some(left) = out.pop() {
                    out.extend(self.paste(left, right, used));
                }
                nothing = false;
            } else {
                nothing = piece.is_empty() && (!pastes || nothing);
            }
            out.append(&mut piece);
            at = next;
        }
        out
    }

    /// Implements `#`: returns the argument as a string.
    fn stringify(&mut self, arg: &[PpToken], sign: &PpToken, used: Span) -> PpToken {
        let mut text = String::new();
        for (i, tok) in arg.iter().enumerate() {
            if i > 0 && tok.spaced {
                text.push(' ');
            }
            text.push_str(&self.spelling(tok));
            if text.len() > MAX_MADE_BYTES {
                let message = format!("`#` produces a string of more than {MAX_MADE_BYTES} bytes");
                self.stop(Diagnostic::error("macro-depth", used, message));
                break;
            }
        }
        let kind = TokenKind::String(text.into());
        PpToken { spaced: sign.spaced, ..PpToken::new(kind, used) }
    }

    /// Implements `##`: pastes two tokens into one. Returns both, after a diagnostic, if the result is not a token.
    fn paste(&mut self, left: PpToken, right: PpToken, used: Span) -> Vec<PpToken> {
        let text = self.spelling(&left) + &self.spelling(&right);
        if text.len() > MAX_MADE_BYTES {
            let message = format!("`##` produces a token of more than {MAX_MADE_BYTES} bytes");
            self.stop(Diagnostic::error("macro-depth", used, message));
            return Vec::new();
        }
        let mut scanner = Scanner::new(FileId(0), text.as_str().into());
        let made = scanner.next(&mut self.words, false);
        let rest = scanner.next(&mut self.words, false);
        let flawed = made.error.is_some();
        match (made.kind, made.error, rest.kind) {
            (RawKind::Token(kind), None | Some(TokenError::Number(..)), RawKind::End) => {
                vec![PpToken { spaced: left.spaced, flawed, made: Some(text.into()), ..PpToken::new(kind, used) }]
            }
            _ => {
                let message = format!("`##` produces `{text}`, which is not a single token");
                self.diagnostics.push(Diagnostic::error("bad-paste", used, message));
                vec![left, right]
            }
        }
    }

    /// Returns a token as written. Numbers are taken from the source, because tokens do not record their base.
    pub(super) fn spelling(&self, tok: &PpToken) -> String {
        match &tok.kind {
            TokenKind::Int(_) if tok.made.is_some() => tok.made.as_deref().unwrap_or_default().to_owned(),
            TokenKind::Int(_) => {
                let mut text = self.map.text(tok.origin).to_owned();
                text.retain(|c| c.is_ascii_alphanumeric() || c == '_');
                text
            }
            kind => kind.to_string(),
        }
    }
}
