//! Checks top-level declarations, and the parameters, constants and functions of all scopes.

use std::sync::Arc;

use diagnostics::{Diagnostic, Span};
use num_traits::ToPrimitive;

use super::convert::value_of;
use super::scope::{Symbol, name_of, type_params};
use super::{Checker, VarKind, error_type, is_error};
use crate::ast::{self, DeclKind, Direction};
use crate::typed::{self, Type, Value};

impl<'a> Checker<'a> {
    /// Checks top-level declaration `index` and declares its name.
    pub(super) fn top_level(&mut self, index: usize) {
        let decl: &'a ast::Decl = &self.program.decls[index];
        self.distinct(type_params(decl));
        match &decl.kind {
            DeclKind::Parser(ast::ParserDecl { ty, ctor_params, .. })
            | DeclKind::Control(ast::ControlDecl { ty, ctor_params, .. }) => {
                let params = ty.params.iter().chain(ctor_params).map(|param| &param.name);
                self.distinct(ty.type_params.iter().chain(params));
            }
            // These keep no annotations, but mistakes in annotations are reported all the same.
            DeclKind::Const { .. } | DeclKind::Typedef { .. } | DeclKind::Function { .. } => {
                self.annotations(&decl.annotations);
            }
            _ => {}
        }
        match &decl.kind {
            DeclKind::Const { ty, name, value } => self.const_decl(ty, name, value),
            DeclKind::Errors(names) => self.error_names(names),
            DeclKind::MatchKinds(kinds) => self.match_kinds(kinds.iter().map(|(_, name)| name)),
            DeclKind::Enum { underlying, name, members } => {
                self.enum_decl(index, decl, underlying.as_ref(), name, members);
                self.declare(name, Symbol::Decl(index));
            }
            DeclKind::Struct { name, type_params, fields, .. } => {
                self.distinct(fields.iter().map(|field| &field.name));
                // A struct may refer to itself, which is reported as such.
                self.declare(name, Symbol::Decl(index));
                if type_params.is_empty() {
                    self.declared_type(index, Vec::new(), name.span);
                } else {
                    self.generic_decls.push(index);
                }
            }
            DeclKind::Typedef { ty, name } => {
                let ty = self.resolve(ty);
                self.typedefs.insert(index, ty);
                self.declare(name, Symbol::Decl(index));
            }
            DeclKind::NewType { ty, name } => self.new_type(index, decl, ty, name),
            DeclKind::ExternObject { name, type_params, .. } => {
                self.declare(name, Symbol::Decl(index));
                if type_params.is_empty() {
                    self.declared_type(index, Vec::new(), name.span);
                }
                self.generic_decls.push(index);
            }
            DeclKind::ExternFunction(proto) => self.extern_function(index, decl, proto),
            DeclKind::Function { proto, .. } => {
                self.declare_function(index, proto);
                if proto.type_params.is_empty() {
                    self.function(index, Vec::new(), proto.name.span);
                } else {
                    self.generic_decls.push(index);
                }
            }
            DeclKind::Action { name, params, body } => {
                self.action(name, params, body, &decl.annotations);
                self.local_actions.clear();
            }
            DeclKind::ParserType(ty) | DeclKind::ControlType(ty) | DeclKind::PackageType(ty) => {
                self.declare(&ty.name, Symbol::Decl(index));
                self.generic_decls.push(index);
            }
            DeclKind::Parser(ast::ParserDecl { ty, .. }) | DeclKind::Control(ast::ControlDecl { ty, .. }) => {
                self.declare(&ty.name, Symbol::Decl(index));
                if ty.type_params.is_empty() {
                    self.specialise(index, Vec::new(), ty.name.span);
                } else {
                    self.generic_decls.push(index);
                }
            }
            DeclKind::Instance(instance) => {
                if let Some(id) = self.instance_decl(instance, &decl.annotations) {
                    self.out.top_level.push(id);
                }
            }
            DeclKind::ValueSet { ty, size, name } => {
                self.value_set(ty, size, name, &decl.annotations);
            }
            DeclKind::Variable { name, .. } => {
                self.error(
                    Diagnostic::error("placement", decl.span, "variables are not allowed at top level")
                        .help("declare it in a parser, control or function, or make it a `const`"),
                );
                self.declare(name, Symbol::Invalid);
            }
            DeclKind::Table(table) => {
                self.error(Diagnostic::error("placement", decl.span, "tables can be declared only in controls"));
                self.declare(&table.name, Symbol::Invalid);
            }
        }
    }

