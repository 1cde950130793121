//! Type arguments of calls: written ones, and reports of those that cannot be inferred.

use std::sync::Arc;

use diagnostics::{Diagnostic, Span};

use super::call::Signature;
use super::infer::{InferenceVars, mentions};
use super::{Checker, counted, is_error};
use crate::ast::{TypeRef, TypeRefKind};
use crate::typed::{Expr, Type};

/// Whether a type parameter may remain without a value.
pub(super) fn is_left_open(
    signature: &Signature<'_>,
    written: &[TypeRef],
    slots: &[Option<usize>],
    name: &Arc<str>,
) -> bool {
    let names = std::slice::from_ref(name);
    if signature.ret.is_some_and(|ret| mentions(ret, names)) {
        return false;
    }
    let at = signature.type_params.iter().position(|param| param.name == *name);
    if at.and_then(|at| written.get(at)).is_some_and(|written| matches!(written.kind, TypeRefKind::DontCare)) {
        return true;
    }
    let mut mentioned = false;
    for (param, slot) in signature.params.iter().zip(slots).filter(|(param, _)| mentions(&param.ty, names)) {
        mentioned = true;
        if slot.is_some() || param.default.is_some() {
            return false;
        }
    }
    mentioned
}

impl<'a> Checker<'a> {
    /// Binds the type parameters of a signature to the written type arguments; the others are open. Returns whether all
    /// of them are valid, too; `None` if their number is wrong.
    pub(super) fn written_type_arguments(
        &mut self,
        signature: &Signature<'a>,
        type_args: &[TypeRef],
        span: Span,
    ) -> Option<(InferenceVars, bool)> {
        if !type_args.is_empty() && type_args.len() != signature.type_params.len() {
            let takes = counted(signature.type_params.len(), "type argument");
            let message = format!("`{}` takes {takes}, not {}", signature.name, type_args.len());
            self.error(Diagnostic::error("type-arguments", span, message).also(signature.span, "declared here"));
            return None;
        }
        let mut variables = InferenceVars::new(signature.type_params);
        let mut are_valid = true;
        for (slot, arg) in variables.variables.iter_mut().zip(type_args) {
            if !matches!(arg.kind, TypeRefKind::DontCare) {
                let ty = self.type_argument(arg);
                are_valid &= !is_error(&ty);
                slot.1 = Some(ty);
            }
        }
        Some((variables, are_valid))
    }

    /// Reports that type parameter `name` cannot be inferred, or that an argument of another kind is the cause.
    pub(super) fn report_open_type(
        &mut self,
        signature: &Signature<'a>,
        checked: &[Option<Expr>],
        name: &str,
        span: Span,
    ) {
        if self.wrong_kind(signature, checked) {
            return;
        }
        self.error(
            Diagnostic::error("type-arguments", span, format!("the type `{name}` cannot be inferred"))
                .also(signature.span, format!("type parameter of `{}`", signature.name))
                .help(format!("write `{}<...>(...)`", signature.name)),
        );
    }

    /// Reports a type parameter that is inferred to be the type of a struct expression, which has no name. Returns
    /// whether there is one.
    pub(super) fn reports_anonymous_struct(
        &mut self,
        variables: &InferenceVars,
        checked: &[Option<Expr>],
        span: Span,
    ) -> bool {
        let is_anonymous = |ty: &Type| matches!(ty, Type::Struct(id) if self.anonymous_ids.contains(id));
        let found = variables.variables.iter().find(|(_, ty)| ty.as_ref().is_some_and(is_anonymous));
        let Some((name, _)) = found else { return false };
        let at = checked.iter().flatten().find(|arg| is_anonymous(&arg.ty)).map_or(span, |arg| arg.span);
        self.error(
            Diagnostic::error("type-arguments", at, format!("the type `{name}` cannot be inferred"))
                .label("the type of this struct is unknown")
                .help("write a cast, `(S) { ... }`, or specify the type argument"),
        );
        true
    }
}
