//! Checks `base.name`: members of enums and errors, fields, and the members of stacks and table results.

use diagnostics::{Diagnostic, Span};

use super::scope::{Symbol, nearest};
use super::{Checker, constant, error_expr, expr, is_error};
use crate::ast::{self, TypeRefKind, UnaryOp};
use crate::typed::{Expr, ExprKind, Type, Value};

impl Checker<'_> {
    /// Returns the type that a base expression names, if it names one: `E` in `E.a`.
    pub(super) fn as_type(&mut self, base: &ast::Expr) -> Option<Type> {
        match &base.kind {
            ast::ExprKind::Type(ty) => Some(self.resolve(ty)),
            ast::ExprKind::Name { absolute, name } => match self.find(&name.name, *absolute)?.symbol {
                Symbol::Type(ty) => Some(ty),
                Symbol::Decl(_) => Some(self.resolve(&ast::TypeRef {
                    kind: TypeRefKind::Named { absolute: *absolute, name: name.clone(), args: Vec::new() },
                    span: base.span,
                })),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn member(&mut self, base: &ast::Expr, name: &ast::Ident, span: Span) -> Expr {
        if let Some(ty) = self.as_type(base) {
            return self.type_member(&ty, name, span);
        }
        if let ast::ExprKind::Name { absolute, name: base_name } = &base.kind
            && let Some(Symbol::Table(_)) = self.find(&base_name.name, *absolute).map(|binding| binding.symbol)
        {
            self.error(
                Diagnostic::error("table-member", span, format!("`{}` is a table", base_name.name))
                    .help(format!("apply it: `{}.apply()`", base_name.name)),
            );
            return error_expr(span);
        }
        let base = self.check(base, None);
        if is_error(&base.ty) {
            return error_expr(span);
        }
        match base.ty.clone() {
            Type::Struct(id) => {
                let decl = &self.out.structs[id];
                if let Some(at) = decl.fields.iter().position(|field| field.name == name.name) {
                    let ty = decl.fields[at].ty.clone();
                    return self.field_of(base, at, ty, span);
                }
                if self.method_name(&base.ty, &name.name) {
                    return self.only_called(name, span);
                }
                let decl = &self.out.structs[id];
                let near = nearest(&name.name, decl.fields.iter().map(|field| &*field.name));
                let at = decl.span;
                let owner = self.describe(&base.ty);
                let mut diagnostic =
                    Diagnostic::error("unknown-field", name.span, format!("{owner} has no field `{}`", name.name))
                        .label("no such field")
                        .also(at, "declared here");
                if let Some(near) = near {
                    diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
                }
                self.error(diagnostic);
                error_expr(span)
            }
            Type::Stack(element, size) => self.stack_member(base, *element, size, name, span),
            Type::TableResult(_) => self.result_member(base, name, span),
            ty => {
                if self.method_name(&ty, &name.name) {
                    return self.only_called(name, span);
                }
                let found = self.describe(&ty);
                self.error(
                    Diagnostic::error("unknown-field", name.span, format!("{found} has no member `{}`", name.name))
                        .also(base.span, format!("this is {found}")),
                );
                error_expr(span)
            }
        }
    }

    fn method_name(&self, ty: &Type, name: &str) -> bool {
        match ty {
            Type::Struct(_) if self.is_header(ty) => matches!(name, "isValid" | "setValid" | "setInvalid"),
            Type::Struct(_) if self.is_union(ty) => name == "isValid",
            Type::Extern(id) => self.out.externs[*id].methods.iter().any(|method| &*method.name == name),
            Type::Parser(_) | Type::Control(_) | Type::ParserType(..) | Type::ControlType(..) => name == "apply",
            _ => false,
        }
    }

    fn only_called(&mut self, name: &ast::Ident, span: Span) -> Expr {
        self.error(
            Diagnostic::error("not-a-value", span, format!("method `{}` must be called", name.name))
                .help(format!("write `{}(...)`", name.name)),
        );
        error_expr(span)
    }

    /// Builds access to field `at` of `base`, folded if `base` is a literal or constant.
    pub(super) fn field_of(&mut self, base: Expr, at: usize, ty: Type, span: Span) -> Expr {
        match &base.kind {
            ExprKind::Const(Value::Fields(values)) => super::convert::value_expr(values[at].clone(), ty, span),
            _ => expr(ExprKind::Field(Box::new(base), at), ty, span),
        }
    }

    fn type_member(&mut self, ty: &Type, name: &ast::Ident, span: Span) -> Expr {
        match ty {
            Type::Error => match self.out.errors.iter().position(|error| *error == name.name) {
                Some(at) => constant(Value::Error(at), Type::Error, span),
                None => {
                    let near = nearest(&name.name, self.out.errors.iter().map(|error| &**error));
                    let mut diagnostic =
                        Diagnostic::error("unknown-name", name.span, format!("there is no `error.{}`", name.name));
                    if let Some(near) = near {
                        diagnostic = diagnostic.help(format!("did you mean `error.{near}`?"));
                    }
                    self.error(diagnostic);
                    error_expr(span)
                }
            },
            Type::MatchKind => match self.out.match_kinds.iter().position(|kind| *kind == name.name) {
                Some(at) => constant(Value::MatchKind(at), Type::MatchKind, span),
                None => {
                    self.error(Diagnostic::error(
                        "unknown-name",
                        name.span,
                        format!("there is no match kind `{}`", name.name),
                    ));
                    error_expr(span)
                }
            },
            Type::Enum(id) => {
                let decl = &self.out.enums[*id];
                if let Some(member) = decl.members.iter().find(|member| member.name == name.name) {
                    return constant(Value::Bits(member.value.clone()), ty.clone(), span);
                }
                let near = nearest(&name.name, decl.members.iter().map(|member| &*member.name));
                let mut diagnostic = Diagnostic::error(
                    "unknown-name",
                    name.span,
                    format!("enum `{}` has no member `{}`", decl.name, name.name),
                )
                .also(decl.span, "declared here");
                if let Some(near) = near {
                    diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
                }
                self.error(diagnostic);
                error_expr(span)
            }
            _ => {
                if !is_error(ty) {
                    let found = self.describe(ty);
                    self.error(
                        Diagnostic::error("not-a-value", span, format!("type {found} has no member `{}`", name.name))
                            .help("only enums, `error` and `match_kind` have members"),
                    );
                }
                error_expr(span)
            }
        }
    }

    fn stack_member(&mut self, base: Expr, element: Type, size: u32, name: &ast::Ident, span: Span) -> Expr {
        if !self.is_header(&element) && !self.is_union(&element) && &*name.name != "size" {
            let found = self.describe(&base.ty);
            self.error(
                Diagnostic::error("unknown-field", name.span, format!("{found} has no member `{}`", name.name))
                    .help("the only member of this stack is `size`"),
            );
            return error_expr(span);
        }
        let parser_only = |c: &mut Self| {
            if c.cx.in_parser {
                return true;
            }
            c.error(
                Diagnostic::error(
                    "parser-only",
                    span,
                    format!("`{}` of a header stack is available only in parsers", name.name),
                )
                .help("in a control, index the stack: `stack[0]`"),
            );
            false
        };
        match &*name.name {
            "size" => constant(Value::Bits(bits::Bits::new(u128::from(size), 32)), Type::Bit(32), span),
            "next" if parser_only(self) => expr(ExprKind::Next(Box::new(base)), element, span),
            "last" if parser_only(self) => expr(ExprKind::Last(Box::new(base)), element, span),
            "lastIndex" if parser_only(self) => expr(ExprKind::LastIndex(Box::new(base)), Type::Bit(32), span),
            "next" | "last" | "lastIndex" => error_expr(span),
            "push_front" | "pop_front" => self.only_called(name, span),
            _ => {
                let found = self.describe(&base.ty);
                self.error(
                    Diagnostic::error("unknown-field", name.span, format!("{found} has no member `{}`", name.name))
                        .help("header stacks have `size`, `next`, `last`, `lastIndex`, `push_front` and `pop_front`"),
                );
                error_expr(span)
            }
        }
    }

    fn result_member(&mut self, base: Expr, name: &ast::Ident, span: Span) -> Expr {
        let ExprKind::Call(call) = base.kind else { return error_expr(span) };
        match &*name.name {
            "hit" => expr(ExprKind::Hit(call), Type::Bool, span),
            "miss" => {
                let hit = expr(ExprKind::Hit(call), Type::Bool, span);
                expr(ExprKind::Unary(UnaryOp::Not, Box::new(hit)), Type::Bool, span)
            }
            "action_run" => {
                self.error(
                    Diagnostic::error("action-run", span, "`action_run` can be used only in `switch`")
                        .help("write `switch (t.apply().action_run) { ... }`"),
                );
                error_expr(span)
            }
            _ => {
                self.error(
                    Diagnostic::error(
                        "unknown-field",
                        name.span,
                        format!("the result of applying a table has no member `{}`", name.name),
                    )
                    .help("it has `hit`, `miss` and `action_run`"),
                );
                error_expr(span)
            }
        }
    }
}
