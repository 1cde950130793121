//! Checks functions and their bodies, and the signatures of declarations without a body.

use diagnostics::{Diagnostic, Span};

use super::scope::{Symbol, type_params};
use super::{BodyContext, Checker, DeclContext, is_error};
use crate::ast::{self, DeclKind};
use crate::typed::{self, Type};

impl<'a> Checker<'a> {
    /// Returns the specialisation of function `index` for these type arguments; checks its body on the first request.
    pub(super) fn function(&mut self, index: usize, args: Vec<Type>, span: Span) -> Option<typed::FunctionId> {
        let decl: &'a ast::Decl = &self.program.decls[index];
        let DeclKind::Function { proto, body } = &decl.kind else { return None };
        let key = (index, args);
        if self.in_progress.contains(&index) {
            self.error(
                Diagnostic::error(
                    "recursion",
                    span,
                    format!("`{}` calls itself, directly or indirectly", proto.name.name),
                )
                .also(proto.name.span, "declared here")
                .help("P4 does not allow recursion; consider a `for` loop"),
            );
            return None;
        }
        if let Some(known) = self.functions.get(&key) {
            return *known;
        }
        if !self.may_specialise(span) {
            return None;
        }
        let bindings: Vec<_> =
            proto.type_params.iter().map(|param| param.name.clone()).zip(key.1.iter().cloned()).collect();
        self.in_progress.insert(index);
        let id = self.deeper(span, |c| {
            // Declarations up to and including this one are visible.
            c.within(index + 1, &bindings, DeclContext::top_level(), |c| {
                c.function_body(proto, body, BodyContext::Function)
            })
        });
        self.in_progress.remove(&index);
        let id = id.flatten();
        self.functions.insert(key, id);
        id
    }

    /// Checks parameters, return type and body of a function or of the implementation of an abstract method.
    pub(super) fn function_body(
        &mut self,
        proto: &'a ast::FunctionProto,
        body: &'a ast::Block,
        context: BodyContext,
    ) -> Option<typed::FunctionId> {
        let ret = self.resolve(&proto.ret);
        if !self.is_returnable(&ret) {
            let found = self.describe(&ret);
            self.error(Diagnostic::error("return-type", proto.ret.span, format!("a function cannot return {found}")));
        }
        let (params, body, falls_through) = self.scoped(|c| {
            let params = c.params(&proto.params, "function");
            let cx = c.cx.clone();
            c.cx.context = context;
            c.cx.in_parser = false;
            c.cx.loops = 0;
            c.cx.ret = Some(ret.clone());
            let (body, falls_through) = c.body(body);
            c.cx = cx;
            (params, body, falls_through)
        });
        if falls_through && !matches!(ret, Type::Void) && !is_error(&ret) {
            self.error(
                Diagnostic::error(
                    "missing-return",
                    proto.name.span,
                    format!("`{}` does not return a value on all paths", proto.name.name),
                )
                .label(format!("must return {}", self.describe(&ret)))
                .help("end it with a `return`"),
            );
        }
        let name = proto.name.name.clone();
        Some(self.out.functions.push(typed::Function { name, params, ret, body, span: proto.name.span }))
    }

    /// Whether a function may return this type.
    fn is_returnable(&self, ret: &Type) -> bool {
        match ret {
            Type::Void => true,
            Type::Integer => false,
            ret => is_error(ret) || self.is_runtime(ret),
        }
    }

    /// Checks parameters and return types of a declaration without a body.
    pub(super) fn signature(&mut self, index: usize, decl: &'a ast::Decl, args: Vec<Type>) {
        let bindings: Vec<_> = type_params(decl).iter().map(|param| param.name.clone()).zip(args).collect();
        self.in_progress.insert(index);
        self.within(index + 1, &bindings, DeclContext::top_level(), |c| match &decl.kind {
            DeclKind::ParserType(ty) => {
                c.params(&ty.params, "parser type");
            }
            DeclKind::ControlType(ty) => {
                c.params(&ty.params, "control type");
            }
            DeclKind::PackageType(ty) => {
                c.params(&ty.params, "package");
            }
            DeclKind::ExternFunction(proto) => c.prototype(proto),
            DeclKind::ExternObject { name, methods, .. } => {
                let mut seen: Vec<&ast::Method> = Vec::new();
                for method in methods {
                    if !method.is_constructor && method.proto.name.name == name.name {
                        c.error(
                            Diagnostic::error(
                                "constructor",
                                method.proto.name.span,
                                "a constructor has no return type",
                            )
                            .label("has the same name as its extern object"),
                        );
                    }
                    let clash = seen.iter().find(|other| {
                        other.proto.name.name == method.proto.name.name
                            && other.is_constructor == method.is_constructor
                            && other.proto.params.len() == method.proto.params.len()
                            && other
                                .proto
                                .params
                                .iter()
                                .zip(&method.proto.params)
                                .all(|(a, b)| a.name.name == b.name.name)
                    });
                    if let Some(clash) = clash {
                        c.duplicate(&method.proto.name, clash.proto.name.span);
                    }
                    seen.push(method);
                    if method.is_constructor {
                        c.scoped(|c| c.params(&method.proto.params, "extern constructor"));
                    } else {
                        c.prototype(&method.proto);
                    }
                }
            }
            _ => {}
        });
        self.in_progress.remove(&index);
    }

    fn prototype(&mut self, proto: &ast::FunctionProto) {
        self.distinct(&proto.type_params);
        self.scoped(|c| {
            for param in &proto.type_params {
                let ty = c.opaque_type(param);
                c.declare(param, Symbol::Type(ty));
            }
            let ret = c.resolve(&proto.ret);
            let refused = matches!(
                ret,
                Type::Integer
                    | Type::Parser(_)
                    | Type::Control(_)
                    | Type::ParserType(..)
                    | Type::ControlType(..)
                    | Type::Package(_)
            );
            if refused {
                let found = c.describe(&ret);
                c.error(Diagnostic::error(
                    "return-type",
                    proto.ret.span,
                    format!("an extern function or method cannot return {found}"),
                ));
            }
            c.params(&proto.params, "extern");
        });
    }
}
