//! Defines operators and their precedence (specification appendix G).

use super::SourceParser;
use crate::ast::BinaryOp;
use crate::lex::TokenKind;

/// Returns the binary operator written as `sign`, and its precedence.
pub(super) fn binary(sign: &str) -> Option<(BinaryOp, u8)> {
    Some(match sign {
        "||" => (BinaryOp::Or, 1),
        "&&" => (BinaryOp::And, 2),
        "==" => (BinaryOp::Eq, 3),
        "!=" => (BinaryOp::Ne, 3),
        "<" => (BinaryOp::Lt, 4),
        ">" => (BinaryOp::Gt, 4),
        "<=" => (BinaryOp::Le, 4),
        ">=" => (BinaryOp::Ge, 4),
        "|" => (BinaryOp::BitOr, 5),
        "^" => (BinaryOp::BitXor, 6),
        "&" => (BinaryOp::BitAnd, 7),
        "<<" => (BinaryOp::Shl, 8),
        ">>" => (BinaryOp::Shr, 8),
        "+" => (BinaryOp::Add, 9),
        "-" => (BinaryOp::Sub, 9),
        "++" => (BinaryOp::Concat, 9),
        "|+|" => (BinaryOp::AddSat, 9),
        "|-|" => (BinaryOp::SubSat, 9),
        "*" => (BinaryOp::Mul, 10),
        "/" => (BinaryOp::Div, 10),
        "%" => (BinaryOp::Mod, 10),
        _ => return None,
    })
}

/// Returns the operator of an assignment written as `sign`; `Some(None)` for the plain one.
pub(super) fn assignment(sign: &str) -> Option<Option<BinaryOp>> {
    Some(Some(match sign {
        "=" => return Some(None),
        "+=" => BinaryOp::Add,
        "-=" => BinaryOp::Sub,
        "*=" => BinaryOp::Mul,
        "/=" => BinaryOp::Div,
        "%=" => BinaryOp::Mod,
        "&=" => BinaryOp::BitAnd,
        "|=" => BinaryOp::BitOr,
        "^=" => BinaryOp::BitXor,
        "<<=" => BinaryOp::Shl,
        ">>=" => BinaryOp::Shr,
        "|+|=" => BinaryOp::AddSat,
        "|-|=" => BinaryOp::SubSat,
        _ => return None,
    }))
}

impl SourceParser<'_> {
    /// Returns the next binary operator, and its precedence.
    pub(super) fn next_binary(&self) -> Option<(BinaryOp, u8)> {
        match self.kind() {
            TokenKind::Punct(">" | ">>" | ">=") if self.angle_ends => None,
            TokenKind::Punct(sign) => binary(sign),
            _ => None,
        }
    }
}
