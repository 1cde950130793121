//! Checks expressions.

use diagnostics::{Diagnostic, Span};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::convert::value_of;
use super::method::CallSite;
use super::scope::Symbol;
use super::{Checker, VarKind, constant, error_expr, expr, fold, is_error};
use crate::ast::{self, Direction};
use crate::typed::{Arg, Callee, Expr, ExprKind, Type, Value};

impl Checker<'_> {
    /// Checks an expression. `expected` is a hint for expressions without a type of their own (lists, `...`, `{#}`); it
    /// is not enforced.
    pub(super) fn check(&mut self, e: &ast::Expr, expected: Option<&Type>) -> Expr {
        let typed = self.deeper(e.span, |c| c.check_inner(e, expected)).unwrap_or_else(|| error_expr(e.span));
        if is_error(&typed.ty) {
            self.assert_error_reported(e.span);
        }
        typed
    }

    /// Reports an error if there is none yet: an expression given up without one must not pass as correct.
    pub(super) fn assert_error_reported(&mut self, span: Span) {
        if self.diagnostics.error_count() == self.errors_before {
            self.error(
                Diagnostic::error("unsupported", span, "the type of this expression cannot be determined")
                    .help("specify the type arguments"),
            );
        }
    }

    /// Checks an expression and converts it implicitly to type `ty`.
    pub(super) fn check_as(&mut self, e: &ast::Expr, ty: &Type) -> Expr {
        let typed = self.check(e, (!is_error(ty)).then_some(ty));
        self.convert(typed, ty)
    }

    fn check_inner(&mut self, e: &ast::Expr, expected: Option<&Type>) -> Expr {
        let span = e.span;
        match &e.kind {
            ast::ExprKind::Int(literal) => self.int_literal(literal, span),
            ast::ExprKind::String(text) => constant(Value::String(text.clone()), Type::String, span),
            ast::ExprKind::Bool(value) => self.bool_const(*value, span),
            ast::ExprKind::This => match self.cx.this.clone() {
                Some(ty) => expr(ExprKind::This, ty, span),
                None => {
                    self.error(
                        Diagnostic::error("this", span, "`this` is not allowed here")
                            .help("`this` is available only in implementations of abstract methods"),
                    );
                    error_expr(span)
                }
            },
            ast::ExprKind::Default | ast::ExprKind::DontCare => {
                self.not_a_value(span, "it matches anything and has no value");
                error_expr(span)
            }
            ast::ExprKind::Dots => match expected {
                Some(ty) => {
                    let ty = ty.clone();
                    self.default_value(&ty, span)
                }
                None => {
                    self.error(Diagnostic::error("dots", span, "`...` has no default value here"));
                    error_expr(span)
                }
            },
            ast::ExprKind::Range(..) | ast::ExprKind::Mask(..) => {
                self.not_a_value(span, "ranges and masks are allowed only in `select`, in entries and after `in`");
                error_expr(span)
            }
            ast::ExprKind::Invalid => self.invalid(expected, span),
            ast::ExprKind::Name { absolute, name } => self.name(*absolute, name, span),
            ast::ExprKind::Type(ty) => {
                if !is_error(&self.resolve(ty)) {
                    self.not_a_value(span, "this is a type");
                }
                error_expr(span)
            }
            ast::ExprKind::Member(base, name) => self.member(base, name, span),
            ast::ExprKind::Index(base, index) => self.index(base, index, span),
            ast::ExprKind::Slice(base, high, low) => self.slice(base, high, low, span),
            ast::ExprKind::PlusSlice(base, low, width) => self.plus_slice(base, low, width, span),
            ast::ExprKind::Unary(op, operand) => self.unary(*op, operand, span),
            ast::ExprKind::Binary(op, left, right) => self.binary(*op, left, right, span),
            ast::ExprKind::Ternary(condition, then, otherwise) => {
                self.ternary(condition, then, otherwise, expected, span)
            }
            ast::ExprKind::Cast(ty, operand) => self.cast(ty, operand, span),
            ast::ExprKind::List(items) => self.list(items, expected, span),
            ast::ExprKind::Struct { fields, dots } => self.struct_expr(fields, *dots, expected, span),
            ast::ExprKind::Call { callee, type_args, args } => {
                self.call_expr(callee, CallSite { type_args, args, expected, span })
            }
        }
    }

    fn not_a_value(&mut self, span: Span, why: &str) {
        self.error(Diagnostic::error("not-a-value", span, "expected a value").label(why));
    }

    fn int_literal(&mut self, literal: &ast::IntLiteral, span: Span) -> Expr {
        let Some((width, signed)) = literal.width else {
            return constant(Value::Integer(literal.value.clone()), Type::Integer, span);
        };
        if width > bits::MAX_WIDTH || signed && width == 0 {
            self.error(
                Diagnostic::error("width", span, format!("values of {width} bits are not supported"))
                    .label(format!("the maximum is {} bits", bits::MAX_WIDTH)),
            );
            return error_expr(span);
        }
        let ty = if signed { Type::Int(width) } else { Type::Bit(width) };
        let value = self.integer_in(&literal.value, &ty, span);
        constant(value, ty, span)
    }

    fn name(&mut self, absolute: bool, name: &ast::Ident, span: Span) -> Expr {
        if self.find(&name.name, absolute).is_none()
            && let Some(at) = self.out.match_kinds.iter().position(|kind| *kind == name.name)
        {
            return constant(Value::MatchKind(at), Type::MatchKind, span);
        }
        let Some(binding) = self.lookup(name, absolute) else { return error_expr(span) };
        match binding.symbol {
            Symbol::Var(var) => {
                self.used.vars.insert(var);
                expr(ExprKind::Var(var), self.out.vars[var].ty.clone(), span)
            }
            Symbol::Const(value) if !self.spend(&value.ty, span) => error_expr(span),
            Symbol::Const(value) => {
                self.used.constants.insert(binding.span);
                Expr { span, ..(*value).clone() }
            }
            Symbol::Instance(id) => {
                self.used.instances.insert(id);
                let instance = &self.out.instances[id];
                let ty = match instance.array {
                    Some(size) => Type::Stack(Box::new(instance.ty.clone()), size),
                    None => instance.ty.clone(),
                };
                expr(ExprKind::Instance(id), ty, span)
            }
            Symbol::ValueSet(id) => {
                self.used.value_sets.insert(id);
                let ty = Type::Set(Box::new(self.out.value_sets[id].ty.clone()));
                expr(ExprKind::ValueSet(id), ty, span)
            }
            Symbol::Invalid => error_expr(span),
            symbol => {
                let what = match symbol {
                    Symbol::Decl(_) | Symbol::Type(_) => "a type",
                    Symbol::Action(_) => "an action",
                    Symbol::Table(_) => "a table",
                    Symbol::State => "a parser state",
                    _ => "a function",
                };
                self.error(
                    Diagnostic::error("not-a-value", span, format!("`{}` is {what}, not a value", name.name))
                        .label("expected a value")
                        .also(binding.span, "declared here"),
                );
                error_expr(span)
            }
        }
    }

    fn ternary(
        &mut self,
        condition: &ast::Expr,
        then: &ast::Expr,
        otherwise: &ast::Expr,
        expected: Option<&Type>,
        span: Span,
    ) -> Expr {
        let condition = self.condition(condition);
        let then = self.check(then, expected);
        let hint = if is_error(&then.ty) { expected.cloned() } else { Some(then.ty.clone()) };
        let otherwise = self.check(otherwise, expected.or(hint.as_ref()));
        let (then, otherwise) = match self.unify(then, otherwise) {
            Ok(both) => both,
            Err(both) => {
                let (a, b) = (self.describe(&both.0.ty), self.describe(&both.1.ty));
                self.error(
                    Diagnostic::error("type-mismatch", span, format!("the branches have different types: {a} and {b}"))
                        .also(both.0.span, a)
                        .also(both.1.span, b),
                );
                return error_expr(span);
            }
        };
        if is_error(&condition.ty) || is_error(&then.ty) {
            return error_expr(span);
        }
        if let ExprKind::Const(Value::Bool(chosen)) = &condition.kind {
            return Expr { span, ..if *chosen { then } else { otherwise } };
        }
        if matches!(then.ty, Type::Integer) && !self.is_static(&condition) {
            self.error(
                Diagnostic::error("unknown-width", span, "the width of the result is unknown")
                    .label("both branches are `int`")
                    .help("give one of them a width: `8w1`"),
            );
            return error_expr(span);
        }
        let ty = then.ty.clone();
        expr(ExprKind::Ternary(Box::new(condition), Box::new(then), Box::new(otherwise)), ty, span)
    }

    /// Checks a condition, which must be a `bool`.
    pub(super) fn condition(&mut self, e: &ast::Expr) -> Expr {
        let typed = self.check(e, None);
        if matches!(typed.ty, Type::Bool) || is_error(&typed.ty) {
            return typed;
        }
        let found = self.describe(&typed.ty);
        let mut diagnostic = Diagnostic::error("type-mismatch", e.span, format!("expected a `bool`, found {found}"))
            .label("a condition");
        if matches!(typed.ty, Type::Bit(_) | Type::Integer) {
            diagnostic = diagnostic.help("compare it: `... != 0`");
        } else if matches!(typed.ty, Type::TableResult(_)) {
            diagnostic = diagnostic.help("test whether an entry matched: `.apply().hit`, or `.miss`");
        } else if self.is_header(&typed.ty) || self.is_union(&typed.ty) {
            diagnostic = diagnostic.help("test whether it is valid: `.isValid()`");
        }
        self.error(diagnostic);
        error_expr(e.span)
    }

    /// Whether the value is known at instantiation or earlier.
    pub(super) fn is_static(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Const(_) | ExprKind::Instance(_) | ExprKind::Invalid | ExprKind::ValueSet(_) => true,
            ExprKind::Var(var) => {
                matches!(
                    self.var_kinds.get(var),
                    Some(VarKind::Constructor | VarKind::ActionData | VarKind::Param(Direction::None))
                )
            }
            ExprKind::Field(base, _) | ExprKind::Unary(_, base) | ExprKind::Cast(base) | ExprKind::Slice(base, ..) => {
                self.is_static(base)
            }
            ExprKind::Binary(_, a, b) | ExprKind::Element(a, b) => self.is_static(a) && self.is_static(b),
            ExprKind::Ternary(a, b, c) => self.is_static(a) && self.is_static(b) && self.is_static(c),
            ExprKind::Fields(parts) => parts.iter().all(|part| self.is_static(part)),
            _ => false,
        }
    }

    /// Whether the expression calls an extern function that is `@pure`, with arguments known at instantiation: the
    /// architecture evaluates it when it creates the instance.
    pub(super) fn is_factory_call(&self, e: &Expr) -> bool {
        let ExprKind::Call(call) = &e.kind else { return false };
        let Callee::ExternFn(id, _) = call.callee else { return false };
        let is_pure = self.out.extern_fns[id].annotations.iter().any(|annotation| &*annotation.name == "pure");
        is_pure && call.args.iter().all(|arg| matches!(arg, Arg::Expr(e) if self.is_static(e)))
    }

    /// Whether the expression is an l-value.
    pub(super) fn is_lvalue(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Var(var) => matches!(
                self.var_kinds.get(var),
                Some(VarKind::Local | VarKind::Loop | VarKind::Param(Direction::Out | Direction::InOut))
            ),
            ExprKind::Field(base, _) => self.is_lvalue(base),
            ExprKind::Element(base, _) | ExprKind::Slice(base, ..) => self.is_lvalue(base),
            ExprKind::Next(base) | ExprKind::Last(base) => self.is_lvalue(base),
            _ => false,
        }
    }

    /// Checks an integer that must be known at compile time.
    pub(super) fn integer(&mut self, e: &ast::Expr, what: &str) -> Option<BigInt> {
        let typed = self.check(e, None);
        if is_error(&typed.ty) {
            return None;
        }
        let ty = self.underlying_of_enum(&typed.ty).unwrap_or(typed.ty.clone());
        let number = value_of(&typed).and_then(|value| fold::as_integer(&value, &ty));
        let is_number = matches!(ty, Type::Integer | Type::Bit(_) | Type::Int(_));
        if !is_number {
            let found = self.describe(&typed.ty);
            self.error(
                Diagnostic::error("type-mismatch", e.span, format!("expected an integer, found {found}")).label(what),
            );
            return None;
        }
        if number.is_none() {
            self.error(
                Diagnostic::error("not-constant", e.span, format!("{what} must be known at compile time"))
                    .label("not a constant"),
            );
        }
        number
    }

    pub(super) fn index(&mut self, base: &ast::Expr, index: &ast::Expr, span: Span) -> Expr {
        let base = self.check(base, None);
        if let Type::Tuple(types) = &base.ty {
            let types = types.clone();
            let Some(at) = self.integer(index, "the index of a tuple") else { return error_expr(span) };
            let Some((at, ty)) = at.to_usize().and_then(|at| types.get(at).map(|ty| (at, ty.clone()))) else {
                self.error(
                    Diagnostic::error("index", index.span, format!("the tuple has no component {at}"))
                        .label(format!("it has {}", types.len())),
                );
                return error_expr(span);
            };
            return self.field_of(base, at, ty, span);
        }
        let index_expr = self.check(index, None);
        if is_error(&base.ty) || is_error(&index_expr.ty) {
            return error_expr(span);
        }
        let Type::Stack(element, size) = base.ty.clone() else {
            let found = self.describe(&base.ty);
            self.error(
                Diagnostic::error("index", span, format!("{found} cannot be indexed"))
                    .also(base.span, format!("this is {found}"))
                    .help("header stacks and tuples can be indexed; bits are `e[high:low]`"),
            );
            return error_expr(span);
        };
        let index_expr = self.enum_to_number(index_expr);
        if let Some(at) = value_of(&index_expr).and_then(|value| fold::as_integer(&value, &index_expr.ty)) {
            if at < BigInt::from(0) || at >= BigInt::from(size) {
                self.error(
                    Diagnostic::error("index", index.span, format!("index {at} is outside the stack"))
                        .label(format!("the stack has {size} elements")),
                );
                return error_expr(span);
            }
            let at = constant(Value::Bits(bits::Bits::from_signed_big(&at, 32)), Type::Bit(32), index.span);
            return expr(ExprKind::Element(Box::new(base), Box::new(at)), *element, span);
        }
        let index_expr = match index_expr.ty {
            Type::Bit(_) => index_expr,
            Type::Int(width) => self.recast(index_expr, &Type::Bit(width)),
            Type::Integer => self.give_width(index_expr, &Type::Bit(32)),
            _ => {
                self.mismatch(&index_expr, &Type::Bit(32));
                return error_expr(span);
            }
        };
        expr(ExprKind::Element(Box::new(base), Box::new(index_expr)), *element, span)
    }

    pub(super) fn slice(&mut self, base: &ast::Expr, high: &ast::Expr, low: &ast::Expr, span: Span) -> Expr {
        let base = self.check(base, None);
        let high_value = self.integer(high, "the bits of a slice");
        let low_value = self.integer(low, "the bits of a slice");
        let base = self.enum_to_number(base);
        if is_error(&base.ty) {
            return error_expr(span);
        }
        let (Type::Bit(width) | Type::Int(width)) = base.ty else {
            let found = self.describe(&base.ty);
            self.error(
                Diagnostic::error("slice", span, format!("{found} cannot be sliced"))
                    .also(base.span, format!("this is {found}"))
                    .help("only bit<w> and int<w> can be sliced"),
            );
            return error_expr(span);
        };
        let (Some(high_value), Some(low_value)) = (high_value, low_value) else { return error_expr(span) };
        let (h, l) = (high_value.to_u32(), low_value.to_u32());
        match (h, l) {
            (Some(h), Some(l)) if h < width && l <= h => {
                let ty = Type::Bit(h - l + 1);
                if let ExprKind::Const(Value::Bits(bits)) = &base.kind {
                    return constant(Value::Bits(bits.slice(h, l)), ty, span);
                }
                expr(ExprKind::Slice(Box::new(base), h, l), ty, span)
            }
            _ => {
                let mut diagnostic = Diagnostic::error(
                    "slice",
                    span,
                    format!("slice [{high_value}:{low_value}] is out of range for {width} bits"),
                )
                .label(format!("bits are numbered from {} down to 0", i64::from(width) - 1));
                if low_value > high_value {
                    diagnostic = diagnostic.help("write the higher bit first: `e[high:low]`");
                }
                self.error(diagnostic);
                error_expr(span)
            }
        }
    }

    /// Checks `e[low +: width]`: `width` bits upwards from bit `low`; only the width must be known at compile time.
    fn plus_slice(&mut self, base: &ast::Expr, low: &ast::Expr, width: &ast::Expr, span: Span) -> Expr {
        let base = self.check(base, None);
        let base = self.enum_to_number(base);
        let low = self.check(low, None);
        let low = self.enum_to_number(low);
        let count = self.integer(width, "the width of a slice");
        if is_error(&base.ty) || is_error(&low.ty) {
            return error_expr(span);
        }
        let (Type::Bit(of) | Type::Int(of)) = base.ty else {
            let found = self.describe(&base.ty);
            self.error(
                Diagnostic::error("slice", span, format!("{found} cannot be sliced"))
                    .also(base.span, format!("this is {found}")),
            );
            return error_expr(span);
        };
        let Some(count) = count else { return error_expr(span) };
        let known = self.constant_integer(&low);
        let first = known.clone().unwrap_or_default();
        let (Some(count), Some(first)) = (count.to_u32().filter(|count| *count > 0 && *count <= of), first.to_u32())
        else {
            self.error(
                Diagnostic::error("slice", span, format!("slice [{first}+:{count}] is out of range for {of}"))
                    .label(format!("bits are numbered from {} down to 0", i64::from(of) - 1)),
            );
            return error_expr(span);
        };
        if known.is_some() {
            if u64::from(first) + u64::from(count) > u64::from(of) {
                self.error(
                    Diagnostic::error("slice", span, format!("slice [{first}+:{count}] is out of range for {of}"))
                        .label(format!("bits are numbered from {} down to 0", i64::from(of) - 1)),
                );
                return error_expr(span);
            }
            let (high, ty) = (first + count - 1, Type::Bit(count));
            if let ExprKind::Const(Value::Bits(bits)) = &base.kind {
                return constant(Value::Bits(bits.slice(high, first)), ty, span);
            }
            return expr(ExprKind::Slice(Box::new(base), high, first), ty, span);
        }
        let unsigned = if matches!(base.ty, Type::Int(_)) { self.recast(base, &Type::Bit(of)) } else { base };
        let shifted = self.binary_typed(ast::BinaryOp::Shr, unsigned, low, span);
        if is_error(&shifted.ty) {
            return error_expr(span);
        }
        expr(ExprKind::Slice(Box::new(shifted), count - 1, 0), Type::Bit(count), span)
    }

    /// Converts a serialisable enum to its number; returns anything else unchanged.
    pub(super) fn enum_to_number(&mut self, e: Expr) -> Expr {
        match self.underlying_of_enum(&e.ty) {
            Some(below) => self.recast(e, &below),
            None => e,
        }
    }
}
