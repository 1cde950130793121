//! Prints expressions, header references and l-values.
//!
//! There is no operator precedence: an operand with an infix operator is printed in brackets.

use std::fmt;

use super::{Out, Printer, tagged};
use crate::text::{NamedValue, field_named, word_for, write_label, write_name};
use crate::*;

/// Expressions that may be printed without brackets in some position.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Unbracketed {
    /// Any expression.
    Whole,
    /// Any expression without an infix operator.
    Operand,
    /// Only expressions that a slice can follow.
    Primary,
}

impl Printer<'_> {
    pub(super) fn expr(&self, out: Out<'_>, expr: &Expr) -> fmt::Result {
        self.expr_in(out, expr, Unbracketed::Whole)
    }

    fn expr_in(&self, out: Out<'_>, expr: &Expr, allowed: Unbracketed) -> fmt::Result {
        match expr {
            Expr::Const(value) => write!(out, "{value}"),
            Expr::Slot(slot) => self.slot(out, *slot),
            Expr::Field(header, field) => self.field(out, header, *field),
            Expr::Valid(header) => {
                out.write_str("valid(")?;
                self.header_ref(out, header)?;
                out.write_char(')')
            }
            Expr::VarbitWidth(header, field) => {
                out.write_str("varbit_width(")?;
                self.field(out, header, *field)?;
                out.write_char(')')
            }
            Expr::VarbitEq(both) => {
                out.write_str("varbit_eq(")?;
                self.field(out, &both.0, both.1)?;
                out.write_str(", ")?;
                self.field(out, &both.2, both.3)?;
                out.write_char(')')
            }
            Expr::PacketLength => out.write_str("packet_length()"),
            Expr::Unary(op, operand) => {
                let bracket = allowed > Unbracketed::Operand;
                out.write_str(if bracket { "(" } else { "" })?;
                out.write_char(match op {
                    UnaryOp::Not => '~',
                    UnaryOp::Neg => '-',
                })?;
                self.expr_in(out, operand, Unbracketed::Operand)?;
                out.write_str(if bracket { ")" } else { "" })
            }
            Expr::Binary(op, left, right) => self.infix(out, left, word_for(crate::text::BINARY, op), right, allowed),
            Expr::Concat(left, right) => self.infix(out, left, "++", right, allowed),
            Expr::Slice(value, high, low) => {
                self.expr_in(out, value, Unbracketed::Primary)?;
                write!(out, "[{high}:{low}]")
            }
            Expr::ZeroExtend(value, width) => self.extend(out, "zext", value, *width),
            Expr::SignExtend(value, width) => self.extend(out, "sext", value, *width),
            Expr::Choose(condition, yes, no) => {
                out.write_str("choose(")?;
                self.exprs(out, [&**condition, yes, no])?;
                out.write_char(')')
            }
        }
    }

    fn infix(&self, out: Out<'_>, left: &Expr, op: &str, right: &Expr, allowed: Unbracketed) -> fmt::Result {
        let bracket = allowed > Unbracketed::Whole;
        out.write_str(if bracket { "(" } else { "" })?;
        self.expr_in(out, left, Unbracketed::Operand)?;
        write!(out, " {op} ")?;
        self.expr_in(out, right, Unbracketed::Operand)?;
        out.write_str(if bracket { ")" } else { "" })
    }

    fn extend(&self, out: Out<'_>, word: &str, value: &Expr, width: u32) -> fmt::Result {
        write!(out, "{word}(")?;
        self.expr(out, value)?;
        write!(out, ", {width})")
    }

    /// Prints expressions separated by commas.
    pub(super) fn exprs<'e>(&self, out: Out<'_>, exprs: impl IntoIterator<Item = &'e Expr>) -> fmt::Result {
        super::separated(out, exprs, ", ", |out, expr| self.expr(out, expr))
    }

    /// Prints a slot used as a value or an l-value.
    pub(super) fn slot(&self, out: Out<'_>, slot: SlotId) -> fmt::Result {
        let name = self.program.slots.get(slot).map(|slot| slot.name.as_str());
        self.entity(out, slot, name, |names| &names.slots)
    }

    /// Prints a header, or the element of a stack at a computed index.
    pub(super) fn header_ref(&self, out: Out<'_>, header: &HeaderRef) -> fmt::Result {
        match header {
            HeaderRef::Header(id) => self.header(out, *id),
            HeaderRef::Element(stack, index) => {
                self.stack(out, *stack)?;
                out.write_char('[')?;
                self.expr(out, index)?;
                out.write_char(']')
            }
        }
    }

    pub(super) fn header(&self, out: Out<'_>, header: HeaderId) -> fmt::Result {
        let name = self.program.headers.get(header).map(|header| header.name.as_str());
        self.entity(out, header, name, |names| &names.headers)
    }

    /// Prints a stack. Before an index, a value of the same name would be read as the operand of a slice, so the stack
    /// is then printed with its number.
    pub(super) fn stack(&self, out: Out<'_>, stack: StackId) -> fmt::Result {
        let name = self.program.stacks.get(stack).map(|stack| stack.name.as_str());
        let found = self.exact.as_ref().map(|exact| {
            let found = name.and_then(|name| exact.names.stacks.get(name)).copied();
            found.filter(|_| name.is_none_or(|name| exact.names.value(self.program, name).is_none()))
        });
        tagged(out, stack, name, found)
    }

    /// Prints a field, fixed or variable.
    pub(super) fn field(&self, out: Out<'_>, header: &HeaderRef, field: u32) -> fmt::Result {
        let ty = match header {
            HeaderRef::Header(id) => self.program.headers.get(*id).map(|header| header.ty),
            HeaderRef::Element(id, _) => {
                let first = self.program.stacks.get(*id).map(|stack| stack.first);
                first.and_then(|first| self.program.headers.get(first)).map(|header| header.ty)
            }
        };
        let layout = ty.and_then(|ty| self.program.header_types.get(ty));
        let name = layout.and_then(|layout| layout.fields.get(field as usize)).map(|field| field.name.as_str());
        if let (HeaderRef::Header(id), Some(name), Some(owner)) = (header, name, self.header_name(header)) {
            let path = format!("{owner}.{name}");
            let found = self.exact.as_ref().map(|exact| exact.names.value(self.program, &path));
            if found.is_none_or(|found| found == Some(NamedValue::Field(*id, field))) {
                return write_name(out, &path);
            }
        }
        // Spelled out: the header by its number, the field by its name, or also by its number.
        match (header, &self.exact) {
            (HeaderRef::Header(id), Some(_)) => {
                let name = self.header_name(header).filter(|name| !name.is_empty());
                if let Some(name) = name {
                    write_name(out, name)?;
                }
                write!(out, "#{id}")?;
            }
            _ => self.header_ref(out, header)?,
        }
        out.write_char('.')?;
        let Some(name) = name.filter(|name| !name.is_empty()) else { return write!(out, "#field{field}") };
        write_label(out, name)?;
        let found = ty.and_then(|ty| field_named(self.program, ty, name));
        if found == Some(field) { Ok(()) } else { write!(out, "#field{field}") }
    }

    fn header_name(&self, header: &HeaderRef) -> Option<&str> {
        match header {
            HeaderRef::Header(id) => self.program.headers.get(*id).map(|header| header.name.as_str()),
            HeaderRef::Element(..) => None,
        }
    }

    pub(super) fn lvalue(&self, out: Out<'_>, lvalue: &LValue) -> fmt::Result {
        match lvalue {
            LValue::Slot(slot) => self.slot(out, *slot),
            LValue::Field(header, field) => self.field(out, header, *field),
        }
    }

    pub(super) fn data(&self, out: Out<'_>, data: &HashInput) -> fmt::Result {
        match data {
            HashInput::Value(expr) => self.expr(out, expr),
            HashInput::Varbit(header, field) => {
                out.write_str("varbit ")?;
                self.field(out, header, *field)
            }
            HashInput::Payload => out.write_str("payload"),
        }
    }
}
