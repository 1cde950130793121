//! What a token is.

use std::sync::Arc;

use diagnostics::Span;

use crate::ast::IntLiteral;

/// A token of the language, after preprocessing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Which.
    pub kind: TokenKind,
    /// Where it stands; a token that a macro made stands where the macro was used.
    pub span: Span,
}

/// The kinds of token. Keywords are identifiers to the lexer; the parser knows which are reserved where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A name or keyword.
    Ident(Arc<str>),
    /// An integer literal.
    Int(IntLiteral),
    /// A string literal with its escapes resolved.
    String(Arc<str>),
    /// An operator or bracket, as written: `&&&`, `{`, `|+|`.
    Punct(&'static str),
    /// Something no token begins with.
    Unknown(char),
    /// The end of the program.
    End,
}
