//! Computes with compile-time values. These functions are independent of any program: they take values and types and
//! return a value, or explain in one sentence why there is none.

use std::cmp::Ordering;

use bits::Bits;
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive, Zero};

use crate::ast::{BinaryOp, UnaryOp};
use crate::typed::{Type, Value};

/// Maximum size in bits of an integer of arbitrary precision.
const MAX_INTEGER_BITS: u64 = bits::MAX_WIDTH as u64;

/// Explanation of why an operation has no value.
pub(super) struct NoValue {
    pub(super) code: &'static str,
    pub(super) message: String,
}

fn no_value(code: &'static str, message: impl Into<String>) -> NoValue {
    NoValue { code, message: message.into() }
}

/// Evaluates `op operand`, both of type `ty`.
pub(super) fn unary(op: UnaryOp, value: &Value, ty: &Type) -> Option<Value> {
    Some(match (op, value) {
        (UnaryOp::Not, Value::Bool(value)) => Value::Bool(!value),
        (UnaryOp::BitNot, Value::Bits(value)) => Value::Bits(value.not()),
        (UnaryOp::Neg, Value::Bits(value)) => Value::Bits(value.neg()),
        (UnaryOp::Neg, Value::Integer(value)) => Value::Integer(-value),
        (UnaryOp::Plus, Value::Bits(_) | Value::Integer(_)) => value.clone(),
        _ => {
            let _ = ty;
            return None;
        }
    })
}

/// Evaluates `left op right` with operands of type `ty`; `Ok(None)` if the operation is not defined here.
pub(super) fn binary(op: BinaryOp, left: &Value, right: &Value, ty: &Type) -> Result<Option<Value>, NoValue> {
    let signed = matches!(ty, Type::Int(_));
    if matches!(op, BinaryOp::Eq | BinaryOp::Ne) {
        return Ok(Some(Value::Bool((left == right) == (op == BinaryOp::Eq))));
    }
    Ok(match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => match op {
            BinaryOp::And => Some(Value::Bool(*left && *right)),
            BinaryOp::Or => Some(Value::Bool(*left || *right)),
            _ => None,
        },
        (Value::Bits(left), Value::Bits(right)) if op == BinaryOp::Concat => {
            if left.width() as u64 + right.width() as u64 > u64::from(bits::MAX_WIDTH) {
                return Err(no_value("width", "the result is wider than supported"));
            }
            Some(Value::Bits(left.concat(right)))
        }
        (Value::String(left), Value::String(right)) if op == BinaryOp::Concat => {
            if left.len() + right.len() > 1 << 16 {
                return Err(no_value("width", "the string is longer than supported"));
            }
            Some(Value::String(format!("{left}{right}").into()))
        }
        (Value::Bits(left), _) if matches!(op, BinaryOp::Shl | BinaryOp::Shr) => {
            let amount = match right {
                Value::Bits(bits) => bits.to_u64().and_then(|v| u32::try_from(v).ok()).unwrap_or(u32::MAX),
                Value::Integer(value) => value.to_u32().unwrap_or(u32::MAX),
                _ => return Ok(None),
            };
            Some(Value::Bits(match op {
                BinaryOp::Shl => left.shl(amount),
                _ if signed => left.signed_shr(amount),
                _ => left.shr(amount),
            }))
        }
        (Value::Integer(left), _) if matches!(op, BinaryOp::Shl | BinaryOp::Shr) => {
            let amount = match right {
                Value::Bits(bits) => BigInt::from(bits.to_big()),
                Value::Integer(value) => value.clone(),
                _ => return Ok(None),
            };
            integer_shift(op, left, &amount).map(Some)?
        }
        (Value::Bits(left), Value::Bits(right)) if left.width() == right.width() => {
            bits_binary(op, left, right, signed)?
        }
        (Value::Integer(left), Value::Integer(right)) => integer_binary(op, left, right)?,
        _ => None,
    })
}

fn integer_shift(op: BinaryOp, left: &BigInt, amount: &BigInt) -> Result<Value, NoValue> {
    if amount.is_negative() {
        return Err(no_value("negative-shift", "shift by a negative amount"));
    }
    match op {
        BinaryOp::Shl => match amount.to_u64().filter(|amount| left.bits().saturating_add(*amount) <= MAX_INTEGER_BITS)
        {
            Some(amount) => Ok(Value::Integer(left << amount)),
            None if left.is_zero() => Ok(Value::Integer(BigInt::zero())),
            None => Err(no_value("width", format!("shifting by {amount} gives a number wider than supported"))),
        },
        _ => Ok(Value::Integer(match amount.to_u64().filter(|amount| *amount <= MAX_INTEGER_BITS + 64) {
            Some(amount) => left >> amount,
            None if left.is_negative() => BigInt::from(-1),
            None => BigInt::zero(),
        })),
    }
}

