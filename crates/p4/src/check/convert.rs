//! Implicit conversions (specification section 8.11.2): an `int` gets a width, a serialisable enum becomes its number,
//! list and struct expressions become structs, headers, stacks and lists. There are no other implicit conversions.

use diagnostics::{Diagnostic, Span};
use num_bigint::BigInt;

use super::{Checker, constant, error_expr, expr, fold, is_error};
use crate::ast::StructKind;
use crate::typed::{Expr, ExprKind, Type, Value};

/// Returns the value of a constant expression.
pub(super) fn value_of(e: &Expr) -> Option<Value> {
    match &e.kind {
        ExprKind::Const(value) => Some(value.clone()),
        ExprKind::Invalid => Some(Value::Invalid),
        _ => None,
    }
}

/// Builds a struct, header, tuple, stack or list from its parts: a constant if all of them are.
pub(super) fn fields(parts: Vec<Expr>, ty: Type, span: Span) -> Expr {
    match parts.iter().map(value_of).collect::<Option<Vec<_>>>() {
        Some(values) => constant(Value::Fields(values), ty, span),
        None => expr(ExprKind::Fields(parts), ty, span),
    }
}

impl Checker<'_> {
    /// Converts `e` to type `to`; reports a mismatch.
    pub(super) fn convert(&mut self, e: Expr, to: &Type) -> Expr {
        match self.try_convert(e, to) {
            Ok(e) => e,
            Err(e) => {
                self.mismatch(&e, to);
                error_expr(e.span)
            }
        }
    }

    pub(super) fn mismatch(&mut self, e: &Expr, to: &Type) {
        let (expected, found) = (self.describe(to), self.describe(&e.ty));
        let mut diagnostic = Diagnostic::error("type-mismatch", e.span, format!("expected {expected}, found {found}"))
            .label(format!("this is {found}"));
        let by_cast = match (&e.ty, to) {
            (Type::Bit(_), Type::Bit(_)) | (Type::Int(_), Type::Int(_)) | (Type::Bool, Type::Bit(1)) => true,
            (Type::Bit(1), Type::Bool) => true,
            (Type::Bit(a), Type::Int(b)) | (Type::Int(a), Type::Bit(b)) => a == b,
            (Type::New(_), _) => self.underlying_of_new(&e.ty).is_some_and(|inner| inner == *to),
            (_, Type::New(_)) => self.underlying_of_new(to).is_some_and(|inner| inner == e.ty || e.ty == Type::Integer),
            (_, Type::Enum(_)) => self.underlying_of_enum(to).is_some_and(|inner| inner == e.ty),
            _ => false,
        };
        if by_cast {
            let ty = self.describe_plainly(to);
            diagnostic = diagnostic.help(format!("if this is intended, write a cast: `({ty})`"));
        }
        self.error(diagnostic);
    }

    /// Converts `e` to type `to`, or returns it unchanged as an error. Parts of lists that do not fit are reported
    /// here.
    pub(super) fn try_convert(&mut self, e: Expr, to: &Type) -> Result<Expr, Box<Expr>> {
        if e.ty == *to {
            return Ok(e);
        }
        if is_error(&e.ty) || is_error(to) {
            return Ok(error_expr(e.span));
        }
        match (&e.ty, to) {
            (Type::Integer, Type::Bit(_) | Type::Int(_)) => Ok(self.give_width(e, to)),
            // A number without a width takes the width of a `type` like that of any other.
            (Type::Integer, Type::New(_)) => match self.underlying_of_new(to) {
                Some(below) if below != Type::Bool => {
                    let number = self.try_convert(e, &below)?;
                    Ok(self.retype(number, to))
                }
                _ => Err(Box::new(e)),
            },
            (Type::Enum(_), Type::Bit(_) | Type::Int(_)) if self.underlying_of_enum(&e.ty).as_ref() == Some(to) => {
                Ok(self.recast(e, to))
            }
            (Type::Bit(_) | Type::Int(_), Type::Integer) => {
                match value_of(&e).and_then(|value| fold::as_integer(&value, &e.ty)) {
                    Some(value) => Ok(constant(Value::Integer(value), Type::Integer, e.span)),
                    // A value known at instantiation keeps its type.
                    None if self.is_static(&e) => Ok(e),
                    None => Err(Box::new(e)),
                }
            }
            (Type::Tuple(_), Type::Tuple(_) | Type::Struct(_) | Type::Stack(..) | Type::List(_)) => {
                match self.parts(&e) {
                    Some(parts) => self.list_to(e, parts, to),
                    None => Err(Box::new(e)),
                }
            }
            (Type::Struct(id), Type::Struct(_)) if self.anonymous_ids.contains(id) => self.named_parts_to(e, to),
            _ => Err(Box::new(e)),
        }
    }

    /// Converts an `int` to `bit<w>` or `int<w>`; warns if bits are lost.
    pub(super) fn give_width(&mut self, e: Expr, to: &Type) -> Expr {
        let ExprKind::Const(Value::Integer(value)) = &e.kind else {
            if self.is_moving(&e) {
                return self.narrow(e, to);
            }
            return expr(ExprKind::Cast(Box::new(e.clone())), to.clone(), e.span);
        };
        let value = self.integer_in(value, to, e.span);
        constant(value, to.clone(), e.span)
    }

    /// Returns the number in the type's width; warns if it does not fit.
    pub(super) fn integer_in(&mut self, value: &BigInt, to: &Type, span: Span) -> Value {
        let (width, signed) = match to {
            Type::Int(width) => (*width, true),
            Type::Bit(width) => (*width, false),
            _ => (32, false),
        };
        let result = bits::Bits::from_signed_big(value, width);
        if !fold::fits(value, width, signed) {
            let ty = self.describe_plainly(to);
            let kept = if signed { result.to_signed_big().to_string() } else { result.to_big().to_string() };
            self.error(
                Diagnostic::warning("overflow", span, format!("{value} does not fit into `{ty}`"))
                    .label(format!("truncated to {kept}")),
            );
        }
        Value::Bits(result)
    }

    /// Converts to a type with the same bits.
    pub(super) fn recast(&mut self, e: Expr, to: &Type) -> Expr {
        let span = e.span;
        match e.kind {
            ExprKind::Const(value @ Value::Bits(_)) => constant(value, to.clone(), span),
            _ => expr(ExprKind::Cast(Box::new(e)), to.clone(), span),
        }
    }

    /// Returns the parts of a literal list, struct or tuple expression.
    pub(super) fn parts(&self, e: &Expr) -> Option<Vec<Expr>> {
        match &e.kind {
            ExprKind::Fields(parts) => Some(parts.clone()),
            ExprKind::Const(Value::Fields(values)) => {
                let types: Vec<Type> = match &e.ty {
                    Type::Tuple(types) => types.clone(),
                    Type::Struct(id) => self.out.structs[*id].fields.iter().map(|f| f.ty.clone()).collect(),
                    Type::Stack(element, _) | Type::List(element) => vec![(**element).clone(); values.len()],
                    _ => return None,
                };
                let parts = values.iter().zip(types);
                Some(parts.map(|(value, ty)| value_expr(value.clone(), ty, e.span)).collect())
            }
            _ => None,
        }
    }

    fn list_to(&mut self, e: Expr, parts: Vec<Expr>, to: &Type) -> Result<Expr, Box<Expr>> {
        let Some(types) = self.part_types(to, parts.len()) else { return Err(Box::new(e)) };
        if types.len() != parts.len() {
            let expected = self.describe(to);
            self.error(
                Diagnostic::error(
                    "wrong-count",
                    e.span,
                    format!("{expected} takes {} values, but this list has {}", types.len(), parts.len()),
                )
                .label("expected one expression per field or element"),
            );
            return Ok(error_expr(e.span));
        }
        let converted: Vec<Expr> = parts.into_iter().zip(&types).map(|(part, ty)| self.convert(part, ty)).collect();
        if converted.iter().any(|part| is_error(&part.ty)) {
            return Ok(error_expr(e.span));
        }
        Ok(fields(converted, to.clone(), e.span))
    }

    /// Returns the types of the parts of a type that a list expression can have; a list type has `given` parts.
    pub(super) fn part_types(&self, ty: &Type, given: usize) -> Option<Vec<Type>> {
        match ty {
            Type::Tuple(types) => Some(types.clone()),
            Type::Struct(id) if self.out.structs[*id].kind != StructKind::Union => {
                Some(self.out.structs[*id].fields.iter().map(|field| field.ty.clone()).collect())
            }
            Type::Stack(element, size) => Some(vec![(**element).clone(); *size as usize]),
            Type::List(element) => Some(vec![(**element).clone(); given]),
            _ => None,
        }
    }

    fn named_parts_to(&mut self, e: Expr, to: &Type) -> Result<Expr, Box<Expr>> {
        let (Some(parts), Some(from)) = (self.parts(&e), self.struct_decl(&e.ty)) else { return Err(Box::new(e)) };
        let names: Vec<_> = from.fields.iter().map(|field| field.name.clone()).collect();
        let Some(decl) = self.struct_decl(to) else { return Err(Box::new(e)) };
        if decl.kind == StructKind::Union {
            return Err(Box::new(e));
        }
        let wanted: Vec<_> = decl.fields.iter().map(|field| (field.name.clone(), field.ty.clone())).collect();
        let expected = self.describe(to);
        let mut converted = Vec::new();
        for (name, ty) in &wanted {
            match names.iter().position(|given| given == name) {
                Some(at) => converted.push(self.convert(parts[at].clone(), ty)),
                None => {
                    self.error(
                        Diagnostic::error("missing-field", e.span, format!("field `{name}` of {expected} is missing"))
                            .help(format!("add `{name} = ...`, or `...` for default values")),
                    );
                    converted.push(error_expr(e.span));
                }
            }
        }
        for name in &names {
            if !wanted.iter().any(|(field, _)| field == name) {
                self.error(Diagnostic::error("unknown-field", e.span, format!("{expected} has no field `{name}`")));
                converted.push(error_expr(e.span));
            }
        }
        if converted.iter().any(|part| is_error(&part.ty)) {
            return Ok(error_expr(e.span));
        }
        Ok(fields(converted, to.clone(), e.span))
    }

    /// Converts both operands to one type, if an implicit conversion achieves this.
    pub(super) fn unify(&mut self, left: Expr, right: Expr) -> Result<(Expr, Expr), Box<(Expr, Expr)>> {
        if left.ty == right.ty {
            return Ok((left, right));
        }
        if is_error(&left.ty) || is_error(&right.ty) {
            let (a, b) = (left.span, right.span);
            return Ok((error_expr(a), error_expr(b)));
        }
        let (left_ty, right_ty) = (left.ty.clone(), right.ty.clone());
        // The operand with a width determines the type.
        if matches!(left_ty, Type::Integer) {
            return match self.try_convert(left, &right_ty) {
                Ok(left) => Ok((left, right)),
                Err(left) => Err(Box::new((*left, right))),
            };
        }
        if matches!(right_ty, Type::Integer) {
            return match self.try_convert(right, &left_ty) {
                Ok(right) => Ok((left, right)),
                Err(right) => Err(Box::new((left, *right))),
            };
        }
        match self.try_convert(right, &left_ty) {
            Ok(right) => Ok((left, right)),
            Err(right) => match self.try_convert(left, &right_ty) {
                Ok(left) => Ok((left, *right)),
                Err(left) => Err(Box::new((*left, *right))),
            },
        }
    }
}

/// Converts a value to an expression; an invalid header has an expression of its own.
pub(super) fn value_expr(value: Value, ty: Type, span: Span) -> Expr {
    match value {
        Value::Invalid => expr(ExprKind::Invalid, ty, span),
        value => constant(value, ty, span),
    }
}
