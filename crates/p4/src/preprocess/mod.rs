//! The preprocessor (specification section 6.1): directives, macros and included files, on tokens.
//!
//! ```text
//! files ── Scanner ──> raw tokens ── directives ──> tokens ── macros ──> tokens for the parser
//!            ^                           │                      ^  │
//!            └───────── #include ────────┘                      └──┘ rescanning
//! ```
//!
//! Tokens keep the position at which they were written; those of a macro's body have that of the macro's use. Included
//! files and macro bodies are kept on stacks instead of recursing; the only recursion, into the arguments of macros, is
//! limited. The output of macros and the sizes of files are limited as well, so no input can exhaust memory.

mod condition;
mod directive;
mod expand;
mod include;
mod load;
mod macros;
mod string;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};

pub use load::{DiskLoader, Loader, NoFiles, PreprocessorOptions};

use crate::lex::{Interner, RawKind, RawToken, Scanner, Token, TokenError, TokenKind, read_int};
use expand::TokenContext;
use macros::Macro;

/// Maximum number of tokens processed in one run, including intermediate results of macros.
const MAX_TOKENS: usize = 4 << 20;
/// Maximum nesting depth of included files.
const MAX_INCLUDE_DEPTH: usize = 64;
/// Maximum number of included files.
const MAX_INCLUDES: usize = 4096;
/// Maximum total size of the files in bytes, counting each as often as it is included.
const MAX_TOTAL_BYTES: usize = 64 << 20;

/// A token inside the preprocessor.
#[derive(Clone, Debug)]
struct PpToken {
    kind: TokenKind,
    /// Span of the token in later stages of the compiler.
    span: Span,
    /// Span at which it was written, for `#` and `##`.
    origin: Span,
    /// Whether white space precedes it.
    spaced: bool,
    /// Whether it is the name of a macro inside that macro's own expansion, which is never expanded again.
    painted: bool,
    /// Whether it is an invalid number. This is reported when the token leaves the preprocessor, since `##` may turn
    /// `8w` into `8w5`.
    flawed: bool,
    /// Spelling of a token made by `##`.
    made: Option<Arc<str>>,
}

impl PpToken {
    fn new(kind: TokenKind, span: Span) -> Self {
        PpToken { kind, span, origin: span, spaced: false, painted: false, flawed: false, made: None }
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.kind, TokenKind::Punct(own) if own == sign)
    }
}

/// The next item from the stack of files and macros.
enum NextItem {
    Token(PpToken),
    /// The end of an included file; the including file continues.
    FileEnd,
    /// The end of all input.
    End,
}

/// A branch of `#if`.
struct Conditional {
    /// The directive that opened it.
    span: Span,
    /// Whether its tokens are active.
    active: bool,
    /// Whether a branch was taken, so later ones are skipped.
    decided: bool,
    /// Span of `#else`, after which only `#endif` may follow.
    otherwise: Option<Span>,
}

/// A file being read.
struct OpenFile {
    scanner: Scanner,
    /// Directory in which `#include "..."` looks first; built-in files have none.
    directory: Option<PathBuf>,
    /// The `#include` directive, for messages.
    included_at: Option<Span>,
    conditionals: Vec<Conditional>,
    at_line_start: bool,
    /// Whether the file is read for the first time; line markers are recorded only then.
    first_time: bool,
}

struct Preprocessor<'a> {
    map: &'a mut SourceMap,
    diagnostics: &'a mut Diagnostics,
    options: &'a PreprocessorOptions,
    loader: &'a dyn Loader,
    words: Interner,
    files: Vec<OpenFile>,
    /// Files read before, by the path at which they were found.
    known: HashMap<PathBuf, FileId>,
    /// Files with `#pragma once`.
    once: HashSet<FileId>,
    includes: usize,
    total_bytes: usize,
    macros: HashMap<Arc<str>, Rc<Macro>>,
    contexts: Vec<TokenContext>,
    /// Current nesting depth of macro arguments.
    argument_depth: usize,
    handled: usize,
    /// Set when a limit is exceeded: nothing more is read.
    stopped: bool,
}

