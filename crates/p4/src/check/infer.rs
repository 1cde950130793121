//! Infers type arguments: matches the type of a parameter as written, which may contain type variables, against the
//! type of the argument, and binds the type variables. A type variable is a type parameter whose argument is inferred.
//!
//! The types of arguments never contain variables, so matching is one-sided and always terminates. An integer literal
//! has the type `int` and leaves the width open: an inferred `int` is replaced when another argument provides a sized
//! type.

use std::sync::Arc;

use super::scope::{Symbol, type_params};
use super::{Checker, is_error};
use crate::ast::{self, DeclKind, TypeRef, TypeRefKind};
use crate::typed::Type;

/// Type variables and the types inferred for them.
#[derive(Clone, Debug, Default)]
pub(super) struct InferenceVars {
    pub(super) variables: Vec<(Arc<str>, Option<Type>)>,
}

impl InferenceVars {
    pub(super) fn new<'n>(names: impl IntoIterator<Item = &'n ast::Ident>) -> Self {
        InferenceVars { variables: names.into_iter().map(|name| (name.name.clone(), None)).collect() }
    }

    fn slot(&mut self, name: &str) -> Option<&mut Option<Type>> {
        self.variables.iter_mut().find(|(known, _)| **known == *name).map(|(_, ty)| ty)
    }

    /// Returns the bound type variables with their types.
    pub(super) fn bound(&self) -> Vec<(Arc<str>, Type)> {
        self.variables.iter().filter_map(|(name, ty)| ty.clone().map(|ty| (name.clone(), ty))).collect()
    }

    /// Returns the names of the unbound type variables.
    pub(super) fn unbound(&self) -> Vec<Arc<str>> {
        self.variables.iter().filter(|(_, ty)| ty.is_none()).map(|(name, _)| name.clone()).collect()
    }
}

/// Whether a type as written mentions any of the names.
pub(super) fn mentions(ty: &TypeRef, names: &[Arc<str>]) -> bool {
    match &ty.kind {
        TypeRefKind::Named { absolute, name, args } => {
            !absolute && names.contains(&name.name) || args.iter().any(|arg| mentions(arg, names))
        }
        TypeRefKind::Stack(element, _) | TypeRefKind::List(element) => mentions(element, names),
        TypeRefKind::Tuple(elements) => elements.iter().any(|element| mentions(element, names)),
        _ => false,
    }
}

/// Whether a type as written contains `_`.
pub(super) fn has_wildcard(ty: &TypeRef) -> bool {
    match &ty.kind {
        TypeRefKind::Named { args, .. } => args.iter().any(has_wildcard),
        TypeRefKind::Stack(element, _) | TypeRefKind::List(element) => has_wildcard(element),
        TypeRefKind::Tuple(elements) => elements.iter().any(has_wildcard),
        TypeRefKind::DontCare => true,
        _ => false,
    }
}

/// Whether a type contains `int`, whose width is not fixed.
pub(super) fn contains_int(ty: &Type) -> bool {
    match ty {
        Type::Integer => true,
        Type::Tuple(types) => types.iter().any(contains_int),
        Type::List(element) => contains_int(element),
        _ => false,
    }
}

