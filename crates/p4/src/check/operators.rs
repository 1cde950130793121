//! Checks unary and binary operators (specification sections 8.3 to 8.10): operand types, implicit conversions,
//! folding.

use diagnostics::{Diagnostic, Span};
use num_traits::Signed;

use super::convert::value_of;
use super::{Checker, constant, error_expr, expr, fold, is_error};
use crate::ast::{self, BinaryOp, UnaryOp};
use crate::typed::{Expr, ExprKind, Type, Value};

/// Returns an operator as written.
pub(super) fn sign(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Mod => "%",
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::AddSat => "|+|",
        BinaryOp::SubSat => "|-|",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        BinaryOp::Le => "<=",
        BinaryOp::Ge => ">=",
        BinaryOp::Lt => "<",
        BinaryOp::Gt => ">",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitXor => "^",
        BinaryOp::BitOr => "|",
        BinaryOp::Concat => "++",
        BinaryOp::And => "&&",
        BinaryOp::Or => "||",
    }
}

impl Checker<'_> {
    pub(super) fn unary(&mut self, op: UnaryOp, operand: &ast::Expr, span: Span) -> Expr {
        let operand = self.check(operand, None);
        if is_error(&operand.ty) {
            return error_expr(span);
        }
        let operand = if op == UnaryOp::Not { operand } else { self.enum_to_number(operand) };
        let allowed = match op {
            UnaryOp::Not => matches!(operand.ty, Type::Bool),
            UnaryOp::BitNot => matches!(operand.ty, Type::Bit(_) | Type::Int(_)),
            UnaryOp::Neg | UnaryOp::Plus => matches!(operand.ty, Type::Bit(_) | Type::Int(_) | Type::Integer),
        };
        let shown = match op {
            UnaryOp::Not => "!",
            UnaryOp::BitNot => "~",
            UnaryOp::Neg => "-",
            UnaryOp::Plus => "+",
        };
        if !allowed {
            let found = self.describe(&operand.ty);
            let mut diagnostic =
                Diagnostic::error("operand-type", span, format!("`{shown}` is not defined on {found}"))
                    .also(operand.span, format!("this is {found}"));
            diagnostic = match (op, &operand.ty) {
                (UnaryOp::BitNot, Type::Integer) => diagnostic.help("give the number a width: `8w1`"),
                (UnaryOp::BitNot, Type::Bool) => diagnostic.help("write `!`"),
                (UnaryOp::Not, Type::Bit(_)) => diagnostic.help("write `~`, or compare with 0"),
                _ => diagnostic,
            };
            self.error(diagnostic);
            return error_expr(span);
        }
        if let ExprKind::Const(value) = &operand.kind
            && let Some(value) = fold::unary(op, value, &operand.ty)
        {
            return constant(value, operand.ty, span);
        }
        let ty = operand.ty.clone();
        if op == UnaryOp::Plus {
            return Expr { span, ..operand };
        }
        expr(ExprKind::Unary(op, Box::new(operand)), ty, span)
    }

    pub(super) fn binary(&mut self, op: BinaryOp, left: &ast::Expr, right: &ast::Expr, span: Span) -> Expr {
        let (left, right) = match op {
            // The other operand determines the type of `{...}` and `{#}`.
            BinaryOp::Eq | BinaryOp::Ne => {
                let is_open = |e: &ast::Expr| {
                    matches!(
                        e.kind,
                        ast::ExprKind::List(_)
                            | ast::ExprKind::Struct { .. }
                            | ast::ExprKind::Invalid
                            | ast::ExprKind::Dots
                    )
                };
                if is_open(left) && !is_open(right) {
                    let right = self.check(right, None);
                    let hint = (!is_error(&right.ty)).then(|| right.ty.clone());
                    (self.check(left, hint.as_ref()), right)
                } else {
                    let left = self.check(left, None);
                    let hint = (!is_error(&left.ty)).then(|| left.ty.clone());
                    let right = self.check(right, hint.as_ref().filter(|_| is_open(right)));
                    (left, right)
                }
            }
            _ => (self.check(left, None), self.check(right, None)),
        };
        self.binary_typed(op, left, right, span)
    }

    /// Checks `left op right`, with conversions and folding.
    pub(super) fn binary_typed(&mut self, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        if is_error(&left.ty) || is_error(&right.ty) {
            return error_expr(span);
        }
        match op {
            BinaryOp::Eq | BinaryOp::Ne => self.equality(op, left, right, span),
            BinaryOp::Shl | BinaryOp::Shr => self.shift(op, left, right, span),
            BinaryOp::Concat => self.concat(left, right, span),
            BinaryOp::And | BinaryOp::Or => {
                if !matches!(left.ty, Type::Bool) || !matches!(right.ty, Type::Bool) {
                    return self.undefined(op, &left, &right, span, Some("both operands must be `bool`"));
                }
                if let ExprKind::Const(Value::Bool(value)) = &left.kind {
                    // The right side is evaluated only if the left side does not determine the result.
                    return if *value == (op == BinaryOp::And) {
                        Expr { span, ..right }
                    } else {
                        self.bool_const(*value, span)
                    };
                }
                expr(ExprKind::Binary(op, Box::new(left), Box::new(right)), Type::Bool, span)
            }
            _ => self.arithmetic(op, left, right, span),
        }
    }

    fn arithmetic(&mut self, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        let (left, right) = (self.enum_to_number(left), self.enum_to_number(right));
        if matches!(op, BinaryOp::Div | BinaryOp::Mod)
            && [&left, &right].iter().any(|side| {
                matches!(side.ty, Type::Integer) && self.constant_integer(side).is_some_and(|value| value.is_negative())
            })
        {
            self.error(Diagnostic::error("negative-division", span, "division is not defined for negative numbers"));
            return error_expr(span);
        }
        let (left, right) = match self.unify(left, right) {
            Ok(both) => both,
            Err(both) => return self.undefined(op, &both.0, &both.1, span, None),
        };
        let compares = matches!(op, BinaryOp::Le | BinaryOp::Ge | BinaryOp::Lt | BinaryOp::Gt);
        let allowed = match (&left.ty, op) {
            (Type::Bit(_), _) => true,
            (Type::Int(_), BinaryOp::Div | BinaryOp::Mod) => false,
            (Type::Int(_), _) => true,
            (Type::Integer, BinaryOp::AddSat | BinaryOp::SubSat) => false,
            (Type::Integer, _) => true,
            _ => false,
        };
        if !allowed {
            let help = match (&left.ty, op) {
                (Type::Int(_), _) => Some("division is defined only for bit<w> and for constants of type int"),
                (Type::Integer, _) => Some("give one operand a width: `8w1`"),
                (Type::String, BinaryOp::Add) => Some("strings are joined with `++`"),
                _ => None,
            };
            return self.undefined(op, &left, &right, span, help);
        }
        if let (ExprKind::Const(a), ExprKind::Const(b)) = (&left.kind, &right.kind) {
            match fold::binary(op, a, b, &left.ty) {
                Ok(Some(value)) => {
                    let ty = if compares { Type::Bool } else { left.ty };
                    return constant(value, ty, span);
                }
                Ok(None) => {}
                Err(why) => {
                    self.error(Diagnostic::error(why.code, span, why.message));
                    return error_expr(span);
                }
            }
        }
        if matches!(op, BinaryOp::Div | BinaryOp::Mod) {
            let is_zero = value_of(&right).and_then(|v| fold::as_integer(&v, &right.ty)).is_some_and(|v| v == 0.into());
            if is_zero {
                self.error(
                    Diagnostic::error("division-by-zero", span, "division by zero").also(right.span, "this is 0"),
                );
                return error_expr(span);
            }
        }
        let ty = if compares { Type::Bool } else { left.ty.clone() };
        let wraps = matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul);
        if !wraps && (self.is_moving(&left) || self.is_moving(&right)) {
            return self.undefined(op, &left, &right, span, Some("give one operand a width: `8w1`"));
        }
        expr(ExprKind::Binary(op, Box::new(left), Box::new(right)), ty, span)
    }

    fn undefined(&mut self, op: BinaryOp, left: &Expr, right: &Expr, span: Span, help: Option<&str>) -> Expr {
        let (a, b) = (self.describe(&left.ty), self.describe(&right.ty));
        let mut diagnostic =
            Diagnostic::error("operand-type", span, format!("`{}` is not defined on {a} and {b}", sign(op)))
                .also(left.span, a)
                .also(right.span, b);
        let differ = matches!(
            (&left.ty, &right.ty),
            (Type::Bit(_), Type::Bit(_))
                | (Type::Int(_), Type::Int(_))
                | (Type::Bit(_), Type::Int(_))
                | (Type::Int(_), Type::Bit(_))
        );
        match help {
            Some(help) => diagnostic = diagnostic.help(help),
            None if differ => diagnostic = diagnostic.help("cast one operand to the type of the other"),
            None => {}
        }
        self.error(diagnostic);
        error_expr(span)
    }

    fn equality(&mut self, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        let (left, right) = match self.unify(left, right) {
            Ok(both) => both,
            Err(both) => {
                let (a, b) = *both;
                // A serialisable enum may also be compared as a number.
                let (a, b) = (self.enum_to_number(a), self.enum_to_number(b));
                match self.unify(a, b) {
                    Ok(both) => both,
                    Err(both) => return self.undefined(op, &both.0, &both.1, span, None),
                }
            }
        };
        if is_error(&left.ty) || is_error(&right.ty) {
            return error_expr(span);
        }
        if !self.comparable(&left.ty) {
            return self.undefined(op, &left, &right, span, Some("values of this type cannot be compared"));
        }
        if self.is_moving(&left) || self.is_moving(&right) {
            return self.undefined(op, &left, &right, span, Some("give one operand a width: `8w1`"));
        }
        if let (Some(a), Some(b)) = (value_of(&left), value_of(&right))
            && let Ok(Some(value)) = fold::binary(op, &a, &b, &left.ty)
        {
            return constant(value, Type::Bool, span);
        }
        expr(ExprKind::Binary(op, Box::new(left), Box::new(right)), Type::Bool, span)
    }

    pub(super) fn comparable(&self, ty: &Type) -> bool {
        match ty {
            Type::Bool | Type::Integer | Type::Bit(_) | Type::Int(_) | Type::Varbit(_) => true,
            Type::Error | Type::Enum(_) | Type::MatchKind | Type::String => true,
            Type::New(_) => !self.is_opaque(ty),
            Type::Stack(element, _) => self.comparable(element),
            Type::Tuple(types) => types.iter().all(|ty| self.comparable(ty)),
            Type::Struct(id) => {
                !self.anonymous_ids.contains(id)
                    && self.out.structs[*id].fields.iter().all(|field| self.comparable(&field.ty))
            }
            _ => false,
        }
    }

    fn shift(&mut self, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        let (left, right) = (self.enum_to_number(left), self.enum_to_number(right));
        if !matches!(left.ty, Type::Bit(_) | Type::Int(_) | Type::Integer) {
            return self.undefined(op, &left, &right, span, Some("only bit<w>, int<w> and int can be shifted"));
        }
        let amount = value_of(&right).and_then(|value| fold::as_integer(&value, &right.ty));
        if let Some(amount) = &amount
            && amount.is_negative()
        {
            self.error(
                Diagnostic::error("negative-shift", span, "shift by a negative amount")
                    .also(right.span, format!("this is {amount}")),
            );
            return error_expr(span);
        }
        let allowed = match right.ty {
            Type::Bit(_) => true,
            Type::Int(_) => amount.is_some(),
            Type::Integer => self.is_static(&right),
            _ => false,
        };
        if !allowed {
            return self.undefined(op, &left, &right, span, Some("the shift amount must be bit<w> or a constant"));
        }
        if let (ExprKind::Const(a), ExprKind::Const(b)) = (&left.kind, &right.kind) {
            match fold::binary(op, a, b, &left.ty) {
                Ok(Some(value)) => return constant(value, left.ty, span),
                Ok(None) => {}
                Err(why) => {
                    self.error(Diagnostic::error(why.code, span, why.message));
                    return error_expr(span);
                }
            }
        }
        if matches!(left.ty, Type::Integer) && !(self.is_static(&left) && self.is_static(&right)) {
            self.error(
                Diagnostic::error("unknown-width", span, "the width of the result is unknown")
                    .also(left.span, "this is `int`")
                    .help("give the number a width: `8w1`"),
            );
            return error_expr(span);
        }
        let right = match (&right.ty, amount) {
            (Type::Integer | Type::Int(_), Some(amount)) => {
                // No width exceeds 32 bits: a larger shift amount shifts everything out.
                let amount = amount.min(u32::MAX.into());
                constant(Value::Bits(bits::Bits::from_signed_big(&amount, 32)), Type::Bit(32), right.span)
            }
            (Type::Integer, None) => self.give_width(right, &Type::Bit(32)),
            _ => right,
        };
        let ty = left.ty.clone();
        expr(ExprKind::Binary(op, Box::new(left), Box::new(right)), ty, span)
    }

    fn concat(&mut self, left: Expr, right: Expr, span: Span) -> Expr {
        let (left, right) = (self.enum_to_number(left), self.enum_to_number(right));
        let op = BinaryOp::Concat;
        let ty = match (&left.ty, &right.ty) {
            (Type::Bit(a), Type::Bit(b) | Type::Int(b)) => Type::Bit(a + b),
            (Type::Int(a), Type::Bit(b) | Type::Int(b)) => Type::Int(a + b),
            (Type::String, Type::String) => Type::String,
            (Type::Integer, _) | (_, Type::Integer) => {
                return self.undefined(op, &left, &right, span, Some("give the number a width: `8w1`"));
            }
            _ => return self.undefined(op, &left, &right, span, None),
        };
        if let Type::Bit(width) | Type::Int(width) = ty
            && width > bits::MAX_WIDTH
        {
            self.error(
                Diagnostic::error("width", span, format!("values of {width} bits are not supported"))
                    .label(format!("the maximum is {} bits", bits::MAX_WIDTH)),
            );
            return error_expr(span);
        }
        if let (ExprKind::Const(a), ExprKind::Const(b)) = (&left.kind, &right.kind) {
            match fold::binary(op, a, b, &left.ty) {
                Ok(Some(value)) => return constant(value, ty, span),
                Ok(None) => {}
                Err(why) => {
                    self.error(Diagnostic::error(why.code, span, why.message));
                    return error_expr(span);
                }
            }
        }
        expr(ExprKind::Binary(op, Box::new(left), Box::new(right)), ty, span)
    }
}
