//! Defines the tokens of the language.

use std::sync::Arc;

use diagnostics::Span;

use crate::ast::IntLiteral;

/// A token of the language, after preprocessing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Kind and content.
    pub kind: TokenKind,
    /// Source span. The span of a token produced by a macro is that of the macro's use.
    pub span: Span,
}

/// The kinds of token. Keywords are identifiers to the lexer; the parser decides where each is reserved.
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
    /// A character that begins no token.
    Unknown(char),
    /// The end of the program.
    End,
}
