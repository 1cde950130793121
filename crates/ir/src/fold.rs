//! Constructs expressions, folding constants.
//!
//! Inlining replaces parameters by constants. Lowering builds all expressions by these functions, so that a constant
//! one is an [`Expr::Const`] at once and a branch on it can be decided during lowering.

use std::cmp::Ordering;

use crate::{BinaryOp, Expr, UnaryOp};
use bits::Bits;

/// Returns the constant 0 or 1, one bit wide.
pub fn bool(value: bool) -> Expr {
    Expr::Const(Bits::bool(value))
}

/// Returns a constant.
pub fn constant(value: u128, width: u32) -> Expr {
    Expr::Const(Bits::new(value, width))
}

/// Returns the value of a constant expression.
pub fn as_const(expr: &Expr) -> Option<&Bits> {
    match expr {
        Expr::Const(bits) => Some(bits),
        _ => None,
    }
}

/// Whether the expression is the one-bit constant `value`.
fn is_bool(expr: &Expr, value: bool) -> bool {
    as_const(expr).is_some_and(|bits| bits.width() == 1 && bits.is_true() == value)
}

/// Builds `op a`.
pub fn unary(op: UnaryOp, a: Expr) -> Expr {
    match (op, a) {
        (UnaryOp::Not, Expr::Const(bits)) => Expr::Const(bits.not()),
        (UnaryOp::Neg, Expr::Const(bits)) => Expr::Const(bits.neg()),
        (UnaryOp::Not, Expr::Unary(UnaryOp::Not, inner)) => *inner,
        (op, a) => Expr::Unary(op, Box::new(a)),
    }
}

/// Builds the negation of a one-bit value.
pub fn not(a: Expr) -> Expr {
    match a {
        Expr::Binary(BinaryOp::Eq, a, b) => Expr::Binary(BinaryOp::Ne, a, b),
        Expr::Binary(BinaryOp::Ne, a, b) => Expr::Binary(BinaryOp::Eq, a, b),
        a => unary(UnaryOp::Not, a),
    }
}

/// Builds `a op b`.
pub fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    if let (Expr::Const(x), Expr::Const(y)) = (&a, &b) {
        return Expr::Const(compute(op, x, y));
    }
    let zero = |e: &Expr| as_const(e).is_some_and(Bits::is_zero);
    match op {
        BinaryOp::And if is_bool(&a, true) => b,
        BinaryOp::And if is_bool(&b, true) => a,
        BinaryOp::And if zero(&a) => a,
        BinaryOp::And if zero(&b) => b,
        BinaryOp::Or if is_bool(&a, true) || zero(&b) => a,
        BinaryOp::Or if is_bool(&b, true) || zero(&a) => b,
        BinaryOp::Eq if is_bool(&b, true) => a,
        BinaryOp::Eq if is_bool(&b, false) => not(a),
        BinaryOp::Ne if is_bool(&b, false) => a,
        BinaryOp::Ne if is_bool(&b, true) => not(a),
        BinaryOp::Add | BinaryOp::Xor if zero(&a) => b,
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Xor if zero(&b) => a,
        BinaryOp::Shl | BinaryOp::Shr | BinaryOp::ShrSigned if zero(&b) => a,
        op => Expr::Binary(op, Box::new(a), Box::new(b)),
    }
}

