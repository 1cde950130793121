//! Reads expressions, header references, fields and l-values.

use super::cursor::TextReader;
use super::lex::TokenKind;
use crate::text::{BINARY, NamedValue, field_named, meaning_of};
use crate::*;

/// Brackets may nest a little deeper than expressions.
const MAX_NESTING: usize = MAX_EXPR_DEPTH + 16;

/// An expression and its nesting depth; a leaf has depth 1.
struct NestedExpr {
    expr: Expr,
    depth: usize,
}

/// A header reference, the depth it adds to an expression, and its type.
struct HeaderOperand {
    header: HeaderRef,
    depth: usize,
    ty: HeaderTypeId,
}

impl TextReader<'_, '_> {
    pub(super) fn expr(&mut self) -> Option<Expr> {
        self.deep().map(|deep| deep.expr)
    }

    /// Reads an expression that may have an infix operator.
    fn deep(&mut self) -> Option<NestedExpr> {
        let left = self.operand()?;
        let start = self.at;
        if self.peek() != TokenKind::Punct {
            return Some(left);
        }
        let text = self.text_of(start);
        let op = meaning_of(BINARY, text);
        if op.is_none() && text != "++" {
            return Some(left);
        }
        self.at += 1;
        let right = self.operand()?;
        if self.peek() == TokenKind::Punct && (self.is("++") || meaning_of(BINARY, self.text_of(self.at)).is_some()) {
            let help = "operators have no precedence: add parentheses";
            return self.error_with(self.span(), format!("`{}` after `{text}`", self.text_of(self.at)), help);
        }
        let depth = left.depth.max(right.depth);
        let (left, right) = (Box::new(left.expr), Box::new(right.expr));
        self.nested(
            depth,
            match op {
                Some(op) => Expr::Binary(op, left, right),
                None => Expr::Concat(left, right),
            },
        )
    }

    /// Wraps operands of a certain depth in an expression.
    fn nested(&mut self, depth: usize, expr: Expr) -> Option<NestedExpr> {
        if depth >= MAX_EXPR_DEPTH { self.too_deep() } else { Some(NestedExpr { expr, depth: depth + 1 }) }
    }

    fn too_deep<T>(&mut self) -> Option<T> {
        self.error(self.span(), format!("expressions can be nested at most {MAX_EXPR_DEPTH} deep"))
    }

    /// Reads an expression without an infix operator, unless in brackets.
    fn operand(&mut self) -> Option<NestedExpr> {
        if self.nesting >= MAX_NESTING {
            return self.too_deep();
        }
        self.nesting += 1;
        let operand = self.operand_within();
        self.nesting -= 1;
        operand
    }

    fn operand_within(&mut self) -> Option<NestedExpr> {
        for (sign, op) in [("~", UnaryOp::Not), ("-", UnaryOp::Neg)] {
            if self.take(sign) {
                let operand = self.operand()?;
                return self.nested(operand.depth, Expr::Unary(op, Box::new(operand.expr)));
            }
        }
        let mut value = self.primary()?;
        while self.take("[") {
            let high = self.number("the high bit of a slice")?;
            self.expect(":")?;
            let low = self.number("the low bit of a slice")?;
            self.expect("]")?;
            value = self.nested(value.depth, Expr::Slice(Box::new(value.expr), high, low))?;
        }
        Some(value)
    }

    fn primary(&mut self) -> Option<NestedExpr> {
        if self.take("(") {
            let inner = self.deep()?;
            self.expect(")")?;
            return Some(inner);
        }
        if self.peek() == TokenKind::Number {
            return Some(NestedExpr { expr: Expr::Const(self.constant()?), depth: 1 });
        }
        if self.is_ahead(1, "(") && !self.keyword().is_empty() {
            return self.function();
        }
        let (lvalue, depth) = self.value("a value")?;
        let expr = match lvalue {
            LValue::Slot(slot) => Expr::Slot(slot),
            LValue::Field(header, field) => Expr::Field(header, field),
        };
        Some(NestedExpr { expr, depth })
    }

    /// Reads an expression in function-call syntax.
    fn function(&mut self) -> Option<NestedExpr> {
        let word = self.keyword();
        let span = self.span();
        self.at += 2;
        let deep = match word {
            "packet_length" => NestedExpr { expr: Expr::PacketLength, depth: 1 },
            "valid" => {
                let header = self.header_deep()?;
                NestedExpr { expr: Expr::Valid(header.header), depth: header.depth }
            }
            "varbit_width" => {
                let (header, field, depth) = self.field_deep("a varbit field")?;
                NestedExpr { expr: Expr::VarbitWidth(header, field), depth }
            }
            "varbit_eq" => {
                let (one, one_field, depth) = self.field_deep("a varbit field")?;
                self.expect(",")?;
                let (other, other_field, other_depth) = self.field_deep("a varbit field")?;
                let both = Box::new((one, one_field, other, other_field));
                NestedExpr { expr: Expr::VarbitEq(both), depth: depth.max(other_depth) }
            }
            "zext" | "sext" => {
                let value = self.deep()?;
                self.expect(",")?;
                let width = self.number("a width in bits")?;
                let inner = Box::new(value.expr);
                let extend = if word == "zext" { Expr::ZeroExtend } else { Expr::SignExtend };
                self.nested(value.depth, extend(inner, width))?
            }
            "choose" => {
                let condition = self.deep()?;
                self.expect(",")?;
                let yes = self.deep()?;
                self.expect(",")?;
                let no = self.deep()?;
                let depth = condition.depth.max(yes.depth).max(no.depth);
                let expr = Expr::Choose(Box::new(condition.expr), Box::new(yes.expr), Box::new(no.expr));
                self.nested(depth, expr)?
            }
            _ => return self.error(span, format!("unknown function `{word}`")),
        };
        self.expect(")")?;
        Some(deep)
    }

