//! Defines the syntax tree of restrictions, before names are resolved.

use num_bigint::BigInt;

use crate::lex::TextRange;

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Comparison {
    /// Returns the comparison that is written as `sign`.
    pub(crate) fn of(sign: &str) -> Option<Comparison> {
        Some(match sign {
            "==" => Comparison::Equal,
            "!=" => Comparison::NotEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::LessEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterEqual,
            _ => return None,
        })
    }

    /// Whether it requires ordered operands.
    pub(crate) fn is_ordered(self) -> bool {
        !matches!(self, Comparison::Equal | Comparison::NotEqual)
    }
}

/// An expression and its position.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) at: TextRange,
}

/// Kind of an expression. A chain of one operator is one node, so a long chain is not deep.
#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Bool(bool),
    Number(BigInt),
    /// `hdr.ipv4.dst`: a key of a table, a parameter of an action.
    Name(String),
    /// `::priority`.
    Attribute(String),
    /// `key::mask`.
    Part(Box<Expr>, String),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    /// `a && b`, `a; b`.
    All(Vec<Expr>),
    /// `a || b`.
    Any(Vec<Expr>),
    /// `a -> b`.
    Implies(Box<[Expr; 2]>),
    Compare(Comparison, Box<[Expr; 2]>),
}
