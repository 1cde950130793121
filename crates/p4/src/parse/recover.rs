//! Error recovery: diagnostics of mistakes, and resynchronisation.

use diagnostics::{Diagnostic, SourceMap, Span};

use super::cursor::is_reserved;
use super::{MAX_DEPTH, ParseResult, Skip, SourceParser};
use crate::ast::{Annotations, Ident};
use crate::lex::{Token, TokenKind};

/// Kind of list that is being parsed; it determines which keywords show that the list's `}` is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ListContext {
    /// Fields, methods, table properties, cases: no declaration begins with a keyword here.
    Members,
    /// The key, the actions or the entries of a table.
    Elements,
    /// Statements.
    Block,
    /// Locals of a parser or control.
    Pipeline,
}

/// Describes the declaration that a keyword begins, for messages.
fn declares(word: &str) -> Option<&'static str> {
    Some(match word {
        "extern" => "an extern",
        "parser" => "a parser",
        "control" => "a control",
        "package" => "a package",
        "header" => "a header",
        "header_union" => "a header union",
        "struct" => "a struct",
        "enum" => "an enum",
        "typedef" => "a typedef",
        "action" => "an action",
        "table" => "a table",
        "state" => "a state",
        "apply" => "an apply block",
        _ => return None,
    })
}

