//! Instances of extern objects, parsers, controls and packages, created by a declaration or by constructor calls inside
//! expressions, and the implementations of abstract methods.

use std::sync::Arc;

use diagnostics::{Diagnostic, Span};

use super::call::{CallKind, Signature};
use super::method::CallSite;
use super::scope::{Symbol, name_of, type_params};
use super::{BodyContext, Checker, DeclContext};
use crate::ast::{self, DeclKind, TypeRef, TypeRefKind};
use crate::typed::{self, Arg, FunctionId, InstanceId, Type};

/// Result of a constructor call.
struct ConstructedInstance {
    ty: Type,
    args: Vec<Arg>,
    param_names: Vec<Arc<str>>,
}

impl<'a> Checker<'a> {
    /// Checks `T(args) name;`.
    pub(super) fn instance_decl(
        &mut self,
        decl: &'a ast::InstanceDecl,
        annotations: &ast::Annotations,
    ) -> Option<InstanceId> {
        let place = self.cx.context;
        if !matches!(place, BodyContext::TopLevel | BodyContext::ParserLocals | BodyContext::ControlLocals) {
            let place = match place {
                BodyContext::Apply => "an `apply` block",
                BodyContext::State => "a parser state",
                BodyContext::Action => "an action",
                _ => "a function or method",
            };
            self.error(
                Diagnostic::error("placement", decl.name.span, format!("nothing can be instantiated in {place}"))
                    .help("declare the instance in the parser or control, or at top level"),
            );
            self.declare(&decl.name, Symbol::Invalid);
            return None;
        }
        let (of, size) = match &decl.ty.kind {
            TypeRefKind::Stack(element, size) => (&**element, Some(size)),
            _ => (&decl.ty, None),
        };
        let made = self.construct(of, &decl.args, None, decl.ty.span.to(decl.name.span));
        let size = size.map(|size| self.stack_size(size));
        let made = made.filter(|made| self.may_stand_here(&made.ty, decl.ty.span, true));
        let (Some(made), None | Some(Some(_))) = (made, size) else {
            self.declare(&decl.name, Symbol::Invalid);
            return None;
        };
        let array = size.flatten();
        if array.is_some() && !matches!(made.ty, Type::Extern(_)) {
            let found = self.describe(&made.ty);
            self.error(
                Diagnostic::error("array-element", decl.ty.span, format!("{found} cannot be instantiated as an array"))
                    .help("only extern objects can be instantiated as an array"),
            );
            self.declare(&decl.name, Symbol::Invalid);
            return None;
        }
        let name = self.instance_name(&decl.name.name, annotations);
        let typed_annotations = self.annotations(annotations);
        let id = self.out.instances.push(typed::Instance {
            name,
            local_name: decl.name.name.clone(),
            ty: made.ty.clone(),
            array,
            args: made.args,
            param_names: made.param_names,
            methods: Vec::new(),
            annotations: typed_annotations,
            span: decl.name.span,
        });
        let methods = self.implementations(decl, &made.ty);
        self.out.instances[id].methods = methods;
        self.declare(&decl.name, Symbol::Instance(id));
        Some(id)
    }

    /// Checks a constructor call in an expression, which creates an instance without a name of its own.
    pub(super) fn inline_instance(
        &mut self,
        ty: &TypeRef,
        args: &[ast::Arg],
        expected: Option<&Type>,
        span: Span,
    ) -> Option<InstanceId> {
        let made = self.deeper(span, |c| c.construct(ty, args, expected, span)).flatten()?;
        if !self.may_stand_here(&made.ty, ty.span, false) {
            return None;
        }
        if self.has_abstract_methods(&made.ty) {
            let found = self.describe(&made.ty);
            self.error(
                Diagnostic::error("abstract", span, format!("the abstract methods of {found} must be implemented"))
                    .help("declare an instance that implements them: `T(...) name = { ... };`"),
            );
            return None;
        }
        let name: Arc<str> = match &ty.kind {
            TypeRefKind::Named { name, .. } => name.name.clone(),
            _ => self.describe_plainly(&made.ty).into(),
        };
        let id = self.out.instances.push(typed::Instance {
            name: name.clone(),
            local_name: name,
            ty: made.ty,
            array: None,
            args: made.args,
            param_names: made.param_names,
            methods: Vec::new(),
            annotations: [].into(),
            span,
        });
        self.used.instances.insert(id);
        Some(id)
    }

