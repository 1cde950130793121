//! Parsers and controls as arguments: checks their parameters against a required `parser` or `control` type.

use std::sync::Arc;

use diagnostics::{Diagnostic, Span};

use super::call::{Signature, may_be_absent};
use super::{Checker, DeclContext, is_error};
use crate::ast::{self, Direction, TypeRefKind};
use crate::typed::{Expr, Type};

impl<'a> Checker<'a> {
    /// Whether a parser or control has the parameters that the `parser` or `control` type `wanted` requires.
    pub(super) fn has_signature(&mut self, ty: &Type, wanted: &Type) -> bool {
        let Some(wanted) = self.signature_params(wanted) else { return false };
        let found = self.pipeline_params(ty);
        let fits = |want: &(Type, Direction, bool), found: &(Arc<str>, Type, Direction)| {
            (want.0 == found.1 || is_error(&want.0) || is_error(&found.1) || matches!(want.0, Type::Void))
                && want.1 == found.2
        };
        found.len() <= wanted.len()
            && wanted[found.len()..].iter().all(|(_, _, optional)| *optional)
            && wanted.iter().zip(&found).all(|(want, found)| fits(want, found))
    }

    /// Returns the first difference between the parameters of a parser or control and the required ones: its span and
    /// description.
    pub(super) fn signature_difference(&mut self, ty: &Type, wanted: &Type) -> Option<(Span, String)> {
        let wanted = self.signature_params(wanted)?;
        let (at, params) = match ty {
            Type::Parser(id) => (self.out.parsers[*id].span, &self.out.parsers[*id].params),
            Type::Control(id) => (self.out.controls[*id].span, &self.out.controls[*id].params),
            _ => return None,
        };
        for (param, (wanted_ty, direction, _)) in params.iter().zip(&wanted) {
            let var = &self.out.vars[param.var];
            if var.ty != *wanted_ty && !is_error(wanted_ty) && !matches!(wanted_ty, Type::Void) {
                let (found, wanted) = (self.describe(&var.ty), self.describe(wanted_ty));
                return Some((var.span, format!("this is {found}, expected {wanted}")));
            }
            if param.direction != *direction {
                let shown = match direction {
                    Direction::None => "no direction",
                    Direction::In => "`in`",
                    Direction::Out => "`out`",
                    Direction::InOut => "`inout`",
                };
                return Some((var.span, format!("expected {shown}")));
            }
        }
        (params.len() != wanted.len())
            .then(|| (at, format!("it has {} parameters, expected {}", params.len(), wanted.len())))
    }

    /// Reports an argument that is not the parser, control or package that the parameter requires, whatever its type
    /// arguments.
    pub(super) fn wrong_kind(&mut self, signature: &Signature<'a>, checked: &[Option<Expr>]) -> bool {
        for (param, arg) in signature.params.iter().zip(checked) {
            let (Some(arg), TypeRefKind::Named { absolute, name, .. }) = (arg, &param.ty.kind) else { continue };
            let bindings = signature.bindings.clone();
            let found = self.within(signature.visible_decls, &bindings, DeclContext::top_level(), |c| {
                c.find(&name.name, *absolute)
            });
            let Some(super::scope::Symbol::Decl(index)) = found.map(|binding| binding.symbol) else { continue };
            let fits = match self.program.decls[index].kind {
                ast::DeclKind::ParserType(_) => matches!(arg.ty, Type::Parser(_) | Type::ParserType(..)),
                ast::DeclKind::ControlType(_) => matches!(arg.ty, Type::Control(_) | Type::ControlType(..)),
                ast::DeclKind::PackageType(_) => matches!(arg.ty, Type::Package(_)),
                _ => true,
            };
            if !fits && !is_error(&arg.ty) {
                let found = self.describe(&arg.ty);
                self.error(
                    Diagnostic::error("type-mismatch", arg.span, format!("expected a `{}`, found {found}", name.name))
                        .label(format!("this is {found}"))
                        .also(param.name.span, format!("parameter `{}` of `{}`", param.name.name, signature.name)),
                );
                return true;
            }
        }
        false
    }

    /// Returns the parameters that a `parser` or `control` type requires: type, direction, and whether they are
    /// optional.
    pub(super) fn signature_params(&mut self, ty: &Type) -> Option<Vec<(Type, Direction, bool)>> {
        let (Type::ParserType(name, args) | Type::ControlType(name, args)) = ty else { return None };
        let super::scope::Symbol::Decl(index) = self.globals.get(name)?.symbol else { return None };
        let decl = &self.program.decls[index];
        let (ast::DeclKind::ParserType(wanted) | ast::DeclKind::ControlType(wanted)) = &decl.kind else { return None };
        let bindings: Vec<_> =
            wanted.type_params.iter().map(|param| param.name.clone()).zip(args.iter().cloned()).collect();
        Some(self.within(index + 1, &bindings, DeclContext::top_level(), |c| {
            wanted.params.iter().map(|param| (c.resolve(&param.ty), param.direction, may_be_absent(param))).collect()
        }))
    }
}

/// Returns the parameters in the order in which their arguments are written; those without an argument come last.
pub(super) fn evaluation_order(slots: &[Option<usize>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..slots.len()).collect();
    order.sort_by_key(|param| slots[*param].unwrap_or(usize::MAX));
    order
}
