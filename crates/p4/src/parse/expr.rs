//! Parses expressions (specification section 8) and keysets.
//!
//! Operators are kept on an explicit stack instead of recursing once per precedence level, so that a pair of
//! parentheses costs few stack frames.

use diagnostics::Span;

use super::names::Meaning;
use super::types::TokenPosition;
use super::{ParseResult, SourceParser};
use crate::ast::{Arg, BinaryOp, Expr, ExprKind, Ident, TypeRef, TypeRefKind, UnaryOp};
use crate::lex::TokenKind;

/// A prefix of an operand.
enum Prefix {
    Op(UnaryOp, Span),
    Cast(TypeRef, Span, usize),
}

/// Operands with their heights, and the pending operators between them with their precedence.
#[derive(Default)]
struct OperatorStack {
    operands: Vec<(Expr, usize)>,
    operators: Vec<(BinaryOp, u8)>,
}

impl SourceParser<'_> {
    /// Parses an expression.
    pub(super) fn expr(&mut self) -> ParseResult<Expr> {
        self.nested(Self::ternary)
    }

    /// Creates an expression whose subexpressions have height `below` at most.
    fn made(&mut self, kind: ExprKind, start: Span, below: usize) -> ParseResult<Expr> {
        self.grow(below)?;
        Ok(Expr { kind, span: self.since(start) })
    }

    fn ternary(&mut self) -> ParseResult<Expr> {
        let condition = self.binary_chain()?;
        if !self.is("?") {
            return Ok(condition);
        }
        let mut tallest = self.height;
        self.bump();
        let first = self.with_angle(false, Self::expr)?;
        tallest = tallest.max(self.height);
        self.expect(":", "between the values of `?`")?;
        let second = self.expr()?;
        tallest = tallest.max(self.height);
        let start = condition.span;
        self.made(ExprKind::Ternary(condition.into(), first.into(), second.into()), start, tallest)
    }

    fn binary_chain(&mut self) -> ParseResult<Expr> {
        let first = self.unary()?;
        if self.next_binary().is_none() {
            return Ok(first);
        }
        let mut stack = OperatorStack::default();
        stack.operands.push((first, self.height));
        while let Some((op, precedence)) = self.next_binary() {
            while stack.operators.last().is_some_and(|(_, before)| *before >= precedence) {
                self.combine(&mut stack)?;
            }
            self.bump();
            stack.operators.push((op, precedence));
            let operand = self.unary()?;
            stack.operands.push((operand, self.height));
        }
        while !stack.operators.is_empty() {
            self.combine(&mut stack)?;
        }
        match stack.operands.pop() {
            Some((whole, height)) => {
                self.height = height;
                Ok(whole)
            }
            None => self.skip(),
        }
    }

    /// Applies the last pending operator.
    fn combine(&mut self, stack: &mut OperatorStack) -> ParseResult<()> {
        let (Some((op, _)), Some((right, high)), Some((left, low))) =
            (stack.operators.pop(), stack.operands.pop(), stack.operands.pop())
        else {
            return self.skip();
        };
        self.grow(high.max(low))?;
        let span = left.span.to(right.span);
        let kind = ExprKind::Binary(op, left.into(), right.into());
        stack.operands.push((Expr { kind, span }, self.height));
        Ok(())
    }

    fn unary(&mut self) -> ParseResult<Expr> {
        let mut prefixes = Vec::new();
        loop {
            let span = self.span();
            let op = match self.kind() {
                TokenKind::Punct("-") => UnaryOp::Neg,
                TokenKind::Punct("+") => UnaryOp::Plus,
                TokenKind::Punct("~") => UnaryOp::BitNot,
                TokenKind::Punct("!") => UnaryOp::Not,
                TokenKind::Punct("(") if self.is_cast() => {
                    self.bump();
                    let ty = self.with_angle(false, |p| p.nested(Self::ty))?;
                    let height = self.height;
                    self.expect_close(")", span, "after the type of a cast");
                    prefixes.push(Prefix::Cast(ty, span, height));
                    continue;
                }
                _ => break,
            };
            self.bump();
            prefixes.push(Prefix::Op(op, span));
        }
        let mut expr = self.postfix()?;
        for prefix in prefixes.into_iter().rev() {
            let below = self.height;
            expr = match prefix {
                Prefix::Op(op, span) => self.made(ExprKind::Unary(op, expr.into()), span, below)?,
                Prefix::Cast(ty, span, height) => {
                    self.made(ExprKind::Cast(ty.into(), expr.into()), span, below.max(height))?
                }
            };
        }
        Ok(expr)
    }

    /// Whether the next `(` begins a cast. A name in parentheses does if it is a known type, or if it is unknown and an
    /// operand follows without an operator in between.
    fn is_cast(&self) -> bool {
        let inner = TokenPosition::behind(self.here());
        let Some(end) = self.scan_type_at(inner) else { return false };
        if !self.is_at(end, ")") {
            return false;
        }
        if self.type_begins_at(1) {
            return true;
        }
        let absolute = self.nth_is(1, ".");
        let known = self.nth_word(1 + usize::from(absolute)).and_then(|word| self.names.meaning(word, absolute));
        let Some(close) = self.distance(end) else { return false };
        known.is_none()
            && match &self.peek(close + 1).kind {
                TokenKind::Int(_) | TokenKind::String(_) => true,
                TokenKind::Punct(sign) => matches!(*sign, "!" | "~" | "{" | "{#}"),
                TokenKind::Ident(word) => matches!(&**word, "true" | "false" | "this") || self.nth_is_name(close + 1),
                TokenKind::Unknown(_) | TokenKind::End => false,
            }
    }

    /// Parses an operand followed by members, indices, slices and calls.
    pub(super) fn postfix(&mut self) -> ParseResult<Expr> {
        let mut expr = self.primary()?;
        loop {
            let start = expr.span;
            let below = self.height;
            if self.eat(".") {
                if matches!((&expr.kind, self.kind()), (ExprKind::Int(_), TokenKind::Int(_))) {
                    let help = "write an IPv4 address as a 32-bit number: 10.0.0.1 is 0x0a000001";
                    let message = "P4 has no floating-point numbers";
                    return Err(self.mistaken("unexpected-token", self.span(), message, help));
                }
                let name = self.name("a member")?;
                expr = self.made(ExprKind::Member(expr.into(), name), start, below)?;
            } else if self.is("[") {
                expr = self.with_angle(false, |p| p.index(expr))?;
            } else if self.is("(") {
                let args = self.args()?;
                let below = below.max(self.height);
                expr = self.made(ExprKind::Call { callee: expr.into(), type_args: Vec::new(), args }, start, below)?;
            } else if self.is("<") && self.is_generic_call(&expr) {
                let type_args = self.type_args()?;
                let below = below.max(self.height);
                let args = self.args()?;
                let below = below.max(self.height);
                expr = self.made(ExprKind::Call { callee: expr.into(), type_args, args }, start, below)?;
            } else {
                self.height = below;
                return Ok(expr);
            }
        }
    }

    /// Parses `[i]`, `[high:low]` or `[low +: width]` after `base`.
    fn index(&mut self, base: Expr) -> ParseResult<Expr> {
        let mut tallest = self.height;
        let (start, open) = (base.span, self.span());
        self.bump();
        let first = self.expr()?;
        tallest = tallest.max(self.height);
        let by_width = self.is("+:");
        let slice = by_width || self.is(":");
        if !slice {
            self.expect_close("]", open, "after the index");
            return self.made(ExprKind::Index(base.into(), first.into()), start, tallest);
        }
        self.bump();
        let second = self.expr()?;
        tallest = tallest.max(self.height);
        self.expect_close("]", open, "after the slice");
        let (base, first, second) = (base.into(), first.into(), second.into());
        let kind =
            if by_width { ExprKind::PlusSlice(base, first, second) } else { ExprKind::Slice(base, first, second) };
        self.made(kind, start, tallest)
    }

    /// Whether the next `<` begins the type arguments of a call of `callee`: the tokens can be type arguments, `(`
    /// follows them, and the first is not a known value.
    fn is_generic_call(&self, callee: &Expr) -> bool {
        if !matches!(callee.kind, ExprKind::Name { .. } | ExprKind::Member(..)) {
            return false;
        }
        let absolute = self.nth_is(1, ".");
        let first = self.nth_word(1 + usize::from(absolute));
        let value = first.is_some_and(|word| self.names.meaning(word, absolute) == Some(Meaning::Value));
        !value && self.scan_type_args().is_some_and(|end| self.is_at(end, "("))
    }

    /// Parses arguments in parentheses.
    pub(super) fn args(&mut self) -> ParseResult<Vec<Arg>> {
        let open = self.expect("(", "before the arguments")?;
        self.with_angle(false, |p| p.list(open, ")", "after the arguments", Self::arg))
    }

    fn arg(&mut self) -> ParseResult<Arg> {
        let mut name = None;
        if self.nth_is_name(0) && self.nth_is(1, "=") {
            name = Some(self.name("a parameter")?);
            self.bump();
        }
        let span = self.span();
        let value = if self.is_word("_") {
            self.bump();
            self.height = 1;
            Expr { kind: ExprKind::DontCare, span }
        } else {
            self.expr()?
        };
        Ok(Arg { name, value })
    }

    fn primary(&mut self) -> ParseResult<Expr> {
        let span = self.span();
        self.height = 1;
        let kind = match self.kind() {
            TokenKind::Int(literal) => ExprKind::Int(literal.clone()),
            TokenKind::String(text) => ExprKind::String(text.clone()),
            TokenKind::Punct("...") => ExprKind::Dots,
            TokenKind::Punct("{#}") => ExprKind::Invalid,
            TokenKind::Punct("(") => {
                self.bump();
                let inner = self.with_angle(false, Self::comparison)?;
                self.expect_close(")", span, "after the expression");
                return Ok(Expr { span: self.since(span), ..inner });
            }
            TokenKind::Punct("{") => return self.with_angle(false, Self::braces),
            TokenKind::Punct(".") => {
                self.bump();
                return self.named_operand(true);
            }
            TokenKind::Ident(word) => match &**word {
                "true" => ExprKind::Bool(true),
                "false" => ExprKind::Bool(false),
                "this" => ExprKind::This,
                "error" if self.nth_is(1, ".") => {
                    self.bump();
                    let ty = TypeRef { kind: TypeRefKind::Error, span };
                    return Ok(Expr { kind: ExprKind::Type(ty.into()), span });
                }
                _ if self.begins_type() && !self.nth_is_name(0) => {
                    let ty = self.plain_type()?;
                    return self.type_operand(ty);
                }
                _ if self.begins_type() => return self.named_operand(false),
                _ if self.nth_is_name(0) => return self.named_operand(false),
                _ => return Err(self.unexpected("an expression", "")),
            },
            _ => return Err(self.unexpected("an expression", "")),
        };
        self.bump();
        Ok(Expr { kind, span })
    }

    fn type_operand(&mut self, ty: TypeRef) -> ParseResult<Expr> {
        let span = ty.span;
        self.made(ExprKind::Type(ty.into()), span, self.height)
    }

    /// Parses a name as an operand: of a value, or of a type if it is a known type or has type arguments followed by a
    /// constructor call or `.apply`. If `absolute`, a leading dot was consumed.
    fn named_operand(&mut self, absolute: bool) -> ParseResult<Expr> {
        let meaning = self.word().and_then(|word| self.names.meaning(word, absolute));
        let generic = self.nth_is(1, "<");
        let is_type = match meaning {
            Some(Meaning::Type) => true,
            Some(Meaning::Value) => false,
            None => generic && self.scan_type().is_some_and(|end| self.is_at(end, ".")),
        };
        // `list` is a name unless type arguments follow.
        if self.is_word("list") && generic && !absolute && meaning.is_none() {
            let ty = self.plain_type()?;
            return self.type_operand(ty);
        }
        if is_type {
            let ty = self.named_type(absolute)?;
            return self.type_operand(ty);
        }
        let start = if absolute { self.before() } else { self.span() };
        let name = self.name("a value")?;
        self.height = 1;
        Ok(Expr { kind: ExprKind::Name { absolute, name }, span: self.since(start) })
    }

    /// Parses `{ e1, e2 }`, `{ a = e1, b = e2 }` and `{ a = e1, ... }`.
    fn braces(&mut self) -> ParseResult<Expr> {
        let open = self.span();
        self.bump();
        let context = "at the end of the list";
        if !(self.nth_word(0).is_some() && self.nth_is(1, "=")) {
            let list = self.list(open, "}", context, Self::expr)?;
            return self.made(ExprKind::List(list), open, self.height);
        }
        let mut dots = None;
        let fields = self.list(open, "}", context, |p| {
            let span = p.span();
            if p.eat("...") {
                dots = Some(span);
                return Ok(None);
            }
            if dots.is_some() {
                p.unexpected("`}`", "after `...`");
            }
            let name = p.name("a field")?;
            p.expect("=", "after the name of a field")?;
            Ok(Some((name, p.expr()?)))
        })?;
        let fields: Vec<(Ident, Expr)> = fields.into_iter().flatten().collect();
        self.made(ExprKind::Struct { fields, dots }, open, self.height)
    }

    /// Parses an expression in which `=` is reported and treated as the comparison that was meant.
    pub(super) fn comparison(&mut self) -> ParseResult<Expr> {
        let mut left = self.expr()?;
        while self.is("=") {
            let below = self.height;
            let (message, help) = ("`=` assigns and is not allowed in an expression", "write `==` to compare");
            self.mistaken("assignment-in-expression", self.span(), message, help);
            self.bump();
            let right = self.expr()?;
            let start = left.span;
            left =
                self.made(ExprKind::Binary(BinaryOp::Eq, left.into(), right.into()), start, below.max(self.height))?;
        }
        Ok(left)
    }

    /// Parses one element of a keyset: `default`, `_`, an expression, a range or a mask.
    pub(super) fn key(&mut self) -> ParseResult<Expr> {
        let span = self.span();
        for (word, kind) in [("default", ExprKind::Default), ("_", ExprKind::DontCare)] {
            if self.eat_word(word) {
                self.height = 1;
                return Ok(Expr { kind, span });
            }
        }
        let first = self.expr()?;
        let below = self.height;
        let mask = self.is("&&&");
        if !mask && !self.is("..") {
            return Ok(first);
        }
        self.bump();
        let second = self.expr()?;
        let below = below.max(self.height);
        let kind = if mask {
            ExprKind::Mask(first.into(), second.into())
        } else {
            ExprKind::Range(first.into(), second.into())
        };
        self.made(kind, span, below)
    }

    /// Parses a keyset before `:`, with one expression per element.
    pub(super) fn keyset(&mut self) -> ParseResult<Vec<Expr>> {
        let whole = self.is("(") && self.scan_parens().is_some_and(|end| self.is_at(end, ":"));
        if !whole {
            return Ok(vec![self.key()?]);
        }
        let open = self.span();
        self.bump();
        self.list(open, ")", "after the keyset", Self::key)
    }
}
