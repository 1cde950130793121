//! The preprocessor (specification section 6.1): directives, macros and included files, on tokens.
//!
//! ```text
//! files ── Scanner ──> raw tokens ── directives ──> tokens ── macros ──> tokens for the parser
//!            ^                           │                      ^  │
//!            └───────── #include ────────┘                      └──┘ rescanning
//! ```
//!
//! Tokens keep the place they were written at; those of a macro's body stand where the macro was used. Included files
//! and macro bodies are stacks, not recursion; the one recursion, into the arguments of macros, is limited. What macros
//! produce and files hold is limited as well, so that no input can exhaust the memory.

mod condition;
mod directive;
mod expand;
mod include;
mod load;
mod macros;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};

pub use load::{DiskLoader, Loader, Options};

use crate::lex::{Flaw, Raw, RawKind, Scanner, Token, TokenKind, Words, read_int};
use expand::Context;
use macros::Macro;

/// How many tokens one run handles, those that macros produce on the way included.
const MAX_TOKENS: usize = 4 << 20;
/// How deeply files may include each other.
const MAX_INCLUDE_DEPTH: usize = 64;
/// How many files may be included in total.
const MAX_INCLUDES: usize = 4096;
/// How many bytes the files may have in total, each counted as often as it is included.
const MAX_TOTAL_BYTES: usize = 64 << 20;

/// A token on its way through the preprocessor.
#[derive(Clone, Debug)]
struct Tok {
    kind: TokenKind,
    /// The place the token has for the rest of the compiler.
    span: Span,
    /// Where it was written, for `#` and `##`.
    origin: Span,
    /// Whether white space stands before it.
    spaced: bool,
    /// Set on the name of a macro inside of that macro's own expansion: it is never expanded again.
    painted: bool,
    /// Whether it is a number that cannot be read. That is reported when it leaves the preprocessor, since `8w` may
    /// become `8w5` by `##`.
    flawed: bool,
    /// How it is written if `##` made it.
    made: Option<Arc<str>>,
}

impl Tok {
    fn new(kind: TokenKind, span: Span) -> Self {
        Tok { kind, span, origin: span, spaced: false, painted: false, flawed: false, made: None }
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.kind, TokenKind::Punct(own) if own == sign)
    }
}

/// What comes next from the stack of files and macros.
enum Taken {
    Token(Tok),
    /// An included file ended; the file that included it goes on.
    FileEnd,
    /// Nothing is left.
    End,
}

/// A branch of `#if`.
struct Conditional {
    /// The directive that opened it.
    span: Span,
    /// Whether its tokens count.
    active: bool,
    /// Whether a branch has been chosen, so that no later one can be.
    decided: bool,
    /// Where `#else` was, after which only `#endif` may come.
    otherwise: Option<Span>,
}

/// A file that is being read.
struct OpenFile {
    scanner: Scanner,
    /// The directory that `#include "..."` looks in first; files that ship with the compiler have none.
    directory: Option<PathBuf>,
    /// The `#include`, for messages.
    included_at: Option<Span>,
    conditionals: Vec<Conditional>,
    at_line_start: bool,
    /// Whether this is the first time the file is read; line markers are recorded only then.
    first_time: bool,
}

struct Preprocessor<'a> {
    map: &'a mut SourceMap,
    diagnostics: &'a mut Diagnostics,
    options: &'a Options,
    loader: &'a dyn Loader,
    words: Words,
    files: Vec<OpenFile>,
    /// Files that were read before, by the path they were found at.
    known: HashMap<PathBuf, FileId>,
    /// Files with `#pragma once`.
    once: HashSet<FileId>,
    includes: usize,
    total_bytes: usize,
    macros: HashMap<Arc<str>, Rc<Macro>>,
    contexts: Vec<Context>,
    /// How deep the arguments of macros are nested at present.
    argument_depth: usize,
    handled: usize,
    /// Set when a limit is hit: nothing more is read.
    stopped: bool,
}

