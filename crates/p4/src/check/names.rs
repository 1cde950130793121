//! Determines control-plane names (P4Runtime specification, section on annotations; `@name` and `@hidden` of section
//! 20).

use std::sync::Arc;

use super::Checker;
use super::annotations::string_of;
use crate::ast;
use crate::typed::{Builtin, Callee, Expr, ExprKind, Type, Value};

/// Qualifies a local name with the name of the enclosing parser or control; `@name(".x")` has no prefix.
fn qualified(prefix: &str, name: &str) -> Arc<str> {
    match name.strip_prefix('.') {
        Some(absolute) => absolute.into(),
        None => format!("{prefix}{name}").into(),
    }
}

impl Checker<'_> {
    /// Returns the qualified name of an action, table or value set: `MyIngress.drop`.
    pub(super) fn control_plane_name(&self, name: &ast::Ident, annotations: &ast::Annotations) -> Arc<str> {
        match string_of(annotations, "name") {
            Some((given, _)) => qualified(&self.cx.prefix, &given),
            None => qualified(&self.cx.prefix, &name.name),
        }
    }

    /// Returns the name of an instance, relative to the enclosing declaration; `.x` if `@name` makes it absolute.
    pub(super) fn instance_name(&self, name: &Arc<str>, annotations: &ast::Annotations) -> Arc<str> {
        match string_of(annotations, "name") {
            Some((given, _)) if self.cx.prefix.is_empty() => given.trim_start_matches('.').into(),
            Some((given, _)) => given,
            None => name.clone(),
        }
    }

    /// Returns the name of a table's key: the expression in normal form, if it has one.
    pub(super) fn key_name(&self, e: &Expr, written: &ast::Expr) -> Option<String> {
        match &e.kind {
            ExprKind::Var(var) => Some(self.out.vars[*var].name.to_string()),
            ExprKind::Field(base, at) => {
                let ast::ExprKind::Member(written_base, _) = &written.kind else { return None };
                let Type::Struct(id) = &base.ty else { return None };
                let field = &self.out.structs[*id].fields[*at];
                let own = field.annotations.iter().find(|annotation| &*annotation.name == "name");
                let name = own.and_then(annotated_string).unwrap_or_else(|| field.name.to_string());
                if let Some(absolute) = name.strip_prefix('.') {
                    return Some(absolute.to_owned());
                }
                Some(format!("{}.{name}", self.key_name(base, written_base)?))
            }
            ExprKind::Element(base, index) => {
                let ast::ExprKind::Index(written_base, written_index) = &written.kind else { return None };
                let index = match &index.kind {
                    ExprKind::Const(Value::Bits(bits)) => bits.to_big().to_string(),
                    _ => self.key_name(index, written_index)?,
                };
                Some(format!("{}[{index}]", self.key_name(base, written_base)?))
            }
            ExprKind::Slice(base, high, low) => {
                let ast::ExprKind::Slice(written_base, ..) = &written.kind else { return None };
                Some(format!("{}[{high}:{low}]", self.key_name(base, written_base)?))
            }
            ExprKind::Last(base) => {
                let ast::ExprKind::Member(written_base, _) = &written.kind else { return None };
                Some(format!("{}.last", self.key_name(base, written_base)?))
            }
            ExprKind::Binary(ast::BinaryOp::BitAnd, a, b) => {
                let ast::ExprKind::Binary(_, written_a, written_b) = &written.kind else { return None };
                Some(format!("{} & {}", self.key_name(a, written_a)?, self.key_name(b, written_b)?))
            }
            ExprKind::Call(call) => match &call.callee {
                // P4Runtime calls the validity bit of a header `$valid$`.
                Callee::Builtin(Builtin::IsValid, base) => {
                    let ast::ExprKind::Call { callee, .. } = &written.kind else { return None };
                    let ast::ExprKind::Member(written_base, _) = &callee.kind else { return None };
                    Some(format!("{}.$valid$", self.key_name(base, written_base)?))
                }
                _ => None,
            },
            ExprKind::Const(_) => match &written.kind {
                ast::ExprKind::Int(literal) => Some(number_name(self.map.text(written.span), &literal.value)),
                ast::ExprKind::Name { .. } => Some(self.map.text(written.span).to_owned()),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Formats a number in a key's name: in the base it is written in, without width, leading zeros and underscores.
fn number_name(text: &str, value: &num_bigint::BigInt) -> String {
    let digits = match text.find(['w', 's']) {
        Some(at) if text[..at].bytes().all(|byte| byte.is_ascii_digit()) => &text[at + 1..],
        _ => text,
    };
    let (prefix, radix) = match digits.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => ("0x", 16),
        Some("0o") => ("0o", 8),
        Some("0b") => ("0b", 2),
        _ => ("", 10),
    };
    format!("{prefix}{}", value.to_str_radix(radix))
}

fn annotated_string(annotation: &crate::typed::Annotation) -> Option<String> {
    match &annotation.body {
        crate::typed::AnnotationBody::Unstructured(_, tokens) => tokens.iter().find_map(|token| match &token.kind {
            crate::lex::TokenKind::String(text) => Some(text.to_string()),
            _ => None,
        }),
        crate::typed::AnnotationBody::Expressions(values) => values.iter().find_map(|value| match value {
            Value::String(text) => Some(text.to_string()),
            _ => None,
        }),
        _ => None,
    }
}
