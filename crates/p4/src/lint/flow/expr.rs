//! Expressions: what evaluating them reads, what assigning to them writes, what their outcome says.

use diagnostics::Diagnostic;

use super::super::state::{May, Path, State};
use super::{Flow, whole};
use crate::ast::{BinaryOp, StructKind, UnaryOp};
use crate::typed::{Builtin, Callee, Expr, ExprKind, Type};

/// A part of a variable as far as it is followed.
pub(super) enum Place {
    /// A variable, or a part that is in no header.
    Plain(Path),
    /// A header as a whole.
    Header(Path),
    /// Something inside this header.
    InHeader(Path),
    /// Something that is not followed.
    Other,
}

impl Flow<'_, '_, '_> {
    /// What a place is behind `place = e`.
    pub(super) fn may_of(&self, e: &Expr, state: &State) -> May {
        match &e.kind {
            ExprKind::Invalid => May::OFF,
            _ if self.is_scalar(&e.ty) => May::ON,
            ExprKind::Fields(_) if self.header_kind(&e.ty) == Some(StructKind::Header) => May::ON,
            _ => match self.place(e) {
                Place::Header(path) => state.of(&path),
                _ => May::UNKNOWN,
            },
        }
    }

    /// What a condition's outcome says of headers.
    pub(super) fn assume(&self, condition: &Expr, holds: bool, state: &mut State) {
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
                    && let Place::Header(path) = self.place(header)
                {
                    state.set(&path, if holds { May::ON } else { May::OFF });
                }
            }
            _ => {}
        }
    }

    /// An expression is evaluated.
    pub(super) fn read(&mut self, e: &Expr, state: &mut State) {
        if self.is_exhausted() {
            return;
        }
        match &e.kind {
            ExprKind::Var(_) | ExprKind::Field(..) => match self.place(e) {
                Place::Plain(path) => self.read_plain(&path, e, state),
                Place::Header(_) => {}
                Place::InHeader(path) => {
                    if !state.dead && state.of(&path) == May::OFF {
                        self.report_once(
                            &path,
                            false,
                            Diagnostic::warning("invalid-header", e.span, "this header is never valid here")
                                .label("reading it gives no defined value")
                                .help("check `isValid()` first, or look at how this point is reached"),
                        );
                    }
                }
                Place::Other => e.children().for_each(|child| self.read(child, state)),
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

    fn read_plain(&mut self, path: &Path, e: &Expr, state: &State) {
        let may = state.within(path);
        let name = &self.program.vars[path.var].name;
        let what = if path.fields.is_empty() { format!("`{name}`") } else { format!("this part of `{name}`") };
        let shape = self.shape(&e.ty);
        if state.dead || shape.has_header || shape.is_empty {
            return;
        }
        let message = match may {
            May::OFF => format!("{what} has no value yet"),
            _ if may.is_maybe_off() && self.is_scalar(&e.ty) => format!("{what} may have no value here"),
            _ => return,
        };
        let declared = self.program.vars[path.var].span;
        self.report_once(
            path,
            false,
            Diagnostic::warning("uninitialized", e.span, message).label("read here").also(declared, "declared here"),
        );
    }

    /// An lvalue gets a value.
    pub(super) fn write(&mut self, lhs: &Expr, may: May, state: &mut State) {
        match self.place(lhs) {
            Place::Plain(path) | Place::Header(path) => state.set(&path, may),
            Place::InHeader(path) => {
                if !state.dead && state.of(&path) == May::OFF {
                    self.report_once(
                        &path,
                        true,
                        Diagnostic::warning("invalid-header", lhs.span, "this header is never valid here")
                            .label("what is written to it is lost")
                            .help("call `setValid()` first"),
                    );
                }
            }
            Place::Other => match &lhs.kind {
                ExprKind::Slice(base, ..) => self.write(base, May::ON, state),
                // What is in stacks and unions is not followed.
                ExprKind::Element(_, index) => self.read(index, state),
                _ => {}
            },
        }
    }

    pub(super) fn place(&self, e: &Expr) -> Place {
        match &e.kind {
            ExprKind::Var(var) => match self.header_kind(&e.ty) {
                Some(StructKind::Header) => Place::Header(whole(*var)),
                Some(StructKind::Union) => Place::Other,
                _ if matches!(e.ty, Type::Stack(..)) => Place::Other,
                _ => Place::Plain(whole(*var)),
            },
            ExprKind::Field(base, at) => match self.place(base) {
                Place::Plain(mut path) => {
                    path.fields.push(*at as u32);
                    match self.header_kind(&e.ty) {
                        Some(StructKind::Header) => Place::Header(path),
                        Some(StructKind::Union) => Place::Other,
                        _ if matches!(e.ty, Type::Stack(..)) => Place::Other,
                        _ => Place::Plain(path),
                    }
                }
                Place::Header(path) | Place::InHeader(path) => Place::InHeader(path),
                Place::Other => Place::Other,
            },
            _ => Place::Other,
        }
    }
}
