//! Checks calls: resolves the callee, selects the overload and builds the typed call. [`super::builtin`] has built-ins.

use std::sync::Arc;

use diagnostics::{Diagnostic, Span};

use super::call::{CallKind, Formal, Signature, applicable};
use super::scope::{Symbol, nearest};
use super::signature::evaluation_order;
use super::{BodyContext, Checker, constant, error_expr, expr, fold, is_error};
use crate::ast::{self, DeclKind, TypeRef, TypeRefKind};
use crate::typed::{self, Arg, Call, Callee, Expr, ExprKind, Type, Value};

/// The parts of a call besides its callee.
#[derive(Clone, Copy)]
pub(super) struct CallSite<'a> {
    /// Explicit type arguments.
    pub(super) type_args: &'a [TypeRef],
    pub(super) args: &'a [ast::Arg],
    /// The preferred type of the result; helps inference.
    pub(super) expected: Option<&'a Type>,
    /// Span of the whole call.
    pub(super) span: Span,
}

/// Result of checking a call.
pub(super) enum CallResult {
    Call(Call, Type),
    /// A constructor call, or a folded call.
    Value(Expr),
    /// An error has been reported.
    Invalid,
}

impl<'a> Checker<'a> {
    pub(super) fn call_expr(&mut self, callee: &ast::Expr, site: CallSite<'_>) -> Expr {
        let span = site.span;
        match self.call(callee, site) {
            CallResult::Call(call, ty) if is_error(&ty) => {
                let _ = call;
                error_expr(span)
            }
            CallResult::Call(call, ty) => expr(ExprKind::Call(Box::new(call)), ty, span),
            CallResult::Value(value) => value,
            CallResult::Invalid => error_expr(span),
        }
    }

    pub(super) fn call(&mut self, callee: &ast::Expr, site: CallSite<'_>) -> CallResult {
        let called = self.call_inner(callee, site);
        if matches!(called, CallResult::Invalid) {
            self.assert_error_reported(site.span);
        }
        called
    }

    fn call_inner(&mut self, callee: &ast::Expr, site: CallSite<'_>) -> CallResult {
        let CallSite { type_args, args, expected, span } = site;
        match &callee.kind {
            ast::ExprKind::Name { absolute, name } => {
                let Some(binding) = self.lookup(name, *absolute) else {
                    self.check_args_anyway(args);
                    return CallResult::Invalid;
                };
                match binding.symbol {
                    Symbol::Functions(overloads) => self.function_call(name, overloads, site),
                    Symbol::Action(id) => {
                        if !type_args.is_empty() {
                            self.error(Diagnostic::error("type-arguments", span, "an action takes no type arguments"));
                            return CallResult::Invalid;
                        }
                        self.action_call(id, args, span)
                    }
                    Symbol::Decl(_) | Symbol::Type(_) => {
                        let ty = TypeRef {
                            kind: TypeRefKind::Named {
                                absolute: *absolute,
                                name: name.clone(),
                                args: type_args.to_vec(),
                            },
                            span: callee.span,
                        };
                        self.constructor_call(&ty, args, expected, span)
                    }
                    Symbol::Invalid => {
                        self.check_args_anyway(args);
                        CallResult::Invalid
                    }
                    _ => {
                        self.error(
                            Diagnostic::error("not-callable", callee.span, format!("`{}` cannot be called", name.name))
                                .label("neither a function nor an action")
                                .also(binding.span, "declared here"),
                        );
                        self.check_args_anyway(args);
                        CallResult::Invalid
                    }
                }
            }
            ast::ExprKind::Type(ty) => self.constructor_call(ty, args, expected, span),
            ast::ExprKind::Member(base, name) => self.method_call(base, name, site),
            _ => {
                let typed = self.check(callee, None);
                if !is_error(&typed.ty) {
                    self.error(
                        Diagnostic::error("not-callable", callee.span, "this cannot be called")
                            .label("neither a function, an action nor a method"),
                    );
                }
                CallResult::Invalid
            }
        }
    }

