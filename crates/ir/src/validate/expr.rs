//! Validates expressions: widths, bounds, depth.

use super::{Checker, MAX_EXPR_DEPTH, Rule};
use crate::*;

impl Program {
    /// Returns the width of an expression in bits, or `None` if it breaks a rule of the validator.
    pub fn width(&self, expr: &Expr) -> Option<u32> {
        let mut sound = true;
        let width = Widths { program: self, report: &mut |_, _| sound = false }.expr(expr, 1);
        width.filter(|_| sound)
    }

    /// Returns the width of an l-value in bits, or `None` if it breaks a rule of the validator.
    pub fn lvalue_width(&self, lvalue: &LValue) -> Option<u32> {
        let mut sound = true;
        let width = Widths { program: self, report: &mut |_, _| sound = false }.lvalue(lvalue);
        width.filter(|_| sound)
    }

    /// Returns the layout of a header reference, or `None` if an id is out of range.
    pub fn layout_of(&self, header: &HeaderRef) -> Option<&HeaderType> {
        self.header_types.get(self.type_of(header)?)
    }

    /// Returns the header type of a header reference, or `None` if an id is out of range.
    pub fn type_of(&self, header: &HeaderRef) -> Option<HeaderTypeId> {
        let id = match header {
            HeaderRef::Header(id) => *id,
            HeaderRef::Element(stack, _) => self.stacks.get(*stack)?.first,
        };
        Some(self.headers.get(id)?.ty)
    }
}

/// Computes widths and reports the rules broken on the way. An enclosing expression does not report an operand of
/// unknown width again.
pub(super) struct Widths<'p, 'r> {
    pub(super) program: &'p Program,
    pub(super) report: &'r mut dyn FnMut(Rule, String),
}

impl Widths<'_, '_> {
    fn require(&mut self, holds: bool, rule: Rule, message: impl FnOnce() -> String) {
        if !holds {
            (self.report)(rule, message());
        }
    }

    pub(super) fn expr(&mut self, expr: &Expr, depth: usize) -> Option<u32> {
        if depth > MAX_EXPR_DEPTH {
            (self.report)(Rule::ExprDepth, format!("an expression nests deeper than {MAX_EXPR_DEPTH}"));
            return None;
        }
        match expr {
            Expr::Const(value) => Some(value.width()),
            Expr::Slot(slot) => self.slot(*slot),
            Expr::Field(header, field) => self.field(header, *field, false, depth),
            Expr::Valid(header) => {
                self.header(header, depth);
                Some(1)
            }
            Expr::VarbitWidth(header, field) => {
                self.field(header, *field, true, depth);
                Some(32)
            }
            Expr::VarbitEq(both) => {
                self.field(&both.0, both.1, true, depth);
                self.field(&both.2, both.3, true, depth);
                Some(1)
            }
            Expr::PacketLength => Some(32),
            Expr::Unary(_, operand) => self.expr(operand, depth + 1),
            Expr::Binary(op, left, right) => {
                let (left, right) = (self.expr(left, depth + 1), self.expr(right, depth + 1));
                if matches!(op, BinaryOp::Shl | BinaryOp::Shr | BinaryOp::ShrSigned) {
                    return left;
                }
                self.equal(left, right, || format!("`{op}` between"));
                let compares = matches!(
                    op,
                    BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::LtSigned | BinaryOp::LeSigned
                );
                if compares { Some(1) } else { left.or(right) }
            }
            Expr::Slice(value, high, low) => {
                let (high, low) = (*high, *low);
                let width = self.expr(value, depth + 1);
                let sound = high >= low && width.is_none_or(|width| high < width);
                self.require(sound, Rule::SliceBounds, || {
                    format!("slice [{high}:{low}] of {} bits", width.map_or("?".to_owned(), |width| width.to_string()))
                });
                sound.then(|| high - low + 1).filter(|_| width.is_some())
            }
            Expr::Concat(left, right) => {
                let (left, right) = (self.expr(left, depth + 1), self.expr(right, depth + 1));
                self.limited(left?.saturating_add(right?))
            }
            Expr::ZeroExtend(value, width) | Expr::SignExtend(value, width) => {
                if let Some(old) = self.expr(value, depth + 1) {
                    self.require(old <= *width, Rule::Extension, || format!("{old} bits extended to {width}"));
                }
                self.limited(*width)
            }
            Expr::Choose(condition, yes, no) => {
                let condition = self.expr(condition, depth + 1);
                self.require(condition.is_none_or(|width| width == 1), Rule::OperandWidth, || {
                    format!("the condition of a choice is {} bits wide", condition.unwrap_or(0))
                });
                let (yes, no) = (self.expr(yes, depth + 1), self.expr(no, depth + 1));
                self.equal(yes, no, || "choice between".to_owned());
                yes.or(no)
            }
        }
    }

    fn limited(&mut self, width: u32) -> Option<u32> {
        self.require(width <= bits::MAX_WIDTH, Rule::WidthLimit, || format!("a value of {width} bits"));
        (width <= bits::MAX_WIDTH).then_some(width)
    }

    fn equal(&mut self, left: Option<u32>, right: Option<u32>, what: impl FnOnce() -> String) {
        if let (Some(left), Some(right)) = (left, right) {
            self.require(left == right, Rule::EqualWidths, || format!("{} {left} and {right} bits", what()));
        }
    }

    fn slot(&mut self, slot: SlotId) -> Option<u32> {
        let found = self.program.slots.get(slot);
        self.require(found.is_some(), Rule::IdInRange, || format!("there is no {slot}"));
        Some(found?.width)
    }