/// Preprocesses and scans `text`. `name` is the path of the file; included files are looked up beside it. The result
/// always ends with [`TokenKind::End`]. If a limit was exceeded, which is reported, it contains nothing else.
pub fn tokenize(
    map: &mut SourceMap,
    name: &str,
    text: &str,
    options: &PreprocessorOptions,
    loader: &dyn Loader,
    diagnostics: &mut Diagnostics,
) -> Vec<Token> {
    let fits = text.len() <= load::MAX_FILE_BYTES;
    let main = map.add(name, if fits { text } else { "" });
    let text = map.file(main).text().clone();
    let end = Span::new(main, text.len() as u32, text.len() as u32);
    if !fits {
        diagnostics.push(Diagnostic::error("too-large", end, format!("`{name}` is larger than 16 MiB")));
        return vec![Token { kind: TokenKind::End, span: end }];
    }
    let mut run = Preprocessor {
        map,
        diagnostics,
        options,
        loader,
        words: Interner::default(),
        files: Vec::new(),
        known: HashMap::new(),
        once: HashSet::new(),
        includes: 0,
        total_bytes: text.len(),
        macros: HashMap::new(),
        contexts: Vec::new(),
        argument_depth: 0,
        handled: 0,
        stopped: false,
    };
    run.open(main, Path::new(name).parent().map(Path::to_owned), None, true);
    let predefined = run.predefined();
    let command_line = run.map.add("<command line>", predefined);
    run.open(command_line, None, None, true);
    let mut tokens = Vec::new();
    while let Some(tok) = run.expanded() {
        run.report_number(&tok);
        tokens.push(Token { kind: tok.kind, span: tok.span });
    }
    if run.stopped {
        tokens.clear();
    }
    tokens.push(Token { kind: TokenKind::End, span: end });
    tokens
}

