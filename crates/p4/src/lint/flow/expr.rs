//! Transfer functions of expressions: reads, writes, and conclusions from conditions.

use diagnostics::Diagnostic;

use super::super::state::{AbstractValue, FlowState, PartPath};
use super::{Flow, whole};
use crate::ast::{BinaryOp, StructKind, UnaryOp};
use crate::typed::{Builtin, Callee, Expr, ExprKind, Type};

/// A part of a variable, as far as it is tracked.
pub(super) enum TrackedPart {
    /// A variable, or a part that is not in a header.
    Plain(PartPath),
    /// A header as a whole.
    Header(PartPath),
    /// A part inside this header.
    InHeader(PartPath),
    /// A part that is not tracked.
    Other,
}

impl Flow<'_, '_, '_> {
    /// Returns the possible states of a part after `part = e`.
    pub(super) fn may_of(&self, e: &Expr, state: &FlowState) -> AbstractValue {
        match &e.kind {
            ExprKind::Invalid => AbstractValue::OFF,
            _ if self.is_scalar(&e.ty) => AbstractValue::ON,
            ExprKind::Fields(_) if self.header_kind(&e.ty) == Some(StructKind::Header) => AbstractValue::ON,
            _ => match self.part(e) {
                TrackedPart::Header(path) => state.of(&path),
                _ => AbstractValue::UNKNOWN,
            },
        }
    }

    /// Refines the state of headers with the outcome of a condition.
    pub(super) fn assume(&self, condition: &Expr, holds: bool, state: &mut FlowState) {
        match &condition.kind {
            ExprKind::Unary(UnaryOp::Not, inner) => self.assume(inner, !holds, state),
            ExprKind::Binary(BinaryOp::And, a, b) if holds => {
                self.assume(a, true, state);
                self.assume(b, true, state);
            }
            ExprKind::Binary(BinaryOp::Or, a, b) if !holds => {
                self.assume(a, false, state);
                self.assume(b, false, state);
            }
            ExprKind::Call(call) => {
                if let Callee::Builtin(Builtin::IsValid, header) = &call.callee
                    && let TrackedPart::Header(path) = self.part(header)
                {
                    state.set(&path, if holds { AbstractValue::ON } else { AbstractValue::OFF });
                }
            }
            _ => {}
        }
    }

    /// Evaluates an expression.
    pub(super) fn read(&mut self, e: &Expr, state: &mut FlowState) {
        if self.is_exhausted() {
            return;
        }
        match &e.kind {
            ExprKind::Var(_) | ExprKind::Field(..) => match self.part(e) {
                TrackedPart::Plain(path) => self.read_plain(&path, e, state),
                TrackedPart::Header(_) => {}
                TrackedPart::InHeader(path) => {
                    if !state.dead && state.of(&path) == AbstractValue::OFF {
                        self.report_once(
                            &path,
                            false,
                            Diagnostic::warning("invalid-header", e.span, "this header is never valid here")
                                .label("reading it yields an undefined value")
                                .help("check `isValid()` first"),
                        );
                    }
                }
                TrackedPart::Other => e.children().for_each(|child| self.read(child, state)),
            },
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                self.read(a, state);
                let mut right = self.fork(state);
                self.assume(a, *op == BinaryOp::And, &mut right);
                self.read(b, &mut right);
                self.meet(state, &right);
            }
            ExprKind::Ternary(condition, a, b) => {
                self.read(condition, state);
                let mut other = self.fork(state);
                self.assume(condition, true, state);
                self.assume(condition, false, &mut other);
                self.read(a, state);
                self.read(b, &mut other);
                self.meet(state, &other);
            }
            ExprKind::Call(call) | ExprKind::Hit(call) | ExprKind::ActionRun(call) => self.call(call, state),
            _ => e.children().for_each(|child| self.read(child, state)),
        }
    }

    fn read_plain(&mut self, path: &PartPath, e: &Expr, state: &FlowState) {
        let may = state.within(path);
        let name = &self.program.vars[path.var].name;
        let what = if path.fields.is_empty() { format!("`{name}`") } else { format!("this part of `{name}`") };
        let shape = self.type_traits(&e.ty);
        if state.dead || shape.has_header || shape.is_empty {
            return;
        }
        let message = match may {
            AbstractValue::OFF => format!("{what} is uninitialized"),
            _ if may.is_maybe_off() && self.is_scalar(&e.ty) => format!("{what} may be uninitialized"),
            _ => return,
        };
        let declared = self.program.vars[path.var].span;
        self.report_once(
            path,
            false,
            Diagnostic::warning("uninitialized", e.span, message).label("read here").also(declared, "declared here"),
        );
    }

    /// Assigns to an l-value.
    pub(super) fn write(&mut self, lhs: &Expr, may: AbstractValue, state: &mut FlowState) {
        match self.part(lhs) {
            TrackedPart::Plain(path) | TrackedPart::Header(path) => state.set(&path, may),
            TrackedPart::InHeader(path) => {
                if !state.dead && state.of(&path) == AbstractValue::OFF {
                    self.report_once(
                        &path,
                        true,
                        Diagnostic::warning("invalid-header", lhs.span, "this header is never valid here")
                            .label("values written to it are lost")
                            .help("call `setValid()` first"),
                    );
                }
            }
            TrackedPart::Other => match &lhs.kind {
                ExprKind::Slice(base, ..) => self.write(base, AbstractValue::ON, state),
                // Elements of stacks and members of unions are not tracked.
                ExprKind::Element(_, index) => self.read(index, state),
                _ => {}
            },
        }
    }

    pub(super) fn part(&self, e: &Expr) -> TrackedPart {
        match &e.kind {
            ExprKind::Var(var) => match self.header_kind(&e.ty) {
                Some(StructKind::Header) => TrackedPart::Header(whole(*var)),
                Some(StructKind::Union) => TrackedPart::Other,
                _ if matches!(e.ty, Type::Stack(..)) => TrackedPart::Other,
                _ => TrackedPart::Plain(whole(*var)),
            },
            ExprKind::Field(base, at) => match self.part(base) {
                TrackedPart::Plain(mut path) => {
                    path.fields.push(*at as u32);
                    match self.header_kind(&e.ty) {
                        Some(StructKind::Header) => TrackedPart::Header(path),
                        Some(StructKind::Union) => TrackedPart::Other,
                        _ if matches!(e.ty, Type::Stack(..)) => TrackedPart::Other,
                        _ => TrackedPart::Plain(path),
                    }
                }
                TrackedPart::Header(path) | TrackedPart::InHeader(path) => TrackedPart::InHeader(path),
                TrackedPart::Other => TrackedPart::Other,
            },
            _ => TrackedPart::Other,
        }
    }
}
