//! Type resolution: names are resolved, widths evaluated, generic declarations specialised.

use std::sync::Arc;

use diagnostics::{Diagnostic, Span};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use super::scope::{Symbol, type_params};
use super::{Checker, counted, error_type, is_error};
use crate::ast::{self, DeclKind, StructKind, TypeRef, TypeRefKind};
use crate::typed::{self, Type};

/// Maximum number of elements of a header stack.
const MAX_STACK: u32 = 1 << 14;

impl Checker<'_> {
    /// Resolves a type expression; returns the error type, with a diagnostic, if it is invalid.
    pub(super) fn resolve(&mut self, ty: &TypeRef) -> Type {
        self.deeper(ty.span, |c| c.resolve_inner(ty)).unwrap_or_else(error_type)
    }

    fn resolve_inner(&mut self, ty: &TypeRef) -> Type {
        match &ty.kind {
            TypeRefKind::Bool => Type::Bool,
            TypeRefKind::Error => {
                if self.out.errors.is_empty() {
                    self.error(
                        Diagnostic::error("unknown-name", ty.span, "`error` is not declared")
                            .help("write `#include <core.p4>`, or `error { ... }`"),
                    );
                    return error_type();
                }
                Type::Error
            }
            TypeRefKind::MatchKind => Type::MatchKind,
            TypeRefKind::String => Type::String,
            TypeRefKind::Void => Type::Void,
            TypeRefKind::Integer => Type::Integer,
            TypeRefKind::Bit(None) => Type::Bit(1),
            TypeRefKind::Bit(Some(width)) => self.width(width, 0).map_or_else(error_type, Type::Bit),
            TypeRefKind::Int(width) => self.width(width, 1).map_or_else(error_type, Type::Int),
            TypeRefKind::Varbit(width) => self.width(width, 0).map_or_else(error_type, Type::Varbit),
            TypeRefKind::Named { absolute, name, args } => self.named_type(*absolute, name, args, ty.span),
            TypeRefKind::Stack(element, size) => {
                let element_ty = self.resolve(element);
                let Some(size) = self.stack_size(size) else { return error_type() };
                if is_error(&element_ty) {
                    return element_ty;
                }
                if !self.is_runtime(&element_ty) {
                    let found = self.describe(&element_ty);
                    self.error(
                        Diagnostic::error("array-element", element.span, format!("an array cannot contain {found}"))
                            .help("the elements of an array must have a run-time type"),
                    );
                    return error_type();
                }
                if !self.is_small_enough(self.leaves(&element_ty).saturating_mul(u64::from(size)), ty.span) {
                    return error_type();
                }
                Type::Stack(Box::new(element_ty), size)
            }
            TypeRefKind::Tuple(elements) => {
                let mut types = Vec::new();
                for element in elements {
                    let ty = self.resolve(element);
                    self.check_component(&ty, element.span, "a tuple");
                    types.push(ty);
                }
                let leaves = types.iter().fold(1, |sum: u64, ty| sum.saturating_add(self.leaves(ty)));
                let fits = self.is_small_enough(leaves, ty.span);
                if !fits || types.iter().any(is_error) { error_type() } else { Type::Tuple(types) }
            }
            TypeRefKind::List(element) => {
                let element = self.resolve(element);
                if is_error(&element) { element } else { Type::List(Box::new(element)) }
            }
            TypeRefKind::DontCare => {
                self.error(
                    Diagnostic::error("dont-care-type", ty.span, "`_` cannot be used as a type here")
                        .help("`_` is allowed only in the type arguments of a call"),
                );
                error_type()
            }
        }
    }

    fn named_type(&mut self, absolute: bool, name: &ast::Ident, args: &[TypeRef], span: Span) -> Type {
        let Some(binding) = self.lookup(name, absolute) else {
            for arg in args {
                self.resolve(arg);
            }
            return error_type();
        };
        match binding.symbol {
            Symbol::Type(ty) => {
                self.no_type_args(name, args, span);
                ty
            }
            Symbol::Decl(index) => {
                self.used.types.insert(index);
                let expected = type_params(&self.program.decls[index]).len();
                if args.is_empty() && expected > 0 {
                    self.error(
                        Diagnostic::error("type-arguments", span, format!("`{}` needs type arguments", name.name))
                            .label(format!("expected {expected} in `<` `>`"))
                            .also(binding.span, "declared here"),
                    );
                    return error_type();
                }
                let mut types = Vec::new();
                for arg in args {
                    let ty = self.type_argument(arg);
                    types.push(ty);
                }
                if args.len() != expected {
                    self.error(
                        Diagnostic::error(
                            "type-arguments",
                            span,
                            format!("`{}` takes {}, not {}", name.name, counted(expected, "type argument"), args.len()),
                        )
                        .also(binding.span, "declared here"),
                    );
                    return error_type();
                }
                self.declared_type(index, types, span)
            }
            Symbol::Invalid => error_type(),
            _ => {
                self.error(
                    Diagnostic::error("not-a-type", span, format!("`{}` is not a type", name.name))
                        .label("expected a type")
                        .also(binding.span, "declared here"),
                );
                error_type()
            }
        }
    }

    fn no_type_args(&mut self, name: &ast::Ident, args: &[TypeRef], span: Span) {
        if !args.is_empty() {
            self.error(Diagnostic::error("type-arguments", span, format!("`{}` takes no type arguments", name.name)));
        }
    }

    /// Resolves a type argument.
    pub(super) fn type_argument(&mut self, arg: &TypeRef) -> Type {
        let ty = self.resolve(arg);
        let refused = matches!(
            ty,
            Type::Parser(_) | Type::Control(_) | Type::Package(_) | Type::ParserType(..) | Type::ControlType(..)
        );
        if refused {
            let found = self.describe(&ty);
            self.error(Diagnostic::error("type-arguments", arg.span, format!("{found} cannot be a type argument")));
            return error_type();
        }
        ty
    }

    /// Returns the type of top-level declaration `index` with these type arguments.
    pub(super) fn declared_type(&mut self, index: usize, args: Vec<Type>, span: Span) -> Type {
        if args.iter().any(is_error) {
            return error_type();
        }
        if args.iter().any(|arg| self.comes_from(arg, index)) {
            let found = self.describe(&args[0]);
            self.error(
                Diagnostic::error("type-arguments", span, "a generic type cannot be its own type argument")
                    .label(format!("this is {found}")),
            );
            return error_type();
        }
        let decl = &self.program.decls[index];
        match &decl.kind {
            DeclKind::Typedef { .. } => self.typedefs.get(&index).cloned().unwrap_or_else(error_type),
            DeclKind::Enum { .. } => self.enums.get(&index).map_or_else(error_type, |id| Type::Enum(*id)),
            DeclKind::NewType { .. } => self.new_types.get(&index).map_or_else(error_type, |id| Type::New(*id)),
            DeclKind::Struct { .. } => self.struct_type(index, args, span),
            DeclKind::ExternObject { name, methods, .. } => {
                if self.in_progress.contains(&index) {
                    self.recursive_type(name, span);
                    return error_type();
                }
                let origin = (index, args);
                if let Some(id) = self.externs.get(&origin) {
                    return Type::Extern(*id);
                }
                if !self.may_specialise(span) {
                    return error_type();
                }
                let annotations = self.annotations(&decl.annotations);
                let id = self.out.externs.push(typed::ExternDecl {
                    name: name.name.clone(),
                    type_args: origin.1.clone(),
                    methods: Vec::new(),
                    annotations,
                    span: name.span,
                });
                self.externs.insert(origin.clone(), id);
                self.extern_origins.insert(id, origin);
                let mut typed_methods = Vec::new();
                for method in methods.iter().filter(|method| !method.is_constructor) {
                    let annotations = self.annotations(&method.annotations);
                    typed_methods.push(typed::ExternMethod {
                        name: method.proto.name.name.clone(),
                        params: method.proto.params.iter().map(|p| (p.name.name.clone(), p.direction)).collect(),
                        is_abstract: method.is_abstract,
                        annotations,
                    });
                }
                self.out.externs[id].methods = typed_methods;
                Type::Extern(id)
            }
            DeclKind::ParserType(ty) => Type::ParserType(ty.name.name.clone(), args),
            DeclKind::ControlType(ty) => Type::ControlType(ty.name.name.clone(), args),
            DeclKind::PackageType(ty) => {
                let origin = (index, args);
                if let Some(id) = self.packages.get(&origin) {
                    return Type::Package(*id);
                }
                let annotations = self.annotations(&decl.annotations);
                let id = self.out.packages.push(typed::Package {
                    name: ty.name.name.clone(),
                    type_args: origin.1.clone(),
                    params: ty.params.iter().map(|param| param.name.name.clone()).collect(),
                    annotations,
                });
                self.packages.insert(origin.clone(), id);
                self.package_origins.insert(id, origin);
                Type::Package(id)
            }
            DeclKind::Parser(_) | DeclKind::Control(_) => {
                if self.in_progress.contains(&index) {
                    let name = super::scope::name_of(decl).map_or("", |name| &*name.name);
                    self.error(
                        Diagnostic::error("recursion", span, format!("`{name}` refers to itself"))
                            .also(decl.span, "declared here")
                            .help("P4 does not allow recursion"),
                    );
                    return error_type();
                }
                self.specialise(index, args, span)
            }
            _ => error_type(),
        }
    }

    fn struct_type(&mut self, index: usize, args: Vec<Type>, span: Span) -> Type {
        let decl = &self.program.decls[index];
        let DeclKind::Struct { kind, name, type_params, fields } = &decl.kind else { return error_type() };
        let origin = (index, args);
        if let Some(id) = self.structs.get(&origin) {
            if self.in_progress.contains(&index) {
                self.recursive_type(name, span);
                return error_type();
            }
            return Type::Struct(*id);
        }
        if self.in_progress.contains(&index) {
            self.recursive_type(name, span);
            return error_type();
        }
        if !self.may_specialise(span) {
            return error_type();
        }
        let shown = if origin.1.is_empty() {
            name.name.clone()
        } else {
            let args: Vec<String> = origin.1.iter().map(|ty| self.describe_plainly(ty)).collect();
            Arc::from(format!("{}<{}>", name.name, args.join(", ")))
        };
        let annotations = self.annotations(&decl.annotations);
        let id = self.out.structs.push(typed::StructDecl {
            kind: *kind,
            name: shown,
            fields: Vec::new(),
            annotations,
            span: name.span,
        });
        self.structs.insert(origin.clone(), id);
        self.struct_origins.insert(id, origin.clone());
        self.in_progress.insert(index);
        let bindings: Vec<_> =
            type_params.iter().map(|param| param.name.clone()).zip(origin.1.iter().cloned()).collect();
        let typed_fields = self.within(index + 1, &bindings, super::DeclContext::top_level(), |c| {
            let mut typed_fields = Vec::new();
            c.length_names(fields);
            for field in fields {
                let ty = c.resolve(&field.ty);
                c.check_field(*kind, name, &ty, field, span, !origin.1.is_empty());
                let annotations = c.annotations(&field.annotations);
                let (name, span) = (field.name.name.clone(), field.name.span);
                typed_fields.push(typed::FieldDecl { name, ty, annotations, span });
            }
            typed_fields
        });
        self.in_progress.remove(&index);
        let leaves = typed_fields.iter().fold(1, |sum: u64, field| sum.saturating_add(self.leaves(&field.ty)));
        self.leaves.insert(id, leaves);
        let mut typed_fields = typed_fields;
        if !self.is_small_enough(leaves, name.span) {
            typed_fields.iter_mut().for_each(|field| field.ty = error_type());
            self.leaves.insert(id, 1);
        }
        self.out.structs[id].fields = typed_fields;
        Type::Struct(id)
    }

    /// Whether a type is one that declaration `index` makes, or contains one in its type arguments.
    fn comes_from(&self, ty: &Type, index: usize) -> bool {
        let origin = match ty {
            Type::Struct(id) => self.struct_origins.get(id),
            Type::Extern(id) => self.extern_origins.get(id),
            _ => None,
        };
        origin.is_some_and(|(of, args)| *of == index || args.iter().any(|arg| self.comes_from(arg, index)))
    }

    fn recursive_type(&mut self, name: &ast::Ident, span: Span) {
        self.error(
            Diagnostic::error("recursion", span, format!("`{}` contains itself", name.name))
                .also(name.span, "declared here")
                .help("a value of this type would be infinitely large"),
        );
    }

    fn width(&mut self, width: &ast::Expr, least: u32) -> Option<u32> {
        let value = self.integer(width, "a width")?;
        if value < BigInt::from(least) {
            self.error(
                Diagnostic::error("width", width.span, format!("{value} is not a valid width"))
                    .label(format!("expected at least {least}")),
            );
            return None;
        }
        match value.to_u32().filter(|value| *value <= bits::MAX_WIDTH) {
            Some(width) => Some(width),
            None => {
                self.error(
                    Diagnostic::error("width", width.span, format!("values of {value} bits are not supported"))
                        .label(format!("the maximum is {} bits", bits::MAX_WIDTH)),
                );
                None
            }
        }
    }

    pub(super) fn stack_size(&mut self, size: &ast::Expr) -> Option<u32> {
        let value = self.integer(size, "the size of a stack")?;
        if value.is_negative() {
            self.error(Diagnostic::error("stack-size", size.span, format!("{value} is not a valid size")));
            return None;
        }
        let fits = value.to_u32().filter(|value| *value <= MAX_STACK);
        if fits.is_none() {
            self.error(
                Diagnostic::error("stack-size", size.span, format!("a stack of {value} headers is not supported"))
                    .label(format!("the maximum is {MAX_STACK}")),
            );
        }
        fits
    }

    /// Returns the declaration of a struct, header or union type.
    pub(super) fn struct_decl(&self, ty: &Type) -> Option<&typed::StructDecl> {
        match ty {
            Type::Struct(id) => Some(&self.out.structs[*id]),
            _ => None,
        }
    }

    pub(super) fn is_kind(&self, ty: &Type, kind: StructKind) -> bool {
        self.struct_decl(ty).is_some_and(|decl| decl.kind == kind)
    }

    pub(super) fn is_header(&self, ty: &Type) -> bool {
        self.is_kind(ty, StructKind::Header)
    }

    pub(super) fn is_union(&self, ty: &Type) -> bool {
        self.is_kind(ty, StructKind::Union)
    }

    pub(super) fn is_plain_struct(&self, ty: &Type) -> bool {
        self.is_kind(ty, StructKind::Struct)
    }

    /// Returns the underlying `bit` or `int` type of a serialisable enum.
    pub(super) fn underlying_of_enum(&self, ty: &Type) -> Option<Type> {
        match ty {
            Type::Enum(id) => self.out.enums[*id].underlying.clone(),
            _ => None,
        }
    }

    /// Returns the underlying type of a `type` declaration (one level).
    pub(super) fn underlying_of_new(&self, ty: &Type) -> Option<Type> {
        match ty {
            Type::New(id) if !is_error(ty) && !self.opaque.contains(id) => {
                Some(self.out.new_types[*id].underlying.clone())
            }
            _ => None,
        }
    }

    /// Describes a type with its kind, for messages: ``header `ipv4_t` ``, `` `bit<8>` ``.
    pub(super) fn describe(&self, ty: &Type) -> String {
        let name = self.describe_plainly(ty);
        match ty {
            Type::Struct(id) => match self.out.structs[*id].kind {
                StructKind::Struct => format!("struct `{name}`"),
                StructKind::Header => format!("header `{name}`"),
                StructKind::Union => format!("header_union `{name}`"),
            },
            Type::Enum(_) => format!("enum `{name}`"),
            Type::Extern(_) => format!("extern `{name}`"),
            Type::Parser(_) | Type::ParserType(..) => format!("parser `{name}`"),
            Type::Control(_) | Type::ControlType(..) => format!("control `{name}`"),
            Type::Package(_) => format!("package `{name}`"),
            Type::TableResult(_) => "the result of applying a table".to_owned(),
            _ => format!("`{name}`"),
        }
    }

    /// Formats a type as written in a program.
    pub(super) fn describe_plainly(&self, ty: &Type) -> String {
        let list = |types: &[Type]| types.iter().map(|ty| self.describe_plainly(ty)).collect::<Vec<_>>().join(", ");
        let with_args = |name: &str, args: &[Type]| match args {
            [] => name.to_owned(),
            _ => format!("{name}<{}>", list(args)),
        };
        match ty {
            Type::Void => "void".to_owned(),
            Type::Bool => "bool".to_owned(),
            Type::Integer => "int".to_owned(),
            Type::Bit(width) => format!("bit<{width}>"),
            Type::Int(width) => format!("int<{width}>"),
            Type::Varbit(width) => format!("varbit<{width}>"),
            Type::String => "string".to_owned(),
            Type::Error => "error".to_owned(),
            Type::MatchKind => "match_kind".to_owned(),
            Type::Enum(id) => self.out.enums[*id].name.to_string(),
            Type::Struct(id) => self.out.structs[*id].name.to_string(),
            Type::New(_) if is_error(ty) => "?".to_owned(),
            Type::New(id) => self.out.new_types[*id].name.to_string(),
            Type::Stack(element, size) => format!("{}[{size}]", self.describe_plainly(element)),
            Type::Tuple(types) => format!("tuple<{}>", list(types)),
            Type::List(element) => format!("list<{}>", self.describe_plainly(element)),
            Type::Set(element) => format!("set<{}>", self.describe_plainly(element)),
            Type::Extern(id) => with_args(&self.out.externs[*id].name, &self.out.externs[*id].type_args),
            Type::Parser(id) => self.out.parsers[*id].name.to_string(),
            Type::Control(id) => self.out.controls[*id].name.to_string(),
            Type::Package(id) => with_args(&self.out.packages[*id].name, &self.out.packages[*id].type_args),
            Type::TableResult(_) => "apply_result".to_owned(),
            Type::Absent => "absent".to_owned(),
            Type::ParserType(name, args) | Type::ControlType(name, args) => with_args(name, args),
        }
    }
}