impl Preprocessor<'_> {
    /// Returns the definitions in effect before the first line, as directives.
    fn predefined(&self) -> String {
        let mut text = String::from("#define __TRIPLANE__ 1\n#define __P4_16__ 1\n");
        for (name, value) in &self.options.defines {
            let line = format!("#define {name} {value}").replace(['\n', '\r'], " ");
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    fn open(&mut self, file: FileId, directory: Option<PathBuf>, included_at: Option<Span>, first_time: bool) {
        let text = self.map.file(file).text().clone();
        let scanner = Scanner::new(file, text);
        let conditionals = Vec::new();
        self.files.push(OpenFile { scanner, directory, included_at, conditionals, at_line_start: true, first_time });
    }

    /// Counts work; stops with a diagnostic when it exceeds the limit.
    fn spend(&mut self, amount: usize, span: Span) {
        self.handled = self.handled.saturating_add(amount);
        if self.handled > MAX_TOKENS {
            let message = format!("the program has more than {MAX_TOKENS} tokens after preprocessing");
            let help = "look for macros that expand repeatedly, or files that are included many times";
            self.stop(Diagnostic::error("too-many-tokens", span, message).help(help));
        }
    }

    /// Reports `diagnostic` and stops reading.
    fn stop(&mut self, diagnostic: Diagnostic) {
        if !self.stopped {
            self.stopped = true;
            self.diagnostics.push(diagnostic);
        }
    }

    /// Returns the next token of the innermost file, and processes directives.
    fn take_from_file(&mut self) -> NextItem {
        loop {
            let Some(file) = self.files.last_mut() else { return NextItem::End };
            if self.stopped {
                return NextItem::End;
            }
            let skipped = file.conditionals.last().is_some_and(|branch| !branch.active);
            let raw = file.scanner.next(&mut self.words, skipped);
            let at_line_start = std::mem::replace(&mut file.at_line_start, raw.kind == RawKind::Newline);
            match &raw.kind {
                RawKind::Newline => {}
                RawKind::End => {
                    self.report_token_error(&raw);
                    self.close_file();
                    return if self.files.is_empty() { NextItem::End } else { NextItem::FileEnd };
                }
                RawKind::Token(TokenKind::Punct("#")) if at_line_start => self.directive(raw.span),
                RawKind::Token(_) if skipped => self.skip_line(),
                RawKind::Token(TokenKind::Punct("@")) if file.scanner.at_word("pragma") => {
                    if let Some(tok) = self.pragma_annotation(raw) {
                        return NextItem::Token(tok);
                    }
                }
                RawKind::Token(_) => {
                    let long = file.scanner.reopen_string();
                    if let Some(tok) = self.used(raw) {
                        let tok = if let Some(first) = long { self.long_string(tok, first) } else { tok };
                        return NextItem::Token(tok);
                    }
                }
            }
        }
    }

    /// Accepts an active raw token: reports its error, except for numbers, and counts its cost.
    fn used(&mut self, raw: RawToken) -> Option<PpToken> {
        self.report_token_error(&raw);
        self.spend(1, raw.span);
        match raw.kind {
            RawKind::Token(kind) => {
                let flawed = matches!(raw.error, Some(TokenError::Number(..)));
                Some(PpToken { spaced: raw.spaced, flawed, ..PpToken::new(kind, raw.span) })
            }
            RawKind::Newline | RawKind::End => None,
        }
    }

    fn report_token_error(&mut self, raw: &RawToken) {
        let diagnostic = match &raw.error {
            None | Some(TokenError::Number(..)) => return,
            Some(TokenError::UnterminatedString) => {
                Diagnostic::error("unterminated-string", raw.span, "unterminated string").help("end it with `\"`")
            }
            Some(TokenError::UnterminatedComment) => {
                Diagnostic::error("unterminated-comment", raw.span, "unterminated comment")
                    .label("the comment extends to the end of the file")
                    .help("end it with `*/`")
            }
        };
        self.diagnostics.push(diagnostic);
    }

    /// Reports an invalid number.
    fn report_number(&mut self, tok: &PpToken) {
        if tok.flawed
            && let (_, Some(TokenError::Number(problem, help))) = read_int(&self.spelling(tok))
        {
            // At its definition if it is in a macro body: it is one mistake however often the macro is used.
            let span = if tok.made.is_some() { tok.span } else { tok.origin };
            self.diagnostics.push(Diagnostic::error("bad-literal", span, problem).help(help));
        }
    }

    /// Ends the innermost file.
    fn close_file(&mut self) {
        let Some(file) = self.files.pop() else { return };
        for branch in file.conditionals {
            let message = "this conditional has no `#endif`";
            self.diagnostics.push(Diagnostic::error("unterminated-conditional", branch.span, message));
        }
    }

    /// Rewrites `@pragma name body`, up to the end of the line, to the equivalent `@name(body)`. Returns the `@`; the
    /// other tokens come next.
    fn pragma_annotation(&mut self, at: RawToken) -> Option<PpToken> {
        let mut line = self.rest_of_line();
        let pragma = line.remove(0);
        if line.is_empty() {
            let message = "`@pragma` without an annotation name";
            self.diagnostics.push(Diagnostic::error("bad-pragma", pragma.span, message).help("write `@name`"));
            return None;
        }
        let mut open: usize = 0;
        let balanced = line[1..].iter().all(|tok| {
            open += usize::from(tok.is("("));
            let closes = tok.is(")");
            let fine = !closes || open > 0;
            open -= usize::from(closes && fine);
            fine
        });
        if !balanced || open > 0 {
            let span = line[0].span.to(line[line.len() - 1].span);
            let message = "the parentheses after `@pragma` are not balanced";
            self.diagnostics.push(Diagnostic::error("bad-pragma", span, message));
            return None;
        }
        if line.len() > 1 {
            let paren = |sign, span: Span| PpToken::new(TokenKind::Punct(sign), span);
            let (first, last) = (line[0].span.after(), line[line.len() - 1].span.after());
            line.insert(1, paren("(", first));
            line.push(paren(")", last));
        }
        line[0].painted = true;
        self.contexts.push(TokenContext::plain(line));
        self.used(at)
    }
}