fn bits_binary(op: BinaryOp, left: &Bits, right: &Bits, signed: bool) -> Result<Option<Value>, NoValue> {
    let order = if signed { left.signed_cmp(right) } else { left.unsigned_cmp(right) };
    Ok(Some(match op {
        BinaryOp::Mul => Value::Bits(left.mul(right)),
        BinaryOp::Div | BinaryOp::Mod if right.is_zero() => {
            return Err(no_value("division-by-zero", "division by zero"));
        }
        BinaryOp::Div if !signed => Value::Bits(left.div(right)),
        BinaryOp::Mod if !signed => Value::Bits(left.rem(right)),
        BinaryOp::Add => Value::Bits(left.add(right)),
        BinaryOp::Sub => Value::Bits(left.sub(right)),
        BinaryOp::AddSat if signed => Value::Bits(left.signed_saturating_add(right)),
        BinaryOp::SubSat if signed => Value::Bits(left.signed_saturating_sub(right)),
        BinaryOp::AddSat => Value::Bits(left.saturating_add(right)),
        BinaryOp::SubSat => Value::Bits(left.saturating_sub(right)),
        BinaryOp::BitAnd => Value::Bits(left.and(right)),
        BinaryOp::BitOr => Value::Bits(left.or(right)),
        BinaryOp::BitXor => Value::Bits(left.xor(right)),
        BinaryOp::Le | BinaryOp::Ge | BinaryOp::Lt | BinaryOp::Gt => Value::Bool(holds(op, order)),
        _ => return Ok(None),
    }))
}

fn integer_binary(op: BinaryOp, left: &BigInt, right: &BigInt) -> Result<Option<Value>, NoValue> {
    Ok(Some(match op {
        BinaryOp::Mul if left.bits() + right.bits() > MAX_INTEGER_BITS => {
            return Err(no_value("width", "the product is wider than supported"));
        }
        BinaryOp::Mul => Value::Integer(left * right),
        BinaryOp::Div | BinaryOp::Mod if right.is_zero() => {
            return Err(no_value("division-by-zero", "division by zero"));
        }
        BinaryOp::Div | BinaryOp::Mod if left.is_negative() || right.is_negative() => {
            return Err(no_value("negative-division", "division is not defined for negative numbers"));
        }
        BinaryOp::Div => Value::Integer(left.div_floor(right)),
        BinaryOp::Mod => Value::Integer(left.mod_floor(right)),
        BinaryOp::Add => Value::Integer(left + right),
        BinaryOp::Sub => Value::Integer(left - right),
        BinaryOp::BitAnd => Value::Integer(left & right),
        BinaryOp::BitOr => Value::Integer(left | right),
        BinaryOp::BitXor => Value::Integer(left ^ right),
        BinaryOp::Le | BinaryOp::Ge | BinaryOp::Lt | BinaryOp::Gt => Value::Bool(holds(op, left.cmp(right))),
        _ => return Ok(None),
    }))
}

fn holds(op: BinaryOp, order: Ordering) -> bool {
    match op {
        BinaryOp::Le => order.is_le(),
        BinaryOp::Ge => order.is_ge(),
        BinaryOp::Lt => order.is_lt(),
        _ => order.is_gt(),
    }
}

/// Returns the number that a value of type `ty` represents, if any.
pub(super) fn as_integer(value: &Value, ty: &Type) -> Option<BigInt> {
    match value {
        Value::Integer(value) => Some(value.clone()),
        Value::Bits(bits) if matches!(ty, Type::Int(_)) => Some(bits.to_signed_big()),
        Value::Bits(bits) => Some(BigInt::from(bits.to_big())),
        _ => None,
    }
}

/// Whether `value` is representable in `width` bits.
pub(super) fn fits(value: &BigInt, width: u32, signed: bool) -> bool {
    if signed {
        let magnitude = if value.is_negative() { (-value - 1u32).bits() } else { value.bits() };
        magnitude < u64::from(width.max(1)) || width == 0 && value.is_zero()
    } else {
        !value.is_negative() && value.bits() <= u64::from(width)
    }
}
