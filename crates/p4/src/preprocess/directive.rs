//! Preprocessor directives: lines that begin with `#`.

use diagnostics::{Diagnostic, Span};

use super::{Conditional, PpToken, Preprocessor};
use crate::lex::{RawKind, TokenKind};

const KNOWN: &str = "the directives are `#include`, `#define`, `#undef`, `#if`, `#ifdef`, `#ifndef`, `#elif`, `#else`, \
                     `#endif`, `#error`, `#warning`, `#line` and `#pragma`";

impl Preprocessor<'_> {
    /// Processes the directive after a `#`, up to and including the end of its line.
    pub(super) fn directive(&mut self, hash: Span) {
        let Some(file) = self.files.last_mut() else { return };
        let skipped = file.conditionals.last().is_some_and(|branch| !branch.active);
        let raw = file.scanner.next(&mut self.words, skipped);
        let span = hash.to(raw.span);
        let name = match &raw.kind {
            RawKind::Newline => {
                file.at_line_start = true;
                return;
            }
            RawKind::End => return self.report_token_error(&raw),
            RawKind::Token(TokenKind::Ident(name)) => name.clone(),
            RawKind::Token(TokenKind::Int(number)) if !skipped => {
                let line = u32::try_from(&number.value).ok();
                return self.line_marker(line, raw.span);
            }
            RawKind::Token(kind) => {
                if !skipped {
                    let message = format!("expected a directive name after `#`, found `{kind}`");
                    self.diagnostics.push(Diagnostic::error("unknown-directive", raw.span, message).help(KNOWN));
                }
                return self.skip_line();
            }
        };
        match &*name {
            "if" | "ifdef" | "ifndef" => self.open_conditional(&name, span, skipped),
            "elif" | "else" => self.next_branch(&name, span),
            "endif" => {
                let closed = self.files.last_mut().and_then(|file| file.conditionals.pop());
                if closed.is_none() {
                    self.stray("endif", span);
                }
                self.expect_line_end("endif");
            }
            _ if skipped => self.skip_line(),
            "include" => self.include_directive(span),
            "define" => {
                let line = self.rest_of_line();
                self.define(line, span);
            }
            "undef" => match self.rest_of_line().as_slice() {
                [PpToken { kind: TokenKind::Ident(name), .. }] => {
                    self.macros.remove(name);
                }
                _ => {
                    let message = "`#undef` takes one macro name";
                    self.diagnostics.push(Diagnostic::error("bad-directive", span, message));
                }
            },
            "error" | "warning" => self.message(&name, span),
            "line" => {
                let line = self.rest_of_line();
                let line = self.expand_list(&line);
                let number = match line.first() {
                    Some(PpToken { kind: TokenKind::Int(number), .. }) => u32::try_from(&number.value).ok(),
                    _ => None,
                };
                self.mark_line(number, line.get(1), span);
            }
            "pragma" => {
                let (text, rest) = self.text_of_line();
                if text == "once" {
                    let file = self.files.last().map(|file| file.scanner.file());
                    self.once.extend(file);
                } else {
                    let message = format!("unknown pragma `#pragma {text}`");
                    let help = "write annotations as `@name(...)` or `@pragma name ...`, without `#`";
                    let diagnostic = Diagnostic::warning("ignored-pragma", span.to(rest), message);
                    self.diagnostics.push(diagnostic.help(help));
                }
            }
            "ident" | "sccs" => self.skip_line(),
            other => {
                let message = format!("`#{other}` is not a directive");
                self.diagnostics.push(Diagnostic::error("unknown-directive", span, message).help(KNOWN));
                self.skip_line();
            }
        }
    }

    fn open_conditional(&mut self, name: &str, span: Span, skipped: bool) {
        let active = if skipped {
            self.skip_line();
            false
        } else if name == "if" {
            let line = self.rest_of_line();
            self.condition(&line, span)
        } else {
            let line = self.rest_of_line();
            let defined = match line.as_slice() {
                [PpToken { kind: TokenKind::Ident(name), .. }, rest @ ..] => {
                    self.expect_nothing(rest, "the name of the macro");
                    self.is_defined(name)
                }
                _ => {
                    let message = format!("`#{name}` takes a macro name");
                    self.diagnostics.push(Diagnostic::error("bad-directive", span, message));
                    false
                }
            };
            defined == (name == "ifdef")
        };
        if let Some(file) = self.files.last_mut() {
            file.conditionals.push(Conditional { span, active, decided: active || skipped, otherwise: None });
        }
    }

    /// Processes `#elif` and `#else`.
    fn next_branch(&mut self, name: &str, span: Span) {
        let Some((decided, otherwise, opened)) = self
            .files
            .last()
            .and_then(|file| file.conditionals.last())
            .map(|branch| (branch.decided, branch.otherwise, branch.span))
        else {
            self.stray(name, span);
            return self.skip_line();
        };
        if let Some(before) = otherwise {
            let message = format!("`#{name}` after `#else`");
            let diagnostic = Diagnostic::error("stray-directive", span, message);
            self.diagnostics.push(diagnostic.also(before, "the `#else`").also(opened, "this conditional starts here"));
            return self.skip_line();
        }
        let active = if name == "else" {
            self.expect_line_end("else");
            !decided
        } else if decided {
            self.skip_line();
            false
        } else {
            let line = self.rest_of_line();
            self.condition(&line, span)
        };
        if let Some(branch) = self.files.last_mut().and_then(|file| file.conditionals.last_mut()) {
            branch.active = active;
            branch.decided |= active;
            branch.otherwise = (name == "else").then_some(span);
        }
    }

    fn stray(&mut self, name: &str, span: Span) {
        let message = format!("`#{name}` without `#if`");
        self.diagnostics.push(Diagnostic::error("stray-directive", span, message));
    }

    fn message(&mut self, name: &str, span: Span) {
        let (text, rest) = self.text_of_line();
        let text = text.trim_matches('"').to_owned();
        let text = if text.is_empty() { format!("`#{name}`") } else { text };
        let diagnostic = match name {
            "error" => Diagnostic::error("error-directive", span.to(rest), text),
            _ => Diagnostic::warning("warning-directive", span.to(rest), text),
        };
        self.diagnostics.push(diagnostic);
    }

    fn include_directive(&mut self, span: Span) {
        let angled = self.files.last_mut().and_then(|file| file.scanner.angled_name());
        if let Some((name, at)) = angled {
            self.expect_line_end("include");
            return self.include(&name, false, at);
        }
        let mut line = self.rest_of_line();
        if !matches!(line.first(), Some(PpToken { kind: TokenKind::String(_), .. })) {
            line = self.expand_list(&line);
        }
        match line.as_slice() {
            [PpToken { kind: TokenKind::String(name), span: at, .. }, rest @ ..] => {
                self.expect_nothing(rest, "the name of the file");
                let (name, at) = (name.clone(), *at);
                self.include(&name, true, at);
            }
            [open, name @ .., close] if open.is("<") && close.is(">") => {
                let text: String = name.iter().map(|tok| self.spelling(tok)).collect();
                self.include(&text, false, open.span.to(close.span));
            }
            _ => {
                let diagnostic = Diagnostic::error("bad-directive", span, "`#include` without a file name");
                self.diagnostics.push(diagnostic.help("write `#include <core.p4>` or `#include \"mine.p4\"`"));
            }
        }
    }

    /// Processes `# 12 "file"`, as emitted by other preprocessors.
    fn line_marker(&mut self, number: Option<u32>, span: Span) {
        let line = self.rest_of_line();
        self.mark_line(number, line.first(), span);
    }

    fn mark_line(&mut self, number: Option<u32>, name: Option<&PpToken>, span: Span) {
        let Some(number) = number.filter(|number| *number < u32::MAX / 2) else {
            let diagnostic = Diagnostic::error("bad-directive", span, "a line marker needs a line number");
            return self.diagnostics.push(diagnostic.help("write `#line 12 \"file\"`"));
        };
        let name = match name {
            Some(PpToken { kind: TokenKind::String(name), .. }) => name.to_string(),
            _ => self.map.position(span).file,
        };
        if self.files.last().is_some_and(|file| file.first_time) {
            self.map.mark_line(span.file, span.start, number, &name);
        }
    }

    /// Whether `name` is a macro.
    pub(super) fn is_defined(&self, name: &str) -> bool {
        self.macros.contains_key(name) || matches!(name, "__LINE__" | "__FILE__")
    }

    /// Skips to the end of the line; the caller consumes the end itself next.
    pub(super) fn skip_line(&mut self) {
        let Some(file) = self.files.last_mut() else { return };
        loop {
            let raw = file.scanner.next(&mut self.words, true);
            match raw.kind {
                RawKind::Newline => break,
                // The scanner keeps returning the end of the file.
                RawKind::End => return,
                RawKind::Token(_) => {}
            }
        }
        file.at_line_start = true;
    }

    /// Consumes the tokens up to and including the end of the line.
    pub(super) fn rest_of_line(&mut self) -> Vec<PpToken> {
        let mut line = Vec::new();
        while let Some(file) = self.files.last_mut() {
            let raw = file.scanner.next(&mut self.words, false);
            if raw.kind == RawKind::Newline {
                file.at_line_start = true;
            }
            match self.used(raw) {
                Some(tok) => line.push(tok),
                None => break,
            }
        }
        line
    }

    /// Returns the line as written, for directives with a free-text argument.
    fn text_of_line(&mut self) -> (String, Span) {
        let Some(file) = self.files.last_mut() else { return Default::default() };
        file.scanner.rest_of_line()
    }

    fn expect_line_end(&mut self, directive: &str) {
        let line = self.rest_of_line();
        self.expect_nothing(&line, &format!("`#{directive}`"));
    }

    fn expect_nothing(&mut self, rest: &[PpToken], behind: &str) {
        if let [first, .., last] | [first @ last] = rest {
            let message = format!("extra tokens after {behind}");
            let diagnostic = Diagnostic::warning("extra-tokens", first.span.to(last.span), message);
            self.diagnostics.push(diagnostic.label("this is ignored"));
        }
    }
}
