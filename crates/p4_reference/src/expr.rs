//! Evaluates expressions (chapter 8). Operands are evaluated from left to right (section 8.1).

use num_bigint::BigInt;
use num_traits::{ToPrimitive, Zero};
use p4::ast::{BinaryOp, UnaryOp};
use p4::typed::{Expr, ExprKind, Type};

use crate::evaluator::{BlockEvaluator, Evaluated, unspecified, unsupported};
use crate::number::Number;
use crate::value::{
    Initial, Value, assemble, constant, field_types, initial, invalid, is_signed, number_width, resolve,
};

impl BlockEvaluator<'_> {
    /// Evaluates an expression.
    pub(crate) fn eval(&mut self, e: &Expr) -> Evaluated<Value> {
        self.step()?;
        let value = self.nested(|cx| cx.value_of(e))?;
        self.budget.copy(&value)?;
        Ok(value)
    }

    fn value_of(&mut self, e: &Expr) -> Evaluated<Value> {
        Ok(match &e.kind {
            ExprKind::Const(value) => constant(self.program, value, &e.ty),
            ExprKind::Var(var) => self.env.get(var).cloned().unwrap_or(Value::Unspecified),
            ExprKind::Instance(_) => Value::Object(self.object(e)?),
            ExprKind::ValueSet(_) | ExprKind::This => return Err(unsupported("a value set or `this` as a value")),
            ExprKind::Field(base, index) => match self.eval(base)? {
                Value::Unspecified => Value::Unspecified,
                base => base.parts().get(*index).cloned().ok_or_else(|| unsupported("a field of this"))?,
            },
            ExprKind::Element(base, index) => {
                let base = self.eval(base)?;
                let index = self.integer(index)?.to_usize();
                match index.and_then(|index| base.parts().get(index)) {
                    Some(element) => element.clone(),
                    // Section 8.18 leaves it undefined; the project defines an invalid header of zeros.
                    None => initial(self.program, &e.ty, Initial::Zero),
                }
            }
            ExprKind::Next(base) => {
                let base = self.eval(base)?;
                let index = self.next_index(&base)?;
                base.parts()[index].clone()
            }
            ExprKind::Last(base) => {
                let base = self.eval(base)?;
                let index = self.last_index(&base)?;
                base.parts()[index].clone()
            }
            ExprKind::LastIndex(base) => match self.eval(base)? {
                Value::Stack { next, .. } => Value::Number(Number::wrap(&(BigInt::from(next) - 1), 32)),
                _ => return Err(unsupported("`lastIndex` of this")),
            },
            ExprKind::Slice(base, high, low) => match self.eval(base)? {
                Value::Unspecified => Value::Unspecified,
                Value::Integer(value) => Value::Number(Number::wrap(&(value >> *low), high - low + 1)),
                base => Value::Number(self.as_number(base, &e.ty)?.slice(*high, *low)),
            },
            ExprKind::Unary(op, operand) => {
                let operand_value = self.eval(operand)?;
                unary(*op, operand_value)?
            }
            ExprKind::Binary(BinaryOp::And, a, b) => self.short_circuit(false, a, b)?,
            ExprKind::Binary(BinaryOp::Or, a, b) => self.short_circuit(true, a, b)?,
            ExprKind::Binary(op, a, b) => {
                let left = self.eval(a)?;
                let right = self.eval(b)?;
                self.binary(*op, left, &a.ty, right, &b.ty)?
            }
            // Only the chosen side is evaluated (section 8.5.1).
            ExprKind::Ternary(condition, a, b) => {
                let side = if self.condition(condition)? { a } else { b };
                let value = self.eval(side)?;
                self.convert(value, &side.ty, &e.ty)?
            }
            ExprKind::Cast(inner) => {
                let value = self.eval(inner)?;
                self.convert(value, &inner.ty, &e.ty)?
            }
            ExprKind::Fields(parts) => {
                let mut fields = Vec::new();
                for part in parts {
                    fields.push(self.eval(part)?);
                }
                let types = self.part_types(&e.ty, fields.len());
                let mut converted = Vec::new();
                for ((value, part), ty) in fields.into_iter().zip(parts).zip(types) {
                    let to = ty.unwrap_or_else(|| part.ty.clone());
                    converted.push(self.convert(value, &part.ty, &to)?);
                }
                assemble(self.program, &e.ty, converted)
            }
            ExprKind::Invalid => invalid(self.program, &e.ty),
            ExprKind::Call(call) => self.call(call, &e.ty)?,
            ExprKind::Hit(call) => Value::Bool(self.apply_table(call)?.hit),
            ExprKind::ActionRun(_) => return Err(unsupported("`action_run` outside `switch`")),
        })
    }

    fn part_types(&self, ty: &Type, count: usize) -> Vec<Option<Type>> {
        match resolve(self.program, ty) {
            Type::List(element) | Type::Stack(element, _) => vec![Some((**element).clone()); count],
            _ => {
                let types = field_types(self.program, ty);
                if types.len() == count { types.into_iter().map(Some).collect() } else { vec![None; count] }
            }
        }
    }

    /// Returns the index of `hs.next` (section 8.18).
    pub(crate) fn next_index(&self, stack: &Value) -> Evaluated<usize> {
        match stack {
            Value::Stack { elements, next } if (*next as usize) < elements.len() => Ok(*next as usize),
            _ => Err(self.reject("StackOutOfBounds")),
        }
    }

    /// Returns the index of `hs.last` (section 8.18).
    pub(crate) fn last_index(&self, stack: &Value) -> Evaluated<usize> {
        match stack {
            Value::Stack { next, .. } if *next > 0 => Ok(*next as usize - 1),
            _ => Err(self.reject("StackOutOfBounds")),
        }
    }

    /// `a && b`, `a || b`: the right side is evaluated only if the left one does not decide (section 8.5).
    fn short_circuit(&mut self, decides: bool, a: &Expr, b: &Expr) -> Evaluated<Value> {
        if self.condition(a)? == decides { Ok(Value::Bool(decides)) } else { self.eval(b) }
    }

    /// Applies a binary operator other than `&&` and `||` to values.
    pub(crate) fn binary(
        &mut self,
        op: BinaryOp,
        left: Value,
        left_ty: &Type,
        right: Value,
        right_ty: &Type,
    ) -> Evaluated<Value> {
        if op == BinaryOp::Eq || op == BinaryOp::Ne {
            let equal = match (&left, &right) {
                (Value::Integer(a), Value::Number(b)) => Number::wrap(a, b.width) == *b,
                (Value::Number(a), Value::Integer(b)) => Number::wrap(b, a.width) == *a,
                _ => equal(&left, &right)?,
            };
            return Ok(Value::Bool(equal == (op == BinaryOp::Eq)));
        }
        if left == Value::Unspecified || right == Value::Unspecified {
            return Ok(Value::Unspecified);
        }
        if let (Value::Bool(a), Value::Bool(b)) = (&left, &right) {
            return Ok(Value::Bool(match op {
                BinaryOp::BitAnd => a & b,
                BinaryOp::BitOr => a | b,
                BinaryOp::BitXor => a ^ b,
                _ => return Err(unsupported("this operator on bool")),
            }));
        }
        let signed = match &left {
            Value::Integer(_) => is_signed(self.program, right_ty),
            _ => is_signed(self.program, left_ty),
        };
        match op {
            BinaryOp::Shl | BinaryOp::Shr => {
                let amount = match &right {
                    Value::Integer(value) => value.clone(),
                    Value::Number(number) => number.unsigned(),
                    _ => return Err(unsupported("this shift")),
                };
                return Ok(match left {
                    Value::Number(value) if op == BinaryOp::Shl => Value::Number(value.shift_left(&amount)),
                    Value::Number(value) => Value::Number(value.shift_right(&amount, signed)),
                    Value::Integer(value) => {
                        let amount = amount.to_u32().ok_or_else(|| unsupported("this shift"))?;
                        Value::Integer(if op == BinaryOp::Shl { value << amount } else { value >> amount })
                    }
                    _ => return Err(unsupported("this shift")),
                });
            }
            BinaryOp::Concat => {
                let (high, low) = (self.as_number(left, left_ty)?, self.as_number(right, right_ty)?);
                return Ok(Value::Number(high.concat(&low)));
            }
            _ => {}
        }
        let width = match (&left, &right) {
            (Value::Number(number), _) | (_, Value::Number(number)) => Some(number.width),
            _ => None,
        };
        let operand = |value: &Value| match (value, width) {
            (Value::Number(number), _) => Some(number.value(signed)),
            (Value::Integer(value), Some(width)) => Some(Number::wrap(value, width).value(signed)),
            (Value::Integer(value), None) => Some(value.clone()),
            (Value::Error(index), _) => Some(BigInt::from(*index)),
            _ => None,
        };
        let (Some(a), Some(b)) = (operand(&left), operand(&right)) else {
            return Err(unsupported(&format!("{op:?} on {left:?} and {right:?}")));
        };
        Ok(match op {
            BinaryOp::Lt => Value::Bool(a < b),
            BinaryOp::Le => Value::Bool(a <= b),
            BinaryOp::Gt => Value::Bool(a > b),
            BinaryOp::Ge => Value::Bool(a >= b),
            _ => arithmetic(op, a, b, width, signed)?,
        })
    }
}

