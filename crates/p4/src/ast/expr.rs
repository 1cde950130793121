//! Defines expressions as written.

use std::sync::Arc;

use diagnostics::Span;
use num_bigint::BigInt;

use super::{Ident, TypeRef};

/// An expression or keyset.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Kind and content.
    pub kind: ExprKind,
    /// Source span.
    pub span: Span,
}

/// An integer literal: `42`, `8w0xff`, `4s7`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntLiteral {
    /// Value of the digits; a literal has no sign.
    pub value: BigInt,
    /// `w` becomes `(width, false)`, `s` becomes `(width, true)`.
    pub width: Option<(u32, bool)>,
}

/// The kinds of expression.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// An integer literal.
    Int(IntLiteral),
    /// A string literal, escapes resolved.
    String(Arc<str>),
    /// `true`, `false`
    Bool(bool),
    /// `this`
    This,
    /// `default` (keysets)
    Default,
    /// `_` (keysets, out arguments)
    DontCare,
    /// `...` (initialisers)
    Dots,
    /// `{#}`
    Invalid,
    /// A name; with a leading dot if `absolute`.
    Name {
        /// Whether the name begins with a dot.
        absolute: bool,
        /// The name.
        name: Ident,
    },
    /// A type in place of an expression: `bit<32>`, `E` in `E.a`, constructor calls.
    Type(Box<TypeRef>),
    /// `base.name`; `error.X` has the type `error` as base.
    Member(Box<Expr>, Ident),
    /// `base[index]`
    Index(Box<Expr>, Box<Expr>),
    /// `base[high:low]`
    Slice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `base[low +: width]`; only the width must be known at compile time.
    PlusSlice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `-e`, `+e`, `~e`, `!e`
    Unary(UnaryOp, Box<Expr>),
    /// `a + b`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `c ? a : b`
    Ternary(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `(T) e`
    Cast(Box<TypeRef>, Box<Expr>),
    /// `{ e1, e2 }`
    List(Vec<Expr>),
    /// `{ a = e1, b = e2 }`, followed by `...` if `dots`.
    Struct {
        /// The named fields.
        fields: Vec<(Ident, Expr)>,
        /// Span of the `...`, which gives the other fields their default values.
        dots: Option<Span>,
    },
    /// `f<T>(args)`: functions, methods, constructors, `apply`.
    Call {
        /// Callee.
        callee: Box<Expr>,
        /// Explicit type arguments.
        type_args: Vec<TypeRef>,
        /// Arguments.
        args: Vec<Arg>,
    },
    /// `a .. b` (keysets)
    Range(Box<Expr>, Box<Expr>),
    /// `a &&& b` (keysets)
    Mask(Box<Expr>, Box<Expr>),
}

/// An argument: `e`, `name = e` or `_`.
#[derive(Clone, Debug)]
pub struct Arg {
    /// The parameter's name, if written.
    pub name: Option<Ident>,
    /// Its value; `DontCare` for `_`.
    pub value: Expr,
}

/// Unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `+`
    Plus,
    /// `~`
    BitNot,
    /// `!`
    Not,
}

/// Binary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is its usual sign")]
pub enum BinaryOp {
    Mul,
    Div,
    Mod,
    Add,
    Sub,
    /// `|+|`
    AddSat,
    /// `|-|`
    SubSat,
    Shl,
    Shr,
    Le,
    Ge,
    Lt,
    Gt,
    Eq,
    Ne,
    BitAnd,
    BitXor,
    BitOr,
    /// `++`
    Concat,
    And,
    Or,
}
