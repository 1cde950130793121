//! Formats tokens as text: for messages, for the preprocessor's `#` and `##`, and for token dumps.

use std::fmt;

use super::{Token, TokenKind};
use crate::ast::IntLiteral;

impl fmt::Display for Token {
    /// Formats the token as it could be written in a program; [`Token::span`] is its position.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl fmt::Display for TokenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenKind::Ident(name) => f.write_str(name),
            TokenKind::Int(literal) => literal.fmt(f),
            TokenKind::String(text) => {
                f.write_str("\"")?;
                for c in text.chars() {
                    if matches!(c, '"' | '\\') {
                        f.write_str("\\")?;
                    }
                    write!(f, "{c}")?;
                }
                f.write_str("\"")
            }
            TokenKind::Punct(sign) => f.write_str(sign),
            TokenKind::Unknown(c) => write!(f, "{c}"),
            TokenKind::End => f.write_str("<end>"),
        }
    }
}

impl fmt::Display for IntLiteral {
    /// Formats the value in decimal, preceded by the width.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.width {
            Some((width, signed)) => write!(f, "{width}{}{}", if signed { 's' } else { 'w' }, self.value),
            None => self.value.fmt(f),
        }
    }
}
