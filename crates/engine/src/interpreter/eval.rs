//! Evaluates expressions and places.

use std::cmp::Ordering;

use bits::Bits;
use ir::{BinaryOp, Expr, HeaderId, HeaderRef, LValue, LocId, StackId, UnaryOp};

use super::{Execution, report};
use crate::{Event, HeaderState, Watch, WriteTarget};

impl<W: Watch + ?Sized> Execution<'_, W> {
    pub(super) fn eval(&self, expr: &Expr) -> Bits {
        match expr {
            Expr::Const(value) => value.clone(),
            Expr::Slot(slot) => self.state.slots[*slot].clone(),
            Expr::Field(header, field) => match self.header(header) {
                Some(header) => self.state.headers[header].fields[*field as usize].clone(),
                None => Bits::zero(self.place_width_in(header, *field)),
            },
            Expr::Valid(header) => {
                let valid = self.header(header).is_some_and(|header| self.state.headers[header].valid);
                Bits::bool(valid)
            }
            Expr::VarbitWidth(header, field) => Bits::new(u128::from(self.varbit(header, *field).width()), 32),
            Expr::VarbitEq(both) => {
                let (a, a_field, b, b_field) = &**both;
                Bits::bool(self.varbit(a, *a_field) == self.varbit(b, *b_field))
            }
            Expr::PacketLength => Bits::new(self.state.data.len() as u128, 32),
            Expr::Unary(UnaryOp::Not, a) => self.eval(a).not(),
            Expr::Unary(UnaryOp::Neg, a) => self.eval(a).neg(),
            Expr::Binary(op, a, b) => binary(*op, &self.eval(a), &self.eval(b)),
            Expr::Slice(a, high, low) => self.eval(a).slice(*high, *low),
            Expr::Concat(a, b) => self.eval(a).concat(&self.eval(b)),
            Expr::ZeroExtend(a, width) => self.eval(a).resize(*width),
            Expr::SignExtend(a, width) => self.eval(a).sign_extend(*width),
            Expr::Choose(condition, then, otherwise) => {
                if self.eval(condition).is_true() {
                    self.eval(then)
                } else {
                    self.eval(otherwise)
                }
            }
        }
    }

    /// Evaluates an expression to a number, if it fits into 64 bits.
    pub(super) fn eval_number(&self, expr: &Expr) -> Option<u64> {
        self.eval(expr).to_u64()
    }

    /// Resolves a header reference; `None` beyond the end of a stack.
    pub(super) fn header(&self, header: &HeaderRef) -> Option<HeaderId> {
        match header {
            HeaderRef::Header(header) => Some(*header),
            HeaderRef::Element(stack, index) => {
                let stack = &self.program.stacks[*stack];
                let index = self.eval_number(index).filter(|index| *index < u64::from(stack.size))?;
                Some(HeaderId::from_u32(stack.first.as_u32() + index as u32))
            }
        }
    }

    /// Returns a varbit field; empty beyond the end of a stack.
    pub(super) fn varbit(&self, header: &HeaderRef, field: u32) -> Bits {
        match self.header(header) {
            Some(header) => self.state.headers[header].fields[field as usize].clone(),
            None => Bits::zero(0),
        }
    }

    fn first_element(&self, stack: StackId) -> HeaderId {
        self.program.stacks[stack].first
    }

    fn place_width_in(&self, header: &HeaderRef, field: u32) -> u32 {
        let header = match header {
            HeaderRef::Header(header) => *header,
            HeaderRef::Element(stack, _) => self.first_element(*stack),
        };
        self.program.layout(header).fields[field as usize].width
    }

    /// Returns the width of a place.
    pub(super) fn lvalue_width(&self, place: &LValue) -> u32 {
        match place {
            LValue::Slot(slot) => self.program.slots[*slot].width,
            LValue::Field(header, field) => self.place_width_in(header, *field),
        }
    }

    pub(super) fn write(&mut self, place: &LValue, value: Bits, loc: LocId) {
        debug_assert_eq!(self.lvalue_width(place), value.width(), "the validator checks widths");
        let written = match place {
            LValue::Slot(slot) => WriteTarget::Slot(*slot),
            LValue::Field(header, field) => {
                self.header(header).map_or(WriteTarget::Nowhere, |header| WriteTarget::Field(header, *field))
            }
        };
        report!(self, Event::Assigned { place: written, value: &value, loc });
        match written {
            WriteTarget::Slot(slot) => self.state.slots[slot] = value,
            WriteTarget::Field(header, field) => self.state.headers[header].fields[field as usize] = value,
            WriteTarget::Nowhere => {}
        }
    }

    pub(super) fn copy_header(&mut self, to: &HeaderRef, from: &HeaderRef, loc: LocId) {
        let (to_id, from_id) = (self.header(to), self.header(from));
        report!(self, Event::Copied { to: to_id, from: from_id, loc });
        let Some(to_id) = to_id else { return };
        self.state.headers[to_id] = match from_id {
            Some(from) => self.state.headers[from].clone(),
            None => HeaderState::new(self.program.layout(to_id)),
        };
    }

    pub(super) fn copy_varbit(&mut self, to: (&HeaderRef, u32), from: (&HeaderRef, u32), loc: LocId) {
        let value = self.varbit(from.0, from.1);
        let to = self.header(to.0).map(|header| (header, to.1));
        let place = to.map_or(WriteTarget::Nowhere, |(header, field)| WriteTarget::Field(header, field));
        report!(self, Event::Assigned { place, value: &value, loc });
        if let Some((header, field)) = to {
            self.state.headers[header].fields[field as usize] = value;
        }
    }

    pub(super) fn set_validity(&mut self, header: &HeaderRef, valid: bool, loc: LocId) {
        if let Some(header) = self.header(header) {
            self.state.headers[header].valid = valid;
            report!(self, Event::Validity { header, valid, loc });
        }
    }
}

fn binary(op: BinaryOp, a: &Bits, b: &Bits) -> Bits {
    let amount = || b.to_u64().and_then(|amount| u32::try_from(amount).ok()).unwrap_or(u32::MAX);
    match op {
        BinaryOp::Add => a.add(b),
        BinaryOp::Sub => a.sub(b),
        BinaryOp::Mul => a.mul(b),
        BinaryOp::Div => a.div(b),
        BinaryOp::Rem => a.rem(b),
        BinaryOp::AddSat => a.saturating_add(b),
        BinaryOp::SubSat => a.saturating_sub(b),
        BinaryOp::AddSatSigned => a.signed_saturating_add(b),
        BinaryOp::SubSatSigned => a.signed_saturating_sub(b),
        BinaryOp::And => a.and(b),
        BinaryOp::Or => a.or(b),
        BinaryOp::Xor => a.xor(b),
        BinaryOp::Shl => a.shl(amount()),
        BinaryOp::Shr => a.shr(amount()),
        BinaryOp::ShrSigned => a.signed_shr(amount()),
        BinaryOp::Eq => Bits::bool(a == b),
        BinaryOp::Ne => Bits::bool(a != b),
        BinaryOp::Lt => Bits::bool(a.unsigned_cmp(b) == Ordering::Less),
        BinaryOp::Le => Bits::bool(a.unsigned_cmp(b) != Ordering::Greater),
        BinaryOp::LtSigned => Bits::bool(a.signed_cmp(b) == Ordering::Less),
        BinaryOp::LeSigned => Bits::bool(a.signed_cmp(b) != Ordering::Greater),
    }
}