impl Checker<'_> {
    /// Matches `pattern`, a type in the callee's declaration, whose scope must be current, against `actual`.
    pub(super) fn infer(&mut self, pattern: &TypeRef, actual: &Type, variables: &mut InferenceVars) {
        if is_error(actual) || self.depth > super::MAX_DEPTH {
            return;
        }
        self.depth += 1;
        self.infer_inner(pattern, actual, variables);
        self.depth -= 1;
    }

    fn infer_inner(&mut self, pattern: &TypeRef, actual: &Type, variables: &mut InferenceVars) {
        match (&pattern.kind, actual) {
            (TypeRefKind::Named { absolute, name, args }, _) => {
                if let Some(slot) = variables.slot(&name.name).filter(|_| !absolute) {
                    match slot {
                        None => *slot = Some(actual.clone()),
                        Some(known) if contains_int(known) && !contains_int(actual) => *slot = Some(actual.clone()),
                        // The call's check reports an argument that does not fit the bound type.
                        Some(_) => {}
                    }
                    return;
                }
                let Some(binding) = self.find(&name.name, *absolute) else { return };
                let Symbol::Decl(index) = binding.symbol else { return };
                self.infer_declared(index, args, actual, variables);
            }
            (TypeRefKind::Stack(element, _), Type::Stack(actual, _))
            | (TypeRefKind::List(element), Type::List(actual)) => {
                self.infer(element, actual, variables);
            }
            (TypeRefKind::Tuple(elements), Type::Tuple(types)) => {
                for (element, ty) in elements.iter().zip(types) {
                    self.infer(element, ty, variables);
                }
            }
            (TypeRefKind::List(element), Type::Tuple(types)) => {
                for ty in types {
                    self.infer(element, ty, variables);
                }
            }
            _ => {}
        }
    }

    fn infer_declared(&mut self, index: usize, args: &[TypeRef], actual: &Type, variables: &mut InferenceVars) {
        let decl = &self.program.decls[index];
        let origin = match actual {
            Type::Struct(id) => self.struct_origins.get(id).cloned(),
            Type::Extern(id) => self.extern_origins.get(id).cloned(),
            Type::Package(id) => self.package_origins.get(id).cloned(),
            Type::ParserType(name, types) | Type::ControlType(name, types) => match &decl.kind {
                DeclKind::ParserType(ty) | DeclKind::ControlType(ty) if ty.name.name == *name => {
                    Some((index, types.clone()))
                }
                _ => None,
            },
            _ => None,
        };
        if let Some((origin_index, types)) = origin
            && origin_index == index
        {
            for (arg, ty) in args.iter().zip(&types) {
                self.infer(arg, ty, variables);
            }
            return;
        }
        match (&decl.kind, actual) {
            (DeclKind::ParserType(signature), Type::Parser(_))
            | (DeclKind::ControlType(signature), Type::Control(_)) => {
                let found = self.pipeline_params(actual);
                let mut own_variables = InferenceVars::new(type_params(decl));
                self.within(index + 1, &[], super::DeclContext::top_level(), |c| {
                    for (param, (_, ty, _)) in signature.params.iter().zip(&found) {
                        c.infer(&param.ty, ty, &mut own_variables);
                    }
                });
                for (arg, (_, ty)) in args.iter().zip(&own_variables.variables) {
                    if let Some(ty) = ty {
                        self.infer(arg, ty, variables);
                    }
                }
            }
            // A list or struct expression for a generic struct: matched field by field.
            (DeclKind::Struct { fields, type_params, .. }, Type::Tuple(_) | Type::Struct(_)) => {
                let found: Vec<Type> = match actual {
                    Type::Tuple(types) => types.clone(),
                    Type::Struct(id) if self.anonymous_ids.contains(id) => {
                        let given = &self.out.structs[*id].fields;
                        let field_type = |name: &str| given.iter().find(|f| *f.name == *name).map(|f| f.ty.clone());
                        fields.iter().map(|f| field_type(&f.name.name).unwrap_or_else(super::error_type)).collect()
                    }
                    _ => return,
                };
                let mut own_variables = InferenceVars::new(type_params);
                self.within(index + 1, &[], super::DeclContext::top_level(), |c| {
                    for (field, ty) in fields.iter().zip(&found) {
                        c.infer(&field.ty, ty, &mut own_variables);
                    }
                });
                for (arg, (_, ty)) in args.iter().zip(&own_variables.variables) {
                    if let Some(ty) = ty {
                        self.infer(arg, ty, variables);
                    }
                }
            }
            (DeclKind::Typedef { ty, .. }, _) => {
                let ty = ty.clone();
                self.infer(&ty, actual, variables);
            }
            _ => {}
        }
    }

    /// Returns the names, types and directions of the run-time parameters of a parser or control.
    pub(super) fn pipeline_params(&self, ty: &Type) -> Vec<(Arc<str>, Type, ast::Direction)> {
        let params = match ty {
            Type::Parser(id) => &self.out.parsers[*id].params,
            Type::Control(id) => &self.out.controls[*id].params,
            _ => return Vec::new(),
        };
        params
            .iter()
            .map(|param| {
                let var = &self.out.vars[param.var];
                (var.name.clone(), var.ty.clone(), param.direction)
            })
            .collect()
    }
}
