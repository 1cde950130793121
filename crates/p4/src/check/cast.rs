//! Checks explicit casts (specification section 8.11.1).

use diagnostics::{Diagnostic, Span};
use num_traits::{One, Zero};

use super::convert::value_of;
use super::{Checker, constant, error_expr, expr, is_error};
use crate::ast::{self, TypeRef};
use crate::typed::{Expr, ExprKind, Type, Value};

impl Checker<'_> {
    pub(super) fn cast(&mut self, ty: &TypeRef, operand: &ast::Expr, span: Span) -> Expr {
        let to = self.resolve(ty);
        let from = self.check(operand, (!is_error(&to)).then_some(&to));
        if is_error(&to) || is_error(&from.ty) {
            return error_expr(span);
        }
        let mut result = self.cast_to(from, &to, span);
        result.span = span;
        result
    }

    /// Casts `e` to `to`.
    pub(super) fn cast_to(&mut self, e: Expr, to: &Type, span: Span) -> Expr {
        let e = match self.try_convert(e, to) {
            Ok(e) => return e,
            Err(e) => *e,
        };
        match self.explicit(&e, to, span) {
            Some(result) => result,
            None => {
                let (found, wanted) = (self.describe(&e.ty), self.describe(to));
                self.error(
                    Diagnostic::error("cast", span, format!("{found} cannot be cast to {wanted}"))
                        .also(e.span, format!("this is {found}"))
                        .help("casts are defined among bit<w>, int<w> and int, between bit<1> and bool, and to and from the underlying type of an enum or `type`"),
                );
                error_expr(span)
            }
        }
    }

    fn explicit(&mut self, e: &Expr, to: &Type, span: Span) -> Option<Expr> {
        let node = |e: &Expr| expr(ExprKind::Cast(Box::new(e.clone())), to.clone(), span);
        if self.underlying_of_new(to).as_ref() == Some(&e.ty) {
            return Some(self.retype(e.clone(), to));
        }
        Some(match (&e.ty, to) {
            (Type::Bit(_), Type::Bit(width)) => match &e.kind {
                ExprKind::Const(Value::Bits(bits)) => constant(Value::Bits(bits.resize(*width)), to.clone(), span),
                _ => node(e),
            },
            (Type::Int(_), Type::Int(width)) => match &e.kind {
                ExprKind::Const(Value::Bits(bits)) => constant(Value::Bits(bits.sign_extend(*width)), to.clone(), span),
                _ => node(e),
            },
            (Type::Bit(a), Type::Int(b)) | (Type::Int(a), Type::Bit(b)) if a == b => self.recast(e.clone(), to),
            (Type::Bit(1), Type::Bool) => match &e.kind {
                ExprKind::Const(Value::Bits(bits)) => constant(Value::Bool(bits.is_true()), to.clone(), span),
                _ => node(e),
            },
            (Type::Integer, Type::Bool) => match &e.kind {
                ExprKind::Const(Value::Integer(value)) if value.is_zero() || value.is_one() => {
                    constant(Value::Bool(value.is_one()), to.clone(), span)
                }
                _ => return None,
            },
            (Type::Bool, Type::Bit(1)) => match &e.kind {
                ExprKind::Const(Value::Bool(value)) => {
                    constant(Value::Bits(bits::Bits::bool(*value)), to.clone(), span)
                }
                _ => node(e),
            },
            (Type::Bit(_) | Type::Int(_), Type::Integer) => {
                match value_of(e).and_then(|value| super::fold::as_integer(&value, &e.ty)) {
                    Some(value) => constant(Value::Integer(value), to.clone(), span),
                    None => node(e),
                }
            }
            (Type::Enum(_), _) if self.underlying_of_enum(&e.ty).is_some() => {
                let below = self.underlying_of_enum(&e.ty)?;
                let number = self.recast(e.clone(), &below);
                return if below == *to { Some(number) } else { self.explicit(&number, to, span) };
            }
            (_, Type::Enum(_)) => {
                let below = self.underlying_of_enum(to)?;
                let number = if e.ty == below {
                    e.clone()
                } else if matches!(e.ty, Type::Integer) {
                    self.give_width(e.clone(), &below)
                } else {
                    self.explicit(e, &below, span)?
                };
                self.recast(number, to)
            }
            (Type::New(_), _) => {
                let below = self.underlying_of_new(&e.ty)?;
                let inner = self.retype(e.clone(), &below);
                return if below == *to { Some(inner) } else { self.explicit(&inner, to, span) };
            }
            (_, Type::New(_)) => {
                let below = self.underlying_of_new(to)?;
                let inner = if e.ty == below {
                    e.clone()
                } else if matches!(e.ty, Type::Integer) && matches!(below, Type::Bit(_) | Type::Int(_)) {
                    self.give_width(e.clone(), &below)
                } else if matches!(e.ty, Type::New(_)) {
                    self.explicit(e, &below, span)?
                } else {
                    return None;
                };
                self.retype(inner, to)
            }
            _ => return None,
        })
    }

    /// Whether a number without a width is known only at run time: `(int) hdr.ipv4.ttl`. Such a number exists until a
    /// context gives it a width, and until then can be added, subtracted and multiplied.
    pub(super) fn is_moving(&self, e: &Expr) -> bool {
        matches!(e.ty, Type::Integer) && !self.is_static(e)
    }

    /// Gives a run-time number without a width the width of `to`: all of its parts are evaluated in that width, which
    /// yields the same bits as truncating the exact result.
    pub(super) fn narrow(&mut self, e: Expr, to: &Type) -> Expr {
        let (span, ty) = (e.span, to.clone());
        let is_moving = self.is_moving(&e);
        match e.kind {
            ExprKind::Const(Value::Integer(value)) => {
                let (Type::Bit(width) | Type::Int(width)) = *to else { return error_expr(span) };
                constant(Value::Bits(bits::Bits::from_signed_big(&value, width)), ty, span)
            }
            ExprKind::Binary(op, a, b) if is_moving => {
                let (a, b) = (self.narrow(*a, to), self.narrow(*b, to));
                expr(ExprKind::Binary(op, Box::new(a), Box::new(b)), ty, span)
            }
            ExprKind::Unary(op, a) if is_moving => {
                let a = self.narrow(*a, to);
                expr(ExprKind::Unary(op, Box::new(a)), ty, span)
            }
            ExprKind::Ternary(condition, a, b) if is_moving => {
                let (a, b) = (self.narrow(*a, to), self.narrow(*b, to));
                expr(ExprKind::Ternary(condition, Box::new(a), Box::new(b)), ty, span)
            }
            // The operand had a width before: its own sign determines how it is extended.
            ExprKind::Cast(inner) if matches!(inner.ty, Type::Bit(_) | Type::Int(_)) => {
                let (Type::Bit(width) | Type::Int(width)) = *to else { return error_expr(span) };
                let same_sign = if matches!(inner.ty, Type::Int(_)) { Type::Int(width) } else { Type::Bit(width) };
                let resized = if inner.ty == same_sign { *inner } else { expr(ExprKind::Cast(inner), same_sign, span) };
                if resized.ty == *to { resized } else { self.recast(resized, to) }
            }
            kind => expr(ExprKind::Cast(Box::new(expr(kind, e.ty, span))), ty, span),
        }
    }

    /// Converts between a `type` and its underlying type, which have the same values.
    pub(super) fn retype(&mut self, e: Expr, to: &Type) -> Expr {
        let span = e.span;
        match e.kind {
            ExprKind::Const(value) => constant(value, to.clone(), span),
            _ => expr(ExprKind::Cast(Box::new(e)), to.clone(), span),
        }
    }
}