/// Evaluates the operator on two constants, by the rules of [`BinaryOp`].
pub fn compute(op: BinaryOp, x: &Bits, y: &Bits) -> Bits {
    let amount = || y.to_u64().map_or(u32::MAX, |n| n.min(u64::from(u32::MAX)) as u32);
    match op {
        BinaryOp::Add => x.add(y),
        BinaryOp::Sub => x.sub(y),
        BinaryOp::Mul => x.mul(y),
        BinaryOp::Div if y.is_zero() => Bits::zero(x.width()),
        BinaryOp::Rem if y.is_zero() => Bits::zero(x.width()),
        BinaryOp::Div => x.div(y),
        BinaryOp::Rem => x.rem(y),
        BinaryOp::AddSat => x.saturating_add(y),
        BinaryOp::SubSat => x.saturating_sub(y),
        BinaryOp::AddSatSigned => x.signed_saturating_add(y),
        BinaryOp::SubSatSigned => x.signed_saturating_sub(y),
        BinaryOp::And => x.and(y),
        BinaryOp::Or => x.or(y),
        BinaryOp::Xor => x.xor(y),
        BinaryOp::Shl => x.shl(amount()),
        BinaryOp::Shr => x.shr(amount()),
        BinaryOp::ShrSigned => x.signed_shr(amount()),
        BinaryOp::Eq => Bits::bool(x == y),
        BinaryOp::Ne => Bits::bool(x != y),
        BinaryOp::Lt => Bits::bool(x.unsigned_cmp(y) == Ordering::Less),
        BinaryOp::Le => Bits::bool(x.unsigned_cmp(y) != Ordering::Greater),
        BinaryOp::LtSigned => Bits::bool(x.signed_cmp(y) == Ordering::Less),
        BinaryOp::LeSigned => Bits::bool(x.signed_cmp(y) != Ordering::Greater),
    }
}

/// Builds the conjunction of two one-bit values.
pub fn and(a: Expr, b: Expr) -> Expr {
    binary(BinaryOp::And, a, b)
}

/// Builds the disjunction of two one-bit values.
pub fn or(a: Expr, b: Expr) -> Expr {
    binary(BinaryOp::Or, a, b)
}

/// Builds the slice of bits `high` to `low` of a value that is `width` bits wide.
pub fn slice(e: Expr, width: u32, high: u32, low: u32) -> Expr {
    debug_assert!(low <= high && high < width, "slice [{high}:{low}] of {width} bits");
    if low == 0 && high + 1 == width {
        return e;
    }
    match e {
        Expr::Const(bits) => Expr::Const(bits.slice(high, low)),
        Expr::Slice(inner, _, base) => Expr::Slice(inner, base + high, base + low),
        e => Expr::Slice(Box::new(e), high, low),
    }
}

/// Zero-extends or truncates a value of `from` bits to `to` bits.
pub fn resize(e: Expr, from: u32, to: u32) -> Expr {
    match e {
        Expr::Const(bits) => Expr::Const(bits.resize(to)),
        _ if to == 0 => Expr::Const(Bits::zero(0)),
        e if to < from => slice(e, from, to - 1, 0),
        e if to == from => e,
        Expr::ZeroExtend(inner, _) => Expr::ZeroExtend(inner, to),
        e => Expr::ZeroExtend(Box::new(e), to),
    }
}

/// Sign-extends or truncates a value of `from` bits to `to` bits.
pub fn sign_resize(e: Expr, from: u32, to: u32) -> Expr {
    match e {
        Expr::Const(bits) => Expr::Const(bits.sign_extend(to)),
        e if to <= from => resize(e, from, to),
        e => Expr::SignExtend(Box::new(e), to),
    }
}

/// Builds the concatenation of `a` and `b`.
pub fn concat(a: Expr, b: Expr) -> Expr {
    match (a, b) {
        (Expr::Const(a), Expr::Const(b)) => Expr::Const(a.concat(&b)),
        (a, b) => Expr::Concat(Box::new(a), Box::new(b)),
    }
}

/// Builds `condition ? a : b`.
pub fn choose(condition: Expr, a: Expr, b: Expr) -> Expr {
    match as_const(&condition) {
        Some(bits) if bits.is_true() => a,
        Some(_) => b,
        None if a == b => a,
        None => Expr::Choose(Box::new(condition), Box::new(a), Box::new(b)),
    }
}

/// Joins the parts in order with an associative operation, as a tree of minimal depth. Returns `None` if there are no
/// parts.
pub fn balanced(mut parts: Vec<Expr>, join: fn(Expr, Expr) -> Expr) -> Option<Expr> {
    while parts.len() > 1 {
        let mut pairs = parts.into_iter();
        let mut joined = Vec::new();
        while let Some(left) = pairs.next() {
            joined.push(match pairs.next() {
                Some(right) => join(left, right),
                None => left,
            });
        }
        parts = joined;
    }
    parts.pop()
}