    /// Reads expressions separated by commas.
    pub(super) fn exprs(&mut self) -> Option<Vec<Expr>> {
        let mut exprs = vec![self.expr()?];
        while self.take(",") {
            exprs.push(self.expr()?);
        }
        Some(exprs)
    }

    /// Reads an l-value.
    pub(super) fn lvalue(&mut self) -> Option<LValue> {
        self.value("a slot or a field").map(|(lvalue, _)| lvalue)
    }

    /// Reads a slot or a field of a header. Also returns its depth as an expression.
    fn value(&mut self, what: &str) -> Option<(LValue, usize)> {
        let start = self.at;
        let bare = matches!(self.peek(), TokenKind::Word | TokenKind::Quoted) && self.token_kind(1) != TokenKind::Tag;
        if bare {
            let name = self.name(what)?;
            match self.names.value(&self.program, &name) {
                Some(NamedValue::Slot(slot)) => return Some((LValue::Slot(slot), 1)),
                Some(NamedValue::Field(header, field)) => {
                    return Some((LValue::Field(HeaderRef::Header(header), field), 1));
                }
                None if self.is("[") && self.names.stacks.contains_key(&name) => self.at = start,
                None => {
                    let message = format!("there is no slot and no field called {name:?}");
                    return self.error(self.span_of(start), message);
                }
            }
        } else if self.tag_ahead().is_some_and(|tag| tag.starts_with("#slot")) {
            return Some((LValue::Slot(self.slot()?), 1));
        }
        let (header, field, depth) = self.field_deep(what)?;
        Some((LValue::Field(header, field), depth))
    }

    fn token_kind(&self, ahead: usize) -> TokenKind {
        if self.at + ahead < self.end { self.tokens[self.at + ahead].kind } else { TokenKind::End }
    }

    /// Returns the number of the next reference, if it has one.
    fn tag_ahead(&self) -> Option<&str> {
        match (self.peek(), self.token_kind(1)) {
            (TokenKind::Nameless, _) => Some(self.text_of(self.at)),
            (_, TokenKind::Tag) => Some(self.text_of(self.at + 1)),
            _ => None,
        }
    }

    /// Whether the next token is a name with a number.
    pub(super) fn is_tagged(&self) -> bool {
        self.tag_ahead().is_some()
    }

    /// Reads a field of a header, fixed or variable.
    pub(super) fn field(&mut self) -> Option<(HeaderRef, u32)> {
        self.field_deep("a field").map(|(header, field, _)| (header, field))
    }

    fn field_deep(&mut self, what: &str) -> Option<(HeaderRef, u32, usize)> {
        let start = self.at;
        if matches!(self.peek(), TokenKind::Word | TokenKind::Quoted)
            && self.tag_ahead().is_none()
            && !self.is_ahead(1, "[")
        {
            let name = self.name(what)?;
            return match self.names.value(&self.program, &name) {
                Some(NamedValue::Field(header, field)) => Some((HeaderRef::Header(header), field, 1)),
                _ => self.error(self.span_of(start), format!("there is no field called {name:?}")),
            };
        }
        let HeaderOperand { header, depth, ty } = self.header_deep()?;
        let span = self.span();
        let name = match self.peek() {
            TokenKind::Word if self.text_of(self.at).starts_with('.') => {
                let name = self.text_of(self.at)[1..].to_owned();
                self.at += 1;
                Some(name)
            }
            _ => {
                self.expect(".")?;
                match self.peek() {
                    TokenKind::Nameless => None,
                    _ => Some(self.label("the name of a field")?),
                }
            }
        };
        let fields = &self.program.header_types[ty].fields;
        let wanted = if name.is_none() { TokenKind::Nameless } else { TokenKind::Tag };
        if self.peek() == wanted {
            let number = self.text_of(self.at).strip_prefix("#field").and_then(|number| number.parse::<u32>().ok());
            let found = number.filter(|number| fields.get(*number as usize).is_some());
            let named = |field: &u32| name.as_ref().is_none_or(|name| fields[*field as usize].name == *name);
            let Some(field) = found.filter(named) else { return self.error(self.span(), "there is no such field") };
            self.at += 1;
            return Some((header, field, depth));
        }
        let name = name.unwrap_or_default();
        match field_named(&self.program, ty, &name) {
            Some(field) => Some((header, field, depth)),
            None => {
                let ty = self.program.header_types[ty].name.clone();
                self.error(span, format!("{ty:?} has no field called {name:?}"))
            }
        }
    }

    /// Reads a header, or an element of a stack.
    pub(super) fn header(&mut self) -> Option<HeaderRef> {
        self.header_deep().map(|header| header.header)
    }

    fn header_deep(&mut self) -> Option<HeaderOperand> {
        let tagged = self.tag_ahead();
        let element = match tagged {
            Some(tag) => tag.starts_with("#stack"),
            None => self.is_ahead(1, "["),
        };
        if !element {
            let id = self.header_id()?;
            return Some(HeaderOperand { header: HeaderRef::Header(id), depth: 1, ty: self.program.headers[id].ty });
        }
        let stack = self.stack_id()?;
        self.expect("[")?;
        let index = self.deep()?;
        self.expect("]")?;
        if index.depth >= MAX_EXPR_DEPTH {
            return self.too_deep();
        }
        let first = self.program.stacks[stack].first;
        let ty = self.program.headers[first].ty;
        Some(HeaderOperand { header: HeaderRef::Element(stack, Box::new(index.expr)), depth: index.depth + 1, ty })
    }
}