    /// Reports mistakes in the arguments of an invalid call.
    pub(super) fn check_args_anyway(&mut self, args: &[ast::Arg]) {
        for arg in args {
            if !matches!(arg.value.kind, ast::ExprKind::DontCare | ast::ExprKind::Dots | ast::ExprKind::Invalid) {
                self.check(&arg.value, None);
            }
        }
    }

    fn constructor_call(&mut self, ty: &TypeRef, args: &[ast::Arg], expected: Option<&Type>, span: Span) -> CallResult {
        match self.inline_instance(ty, args, expected, span) {
            Some(id) => {
                let ty = self.out.instances[id].ty.clone();
                CallResult::Value(expr(ExprKind::Instance(id), ty, span))
            }
            None => CallResult::Invalid,
        }
    }

    /// Selects the overload for these arguments.
    pub(super) fn resolve_overload<T: Copy>(
        &mut self,
        name: &str,
        candidates: &[(T, &'a [ast::Param], Span)],
        args: &[ast::Arg],
        span: Span,
    ) -> Option<T> {
        if let [(only, ..)] = candidates {
            return Some(*only);
        }
        let mut fitting: Vec<_> = candidates.iter().filter(|(_, params, _)| applicable(args, params)).collect();
        if fitting.len() > 1 {
            let exact: Vec<_> = fitting.iter().copied().filter(|(_, params, _)| params.len() == args.len()).collect();
            if exact.len() == 1 {
                fitting = exact;
            }
        }
        match fitting[..] {
            [] => {
                let places: Vec<_> = candidates.iter().map(|(_, params, at)| (*at, params.len())).collect();
                self.no_overload(name, args, &places, span);
                None
            }
            [(only, ..)] => Some(*only),
            _ => {
                let mut diagnostic = Diagnostic::error(
                    "ambiguous",
                    span,
                    format!("the call to `{name}` is ambiguous: several overloads match"),
                );
                for (_, _, at) in fitting.iter().take(3) {
                    diagnostic = diagnostic.also(*at, "declared here");
                }
                let names = |params: &[ast::Param]| -> Vec<Arc<str>> {
                    let mut names: Vec<_> = params.iter().map(|param| param.name.name.clone()).collect();
                    names.sort();
                    names
                };
                let differ = fitting.iter().any(|(_, params, _)| names(params) != names(fitting[0].1));
                let help = if differ {
                    "name the arguments"
                } else {
                    "the parameters of the overloads have the same names, so no call can distinguish them: rename a parameter of one"
                };
                self.error(diagnostic.help(help));
                None
            }
        }
    }

    fn function_call(&mut self, name: &ast::Ident, overloads: Vec<usize>, site: CallSite<'_>) -> CallResult {
        let CallSite { args, span, .. } = site;
        let program = self.program;
        let proto = |index: usize| match &program.decls[index].kind {
            DeclKind::Function { proto, .. } | DeclKind::ExternFunction(proto) => Some(proto),
            _ => None,
        };
        // P4 has no recursion, so an overload that is still being checked cannot be the callee.
        let callable: Vec<usize> =
            overloads.iter().copied().filter(|index| !self.in_progress.contains(index)).collect();
        let overloads = if callable.is_empty() { overloads } else { callable };
        let candidates: Vec<_> = overloads
            .iter()
            .filter_map(|index| proto(*index).map(|proto| (*index, &proto.params[..], proto.name.span)))
            .collect();
        let Some(index) = self.resolve_overload(&name.name, &candidates, args, span) else {
            return CallResult::Invalid;
        };
        let Some(proto) = proto(index) else { return CallResult::Invalid };
        self.used.functions.insert(proto.name.span);
        let is_extern = matches!(program.decls[index].kind, DeclKind::ExternFunction(_));
        let signature = Signature {
            kind: if is_extern { CallKind::Extern } else { CallKind::Function },
            name: name.name.clone(),
            span: proto.name.span,
            visible_decls: index + 1,
            bindings: Vec::new(),
            type_params: &proto.type_params,
            params: &proto.params,
            ret: Some(&proto.ret),
        };
        let Some(matched) = self.match_call(&signature, site) else { return CallResult::Invalid };
        let ty = self.result_type(&signature, &matched);
        if is_extern {
            if &*name.name == "static_assert" {
                return self.static_assert(&matched.args, ty, span);
            }
            if &*name.name == "verify" && !self.cx.in_parser && self.cx.context != BodyContext::Function {
                self.error(
                    Diagnostic::error("parser-only", span, "`verify` is available only in parsers")
                        .help("in a control, use `if` and a field of your own"),
                );
                return CallResult::Invalid;
            }
            let Some(id) = self.extern_fns.get(&index).copied() else { return CallResult::Invalid };
            let callee = Callee::ExternFn(id, matched.type_args);
            return CallResult::Call(Call { callee, args: matched.args, order: matched.order, span }, ty);
        }
        match self.function(index, matched.type_args, span) {
            Some(id) => CallResult::Call(
                Call { callee: Callee::Function(id), args: matched.args, order: matched.order, span },
                ty,
            ),
            None => CallResult::Invalid,
        }
    }

    fn static_assert(&mut self, args: &[Arg], ty: Type, span: Span) -> CallResult {
        let constant_of = |arg: Option<&Arg>| match arg {
            Some(Arg::Expr(Expr { kind: ExprKind::Const(value), .. })) => Some(value.clone()),
            _ => None,
        };
        match constant_of(args.first()) {
            Some(Value::Bool(true)) => CallResult::Value(constant(Value::Bool(true), ty, span)),
            Some(_) => {
                let text = match constant_of(args.get(1)) {
                    Some(Value::String(text)) => text.to_string(),
                    _ => "static assertion failed".to_owned(),
                };
                self.error(Diagnostic::error("static-assert", span, text).label("this is false"));
                CallResult::Invalid
            }
            None => {
                self.error(Diagnostic::error("not-constant", span, "the condition must be known at compile time"));
                CallResult::Invalid
            }
        }
    }

    /// Checks a direct call to an action: directionless parameters take arguments too.
    fn action_call(&mut self, id: typed::ActionId, args: &[ast::Arg], span: Span) -> CallResult {
        self.used.actions.insert(id);
        let name = self.out.actions[id].local_name.clone();
        if !matches!(self.cx.context, BodyContext::Apply | BodyContext::Action) || self.cx.in_parser {
            let place = match self.cx.context {
                BodyContext::State | BodyContext::ParserLocals => "parsers",
                BodyContext::Function => "functions",
                _ => "here",
            };
            self.error(
                Diagnostic::error("action-call", span, format!("actions cannot be called from {place}"))
                    .label(format!("`{name}` is an action"))
                    .help("actions are called by tables, by the apply block and by other actions"),
            );
            return CallResult::Invalid;
        }
        let params = self.action_formals(id);
        let names: Vec<_> = params.iter().map(|formal| (formal.name.clone(), formal.default.is_some())).collect();
        let at = self.out.actions[id].span;
        let Some(slots) = self.assign(args, &names, &name, at, span) else {
            self.check_args_anyway(args);
            return CallResult::Invalid;
        };
        let order = evaluation_order(&slots);
        let mut out = Vec::new();
        for (formal, slot) in params.iter().zip(slots) {
            let Some(arg) = slot.map(|position| &args[position]) else {
                out.extend(formal.default.clone().map(Arg::Expr));
                continue;
            };
            if matches!(arg.value.kind, ast::ExprKind::DontCare) && formal.direction == ast::Direction::Out {
                out.push(Arg::DontCare(formal.ty.clone()));
                continue;
            }
            let e = self.check(&arg.value, Some(&formal.ty));
            // A directionless parameter becomes an `in` parameter when the program itself calls the action.
            let direction = match formal.direction {
                ast::Direction::None => ast::Direction::In,
                direction => direction,
            };
            let formal = Formal { direction, ..formal.clone() };
            out.push(self.pass(e, &formal, CallKind::Function, &name));
        }
        if out.iter().any(|arg| matches!(arg, Arg::Expr(e) if is_error(&e.ty))) {
            return CallResult::Invalid;
        }
        CallResult::Call(Call { callee: Callee::Action(id), args: out, order, span }, Type::Void)
    }

    /// Returns the parameters of an action.
    pub(super) fn action_formals(&self, id: typed::ActionId) -> Vec<Formal> {
        let formal = |param: &typed::Param| {
            let var = &self.out.vars[param.var];
            Formal {
                name: var.name.clone(),
                span: var.span,
                direction: param.direction,
                ty: var.ty.clone(),
                default: self.action_defaults.get(&param.var).cloned(),
            }
        };
        self.out.actions[id].params.iter().map(formal).collect()
    }

    fn method_call(&mut self, base: &ast::Expr, name: &ast::Ident, site: CallSite<'_>) -> CallResult {
        let CallSite { args, span, .. } = site;
        if let Some(ty) = self.as_type(base) {
            return self.type_call(base, &ty, name, args, span);
        }
        if let ast::ExprKind::Name { absolute, name: base_name } = &base.kind
            && let Some(Symbol::Table(id)) = self.find(&base_name.name, *absolute).map(|binding| binding.symbol)
        {
            return self.table_call(id, name, args, span);
        }
        if let Some(value) = self.size_of_element(base, name, args, span) {
            return value;
        }
        let object = self.check(base, None);
        if is_error(&object.ty) {
            self.check_args_anyway(args);
            return CallResult::Invalid;
        }
        if !matches!(object.kind, ExprKind::Const(_))
            && let Some(value) = self.size_method(&object.ty, name, args, span)
        {
            return value;
        }
        match object.ty.clone() {
            Type::Extern(id) => self.extern_method(object, id, name, site),
            Type::Parser(_) | Type::Control(_) | Type::ParserType(..) | Type::ControlType(..)
                if &*name.name == "apply" =>
            {
                self.apply(object, args, span)
            }
            Type::Struct(_) if self.is_header(&object.ty) || self.is_union(&object.ty) => {
                self.header_method(object, name, args, span)
            }
            Type::Stack(element, _)
                if matches!(&*name.name, "push_front" | "pop_front")
                    && (self.is_header(&element) || self.is_union(&element)) =>
            {
                self.stack_method(object, name, args, span)
            }
            ty => {
                let found = self.describe(&ty);
                let mut diagnostic =
                    Diagnostic::error("unknown-method", name.span, format!("{found} has no method `{}`", name.name))
                        .also(base.span, format!("this is {found}"));
                if let Type::Struct(_) = ty
                    && matches!(&*name.name, "isValid" | "setValid" | "setInvalid")
                {
                    diagnostic = diagnostic.help("only headers and header unions can be valid or invalid");
                }
                self.error(diagnostic);
                self.check_args_anyway(args);
                CallResult::Invalid
            }
        }
    }

    /// Checks a method of a type: `H.minSizeInBits()`, or `C.apply(...)`, which creates an instance of its own.
    fn type_call(
        &mut self,
        base: &ast::Expr,
        ty: &Type,
        name: &ast::Ident,
        args: &[ast::Arg],
        span: Span,
    ) -> CallResult {
        if is_error(ty) {
            self.check_args_anyway(args);
            return CallResult::Invalid;
        }
        if let Some(called) = self.size_method(ty, name, args, span) {
            return called;
        }
        if !matches!(ty, Type::Parser(_) | Type::Control(_)) || &*name.name != "apply" {
            let found = self.describe(ty);
            self.error(Diagnostic::error(
                "unknown-method",
                name.span,
                format!("cannot call `{}` on {found} itself; it needs an instance", name.name),
            ));
            self.check_args_anyway(args);
            return CallResult::Invalid;
        }
        let written = match &base.kind {
            ast::ExprKind::Type(ty) => (**ty).clone(),
            ast::ExprKind::Name { absolute, name } => TypeRef {
                kind: TypeRefKind::Named { absolute: *absolute, name: name.clone(), args: Vec::new() },
                span: base.span,
            },
            _ => return CallResult::Invalid,
        };
        let Some(instance) = self.inline_instance(&written, &[], None, base.span) else { return CallResult::Invalid };
        self.cx.locals.push(typed::Local::Instance(instance));
        let object = expr(ExprKind::Instance(instance), ty.clone(), base.span);
        self.apply(object, args, span)
    }

    fn table_call(&mut self, id: typed::TableId, name: &ast::Ident, args: &[ast::Arg], span: Span) -> CallResult {
        self.used.tables.insert(id);
        let table = self.out.tables[id].local_name.clone();
        if &*name.name != "apply" {
            self.error(
                Diagnostic::error("unknown-method", name.span, format!("a table has no method `{}`", name.name))
                    .help(format!("write `{table}.apply()`")),
            );
            return CallResult::Invalid;
        }
        if !args.is_empty() {
            self.error(Diagnostic::error("argument-count", span, "`apply` of a table takes no arguments"));
            return CallResult::Invalid;
        }
        if !matches!(self.cx.context, BodyContext::Apply | BodyContext::Table) || self.cx.table == Some(id) {
            let what = match self.cx.context {
                BodyContext::Action => "in an action",
                _ => "here",
            };
            self.error(
                Diagnostic::error("apply-placement", span, format!("tables cannot be applied {what}"))
                    .also(self.out.tables[id].span, "the table")
                    .help("apply it in the `apply` block of its control"),
            );
            return CallResult::Invalid;
        }
        CallResult::Call(
            Call { callee: Callee::Table(id), args: Vec::new(), order: Vec::new(), span },
            Type::TableResult(id),
        )
    }

    /// Checks `object.apply(args)` of a parser or control.
    fn apply(&mut self, object: Expr, args: &[ast::Arg], span: Span) -> CallResult {
        let is_parser = matches!(object.ty, Type::Parser(_) | Type::ParserType(..));
        let allowed =
            if is_parser { self.cx.context == BodyContext::State } else { self.cx.context == BodyContext::Apply };
        if !allowed {
            let (what, place) =
                if is_parser { ("parsers", "the states of another parser") } else { ("controls", "an `apply` block") };
            self.error(
                Diagnostic::error("apply-placement", span, format!("{what} cannot be applied here"))
                    .help(format!("apply it in {place}")),
            );
            self.check_args_anyway(args);
            return CallResult::Invalid;
        }
        let program = self.program;
        let (index, types) = match &object.ty {
            Type::Parser(id) => self.parser_origins.get(id).cloned().unwrap_or_default(),
            Type::Control(id) => self.control_origins.get(id).cloned().unwrap_or_default(),
            Type::ParserType(name, args) | Type::ControlType(name, args) => {
                let Some(Symbol::Decl(index)) = self.globals.get(name).map(|b| b.symbol.clone()) else {
                    return CallResult::Invalid;
                };
                (index, args.clone())
            }
            _ => return CallResult::Invalid,
        };
        let signature = match &program.decls[index].kind {
            DeclKind::Parser(parser) => &parser.ty,
            DeclKind::Control(control) => &control.ty,
            DeclKind::ParserType(ty) | DeclKind::ControlType(ty) => ty,
            _ => return CallResult::Invalid,
        };
        let bindings: Vec<(Arc<str>, Type)> =
            signature.type_params.iter().map(|param| param.name.clone()).zip(types).collect();
        let signature = Signature {
            kind: CallKind::Apply,
            name: signature.name.name.clone(),
            span: signature.name.span,
            visible_decls: index + 1,
            bindings,
            type_params: &[],
            params: &signature.params,
            ret: None,
        };
        let Some(matched) = self.match_call(&signature, CallSite { type_args: &[], args, expected: None, span }) else {
            return CallResult::Invalid;
        };
        CallResult::Call(
            Call { callee: Callee::Apply(Box::new(object)), args: matched.args, order: matched.order, span },
            Type::Void,
        )
    }

    fn extern_method(
        &mut self,
        object: Expr,
        id: typed::ExternId,
        name: &ast::Ident,
        site: CallSite<'_>,
    ) -> CallResult {
        let CallSite { args, span, .. } = site;
        let program = self.program;
        let Some((index, types)) = self.extern_origins.get(&id).cloned() else { return CallResult::Invalid };
        let DeclKind::ExternObject { name: object_name, type_params, methods } = &program.decls[index].kind else {
            return CallResult::Invalid;
        };
        let methods: Vec<&ast::Method> = methods.iter().filter(|method| !method.is_constructor).collect();
        let candidates: Vec<_> = methods
            .iter()
            .enumerate()
            .filter(|(_, method)| method.proto.name.name == name.name)
            .map(|(at, method)| (at, &method.proto.params[..], method.proto.name.span))
            .collect();
        if candidates.is_empty() {
            let near = nearest(&name.name, methods.iter().map(|method| &*method.proto.name.name));
            let mut diagnostic = Diagnostic::error(
                "unknown-method",
                name.span,
                format!("extern `{}` has no method `{}`", object_name.name, name.name),
            )
            .also(object_name.span, "declared here");
            if let Some(near) = near {
                diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
            }
            self.error(diagnostic);
            self.check_args_anyway(args);
            return CallResult::Invalid;
        }
        let Some(method) = self.resolve_overload(&name.name, &candidates, args, span) else {
            return CallResult::Invalid;
        };
        let proto = &methods[method].proto;
        let bindings: Vec<(Arc<str>, Type)> = type_params.iter().map(|param| param.name.clone()).zip(types).collect();
        let signature = Signature {
            kind: CallKind::Extern,
            name: name.name.clone(),
            span: proto.name.span,
            visible_decls: index + 1,
            bindings,
            type_params: &proto.type_params,
            params: &proto.params,
            ret: Some(&proto.ret),
        };
        let Some(matched) = self.match_call(&signature, site) else { return CallResult::Invalid };
        let ty = self.result_type(&signature, &matched);
        if !self.check_core_method(&object_name.name, &name.name, &matched.args, &matched.type_args, span) {
            return CallResult::Invalid;
        }
        let callee = Callee::Method { object: Box::new(object), of: id, method, type_args: matched.type_args };
        CallResult::Call(Call { callee, args: matched.args, order: matched.order, span }, ty)
    }

    pub(super) fn not_an_lvalue(&mut self, e: &Expr) {
        let mut diagnostic = Diagnostic::error("not-an-lvalue", e.span, "this is not an l-value");
        let mut base = e;
        while let ExprKind::Field(inner, _) | ExprKind::Element(inner, _) | ExprKind::Slice(inner, ..) = &base.kind {
            base = inner;
        }
        diagnostic = match &base.kind {
            ExprKind::Var(var) => {
                let declared = &self.out.vars[*var];
                let why = match self.var_kinds.get(var) {
                    Some(super::VarKind::Param(ast::Direction::In)) => "an `in` parameter is read-only",
                    Some(super::VarKind::Constructor) => "a constructor parameter is read-only",
                    Some(super::VarKind::ActionData | super::VarKind::Param(_)) => {
                        "a directionless parameter is read-only"
                    }
                    _ => "read-only",
                };
                diagnostic.label(why).also(declared.span, "declared here")
            }
            ExprKind::Const(_) => diagnostic.label("a constant"),
            _ => diagnostic.label("neither a variable nor part of one"),
        };
        self.error(diagnostic);
    }

    /// Returns the value of an integer constant, if `e` is one.
    pub(super) fn constant_integer(&self, e: &Expr) -> Option<num_bigint::BigInt> {
        let ty = self.underlying_of_enum(&e.ty).unwrap_or_else(|| e.ty.clone());
        super::convert::value_of(e).and_then(|value| fold::as_integer(&value, &ty))
    }
}