    /// Checks where an instance may be created: parsers in parsers, controls in controls, packages at top level.
    fn may_stand_here(&mut self, ty: &Type, span: Span, is_decl: bool) -> bool {
        let in_parser = self.cx.in_parser;
        let problem = match (ty, self.cx.context) {
            (Type::Extern(_), _) => None,
            (Type::Package(_), BodyContext::TopLevel) => None,
            (Type::Package(_), _) => Some("packages can be instantiated only at top level"),
            (Type::Parser(_) | Type::Control(_), BodyContext::TopLevel) if is_decl => {
                Some("parsers and controls can be instantiated at top level only as arguments of a package")
            }
            (_, BodyContext::TopLevel) => None,
            (Type::Parser(_), _) if !in_parser => Some("a parser cannot be instantiated in a control"),
            (Type::Control(_), _) if in_parser => Some("a control cannot be instantiated in a parser"),
            _ => None,
        };
        if let Some(problem) = problem {
            let found = self.describe(ty);
            self.error(Diagnostic::error("placement", span, problem).label(found));
            return false;
        }
        true
    }

    /// Finds the constructor, matches the arguments and infers type arguments.
    fn construct(
        &mut self,
        ty: &TypeRef,
        args: &[ast::Arg],
        expected: Option<&Type>,
        span: Span,
    ) -> Option<ConstructedInstance> {
        let program = self.program;
        let (index, written, fixed) = self.constructed_decl(ty, span)?;
        let decl: &'a ast::Decl = &program.decls[index];
        if self.in_progress.contains(&index) {
            let name = name_of(decl).map_or("", |name| &*name.name);
            self.error(
                Diagnostic::error("recursion", span, format!("`{name}` instantiates itself"))
                    .also(decl.span, "declared here")
                    .help("P4 does not allow recursion"),
            );
            return None;
        }
        let own = type_params(decl);
        // The expected type may provide omitted type arguments.
        let fixed = fixed.or_else(|| match expected? {
            Type::Extern(id) if written.is_empty() => {
                self.extern_origins.get(id).filter(|(of, _)| *of == index).map(|(_, types)| types.clone())
            }
            Type::ParserType(..) | Type::ControlType(..) if written.is_empty() && !own.is_empty() => {
                self.args_from_signature(index, expected?)
            }
            _ => None,
        });
        let name = name_of(decl)?;
        let (params, at): (&'a [ast::Param], Span) = match &decl.kind {
            DeclKind::ExternObject { methods, .. } => {
                let candidates: Vec<_> = methods
                    .iter()
                    .enumerate()
                    .filter(|(_, method)| method.is_constructor)
                    .map(|(at, method)| (at, &method.proto.params[..], method.proto.name.span))
                    .collect();
                if candidates.is_empty() {
                    self.error(
                        Diagnostic::error("constructor", span, format!("`{}` has no constructor", name.name))
                            .also(name.span, "declared here")
                            .help("its instances are provided by the architecture"),
                    );
                    return None;
                }
                let fitting = candidates.iter().any(|(_, params, _)| super::call::applicable(args, params));
                if !fitting {
                    let places: Vec<_> = candidates.iter().map(|(_, params, at)| (*at, params.len())).collect();
                    self.no_overload(&name.name, args, &places, span);
                    return None;
                }
                let chosen = self.resolve_overload(&name.name, &candidates, args, span)?;
                (&methods[chosen].proto.params, methods[chosen].proto.name.span)
            }
            DeclKind::Parser(ast::ParserDecl { ctor_params, ty, .. })
            | DeclKind::Control(ast::ControlDecl { ctor_params, ty, .. }) => (ctor_params, ty.name.span),
            DeclKind::PackageType(ty) => (&ty.params, ty.name.span),
            _ => {
                let found = if matches!(decl.kind, DeclKind::ParserType(_) | DeclKind::ControlType(_)) {
                    "a parser or control type, not a parser or control"
                } else {
                    "not an extern object, parser, control or package"
                };
                self.error(
                    Diagnostic::error("constructor", ty.span, format!("`{}` cannot be instantiated", name.name))
                        .label(found)
                        .also(name.span, "declared here"),
                );
                return None;
            }
        };
        let bindings: Vec<(Arc<str>, Type)> = match &fixed {
            Some(types) => own.iter().map(|param| param.name.clone()).zip(types.iter().cloned()).collect(),
            None => Vec::new(),
        };
        let signature = Signature {
            kind: CallKind::Constructor,
            name: name.name.clone(),
            span: at,
            visible_decls: index + 1,
            bindings,
            type_params: if fixed.is_some() { &[] } else { own },
            params,
            ret: None,
        };
        let matched = self.match_call(&signature, CallSite { type_args: &written, args, expected: None, span })?;
        let types = fixed.unwrap_or(matched.type_args);
        let ty = self.declared_type(index, types, span);
        if super::is_error(&ty) {
            return None;
        }
        let param_names = params.iter().map(|param| param.name.name.clone()).collect();
        Some(ConstructedInstance { ty, args: matched.args, param_names })
    }