    fn error_names(&mut self, names: &'a [ast::Ident]) {
        for name in names {
            if self.out.errors.contains(&name.name) {
                let message = format!("`error.{}` is declared twice", name.name);
                self.error(Diagnostic::error("duplicate", name.span, message).label("declared again"));
            } else {
                self.out.errors.push(name.name.clone());
            }
        }
    }

    fn match_kinds(&mut self, names: impl Iterator<Item = &'a ast::Ident>) {
        for name in names {
            if self.out.match_kinds.contains(&name.name) {
                let message = format!("match kind `{}` is declared twice", name.name);
                self.error(Diagnostic::error("duplicate", name.span, message).label("declared again"));
            } else {
                self.out.match_kinds.push(name.name.clone());
                if self.is_in_program(name.span) {
                    self.own_match_kinds.insert(name.name.clone());
                }
            }
        }
    }

    fn new_type(&mut self, index: usize, decl: &'a ast::Decl, ty: &'a ast::TypeRef, name: &'a ast::Ident) {
        let below = self.resolve(ty);
        let allowed = match &below {
            Type::Bool | Type::Bit(_) | Type::Int(_) | Type::New(_) => true,
            _ => is_error(&below),
        };
        if !allowed {
            let found = self.describe(&below);
            let message = format!("{found} cannot be the underlying type of a `type`");
            self.error(
                Diagnostic::error("new-type", ty.span, message)
                    .help("use bool, bit<w>, int<w> or another `type`, or `typedef` for an alias"),
            );
        }
        let annotations = self.annotations(&decl.annotations);
        let underlying = if allowed { below } else { error_type() };
        let new = typed::NewTypeDecl { name: name.name.clone(), underlying, annotations, span: name.span };
        let id = self.out.new_types.push(new);
        self.new_types.insert(index, id);
        self.declare(name, if allowed { Symbol::Decl(index) } else { Symbol::Invalid });
    }

    fn extern_function(&mut self, index: usize, decl: &'a ast::Decl, proto: &'a ast::FunctionProto) {
        let annotations = self.annotations(&decl.annotations);
        let id = self.out.extern_fns.push(typed::ExternFn {
            name: proto.name.name.clone(),
            params: proto.params.iter().map(|param| (param.name.name.clone(), param.direction)).collect(),
            annotations,
            span: proto.name.span,
        });
        self.extern_fns.insert(index, id);
        self.declare_function(index, proto);
        self.generic_decls.push(index);
    }

    fn declare_function(&mut self, index: usize, proto: &ast::FunctionProto) {
        let same = self.globals.get(&proto.name.name).cloned();
        if let Some(Symbol::Functions(overloads)) = same.as_ref().map(|binding| &binding.symbol) {
            // Overloads differ in the number or the names of their parameters.
            let names = |proto: &ast::FunctionProto| -> Vec<Arc<str>> {
                let mut names: Vec<_> = proto.params.iter().map(|param| param.name.name.clone()).collect();
                names.sort();
                names
            };
            let program = self.program;
            let clash = overloads.iter().find(|other| match &program.decls[**other].kind {
                DeclKind::Function { proto: other, .. } | DeclKind::ExternFunction(other) => {
                    names(other) == names(proto)
                }
                _ => false,
            });
            if let Some(clash) = clash {
                let at = name_of(&program.decls[*clash]).map_or(proto.name.span, |name| name.span);
                self.error(
                    Diagnostic::warning(
                        "duplicate-function",
                        proto.name.span,
                        format!("this overload of `{}` cannot be distinguished from another one", proto.name.name),
                    )
                    .label("the parameters of both have the same names")
                    .also(at, "the other overload")
                    .help("rename one of them, or its parameters"),
                );
            }
        }
        self.declare(&proto.name, Symbol::Functions(vec![index]));
    }