    pub(super) fn header(&mut self, header: &HeaderRef, depth: usize) -> Option<HeaderTypeId> {
        let known = match header {
            HeaderRef::Header(id) => self.program.headers.get(*id).is_some(),
            HeaderRef::Element(id, index) => {
                self.expr(index, depth + 1);
                self.program.stacks.get(*id).is_some()
            }
        };
        self.require(known, Rule::IdInRange, || match header {
            HeaderRef::Header(id) => format!("there is no {id}"),
            HeaderRef::Element(id, _) => format!("there is no {id}"),
        });
        self.program.type_of(header)
    }

    /// Returns a field's width after checking whether the field is variable as required.
    pub(super) fn field(&mut self, header: &HeaderRef, field: u32, varbit: bool, depth: usize) -> Option<u32> {
        let ty = self.header(header, depth)?;
        let found = self.program.header_types.get(ty)?.fields.get(field as usize);
        self.require(found.is_some(), Rule::IdInRange, || format!("there is no field {field} in {ty}"));
        let found = found?;
        self.require(found.varbit == varbit, Rule::VarbitUse, || {
            format!("{} is {}", found.name, if varbit { "not a varbit field" } else { "a varbit field" })
        });
        (found.varbit == varbit).then_some(found.width)
    }

    pub(super) fn lvalue(&mut self, lvalue: &LValue) -> Option<u32> {
        match lvalue {
            LValue::Slot(slot) => self.slot(*slot),
            LValue::Field(header, field) => self.field(header, *field, false, 1),
        }
    }
}

/// Calls `visit` with every slot that an expression reads. Does not descend below the validator's depth limit.
pub(super) fn slots_read(expr: &Expr, depth: usize, visit: &mut dyn FnMut(SlotId)) {
    if depth > MAX_EXPR_DEPTH {
        return;
    }
    let header = |header: &HeaderRef, visit: &mut dyn FnMut(SlotId)| {
        if let HeaderRef::Element(_, index) = header {
            slots_read(index, depth + 1, visit);
        }
    };
    match expr {
        Expr::Slot(slot) => visit(*slot),
        Expr::Const(_) | Expr::PacketLength => {}
        Expr::Field(of, _) | Expr::Valid(of) | Expr::VarbitWidth(of, _) => header(of, visit),
        Expr::VarbitEq(both) => {
            header(&both.0, visit);
            header(&both.2, visit);
        }
        Expr::Unary(_, value) | Expr::Slice(value, ..) | Expr::ZeroExtend(value, _) | Expr::SignExtend(value, _) => {
            slots_read(value, depth + 1, visit);
        }
        Expr::Binary(_, left, right) | Expr::Concat(left, right) => {
            slots_read(left, depth + 1, visit);
            slots_read(right, depth + 1, visit);
        }
        Expr::Choose(condition, yes, no) => {
            for part in [condition, yes, no] {
                slots_read(part, depth + 1, visit);
            }
        }
    }
}

impl Checker<'_> {
    /// Checks an expression in a body (or in none, as for table keys) and returns its width.
    pub(super) fn expr(&mut self, body: Option<BodyId>, expr: &Expr) -> Option<u32> {
        let width = self.widths(|widths| widths.expr(expr, 1));
        let mut read = Vec::new();
        slots_read(expr, 1, &mut |slot| read.push(slot));
        for slot in read {
            self.may_use(body, slot);
        }
        width
    }

    /// Checks an expression that must have a certain width.
    pub(super) fn expr_of(&mut self, body: Option<BodyId>, expr: &Expr, wanted: u32, what: &str) {
        if let Some(width) = self.expr(body, expr) {
            self.require(width == wanted, Rule::OperandWidth, || format!("{what} is {width} bits wide, not {wanted}"));
        }
    }

    pub(super) fn lvalue(&mut self, body: Option<BodyId>, lvalue: &LValue) -> Option<u32> {
        let width = self.widths(|widths| widths.lvalue(lvalue));
        match lvalue {
            LValue::Slot(slot) => self.may_use(body, *slot),
            LValue::Field(header, _) => self.index_slots(body, header),
        }
        width
    }

    pub(super) fn header(&mut self, body: Option<BodyId>, header: &HeaderRef) -> Option<HeaderTypeId> {
        let ty = self.widths(|widths| widths.header(header, 1));
        self.index_slots(body, header);
        ty
    }

    pub(super) fn varbit(&mut self, body: Option<BodyId>, header: &HeaderRef, field: u32) -> Option<u32> {
        let width = self.widths(|widths| widths.field(header, field, true, 1));
        self.index_slots(body, header);
        width
    }

    fn index_slots(&mut self, body: Option<BodyId>, header: &HeaderRef) {
        let HeaderRef::Element(_, index) = header else { return };
        let mut read = Vec::new();
        slots_read(index, 1, &mut |slot| read.push(slot));
        for slot in read {
            self.may_use(body, slot);
        }
    }

    /// Checks that an argument slot is used only in the body of its action.
    pub(super) fn may_use(&mut self, body: Option<BodyId>, slot: SlotId) {
        let Some(found) = self.program.slots.get(slot).filter(|found| found.kind == SlotKind::Argument) else { return };
        let owned = body.is_some() && self.owners.get(&slot).copied() == body;
        self.require(owned, Rule::Arguments, || format!("{} is an argument of another body", found.name));
    }

    fn widths<T>(&mut self, check: impl FnOnce(&mut Widths<'_, '_>) -> T) -> T {
        let mut found = Vec::new();
        let result = check(&mut Widths { program: self.program, report: &mut |rule, text| found.push((rule, text)) });
        for (rule, text) in found {
            self.broken(rule, text);
        }
        result
    }
}