/// Computes an arithmetic or bitwise operator: the mathematical result, wrapped or clamped to the width (sections 8.6
/// and 8.7).
fn arithmetic(op: BinaryOp, a: BigInt, b: BigInt, width: Option<u32>, signed: bool) -> Evaluated<Value> {
    let saturating = matches!(op, BinaryOp::AddSat | BinaryOp::SubSat);
    let result = match op {
        BinaryOp::Add | BinaryOp::AddSat => a + b,
        BinaryOp::Sub | BinaryOp::SubSat => a - b,
        BinaryOp::Mul => a * b,
        // Division by 0 is 0 here; the language allows it on constants and `bit` only.
        BinaryOp::Div | BinaryOp::Mod if b.is_zero() => BigInt::zero(),
        BinaryOp::Div => a / b,
        BinaryOp::Mod => a % b,
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        _ => return Err(unsupported(&format!("the operator {op:?}"))),
    };
    Ok(match width {
        Some(width) if saturating => Value::Number(Number::saturate(result, width, signed)),
        Some(width) => Value::Number(Number::wrap(&result, width)),
        None => Value::Integer(result),
    })
}

fn unary(op: UnaryOp, value: Value) -> Evaluated<Value> {
    Ok(match (op, value) {
        (_, Value::Unspecified) => Value::Unspecified,
        (UnaryOp::Not, Value::Bool(value)) => Value::Bool(!value),
        (UnaryOp::Neg, Value::Number(number)) => Value::Number(Number::wrap(&-number.unsigned(), number.width)),
        (UnaryOp::BitNot, Value::Number(number)) => {
            Value::Number(Number::wrap(&(-number.unsigned() - 1), number.width))
        }
        (UnaryOp::Plus, value) => value,
        (UnaryOp::Neg, Value::Integer(value)) => Value::Integer(-value),
        (UnaryOp::BitNot, Value::Integer(value)) => Value::Integer(-value - 1),
        (op, value) => return Err(unsupported(&format!("{op:?} on {value:?}"))),
    })
}