    fn enum_decl(
        &mut self,
        index: usize,
        decl: &ast::Decl,
        underlying: Option<&ast::TypeRef>,
        name: &ast::Ident,
        members: &[(ast::Annotations, ast::Ident, Option<ast::Expr>)],
    ) {
        self.distinct(members.iter().map(|(_, member, _)| member));
        let mut below = None;
        if let Some(ty) = underlying {
            let resolved = self.resolve(ty);
            match resolved {
                Type::Bit(_) | Type::Int(_) => below = Some(resolved),
                _ => {
                    if !is_error(&resolved) {
                        let found = self.describe(&resolved);
                        let message = format!("{found} cannot be the underlying type of an enum");
                        self.error(Diagnostic::error("enum-type", ty.span, message).help("use bit<w> or int<w>"));
                    }
                    below = Some(Type::Bit(32));
                }
            }
        }
        let annotations = self.annotations(&decl.annotations);
        let id = self.out.enums.push(typed::EnumDecl {
            name: name.name.clone(),
            underlying: below.clone(),
            members: Vec::new(),
            annotations,
            span: name.span,
        });
        self.enums.insert(index, id);
        // Later members may refer to earlier ones.
        self.scopes.push(super::scope::Scope::default());
        for (at, (annotations, member, value)) in members.iter().enumerate() {
            let annotations = self.annotations(annotations);
            let bits = match (&below, value) {
                (Some(ty), Some(value)) => {
                    let e = self.check_as(value, ty);
                    match value_of(&e) {
                        Some(Value::Bits(bits)) => bits,
                        _ => {
                            if !is_error(&e.ty) {
                                self.not_constant(value.span, "the value of an enum member");
                            }
                            bits::Bits::zero(1)
                        }
                    }
                }
                (Some(_), None) => {
                    self.error(
                        Diagnostic::error("enum-value", member.span, format!("`{}` has no value", member.name))
                            .help("every member of an enum with an underlying type needs one: `a = 1`"),
                    );
                    bits::Bits::zero(1)
                }
                (None, Some(value)) => {
                    let message = "members of an enum without an underlying type cannot have values";
                    self.error(
                        Diagnostic::error("enum-value", value.span, message)
                            .help("give the enum an underlying type: `enum bit<8> E { ... }`"),
                    );
                    bits::Bits::zero(32)
                }
                (None, None) => bits::Bits::new(at as u128, 32),
            };
            if let Some(below) = &below {
                let value = super::constant(Value::Bits(bits.clone()), below.clone(), member.span);
                let binding =
                    super::scope::Binding { symbol: Symbol::Const(Arc::new(value)), span: member.span, index };
                if let Some(scope) = self.scopes.last_mut() {
                    scope.names.insert(member.name.clone(), binding);
                }
            }
            let member = typed::EnumMember { name: member.name.clone(), value: bits, annotations };
            self.out.enums[id].members.push(member);
        }
        self.scopes.pop();
    }

    pub(super) fn not_constant(&mut self, span: Span, what: &str) {
        self.error(
            Diagnostic::error("not-constant", span, format!("{what} must be known at compile time"))
                .label("not a constant"),
        );
    }

    /// Checks `const T name = value;`.
    pub(super) fn const_decl(&mut self, ty: &ast::TypeRef, name: &ast::Ident, value: &ast::Expr) {
        let resolved = self.resolve(ty);
        if matches!(resolved, Type::Extern(_) | Type::Parser(_) | Type::Control(_) | Type::Package(_) | Type::Void) {
            let found = self.describe(&resolved);
            self.error(Diagnostic::error("variable-type", ty.span, format!("a constant cannot have type {found}")));
            self.declare(name, Symbol::Invalid);
            return;
        }
        let e = self.check_as(value, &resolved);
        if is_error(&e.ty) {
            self.declare(name, Symbol::Invalid);
            return;
        }
        if !self.is_static(&e) {
            self.not_constant(value.span, &format!("the value of `{}`", name.name));
            self.declare(name, Symbol::Invalid);
            return;
        }
        if !self.scopes.is_empty() {
            self.used.local_constants.push(name.clone());
        }
        self.declare(name, Symbol::Const(Arc::new(e)));
    }