impl SourceParser<'_> {
    /// Reports a mistake, unless one was already reported at this token.
    pub(super) fn report(&mut self, diagnostic: Diagnostic) -> Skip {
        let is_new = self.reported_at != Some(self.at) && !self.follows_open_string();
        if !self.stopped && is_new {
            self.reported_at = Some(self.at);
            self.diagnostics.push(diagnostic);
        }
        Skip
    }

    /// Reports that the next token is not `expected`.
    pub(super) fn unexpected(&mut self, expected: &str, context: &str) -> Skip {
        if let TokenKind::Unknown(_) | TokenKind::Punct("#" | "##" | "'" | "\\") = self.kind() {
            let message = format!("unexpected character: {}", found(self.peek(0)));
            let mut diagnostic = Diagnostic::error("unknown-character", self.span(), message);
            if self.is("#") {
                diagnostic = diagnostic.help("a directive must come first on its line");
            } else if self.is("'") {
                diagnostic = diagnostic.help("write strings in `\"`");
            }
            return self.report(diagnostic);
        }
        let space = if context.is_empty() { "" } else { " " };
        let message = format!("expected {expected}{space}{context}, found {}", found(self.peek(0)));
        let mut diagnostic = Diagnostic::error("unexpected-token", self.span(), message);
        if let TokenKind::String(_) = self.kind()
            && self.map.text(self.span()).contains('\n')
        {
            diagnostic = diagnostic.help("this string spans several lines: is its closing `\"` missing?");
        }
        self.report(diagnostic)
    }

    /// Reports that `sign`, which would close `open`, is missing.
    pub(super) fn missing_close(&mut self, sign: &str, open: Span, context: &str) {
        let message = format!("expected `{sign}` {context}, found {}", found(self.peek(0)));
        let diagnostic = Diagnostic::error("unexpected-token", self.span(), message);
        self.report(diagnostic.also(open, format!("to close this `{}`", self.map.text(open))));
        // If it comes later in the same statement, the mistake is in the tokens before it.
        if let Some(end) = self.scan_close(sign)
            && let Some(n) = self.distance(end)
        {
            self.half = None;
            self.at += n;
        }
    }

    /// Whether a string without a closing quote is the next or the previous token: it was reported, and has swallowed
    /// the missing token.
    pub(super) fn follows_open_string(&self) -> bool {
        self.is_open_string() || self.at > 0 && is_open_string(&self.tokens[self.at - 1], self.map)
    }

    /// Whether the next token is a string without a closing quote.
    pub(super) fn is_open_string(&self) -> bool {
        is_open_string(self.peek(0), self.map)
    }

    pub(super) fn keyword_as_name(&mut self, word: &str, what: &str) {
        let diagnostic = match word {
            "_" => Diagnostic::error("keyword-as-name", self.span(), format!("`_` cannot be the name of {what}")),
            _ => {
                let message = format!("`{word}` is a keyword and cannot be the name of {what}");
                Diagnostic::error("keyword-as-name", self.span(), message)
                    .help(format!("choose another name, for example `{word}_`"))
            }
        };
        self.report(diagnostic);
    }

    /// Reports that the tree would be too high, and stops for good.
    pub(super) fn too_deep(&mut self) -> Skip {
        let message = format!("nested more than {MAX_DEPTH} levels deep");
        let help = "long chains of operators and of `else if` count too: split them up";
        self.report(Diagnostic::error("nesting-too-deep", self.span(), message).help(help));
        self.stopped = true;
        self.half = None;
        self.at = self.tokens.len() - 1;
        Skip
    }

    /// Consumes the `;` that ends `what`, as in "this field". A missing one is reported; parsing then continues here if
    /// the line ends, otherwise after the next `;`.
    pub(super) fn semicolon(&mut self, what: &str) {
        if self.eat(";") {
            return;
        }
        if self.begins_line() || self.is("}") || self.at_end() {
            let mut diagnostic =
                Diagnostic::error("missing-semicolon", self.before().after(), format!("expected `;` after {what}"))
                    .help("write `;` here");
            if self.begins_line() && !self.at_end() {
                diagnostic = diagnostic.also(self.span(), "before this");
            }
            self.report(diagnostic);
        } else {
            self.unexpected("`;`", &format!("after {what}"));
            self.skip_item();
        }
    }

    /// Whether the next token is the first of its line.
    pub(super) fn begins_line(&self) -> bool {
        let (before, next) = (self.before(), self.span());
        self.at == 0 || before.file != next.file || self.line(before.end) < self.line(next.start)
    }

    fn line(&self, offset: u32) -> usize {
        self.map.file(self.span().file).line_of(offset)
    }

    /// Returns the indentation in bytes of the line in which `span` begins.
    pub(super) fn indent(&self, span: Span) -> usize {
        let file = self.map.file(span.file);
        let text = file.line_text(file.line_of(span.start));
        text.len() - text.trim_start().len()
    }

    /// Skips the rest of an item that could not be parsed: up to and including its `;` or its braces, or up to the
    /// likely beginning of the next one.
    pub(super) fn skip_item(&mut self) {
        let mut open = 0usize;
        let mut first = true;
        while !self.at_end() {
            if open == 0 && !first && self.begins_line() && self.begins_item() {
                return;
            }
            first = false;
            match self.kind() {
                TokenKind::Punct(";") if open == 0 => return self.bump(),
                TokenKind::Punct("{") => open += 1,
                TokenKind::Punct("}") if open == 0 => return,
                TokenKind::Punct("}") => {
                    open -= 1;
                    if open == 0 {
                        self.bump();
                        self.eat(";");
                        return;
                    }
                }
                _ => {}
            }
            self.bump();
        }
    }

    /// Whether the next word can only begin a declaration or statement.
    fn begins_item(&self) -> bool {
        self.word().is_some_and(|word| {
            self.declaration_begins().is_some()
                || matches!(word, "const" | "if" | "switch" | "for" | "return" | "exit" | "transition" | "abstract")
        }) || self.is("@")
    }

    /// Describes the next declaration, if it begins with a keyword that begins nothing else.
    fn declaration_begins(&self) -> Option<&'static str> {
        let word = self.word()?;
        let certain = match word {
            "state" => self.nth_word(1).is_some() && self.nth_is(2, "{"),
            "apply" => self.nth_is(1, "{"),
            _ => true,
        };
        if certain { declares(word) } else { None }
    }

    /// Parses the items of `{ ... }` after its brace `open`, up to and including the `}`.
    pub(super) fn items<T>(
        &mut self,
        open: Span,
        context: ListContext,
        what: &str,
        item: impl FnMut(&mut Self) -> ParseResult<T>,
    ) -> Vec<T> {
        let begin = self.at;
        self.open.push(begin);
        let items = self.items_from(begin, open, context, what, item);
        self.open.pop();
        items
    }

    fn items_from<T>(
        &mut self,
        begin: usize,
        open: Span,
        context: ListContext,
        what: &str,
        mut item: impl FnMut(&mut Self) -> ParseResult<T>,
    ) -> Vec<T> {
        let mut items = Vec::new();
        let scopes = self.names.depth();
        loop {
            if self.lacks_close(open, begin, context, what) {
                return items;
            }
            if self.is_surplus(open, begin) {
                continue;
            }
            if self.eat("}") {
                return items;
            }
            if self.at_end() || self.brace_is_missing(open, context) {
                if !self.stopped && !self.is_blurred() {
                    let message = format!("expected `}}` at the end of {what}, found {}", found(self.peek(0)));
                    let diagnostic = Diagnostic::error("missing-brace", self.span(), message);
                    self.report(diagnostic.also(open, "to close this `{`"));
                }
                return items;
            }
            let before = self.at;
            if self.misplaced_declaration(context, what).is_err() {
                self.resume(before, scopes);
                continue;
            }
            if self.at > before {
                continue;
            }
            match item(self) {
                Ok(found) => items.push(found),
                Err(Skip) => self.resume(before, scopes),
            }
        }
    }

    /// Resynchronises after an item that began at token `before` and was given up.
    pub(super) fn resume(&mut self, before: usize, scopes: usize) {
        self.names.close_to(scopes);
        self.angle_ends = false;
        // The item may have ended already, with the mistake in the tokens after it.
        let ended = self.at > before && matches!(self.tokens[self.at - 1].kind, TokenKind::Punct(";"));
        if !std::mem::take(&mut self.settled) && !ended {
            self.skip_item();
        }
        if self.at == before {
            self.bump();
        }
    }

    /// Whether the next token begins a declaration that, judging by its indentation, is not meant to be inside these
    /// braces.
    fn brace_is_missing(&self, open: Span, context: ListContext) -> bool {
        let Some(word) = self.word() else { return false };
        if context == ListContext::Elements && self.begins_property() {
            return true;
        }
        if (self.declaration_begins().is_none() || !self.foreign(word, context)) && !self.begins_main() {
            return false;
        }
        self.begins_line() && (self.span().file != open.file || self.indent(self.span()) <= self.indent(open))
    }

    /// Whether `name = ` comes next, which begins a property of a table but no element of one.
    fn begins_property(&self) -> bool {
        let at = usize::from(self.is_word("const"));
        matches!(self.nth_word(at), Some("key" | "actions" | "entries" | "default_action" | "size"))
            && self.nth_is(at + 1, "=")
    }

    /// Whether `P(...) main` comes next: the program's package, which is never inside braces.
    fn begins_main(&self) -> bool {
        let Some(end) = self.scan_type() else { return false };
        let name = self.behind_parens(end).and_then(|end| self.distance(end));
        name.is_some_and(|n| self.nth_word(n) == Some("main"))
    }

    /// Whether a declaration that begins with `word` cannot occur in `context`.
    fn foreign(&self, word: &str, context: ListContext) -> bool {
        match (context, word) {
            (ListContext::Pipeline, "action" | "table" | "state" | "apply") => false,
            // `key = { apply: exact; }` and the like.
            (ListContext::Members | ListContext::Elements, "apply" | "state") => {
                self.nth_is(1, "{") || self.nth_is(2, "{")
            }
            _ => true,
        }
    }

    /// Parses and reports a declaration that cannot occur in `context`, and keeps it for others that refer to it.
    fn misplaced_declaration(&mut self, context: ListContext, what: &str) -> ParseResult<()> {
        let Some(word) = self.word() else { return Ok(()) };
        let Some(declared) = self.declaration_begins() else { return Ok(()) };
        if !self.foreign(word, context) {
            return Ok(());
        }
        let local = matches!(word, "table" | "state" | "apply");
        let message = format!("{declared} cannot be declared inside {what}");
        let help = match word {
            "table" | "apply" => "declare it directly in a control",
            "state" => "declare it directly in a parser",
            "action" => "declare it directly in a control, or at top level",
            _ => "declare it at top level",
        };
        self.report(Diagnostic::error("misplaced-declaration", self.span(), message).help(help));
        if local {
            return self.skip();
        }
        self.nested(|p| {
            let mut made = Vec::new();
            p.declaration(&mut made)?;
            p.hoisted.append(&mut made);
            Ok(())
        })
    }

    /// Reports annotations before a construct that cannot have them.
    pub(super) fn no_annotations(&mut self, annotations: &Annotations, what: &str) {
        if let Some(first) = annotations.first() {
            let message = format!("{what} cannot have annotations");
            self.diagnostics.push(Diagnostic::error("misplaced-annotation", first.span, message));
        }
    }

    /// Reports a mistake at `span` with a suggested fix, and gives up on the item.
    pub(super) fn mistaken(&mut self, code: &'static str, span: Span, message: &str, help: &str) -> Skip {
        self.report(Diagnostic::error(code, span, message).help(help))
    }

    /// Returns a placeholder for a name that could not be parsed.
    pub(super) fn nameless(&self) -> Ident {
        Ident { name: "_".into(), span: self.before().after() }
    }
}

/// Whether the token is a string without a closing quote.
pub(super) fn is_open_string(token: &Token, map: &SourceMap) -> bool {
    matches!(token.kind, TokenKind::String(_)) && !is_closed(map.text(token.span))
}

/// Whether a string as written ends with a quote that is not escaped by `\`. A string that a macro made of other tokens
/// is not written as one.
fn is_closed(text: &str) -> bool {
    let Some(text) = text.strip_prefix('"') else { return true };
    let Some(inner) = text.strip_suffix('"') else { return false };
    (inner.len() - inner.trim_end_matches('\\').len()) % 2 == 0
}

/// Describes a token for messages.
pub(super) fn found(token: &Token) -> String {
    match &token.kind {
        TokenKind::End => "the end of the program".to_owned(),
        TokenKind::Ident(word) if is_reserved(word) => format!("the keyword `{word}`"),
        TokenKind::String(text) if text.chars().count() > 20 => "a string".to_owned(),
        kind => format!("`{kind}`"),
    }
}