/// Preprocesses and scans `text`. The name is the path of the file: files it includes are looked for beside it. The
/// result always ends with [`TokenKind::End`]; it is nothing but that if a limit was hit, which has been reported.
pub fn tokenize(
    map: &mut SourceMap,
    name: &str,
    text: &str,
    options: &Options,
    loader: &dyn Loader,
    diagnostics: &mut Diagnostics,
) -> Vec<Token> {
    let fits = text.len() <= load::MAX_FILE_BYTES;
    let main = map.add(name, if fits { text } else { "" });
    let text = map.file(main).text().clone();
    let end = Span::new(main, text.len() as u32, text.len() as u32);
    if !fits {
        diagnostics.push(Diagnostic::error("too-large", end, format!("`{name}` is longer than 16 MiB")));
        return vec![Token { kind: TokenKind::End, span: end }];
    }
    let mut run = Preprocessor {
        map,
        diagnostics,
        options,
        loader,
        words: Words::default(),
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
    /// The definitions that hold before the first line, as directives.
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

    /// Counts work done; when it is too much, says so and stops.
    fn spend(&mut self, amount: usize, span: Span) {
        self.handled = self.handled.saturating_add(amount);
        if self.handled > MAX_TOKENS {
            let message = format!("the program has more than {MAX_TOKENS} tokens after preprocessing");
            let help = "look for macros that expand to macros again and again, or files that are included many times";
            self.stop(Diagnostic::error("too-many-tokens", span, message).help(help));
        }
    }

    /// Reports `diagnostic` and reads nothing more.
    fn stop(&mut self, diagnostic: Diagnostic) {
        if !self.stopped {
            self.stopped = true;
            self.diagnostics.push(diagnostic);
        }
    }

    /// The next token of the innermost file, directives obeyed.
    fn take_from_file(&mut self) -> Taken {
        loop {
            let Some(file) = self.files.last_mut() else { return Taken::End };
            if self.stopped {
                return Taken::End;
            }
            let skipped = file.conditionals.last().is_some_and(|branch| !branch.active);
            let raw = file.scanner.next(&mut self.words, skipped);
            let at_line_start = std::mem::replace(&mut file.at_line_start, raw.kind == RawKind::Newline);
            match &raw.kind {
                RawKind::Newline => {}
                RawKind::End => {
                    self.report_flaw(&raw);
                    self.close_file();
                    return if self.files.is_empty() { Taken::End } else { Taken::FileEnd };
                }
                RawKind::Token(TokenKind::Punct("#")) if at_line_start => self.directive(raw.span),
                RawKind::Token(_) if skipped => self.skip_line(),
                RawKind::Token(TokenKind::Punct("@")) if file.scanner.at_word("pragma") => {
                    if let Some(tok) = self.pragma_annotation(raw) {
                        return Taken::Token(tok);
                    }
                }
                RawKind::Token(_) => {
                    if let Some(tok) = self.used(raw) {
                        return Taken::Token(tok);
                    }
                }
            }
        }
    }

    /// A raw token that counts: its flaws are reported, unless it is a number, and it is charged.
    fn used(&mut self, raw: Raw) -> Option<Tok> {
        self.report_flaw(&raw);
        self.spend(1, raw.span);
        match raw.kind {
            RawKind::Token(kind) => {
                let flawed = matches!(raw.flaw, Some(Flaw::Number(..)));
                Some(Tok { spaced: raw.spaced, flawed, ..Tok::new(kind, raw.span) })
            }
            RawKind::Newline | RawKind::End => None,
        }
    }

    fn report_flaw(&mut self, raw: &Raw) {
        let diagnostic = match &raw.flaw {
            None | Some(Flaw::Number(..)) => return,
            Some(Flaw::UnterminatedString) => {
                Diagnostic::error("unterminated-string", raw.span, "this string has no end").help("end it with `\"`")
            }
            Some(Flaw::UnterminatedComment) => {
                Diagnostic::error("unterminated-comment", raw.span, "this comment has no end")
                    .label("everything from here to the end of the file is in it")
                    .help("end it with `*/`")
            }
        };
        self.diagnostics.push(diagnostic);
    }

    /// Reports a number that cannot be read.
    fn report_number(&mut self, tok: &Tok) {
        if tok.flawed
            && let (_, Some(Flaw::Number(problem, help))) = read_int(&self.spelling(tok))
        {
            // At its definition, if a macro holds it: it is one mistake however often it is used.
            let span = if tok.made.is_some() { tok.span } else { tok.origin };
            self.diagnostics.push(Diagnostic::error("bad-literal", span, problem).help(help));
        }
    }

    /// Ends the innermost file.
    fn close_file(&mut self) {
        let Some(file) = self.files.pop() else { return };
        for branch in file.conditionals {
            let message = "this conditional has no `#endif` before the file ends";
            self.diagnostics.push(Diagnostic::error("unterminated-conditional", branch.span, message));
        }
    }

    /// Turns `@pragma name body` up to the line's end into `@name(body)`, which means the same: the result is the `@`,
    /// and the rest comes next.
    fn pragma_annotation(&mut self, at: Raw) -> Option<Tok> {
        let mut line = self.rest_of_line();
        let pragma = line.remove(0);
        if line.is_empty() {
            let message = "`@pragma` without the name of an annotation";
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
            let message = "the parentheses behind `@pragma` are not balanced";
            self.diagnostics.push(Diagnostic::error("bad-pragma", span, message));
            return None;
        }
        if line.len() > 1 {
            let paren = |sign, span: Span| Tok::new(TokenKind::Punct(sign), span);
            let (first, last) = (line[0].span.after(), line[line.len() - 1].span.after());
            line.insert(1, paren("(", first));
            line.push(paren(")", last));
        }
        line[0].painted = true;
        self.contexts.push(Context::plain(line));
        self.used(at)
    }
}
