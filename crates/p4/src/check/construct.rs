//! Checks list and struct expressions, `...` and `{#}` (specification sections 8.12 to 8.14).

use diagnostics::{Diagnostic, Span};

use super::convert::fields;
use super::{Checker, constant, error_expr, expr, is_error, scope};
use crate::ast::{self, StructKind};
use crate::typed::{self, Expr, ExprKind, Type, Value};

impl Checker<'_> {
    /// Checks `{ e1, e2 }`: as the expected type if a list can have that type, as a tuple otherwise.
    pub(super) fn list(&mut self, items: &[ast::Expr], expected: Option<&Type>, span: Span) -> Expr {
        let dots = items.iter().position(|item| matches!(item.kind, ast::ExprKind::Dots));
        if let Some(at) = dots
            && at + 1 != items.len()
        {
            self.error(Diagnostic::error("dots", items[at].span, "`...` must be the last element"));
            return error_expr(span);
        }
        let given = items.len() - usize::from(dots.is_some());
        let types = expected.and_then(|ty| self.part_types(ty, given));
        let (Some(types), Some(expected)) = (types, expected) else {
            if let Some(at) = dots {
                self.error(
                    Diagnostic::error("dots", items[at].span, "`...` has no default value here")
                        .help("use `...` where a struct, header, stack or tuple is expected"),
                );
                return error_expr(span);
            }
            let parts: Vec<Expr> = items.iter().map(|item| self.check(item, None)).collect();
            if parts.iter().any(|part| is_error(&part.ty)) {
                return error_expr(span);
            }
            let mut types = Vec::new();
            for part in &parts {
                if matches!(
                    part.ty,
                    Type::Extern(_) | Type::TableResult(_) | Type::Void | Type::Parser(_) | Type::Control(_)
                ) {
                    let found = self.describe(&part.ty);
                    self.error(Diagnostic::error(
                        "component-type",
                        part.span,
                        format!("a list cannot contain {found}"),
                    ));
                    return error_expr(span);
                }
                types.push(part.ty.clone());
            }
            return fields(parts, Type::Tuple(types), span);
        };
        if given > types.len() || given < types.len() && dots.is_none() {
            let wanted = self.describe(expected);
            self.error(
                Diagnostic::error(
                    "wrong-count",
                    span,
                    format!("{wanted} takes {} values, but this list has {given}", types.len()),
                )
                .label("expected one expression per field or element"),
            );
            return error_expr(span);
        }
        let mut parts = Vec::new();
        for (at, ty) in types.iter().enumerate() {
            let part = match items.get(at) {
                Some(item) if at < given => self.check_as(item, ty),
                _ => self.default_value(ty, span),
            };
            parts.push(part);
        }
        if parts.iter().any(|part| is_error(&part.ty)) {
            return error_expr(span);
        }
        fields(parts, expected.clone(), span)
    }

    /// Checks `{ a = e1, b = e2 }`.
    pub(super) fn struct_expr(
        &mut self,
        given: &[(ast::Ident, ast::Expr)],
        dots: Option<Span>,
        expected: Option<&Type>,
        span: Span,
    ) -> Expr {
        self.distinct(given.iter().map(|(name, _)| name));
        let decl = expected.and_then(|ty| self.struct_decl(ty)).cloned();
        let (Some(decl), Some(expected)) = (decl, expected) else {
            return self.anonymous_struct(given, dots, span);
        };
        if decl.kind == StructKind::Union {
            self.error(
                Diagnostic::error("type-mismatch", span, "a header_union cannot be initialized with a list")
                    .help("assign to one of its headers"),
            );
            return error_expr(span);
        }
        let wanted = self.describe(expected);
        let mut parts: Vec<Option<Expr>> = decl.fields.iter().map(|_| None).collect();
        let mut wrong = false;
        for (name, value) in given {
            match decl.fields.iter().position(|field| field.name == name.name) {
                Some(at) => {
                    let part = self.check_as(value, &decl.fields[at].ty);
                    parts[at] = Some(part);
                }
                None => {
                    wrong = true;
                    let near = scope::nearest(&name.name, decl.fields.iter().map(|field| &*field.name));
                    let mut diagnostic =
                        Diagnostic::error("unknown-field", name.span, format!("{wanted} has no field `{}`", name.name))
                            .also(decl.span, "declared here");
                    if let Some(near) = near {
                        diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
                    }
                    self.error(diagnostic);
                    self.check(value, None);
                }
            }
        }
        let mut all = Vec::new();
        for (part, field) in parts.into_iter().zip(&decl.fields) {
            let part = match part {
                Some(part) => part,
                None if dots.is_some() => self.default_value(&field.ty, span),
                None => {
                    if !wrong {
                        self.error(
                            Diagnostic::error(
                                "missing-field",
                                span,
                                format!("field `{}` of {wanted} is missing", field.name),
                            )
                            .also(field.span, "declared here")
                            .help(format!("add `{} = ...`, or `...` for default values", field.name)),
                        );
                    }
                    wrong = true;
                    error_expr(span)
                }
            };
            all.push(part);
        }
        if wrong || all.iter().any(|part| is_error(&part.ty)) {
            return error_expr(span);
        }
        fields(all, expected.clone(), span)
    }

    fn anonymous_struct(&mut self, given: &[(ast::Ident, ast::Expr)], dots: Option<Span>, span: Span) -> Expr {
        let parts: Vec<Expr> = given.iter().map(|(_, value)| self.check(value, None)).collect();
        if let Some(dots) = dots {
            self.error(Diagnostic::error("dots", dots, "`...` has no default value here"));
            return error_expr(span);
        }
        if parts.iter().any(|part| is_error(&part.ty)) {
            return error_expr(span);
        }
        let key: Vec<_> =
            given.iter().zip(&parts).map(|((name, _), part)| (name.name.clone(), part.ty.clone())).collect();
        let id = match self.anonymous.get(&key) {
            Some(id) => *id,
            None => {
                let fields = given
                    .iter()
                    .zip(&parts)
                    .map(|((name, _), part)| typed::FieldDecl {
                        name: name.name.clone(),
                        ty: part.ty.clone(),
                        annotations: [].into(),
                        span: name.span,
                    })
                    .collect();
                let id = self.out.structs.push(typed::StructDecl {
                    kind: StructKind::Struct,
                    name: "struct expression".into(),
                    fields,
                    annotations: [].into(),
                    span,
                });
                self.anonymous.insert(key, id);
                self.anonymous_ids.insert(id);
                id
            }
        };
        fields(parts, Type::Struct(id), span)
    }

    /// Checks `{#}`.
    pub(super) fn invalid(&mut self, expected: Option<&Type>, span: Span) -> Expr {
        match expected {
            Some(ty) if self.is_header(ty) || self.is_union(ty) => expr(ExprKind::Invalid, ty.clone(), span),
            Some(ty) => {
                let found = self.describe(ty);
                self.error(
                    Diagnostic::error("type-mismatch", span, format!("expected {found}, found an invalid header"))
                        .help("`{#}` is a value of headers and header unions only"),
                );
                error_expr(span)
            }
            None => {
                self.error(
                    Diagnostic::error("type-mismatch", span, "the type of this invalid header cannot be inferred")
                        .help("write a cast: `(H) {#}`"),
                );
                error_expr(span)
            }
        }
    }

    /// Returns the value that `...` assigns to an element of this type (specification section 7.3).
    pub(super) fn default_value(&mut self, ty: &Type, span: Span) -> Expr {
        if !self.spend(ty, span) {
            return error_expr(span);
        }
        match self.default_of(ty) {
            Some(value) => super::convert::value_expr(value, ty.clone(), span),
            None => {
                let found = self.describe(ty);
                self.error(Diagnostic::error("dots", span, format!("{found} has no default value")));
                error_expr(span)
            }
        }
    }

    fn default_of(&self, ty: &Type) -> Option<Value> {
        Some(match ty {
            Type::Bool => Value::Bool(false),
            Type::Bit(width) | Type::Int(width) => Value::Bits(bits::Bits::zero(*width)),
            Type::Integer => Value::Integer(0.into()),
            Type::String => Value::String("".into()),
            Type::Error => Value::Error(self.out.errors.iter().position(|name| &**name == "NoError")?),
            Type::Enum(id) => match &self.out.enums[*id].underlying {
                Some(Type::Bit(width) | Type::Int(width)) => Value::Bits(bits::Bits::zero(*width)),
                _ => Value::Bits(self.out.enums[*id].members.first()?.value.clone()),
            },
            Type::New(_) => self.default_of(&self.underlying_of_new(ty)?)?,
            Type::Struct(_) if self.is_header(ty) || self.is_union(ty) => Value::Invalid,
            Type::Struct(id) => {
                let parts: Option<Vec<_>> =
                    self.out.structs[*id].fields.iter().map(|field| self.default_of(&field.ty)).collect();
                Value::Fields(parts?)
            }
            Type::Tuple(types) => Value::Fields(types.iter().map(|ty| self.default_of(ty)).collect::<Option<_>>()?),
            Type::Stack(element, size) => Value::Fields(vec![self.default_of(element)?; *size as usize]),
            _ => return None,
        })
    }

    /// Creates a constant of type `bool`.
    pub(super) fn bool_const(&self, value: bool, span: Span) -> Expr {
        constant(Value::Bool(value), Type::Bool, span)
    }
}
