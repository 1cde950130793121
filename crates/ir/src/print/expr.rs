//! Expressions, header references and places as text.
//!
//! There is no operator precedence: an operand that has an operator itself stands in brackets.

use std::fmt;

use super::{Out, Printer, tagged};
use crate::text::{Named, field_named, word_for, write_label, write_name};
use crate::*;

/// What may stand at a place without brackets.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Tight {
    /// Anything.
    Whole,
    /// Anything but an operator between two values.
    Operand,
    /// Only what can be followed by a slice.
    Primary,
}

impl Printer<'_> {
    pub(super) fn expr(&self, out: Out<'_>, expr: &Expr) -> fmt::Result {
        self.expr_in(out, expr, Tight::Whole)
    }

    fn expr_in(&self, out: Out<'_>, expr: &Expr, tight: Tight) -> fmt::Result {
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
                let bracket = tight > Tight::Operand;
                out.write_str(if bracket { "(" } else { "" })?;
                out.write_char(match op {
                    UnaryOp::Not => '~',
                    UnaryOp::Neg => '-',
                })?;
                self.expr_in(out, operand, Tight::Operand)?;
                out.write_str(if bracket { ")" } else { "" })
            }
            Expr::Binary(op, left, right) => self.infix(out, left, word_for(crate::text::BINARY, op), right, tight),
            Expr::Concat(left, right) => self.infix(out, left, "++", right, tight),
            Expr::Slice(value, high, low) => {
                self.expr_in(out, value, Tight::Primary)?;
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

    fn infix(&self, out: Out<'_>, left: &Expr, op: &str, right: &Expr, tight: Tight) -> fmt::Result {
        let bracket = tight > Tight::Whole;
        out.write_str(if bracket { "(" } else { "" })?;
        self.expr_in(out, left, Tight::Operand)?;
        write!(out, " {op} ")?;
        self.expr_in(out, right, Tight::Operand)?;
        out.write_str(if bracket { ")" } else { "" })
    }

    fn extend(&self, out: Out<'_>, word: &str, value: &Expr, width: u32) -> fmt::Result {
        write!(out, "{word}(")?;
        self.expr(out, value)?;
        write!(out, ", {width})")
    }

    /// Several expressions with commas between them.
    pub(super) fn exprs<'e>(&self, out: Out<'_>, exprs: impl IntoIterator<Item = &'e Expr>) -> fmt::Result {
        super::separated(out, exprs, ", ", |out, expr| self.expr(out, expr))
    }

    /// A slot where a value is wanted, or the place of one.
    pub(super) fn slot(&self, out: Out<'_>, slot: SlotId) -> fmt::Result {
        let name = self.program.slots.get(slot).map(|slot| slot.name.as_str());
        self.entity(out, slot, name, |names| &names.slots)
    }

    /// A header, or the element of a stack with a computed index.
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

    /// A stack. In front of an index a value of the same name would be taken for the thing to slice, so then the
    /// stack prints with its number.
    pub(super) fn stack(&self, out: Out<'_>, stack: StackId) -> fmt::Result {
        let name = self.program.stacks.get(stack).map(|stack| stack.name.as_str());
        let found = self.exact.as_ref().map(|exact| {
            let found = name.and_then(|name| exact.names.stacks.get(name)).copied();
            found.filter(|_| name.is_none_or(|name| exact.names.value(self.program, name).is_none()))
        });
        tagged(out, stack, name, found)
    }

    /// A field, fixed or variable.
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
            if found.is_none_or(|found| found == Some(Named::Field(*id, field))) {
                return write_name(out, &path);
            }
        }
        // Spelled out: the header by its number, the field by its name, or by its number as well.
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

    pub(super) fn place(&self, out: Out<'_>, place: &Place) -> fmt::Result {
        match place {
            Place::Slot(slot) => self.slot(out, *slot),
            Place::Field(header, field) => self.field(out, header, *field),
        }
    }

    pub(super) fn data(&self, out: Out<'_>, data: &Data) -> fmt::Result {
        match data {
            Data::Value(expr) => self.expr(out, expr),
            Data::Varbit(header, field) => {
                out.write_str("varbit ")?;
                self.field(out, header, *field)
            }
            Data::Payload => out.write_str("payload"),
        }
    }
}