/// Compares two values of one type: headers by section 8.17, stacks by 8.18, unions by 8.19, `varbit` by 8.10.
pub(crate) fn equal(a: &Value, b: &Value) -> Evaluated<bool> {
    let all = |a: &[Value], b: &[Value]| {
        // Every part is compared, so that an unspecified one is noticed only if the others are equal.
        let mut unknown = None;
        for (a, b) in a.iter().zip(b) {
            match equal(a, b) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(stop) => unknown = Some(stop),
            }
        }
        unknown.map_or(Ok(a.len() == b.len()), Err)
    };
    match (a, b) {
        (Value::Unspecified, _) | (_, Value::Unspecified) => Err(unspecified("a comparison")),
        (Value::Header { valid: a_valid, fields: a }, Value::Header { valid: b_valid, fields: b }) => {
            match (a_valid, b_valid) {
                (false, false) => Ok(true),
                (true, true) => all(a, b),
                _ => Ok(false),
            }
        }
        (Value::Struct(a), Value::Struct(b)) | (Value::Union(a), Value::Union(b)) => all(a, b),
        (Value::Stack { elements: a, .. }, Value::Stack { elements: b, .. }) => all(a, b),
        (a, b) => Ok(a == b),
    }
}

impl BlockEvaluator<'_> {
    /// Converts a value from one type to another (section 8.11).
    pub(crate) fn convert(&self, value: Value, from: &Type, to: &Type) -> Evaluated<Value> {
        if value == Value::Unspecified {
            return Ok(value);
        }
        if let Some(width) = number_width(self.program, to) {
            return Ok(Value::Number(match value {
                Value::Integer(value) => Number::wrap(&value, width),
                Value::Number(number) => {
                    let signed = is_signed(self.program, from);
                    Number::wrap(&number.value(signed), width)
                }
                other => Number::wrap(&self.as_number(other, from)?.unsigned(), width),
            }));
        }
        Ok(match (resolve(self.program, to), value) {
            (Type::Bool, Value::Number(number)) => Value::Bool(!number.bits.is_zero()),
            (Type::Bool, Value::Integer(value)) => Value::Bool(!value.is_zero()),
            (Type::Integer, Value::Number(number)) => Value::Integer(number.value(is_signed(self.program, from))),
            (Type::Struct(_) | Type::Tuple(_), Value::Struct(parts)) => {
                let (from, to_parts) = (field_types(self.program, from), field_types(self.program, to));
                let mut converted = Vec::new();
                for (index, (part, to)) in parts.into_iter().zip(&to_parts).enumerate() {
                    converted.push(self.convert(part, from.get(index).unwrap_or(to), to)?);
                }
                assemble(self.program, to, converted)
            }
            (Type::Stack(element, _), Value::Struct(parts)) => {
                let from = field_types(self.program, from);
                let mut converted = Vec::new();
                for (index, part) in parts.into_iter().enumerate() {
                    converted.push(self.convert(part, from.get(index).unwrap_or(element), element)?);
                }
                Value::Stack { elements: converted, next: 0 }
            }
            (_, value) => value,
        })
    }
}
