//! The parser: tokens in, a syntax tree out, with recovery from mistakes.
//!
//! It is a recursive descent over the grammar of specification appendix G. That grammar needs to know which names are
//! types; like the reference compiler we keep scopes of declared names for that (module `names`), but ask them only
//! where the tokens alone leave it open (`(T) - 1`, `f<T>(x)`), so that a program whose types are missing still parses.
//!
//! A function that meets a mistake reports it and either goes on as if what is missing were there (`;`, `)`), or gives
//! up with `Skip`; the list it is an item of then synchronises (module `recover`) and goes on with the next item.
//! Nothing is reported twice at one token.
//!
//! Trees are no higher than [`MAX_DEPTH`], whatever the input: nesting and long chains of operators count alike, so that
//! everyone may walk (and drop) a tree by recursion.

mod annotation;
mod braces;
mod cursor;
mod decl;
mod expr;
mod local;
mod names;
mod operators;
mod pipeline;
mod recover;
mod stmt;
mod table;
mod types;

use diagnostics::{Diagnostics, SourceMap};

pub use crate::preprocess::{DiskLoader, Loader, Options, tokenize};

use crate::ast::{Decl, Program};
use crate::lex::Token;
use names::Names;

/// The greatest height of a tree: nested declarations, blocks, statements, expressions and types together.
pub const MAX_DEPTH: usize = 200;

/// A mistake was met and reported; what was being parsed is given up.
struct Skip;

type Parsed<T> = Result<T, Skip>;

struct Parser<'a> {
    map: &'a SourceMap,
    /// Ends with `End`.
    tokens: &'a [Token],
    /// The next token.
    at: usize,
    /// The rest of the next token if its first half has been read: `>` of `>>`.
    half: Option<Token>,
    diagnostics: &'a mut Diagnostics,
    names: Names,
    /// How deep the parser is in declarations, statements, expressions and types at present.
    depth: usize,
    /// How high the expression or type is that was parsed last.
    height: usize,
    /// Set while `>` ends an expression, as in `bit<W>`.
    angle_ends: bool,
    /// The token at which the last mistake was reported.
    reported_at: Option<usize>,
    /// Set by whoever gives up an item but has found where the next one begins.
    settled: bool,
    /// The token behind the last statement that stood where only declarations may: more of them there are one mistake.
    stray_end: Option<usize>,
    /// Set when parsing stops for good: what follows is not worth a message.
    stopped: bool,
    /// The tokens behind each `{` that is open.
    open: Vec<usize>,
    /// How far the program's braces are from coming out even.
    balance: braces::Balance,
    /// Declarations that stood where they may not, and are kept because others need them.
    hoisted: Vec<Decl>,
}

/// Preprocesses and parses `text`. See [`tokenize`] and [`parse_tokens`].
pub fn parse(
    map: &mut SourceMap,
    name: &str,
    text: &str,
    options: &Options,
    loader: &dyn Loader,
    diagnostics: &mut Diagnostics,
) -> Program {
    let tokens = tokenize(map, name, text, options, loader, diagnostics);
    parse_tokens(map, &tokens, diagnostics)
}

/// Parses what [`tokenize`] made. Mistakes are reported; what could be understood all the same is in the result, so that
/// later stages can report theirs.
pub fn parse_tokens(map: &SourceMap, tokens: &[Token], diagnostics: &mut Diagnostics) -> Program {
    let mut parser = Parser {
        map,
        tokens,
        at: 0,
        half: None,
        diagnostics,
        names: Names::default(),
        depth: 0,
        height: 0,
        angle_ends: false,
        reported_at: None,
        settled: false,
        stray_end: None,
        stopped: false,
        open: Vec::new(),
        balance: braces::Balance::of(tokens, map),
        hoisted: Vec::new(),
    };
    parser.program()
}
