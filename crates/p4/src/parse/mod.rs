//! The parser: converts tokens to a syntax tree, with error recovery.
//!
//! It is a recursive-descent parser of the grammar in specification appendix G. That grammar depends on which names are
//! types. Like the reference compiler, we keep scopes of declared names for that (module `names`), but consult them
//! only where the tokens alone are ambiguous (`(T) - 1`, `f<T>(x)`), so a program with missing types still parses.
//!
//! A function that finds a mistake reports it and either continues as if the missing token were there (`;`, `)`), or
//! gives up with `Skip`. The enclosing list of items then synchronises (module `recover`) and continues with the next
//! item. At most one mistake is reported per token.
//!
//! The height of a tree never exceeds [`MAX_DEPTH`], whatever the input: nesting and long chains of operators count
//! alike, so that trees can be walked (and dropped) recursively.

mod annotation;
mod braces;
mod cursor;
mod decl;
mod expr;
mod local;
mod misspelled;
mod names;
mod operators;
mod pipeline;
mod recover;
mod stmt;
mod table;
mod types;

use diagnostics::{Diagnostics, SourceMap};

pub use crate::preprocess::{DiskLoader, Loader, NoFiles, PreprocessorOptions, tokenize};
pub(crate) use cursor::is_reserved;

use crate::ast::{Decl, Program};
use crate::lex::Token;
use names::NameScopes;

/// Maximum height of a tree: nested declarations, blocks, statements, expressions and types together.
pub const MAX_DEPTH: usize = 200;

/// A mistake was reported, and the item being parsed is given up.
struct Skip;

type ParseResult<T> = Result<T, Skip>;

struct SourceParser<'a> {
    map: &'a SourceMap,
    /// The tokens; the last one is `End`.
    tokens: &'a [Token],
    /// Index of the next token.
    at: usize,
    /// Replacement of the next token: its rest if its first half was consumed (`>` of `>>`), or the keyword that it
    /// misspells.
    half: Option<Token>,
    diagnostics: &'a mut Diagnostics,
    names: NameScopes,
    /// Current nesting depth in declarations, statements, expressions and types.
    depth: usize,
    /// Height of the expression or type parsed last.
    height: usize,
    /// Set while `>` ends an expression, as in `bit<W>`.
    angle_ends: bool,
    /// The token at which the last mistake was reported.
    reported_at: Option<usize>,
    /// Set by code that gives up an item after finding the beginning of the next one.
    settled: bool,
    /// Index after the last statement found where only declarations may occur; adjacent ones are part of the same
    /// mistake.
    stray_end: Option<usize>,
    /// Set when parsing stops for good: the rest deserves no messages.
    stopped: bool,
    /// Index after each open `{`.
    open: Vec<usize>,
    /// Numbers of missing and surplus braces of the program.
    balance: braces::BraceBalance,
    /// Misplaced declarations, kept because others refer to them.
    hoisted: Vec<Decl>,
}

/// Preprocesses and parses `text`. See [`tokenize`] and [`parse_tokens`].
pub fn parse(
    map: &mut SourceMap,
    name: &str,
    text: &str,
    options: &PreprocessorOptions,
    loader: &dyn Loader,
    diagnostics: &mut Diagnostics,
) -> Program {
    let tokens = tokenize(map, name, text, options, loader, diagnostics);
    parse_tokens(map, &tokens, diagnostics)
}

/// Parses the result of [`tokenize`]. Mistakes are reported; the result contains everything that could be parsed, so
/// that later stages can report their own mistakes.
pub fn parse_tokens(map: &SourceMap, tokens: &[Token], diagnostics: &mut Diagnostics) -> Program {
    let mut parser = SourceParser {
        map,
        tokens,
        at: 0,
        half: None,
        diagnostics,
        names: NameScopes::default(),
        depth: 0,
        height: 0,
        angle_ends: false,
        reported_at: None,
        settled: false,
        stray_end: None,
        stopped: false,
        open: Vec::new(),
        balance: braces::BraceBalance::of(tokens, map),
        hoisted: Vec::new(),
    };
    parser.program()
}