    /// Returns the declaration that the type expression of a constructor call names, with its type arguments as
    /// written, or as fixed by a typedef.
    #[allow(clippy::type_complexity, reason = "three facts about one type expression")]
    fn constructed_decl(&mut self, ty: &TypeRef, span: Span) -> Option<(usize, Vec<TypeRef>, Option<Vec<Type>>)> {
        let TypeRefKind::Named { absolute, name, args } = &ty.kind else {
            let resolved = self.resolve(ty);
            if !super::is_error(&resolved) {
                let found = self.describe(&resolved);
                self.error(Diagnostic::error("constructor", span, format!("{found} cannot be instantiated")));
            }
            return None;
        };
        let binding = self.lookup(name, *absolute)?;
        let resolved = match binding.symbol {
            Symbol::Decl(index) => match self.program.decls[index].kind {
                DeclKind::Typedef { .. }
                | DeclKind::Struct { .. }
                | DeclKind::Enum { .. }
                | DeclKind::NewType { .. } => self.resolve(ty),
                _ => return Some((index, args.clone(), None)),
            },
            Symbol::Type(_) | Symbol::Invalid => self.resolve(ty),
            _ => {
                self.error(
                    Diagnostic::error("constructor", ty.span, format!("`{}` is not a type", name.name))
                        .also(binding.span, "declared here"),
                );
                return None;
            }
        };
        let origin = match &resolved {
            Type::Extern(id) => self.extern_origins.get(id).cloned(),
            Type::Parser(id) => self.parser_origins.get(id).cloned(),
            Type::Control(id) => self.control_origins.get(id).cloned(),
            Type::Package(id) => self.package_origins.get(id).cloned(),
            _ => None,
        };
        if origin.is_none() && !super::is_error(&resolved) {
            let found = self.describe(&resolved);
            self.error(
                Diagnostic::error("constructor", ty.span, format!("{found} cannot be instantiated"))
                    .help("a variable declaration takes no parentheses"),
            );
        }
        origin.map(|(index, types)| (index, Vec::new(), Some(types)))
    }

    /// Infers type arguments of a parser or control from the required signature.
    fn args_from_signature(&mut self, index: usize, wanted: &Type) -> Option<Vec<Type>> {
        let decl: &'a ast::Decl = &self.program.decls[index];
        let (DeclKind::Parser(ast::ParserDecl { ty, .. }) | DeclKind::Control(ast::ControlDecl { ty, .. })) =
            &decl.kind
        else {
            return None;
        };
        let wanted = self.signature_params(wanted)?;
        let mut variables = super::infer::InferenceVars::new(&ty.type_params);
        self.within(index + 1, &[], DeclContext::top_level(), |c| {
            for (param, (wanted, ..)) in ty.params.iter().zip(&wanted) {
                c.infer(&param.ty, wanted, &mut variables);
            }
        });
        variables.variables.into_iter().map(|(_, ty)| ty).collect()
    }

    fn has_abstract_methods(&self, ty: &Type) -> bool {
        match ty {
            Type::Extern(id) => self.out.externs[*id].methods.iter().any(|method| method.is_abstract),
            _ => false,
        }
    }

