//! Evaluates expressions whose values are known once constructor parameters are known.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive, Zero};
use p4::ast::{BinaryOp, UnaryOp};
use p4::typed::{Expr, ExprKind, Program, Type, Value};

use crate::inventory::StaticValue;

/// Maximum width in bits of a value that is computed.
const MAX_BITS: u64 = 1 << 16;

/// Evaluates an expression; `known` returns the values of constructor parameters.
pub(crate) fn value(
    program: &Program,
    e: &Expr,
    known: &dyn Fn(p4::typed::VarId) -> Option<StaticValue>,
) -> Option<Value> {
    let sub = |e: &Expr| value(program, e, known);
    match &e.kind {
        ExprKind::Const(value) => Some(value.clone()),
        ExprKind::Var(var) => match known(*var)? {
            StaticValue::Value(value) => Some(value),
            _ => None,
        },
        ExprKind::Cast(inner) => convert(program, sub(inner)?, &inner.ty, &e.ty),
        ExprKind::Field(base, at) => match sub(base)? {
            Value::Fields(mut fields) if *at < fields.len() => Some(fields.swap_remove(*at)),
            _ => None,
        },
        ExprKind::Fields(parts) => parts.iter().map(sub).collect::<Option<_>>().map(Value::Fields),
        ExprKind::Slice(base, high, low) => match sub(base)? {
            Value::Bits(bits) if high >= low && *high < bits.width() => Some(Value::Bits(bits.slice(*high, *low))),
            _ => None,
        },
        ExprKind::Unary(op, a) => match (op, sub(a)?) {
            (UnaryOp::Not, Value::Bool(a)) => Some(Value::Bool(!a)),
            (UnaryOp::Plus, a) => Some(a),
            (UnaryOp::Neg, Value::Integer(a)) => Some(Value::Integer(-a)),
            (UnaryOp::Neg, Value::Bits(a)) => Some(Value::Bits(a.neg())),
            (UnaryOp::BitNot, Value::Bits(a)) => Some(Value::Bits(a.not())),
            _ => None,
        },
        ExprKind::Binary(op, a, b) => binary(program, *op, a, b, &e.ty, known),
        ExprKind::Ternary(c, a, b) => match sub(c)? {
            Value::Bool(true) => sub(a),
            Value::Bool(false) => sub(b),
            _ => None,
        },
        _ => None,
    }
}

fn binary(
    program: &Program,
    op: BinaryOp,
    a: &Expr,
    b: &Expr,
    ty: &Type,
    known: &dyn Fn(p4::typed::VarId) -> Option<StaticValue>,
) -> Option<Value> {
    let left = value(program, a, known)?;
    match (op, &left) {
        (BinaryOp::And, Value::Bool(false)) => return Some(Value::Bool(false)),
        (BinaryOp::Or, Value::Bool(true)) => return Some(Value::Bool(true)),
        _ => {}
    }
    let right = value(program, b, known)?;
    match (op, &left, &right) {
        (BinaryOp::And | BinaryOp::Or, _, _) => return Some(right),
        (BinaryOp::Concat, Value::Bits(a), Value::Bits(b)) => return Some(Value::Bits(a.concat(b))),
        (BinaryOp::Concat, Value::String(a), Value::String(b)) => {
            return Some(Value::String(format!("{a}{b}").into()));
        }
        _ => {}
    }
    if matches!(op, BinaryOp::Eq | BinaryOp::Ne)
        && !matches!((&left, &right), (Value::Bits(_) | Value::Integer(_), Value::Bits(_) | Value::Integer(_)))
    {
        return Some(Value::Bool((left == right) == (op == BinaryOp::Eq)));
    }
    let signed = |e: &Expr| matches!(below(program, &e.ty), Type::Int(_));
    let (x, y) = (integer(&left, signed(a))?, integer(&right, signed(b))?);
    let compared = match op {
        BinaryOp::Eq => Some(x == y),
        BinaryOp::Ne => Some(x != y),
        BinaryOp::Lt => Some(x < y),
        BinaryOp::Le => Some(x <= y),
        BinaryOp::Gt => Some(x > y),
        BinaryOp::Ge => Some(x >= y),
        _ => None,
    };
    if let Some(truth) = compared {
        return Some(Value::Bool(truth));
    }
    let result = match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        BinaryOp::Div if !y.is_zero() => x.div_floor(&y),
        BinaryOp::Mod if !y.is_zero() => x.mod_floor(&y),
        BinaryOp::BitAnd => x & y,
        BinaryOp::BitOr => x | y,
        BinaryOp::BitXor => x ^ y,
        BinaryOp::Shl if x.bits() + y.to_u64()? <= MAX_BITS => x << y.to_u32()?,
        BinaryOp::Shr => x >> y.to_u32().unwrap_or(u32::MAX),
        _ => return None,
    };
    if result.bits() > MAX_BITS {
        return None;
    }
    of_type(program, result, ty)
}

fn convert(program: &Program, value: Value, from: &Type, to: &Type) -> Option<Value> {
    let signed = matches!(below(program, from), Type::Int(_));
    match (&value, below(program, to)) {
        (Value::Bool(truth), Type::Bit(_) | Type::Int(_)) => of_type(program, BigInt::from(u8::from(*truth)), to),
        (Value::Bits(_) | Value::Integer(_), Type::Bool) => Some(Value::Bool(!integer(&value, signed)?.is_zero())),
        (Value::Bits(_) | Value::Integer(_), _) => of_type(program, integer(&value, signed)?, to),
        _ => Some(value),
    }
}

fn of_type(program: &Program, value: BigInt, ty: &Type) -> Option<Value> {
    match below(program, ty) {
        Type::Bit(width) | Type::Int(width) => Some(Value::Bits(bits::Bits::from_signed_big(&value, width))),
        Type::Enum(_) => Some(Value::Bits(bits::Bits::from_signed_big(&value, 32))),
        Type::Integer => Some(Value::Integer(value)),
        _ => None,
    }
}

/// Resolves a type to its underlying type: `type`s and serialisable enums are replaced by the types they are declared
/// with.
pub(crate) fn below(program: &Program, ty: &Type) -> Type {
    let mut ty = ty;
    loop {
        match ty {
            Type::New(id) => ty = &program.new_types[*id].underlying,
            Type::Enum(id) => match &program.enums[*id].underlying {
                Some(underlying) => ty = underlying,
                None => return ty.clone(),
            },
            _ => return ty.clone(),
        }
    }
}

/// Returns the value of a number.
pub(crate) fn integer(value: &Value, signed: bool) -> Option<BigInt> {
    match value {
        Value::Integer(value) => Some(value.clone()),
        Value::Bits(bits) if signed => Some(bits.to_signed_big()),
        Value::Bits(bits) => Some(bits.to_big().into()),
        _ => None,
    }
}

/// Returns a size: a number that is not negative.
pub(crate) fn size(value: &Value) -> Option<i64> {
    integer(value, false).filter(|size| !size.is_negative())?.to_i64()
}
