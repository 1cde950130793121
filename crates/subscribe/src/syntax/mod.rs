//! The rule language: lexer, parser, constants and formatting.

pub(crate) mod lex;
pub mod parse;
pub(crate) mod show;
pub(crate) mod value;