    /// Checks the implementations in the braces after an instance.
    fn implementations(&mut self, decl: &'a ast::InstanceDecl, ty: &Type) -> Vec<(Arc<str>, FunctionId)> {
        let program = self.program;
        for member in decl.body.iter().flatten() {
            self.distinct(type_params(member));
        }
        let Some(body) = &decl.body else {
            if self.has_abstract_methods(ty) {
                let found = self.describe(ty);
                self.error(
                    Diagnostic::error(
                        "abstract",
                        decl.name.span,
                        format!("the abstract methods of {found} must be implemented"),
                    )
                    .help(format!("write `... {} = {{ ... }};`", decl.name.name)),
                );
            }
            return Vec::new();
        };
        let origin = match ty {
            Type::Extern(id) if self.has_abstract_methods(ty) => self.extern_origins.get(id).cloned(),
            _ => None,
        };
        let Some((index, types)) = origin else {
            let found = self.describe(ty);
            self.error(
                Diagnostic::error("abstract", decl.name.span, format!("{found} has no abstract methods"))
                    .label("there is nothing to implement"),
            );
            for member in body {
                if let DeclKind::Function { proto, body } = &member.kind {
                    self.function_body(proto, body, BodyContext::Method);
                }
            }
            return Vec::new();
        };
        let DeclKind::ExternObject { type_params, methods, .. } = &program.decls[index].kind else { return Vec::new() };
        let bindings: Vec<_> = type_params.iter().map(|param| param.name.clone()).zip(types).collect();
        let mut out: Vec<(Arc<str>, FunctionId)> = Vec::new();
        let cx = self.cx.clone();
        self.cx.this = Some(ty.clone());
        self.scoped(|c| {
            for member in body {
                match &member.kind {
                    DeclKind::Function { proto, body } => {
                        let Some(wanted) = c.implemented_method(proto, methods, index) else { continue };
                        let Some(id) = c.function_body(proto, body, BodyContext::Method) else { continue };
                        c.same_signature(id, proto, wanted, index, &bindings);
                        out.push((proto.name.name.clone(), id));
                    }
                    DeclKind::Instance(inner) => {
                        if let Some(id) = c.instance_decl(inner, &member.annotations) {
                            c.cx.locals.push(typed::Local::Instance(id));
                        }
                    }
                    DeclKind::Const { ty, name, value } => c.const_decl(ty, name, value),
                    _ => c.error(Diagnostic::error(
                        "placement",
                        member.span,
                        "only methods and instances are allowed here",
                    )),
                }
            }
        });
        let locals = std::mem::take(&mut self.cx.locals);
        self.cx = cx;
        self.cx.locals = locals;
        for method in methods.iter().filter(|method| method.is_abstract) {
            let name = &method.proto.name;
            let is_optional = method.annotations.iter().any(|annotation| &*annotation.name.name == "optional");
            if !is_optional
                && !out.iter().any(|(implemented, _)| *implemented == name.name)
                && !body.iter().any(|member| name_of(member).is_some_and(|member| member.name == name.name))
            {
                self.error(
                    Diagnostic::error("abstract", decl.name.span, format!("`{}` is not implemented", name.name))
                        .also(name.span, "declared here"),
                );
            }
        }
        out
    }

    /// Returns the abstract method of the extern object `index` that a function implements. Reports a function that
    /// implements none.
    fn implemented_method(
        &mut self,
        proto: &'a ast::FunctionProto,
        methods: &'a [ast::Method],
        index: usize,
    ) -> Option<&'a ast::Method> {
        let wanted = methods.iter().find(|method| {
            method.is_abstract
                && method.proto.name.name == proto.name.name
                && method.proto.params.len() >= proto.params.len()
                && method.proto.params[proto.params.len()..].iter().all(super::call::is_optional)
        });
        if wanted.is_none() {
            let message = format!("there is no abstract method `{}` with these parameters", proto.name.name);
            self.error(
                Diagnostic::error("abstract", proto.name.span, message)
                    .also(self.program.decls[index].span, "extern object declared here"),
            );
        } else if !proto.type_params.is_empty() {
            let message = "an implementation cannot be generic";
            self.error(Diagnostic::error("abstract", proto.name.span, message));
            return None;
        }
        wanted
    }

    /// Reports an implementation with types or directions that differ from the abstract method's.
    fn same_signature(
        &mut self,
        id: FunctionId,
        proto: &ast::FunctionProto,
        wanted: &'a ast::Method,
        index: usize,
        bindings: &[(Arc<str>, Type)],
    ) {
        let expected: (Type, Vec<(Type, ast::Direction)>) =
            self.within(index + 1, bindings, DeclContext::top_level(), |c| {
                let params = wanted.proto.params.iter().map(|param| (c.resolve(&param.ty), param.direction)).collect();
                (c.resolve(&wanted.proto.ret), params)
            });
        let function = &self.out.functions[id];
        let found: Vec<_> =
            function.params.iter().map(|param| (self.out.vars[param.var].ty.clone(), param.direction)).collect();
        let agrees = |a: &Type, b: &Type| a == b || super::is_error(a) || super::is_error(b);
        let same = agrees(&function.ret, &expected.0)
            && found.iter().zip(&expected.1).all(|(a, b)| agrees(&a.0, &b.0) && a.1 == b.1);
        if !same {
            self.error(
                Diagnostic::error(
                    "abstract",
                    proto.name.span,
                    format!("the signature of `{}` differs from its declaration", proto.name.name),
                )
                .also(wanted.proto.name.span, "declared here")
                .help("return type, parameter types and directions must be the same"),
            );
        }
    }
}
