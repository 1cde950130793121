//! Macro definitions, and `#define`.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use diagnostics::{Diagnostic, Span};

use super::{PpToken, Preprocessor};
use crate::lex::TokenKind;

/// A macro definition.
pub(super) struct Macro {
    /// Its name.
    pub name: Arc<str>,
    /// Source span of the definition.
    pub span: Span,
    /// The parameters of a function-like macro.
    pub params: Option<Vec<Arc<str>>>,
    /// Whether the last parameter takes all remaining arguments, as `...` does.
    pub variadic: bool,
    /// Replacement tokens.
    pub body: Rc<[PpToken]>,
    /// Whether its body is being read, so its own name in the body is not expanded.
    pub disabled: Cell<bool>,
}

impl Macro {
    /// Returns the index of the parameter that `tok` names.
    pub fn param(&self, tok: &PpToken) -> Option<usize> {
        let TokenKind::Ident(name) = &tok.kind else { return None };
        self.params.as_ref()?.iter().position(|param| param == name)
    }

    fn same(&self, other: &Macro) -> bool {
        let same_tok = |(a, b): (&PpToken, &PpToken)| a.kind == b.kind && a.spaced == b.spaced;
        self.params == other.params
            && self.body.len() == other.body.len()
            && self.body.iter().zip(other.body.iter()).skip(1).all(same_tok)
            && self.body.first().map(|tok| &tok.kind) == other.body.first().map(|tok| &tok.kind)
    }
}

impl Preprocessor<'_> {
    /// Processes `#define name body` and `#define name(params) body`; `line` is the text after `#define`.
    pub(super) fn define(&mut self, line: Vec<PpToken>, directive: Span) {
        let mut rest = line.into_iter().peekable();
        let Some(PpToken { kind: TokenKind::Ident(name), span, .. }) = rest.next() else {
            let diagnostic = Diagnostic::error("bad-directive", directive, "`#define` without a macro name");
            return self.diagnostics.push(diagnostic.help("write `#define NAME value`"));
        };
        if matches!(&*name, "defined" | "__LINE__" | "__FILE__") {
            let message = format!("`{name}` is reserved for the preprocessor and cannot be defined");
            return self.diagnostics.push(Diagnostic::error("bad-directive", span, message));
        }
        let mut params = None;
        let mut variadic = false;
        if rest.peek().is_some_and(|tok| tok.is("(") && !tok.spaced) {
            rest.next();
            match parse_params(&mut rest, span) {
                Ok((list, takes_rest)) => {
                    params = Some(list);
                    variadic = takes_rest;
                }
                Err(diagnostic) => return self.diagnostics.push(*diagnostic),
            }
        }
        let body: Vec<PpToken> = rest.collect();
        let new = Macro { name: name.clone(), span, params, variadic, body: body.into(), disabled: Cell::new(false) };
        if let Some(diagnostic) = misplaced_operator(&new) {
            return self.diagnostics.push(diagnostic);
        }
        if let Some(old) = self.macros.get(&name)
            && !old.same(&new)
        {
            let message = format!("macro `{name}` is redefined");
            let diagnostic = Diagnostic::warning("macro-redefined", span, message)
                .also(old.span, "previous definition")
                .help(format!("write `#undef {name}` first if that is intended"));
            self.diagnostics.push(diagnostic);
        }
        self.macros.insert(name, Rc::new(new));
    }
}

type Params = (Vec<Arc<str>>, bool);

/// Parses the parameters of a function-like macro, up to and including the closing parenthesis.
fn parse_params(rest: &mut impl Iterator<Item = PpToken>, name: Span) -> Result<Params, Box<Diagnostic>> {
    let mut params: Vec<Arc<str>> = Vec::new();
    let bad = |span: Span, message: &str| {
        let help = "write `#define NAME(a, b) body`";
        Box::new(Diagnostic::error("bad-directive", span, message).help(help))
    };
    let mut last = name;
    loop {
        let Some(tok) = rest.next() else { return Err(bad(last, "missing `)` after the parameters of this macro")) };
        last = tok.span;
        match &tok.kind {
            TokenKind::Punct(")") if params.is_empty() => return Ok((params, false)),
            TokenKind::Ident(param) if !params.contains(param) => params.push(param.clone()),
            TokenKind::Ident(param) => {
                return Err(bad(last, &format!("duplicate macro parameter `{param}`")));
            }
            TokenKind::Punct("...") => {
                params.push("__VA_ARGS__".into());
                return match rest.next() {
                    Some(tok) if tok.is(")") => Ok((params, true)),
                    _ => Err(bad(last, "only `)` may follow `...`")),
                };
            }
            other => return Err(bad(last, &format!("expected the name of a parameter, found `{other}`"))),
        }
        match rest.next() {
            Some(tok) if tok.is(",") => {}
            Some(tok) if tok.is(")") => return Ok((params, false)),
            Some(tok) => return Err(bad(tok.span, &format!("expected `,` or `)`, found `{}`", tok.kind))),
            None => return Err(bad(last, "missing `)` after the parameters of this macro")),
        }
    }
}

/// Checks that `##` has a token on either side, and that a parameter follows `#`.
fn misplaced_operator(new: &Macro) -> Option<Diagnostic> {
    for end in [new.body.first(), new.body.last()].into_iter().flatten() {
        if end.is("##") {
            let message = "`##` needs a token on both sides";
            return Some(Diagnostic::error("bad-directive", end.span, message));
        }
    }
    new.params.as_ref()?;
    let behind = new.body.iter().skip(1).map(Some).chain([None]);
    for (tok, next) in new.body.iter().zip(behind) {
        if tok.is("#") && next.is_none_or(|next| new.param(next).is_none()) {
            let message = "`#` must precede a parameter of the macro";
            return Some(Diagnostic::error("bad-directive", tok.span, message));
        }
    }
    None
}
