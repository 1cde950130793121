//! Warns about comparisons with a constant result, given the types and constants of the operands.

use diagnostics::Diagnostic;
use num_bigint::BigInt;

use super::Warnings;
use crate::ast::BinaryOp;
use crate::typed::{Expr, ExprKind, Type, Value};

/// Reports a comparison that is always true or always false. Comparisons of two constants are exempt, because programs
/// are configured that way.
pub(super) fn comparison(op: BinaryOp, left: &Expr, right: &Expr, whole: &Expr, findings: &mut Warnings<'_>) {
    let is_const = |e: &Expr| matches!(e.kind, ExprKind::Const(_));
    if is_const(left) && is_const(right) {
        return;
    }
    let outcome = if same(left, right) {
        match op {
            BinaryOp::Eq | BinaryOp::Le | BinaryOp::Ge => Some((true, "both operands are the same".to_owned())),
            BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Gt => Some((false, "both operands are the same".to_owned())),
            _ => None,
        }
    } else {
        by_range(op, left, right)
    };
    if let Some((value, why)) = outcome {
        findings
            .push(Diagnostic::warning("constant-comparison", whole.span, format!("this is always {value}")).label(why));
    }
}

fn by_range(op: BinaryOp, left: &Expr, right: &Expr) -> Option<(bool, String)> {
    let (a, b) = (range(left, 0)?, range(right, 0)?);
    let value = match op {
        BinaryOp::Lt if a.1 < b.0 => true,
        BinaryOp::Lt if a.0 >= b.1 => false,
        BinaryOp::Le if a.1 <= b.0 => true,
        BinaryOp::Le if a.0 > b.1 => false,
        BinaryOp::Gt if a.0 > b.1 => true,
        BinaryOp::Gt if a.1 <= b.0 => false,
        BinaryOp::Ge if a.0 >= b.1 => true,
        BinaryOp::Ge if a.1 < b.0 => false,
        BinaryOp::Eq if a.1 < b.0 || a.0 > b.1 => false,
        BinaryOp::Ne if a.1 < b.0 || a.0 > b.1 => true,
        _ => return None,
    };
    let (side, (low, high)) = match left.kind {
        ExprKind::Const(_) => ("right", b),
        _ => ("left", a),
    };
    Some((value, format!("the {side} operand is between {low} and {high}")))
}

/// Returns the minimum and maximum value of an expression, or `None` if it is not a number.
fn range(e: &Expr, depth: u32) -> Option<(BigInt, BigInt)> {
    let whole = of_type(&e.ty);
    if depth > 16 {
        return whole;
    }
    match (&e.kind, &e.ty) {
        (ExprKind::Const(Value::Bits(bits)), Type::Int(_)) => Some((bits.to_signed_big(), bits.to_signed_big())),
        (ExprKind::Const(Value::Bits(bits)), Type::Bit(_)) => {
            Some((BigInt::from(bits.to_big()), BigInt::from(bits.to_big())))
        }
        (ExprKind::Cast(inner), Type::Bit(width)) => match inner.ty {
            Type::Bit(from) if from <= *width => range(inner, depth + 1),
            _ => whole,
        },
        (ExprKind::Binary(BinaryOp::BitAnd, a, b), Type::Bit(_)) => {
            let (a, b) = (range(a, depth + 1)?, range(b, depth + 1)?);
            Some((BigInt::from(0), a.1.min(b.1)))
        }
        _ => whole,
    }
}

fn of_type(ty: &Type) -> Option<(BigInt, BigInt)> {
    match ty {
        Type::Bit(width) => Some((BigInt::from(0), (BigInt::from(1) << *width) - 1)),
        Type::Int(width) if *width > 0 => {
            let half = BigInt::from(1) << (*width - 1);
            Some((-half.clone(), half - 1))
        }
        _ => None,
    }
}

/// Whether two expressions are the same variable or the same part of one.
fn same(a: &Expr, b: &Expr) -> bool {
    match (&a.kind, &b.kind) {
        (ExprKind::Var(a), ExprKind::Var(b)) => a == b,
        (ExprKind::Field(a, x), ExprKind::Field(b, y)) => x == y && same(a, b),
        _ => false,
    }
}
