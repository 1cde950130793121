//! A restriction as it is written, before anything is known of its keys.

use num_bigint::BigInt;

use crate::lex::At;

/// A comparison.
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
    /// The comparison that is written so.
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

    /// Whether it needs an order among what it compares.
    pub(crate) fn is_ordered(self) -> bool {
        !matches!(self, Comparison::Equal | Comparison::NotEqual)
    }
}

/// An expression and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: Kind,
    pub(crate) at: At,
}

/// What an expression is. Chains of one operator are one node, so that their length is no depth.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
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