    /// Declares parameters in the innermost scope.
    pub(super) fn params(&mut self, params: &[ast::Param], what: &str) -> Vec<typed::Param> {
        let mut out = Vec::new();
        let mut data: Option<Span> = None;
        for param in params {
            // `_` in a signature stands for any type; the argument determines it.
            let ty = if super::infer::has_wildcard(&param.ty)
                && !matches!(what, "function" | "action" | "parser" | "control")
            {
                error_type()
            } else {
                self.resolve(&param.ty)
            };
            self.check_param_type(param, &ty, what);
            let optional = super::call::is_optional(param);
            if what == "action" {
                match (param.direction, data) {
                    (Direction::None, None) => data = Some(param.span),
                    (Direction::None, _) | (_, None) => {}
                    (_, Some(first)) => self.error(
                        Diagnostic::error("param-order", param.span, "directionless parameters must come last")
                            .label(format!("`{}` has a direction", param.name.name))
                            .also(first, "this parameter is directionless"),
                    ),
                }
            }
            if matches!(what, "constructor" | "extern constructor" | "package") && param.direction != Direction::None {
                self.error(
                    Diagnostic::error("param-direction", param.span, "constructor parameters must be directionless")
                        .help("remove the direction"),
                );
            }
            if optional
                && !matches!(
                    what,
                    "extern" | "package" | "parser type" | "control type" | "parser" | "control" | "extern constructor"
                )
            {
                self.error(Diagnostic::error(
                    "optional",
                    param.span,
                    format!("parameters of a {what} cannot be optional"),
                ));
            }
            let mut default_value = None;
            if let Some(default) = &param.default {
                match param.direction {
                    Direction::Out | Direction::InOut => self.error(
                        Diagnostic::error(
                            "default-value",
                            param.span,
                            format!("`{}` cannot have a default value", param.name.name),
                        )
                        .label("it is `out` or `inout`"),
                    ),
                    _ if optional => self.error(Diagnostic::error(
                        "default-value",
                        param.span,
                        "an optional parameter cannot have a default value",
                    )),
                    _ => {
                        // The default value of a parameter of an open type fits some type arguments, but not all.
                        let is_open = matches!(&ty, Type::ParserType(_, args) | Type::ControlType(_, args) if args.iter().any(|arg| self.is_opaque(arg)));
                        if is_open {
                            self.check(default, None);
                        }
                        let e =
                            if is_open { super::error_expr(default.span) } else { self.default_argument(default, &ty) };
                        if !is_error(&e.ty) && !self.is_static(&e) {
                            self.not_constant(default.span, "a default value");
                        } else if what == "action" && !is_error(&e.ty) {
                            default_value = Some(e);
                        }
                    }
                }
            }
            let kind = match (what, param.direction) {
                ("action", Direction::None) => VarKind::ActionData,
                ("constructor" | "extern constructor" | "package", _) => VarKind::Constructor,
                (_, direction) => VarKind::Param(direction),
            };
            let var = self.new_var(&param.name, ty, kind, &param.annotations);
            if let Some(value) = default_value {
                self.action_defaults.insert(var, value);
            }
            self.declare(&param.name, Symbol::Var(var));
            out.push(typed::Param { var, direction: param.direction, optional });
        }
        out
    }

    /// Checks `value_set<T>(size) name;`.
    pub(super) fn value_set(
        &mut self,
        ty: &ast::TypeRef,
        size: &ast::Expr,
        name: &ast::Ident,
        annotations: &ast::Annotations,
    ) -> Option<typed::ValueSetId> {
        let resolved = self.resolve(ty);
        let allowed = match &resolved {
            Type::Bit(_) | Type::Int(_) | Type::Bool | Type::Enum(_) | Type::Tuple(_) | Type::New(_) => true,
            Type::Struct(_) => self.is_plain_struct(&resolved),
            _ => false,
        };
        let count = self.integer(size, "the size of a value set");
        if !allowed && !is_error(&resolved) {
            let found = self.describe(&resolved);
            self.error(Diagnostic::error("value-set", ty.span, format!("a value set cannot contain {found}")));
        }
        let Some(size) = count.and_then(|count| count.to_u64()).filter(|_| allowed) else {
            self.declare(name, Symbol::Invalid);
            return None;
        };
        let control_name = self.control_plane_name(name, annotations);
        let annotations = self.annotations(annotations);
        let id = self.out.value_sets.push(typed::ValueSet {
            name: control_name,
            local_name: name.name.clone(),
            ty: resolved,
            size,
            annotations,
            span: name.span,
        });
        self.declare(name, Symbol::ValueSet(id));
        Some(id)
    }

    /// Checks declaration `index` with these type arguments, and returns its type, if it declares one.
    pub(super) fn specialise(&mut self, index: usize, args: Vec<Type>, span: Span) -> Type {
        let decl: &'a ast::Decl = &self.program.decls[index];
        match &decl.kind {
            DeclKind::Parser(parser) => self.parser(index, decl, parser, args, span),
            DeclKind::Control(control) => self.control(index, decl, control, args, span),
            DeclKind::Function { .. } => {
                self.function(index, args, span);
                Type::Void
            }
            DeclKind::Struct { .. } => self.declared_type(index, args, span),
            _ => {
                self.signature(index, decl, args);
                Type::Void
            }
        }
    }

    /// Finds the package instance `main`.
    pub(super) fn main(&mut self) {
        let binding = self.globals.get("main").cloned();
        match binding.map(|binding| (binding.symbol, binding.span)) {
            Some((Symbol::Instance(id), span)) => {
                if matches!(self.out.instances[id].ty, Type::Package(_)) {
                    self.out.main = Some(id);
                    self.out.pkg_annotations = self.out.instances[id].annotations.clone();
                } else {
                    let found = self.describe(&self.out.instances[id].ty);
                    self.error(
                        Diagnostic::error("main", span, format!("`main` is {found}"))
                            .label("expected a package instance"),
                    );
                }
            }
            Some((Symbol::Decl(_), span)) => {
                self.error(Diagnostic::error("main", span, "`main` must be the package instance"));
            }
            _ => {}
        }
    }
}
