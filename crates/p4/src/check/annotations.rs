//! Annotations: kept on their declarations, with the values of structured ones folded.

use std::collections::HashMap;
use std::sync::Arc;

use diagnostics::{Diagnostic, Diagnostics, Span};
use num_bigint::{BigInt, Sign};

use super::Checker;
use super::convert::value_of;
use super::scope::{Binding, Symbol, nearest};
use crate::ast::{self, AnnotationBody, IntLiteral};
use crate::lex::{Token, TokenKind};
use crate::parse::is_reserved;
use crate::typed::{self, Value};

impl Checker<'_> {
    /// Checks the annotations of a declaration.
    pub(super) fn annotations(&mut self, list: &ast::Annotations) -> typed::Annotations {
        if list.is_empty() {
            return Arc::from([]);
        }
        let mut out: Vec<typed::Annotation> = Vec::new();
        for annotation in list {
            let structured =
                |body: &AnnotationBody| matches!(body, AnnotationBody::Expressions(_) | AnnotationBody::KeyValues(_));
            let again = list.iter().find(|other| {
                other.name.name == annotation.name.name && (structured(&other.body) || structured(&annotation.body))
            });
            if let Some(first) = again
                && first.span != annotation.span
            {
                let name = &annotation.name;
                self.error(
                    Diagnostic::error("duplicate", annotation.span, format!("duplicate annotation `@{}`", name.name))
                        .also(first.span, "first here")
                        .help("a structured annotation may be used only once per element"),
                );
            }
            out.push(self.annotation(annotation));
        }
        out.into()
    }

    fn annotation(&mut self, annotation: &ast::Annotation) -> typed::Annotation {
        let body = match &annotation.body {
            AnnotationBody::Empty => {
                if &*annotation.name.name == "pkginfo" {
                    self.error(
                        Diagnostic::error(
                            "annotation",
                            annotation.span,
                            "`@pkginfo` needs at least one key-value pair",
                        )
                        .help("write `@pkginfo(name = \"...\", version = \"...\")`"),
                    );
                }
                typed::AnnotationBody::Empty
            }
            AnnotationBody::Unstructured(tokens) => {
                self.use_mentioned(tokens);
                let text = match (tokens.first(), tokens.last()) {
                    (Some(first), Some(last)) => self.map.text(first.span.to(last.span)).to_owned(),
                    _ => String::new(),
                };
                if matches!(&*annotation.name.name, "name" | "deprecated") {
                    let is_string = tokens.iter().any(|token| matches!(token.kind, TokenKind::String(_)));
                    let only_strings = tokens
                        .iter()
                        .all(|token| matches!(token.kind, TokenKind::String(_) | TokenKind::Punct("++" | "(" | ")")));
                    if !is_string || !only_strings {
                        let name = &annotation.name.name;
                        self.error(
                            Diagnostic::error("annotation", annotation.span, format!("`@{name}` takes a string"))
                                .help(format!("write `@{name}(\"...\")`")),
                        );
                    }
                }
                if &*annotation.name.name == "p4runtime_translation"
                    && let Some(TokenKind::Ident(ty)) = tokens.get(2).map(|token| &token.kind)
                    && !matches!(&**ty, "bit" | "string" | "int")
                {
                    self.error(
                        Diagnostic::error("annotation", tokens[2].span, "the translated type must be bit<w> or string")
                            .label("the control plane cannot use this type"),
                    );
                }
                if &*annotation.name.name == "match" {
                    let is_kind = matches!(&tokens[..], [only] if matches!(&only.kind, TokenKind::Ident(name) if self.out.match_kinds.contains(name)));
                    if !is_kind {
                        self.error(
                            Diagnostic::error("annotation", annotation.span, "`@match` takes a match kind")
                                .help("write `@match(ternary)`"),
                        );
                    }
                }
                typed::AnnotationBody::Unstructured(text.into(), self.with_constants(tokens))
            }
            AnnotationBody::Expressions(list) => {
                typed::AnnotationBody::Expressions(list.iter().filter_map(|e| self.annotation_value(e)).collect())
            }
            AnnotationBody::KeyValues(list) => {
                self.distinct(list.iter().map(|(name, _)| name));
                let pairs = list
                    .iter()
                    .filter_map(|(name, e)| self.annotation_value(e).map(|value| (name.name.clone(), value)));
                typed::AnnotationBody::KeyValues(pairs.collect())
            }
        };
        typed::Annotation { name: annotation.name.name.clone(), body, span: annotation.span }
    }

    fn annotation_value(&mut self, e: &ast::Expr) -> Option<Value> {
        let typed = self.check(e, None);
        if super::is_error(&typed.ty) {
            return None;
        }
        match value_of(&typed) {
            Some(value @ (Value::Bool(_) | Value::Integer(_) | Value::Bits(_) | Value::String(_))) => Some(value),
            _ => {
                self.error(Diagnostic::error(
                    "annotation",
                    e.span,
                    "an annotation's value must be an int, string or bool constant",
                ));
                None
            }
        }
    }
}

impl Checker<'_> {
    /// Checks the names in `@length(...)`, an expression over the fields before the annotated one.
    pub(super) fn length_names(&mut self, fields: &[ast::Field]) {
        let lengths = |field: &'_ ast::Field| field.annotations.iter().any(is_length);
        if !fields.iter().any(lengths) {
            return;
        }
        let places: HashMap<&str, usize> =
            fields.iter().enumerate().rev().map(|(at, field)| (&*field.name.name, at)).collect();
        for (at, field) in fields.iter().enumerate() {
            for annotation in field.annotations.iter().filter(|annotation| is_length(annotation)) {
                let AnnotationBody::Unstructured(tokens) = &annotation.body else { continue };
                for name in names_in(tokens) {
                    let place = places.get(name.0).copied();
                    if place.is_none_or(|place| place >= at) && self.find(name.0, false).is_none() {
                        self.unknown_length(name, &fields[..=at], place.map(|place| &fields[place]));
                    }
                }
            }
        }
    }

    fn unknown_length(&mut self, (name, span): (&str, Span), fields: &[ast::Field], later: Option<&ast::Field>) {
        let Some((field, before)) = fields.split_last() else { return };
        let message = format!("no field before `{}` is called `{name}`", field.name.name);
        let mut diagnostic = Diagnostic::error("unknown-name", span, message).label("not found here");
        if let Some(later) = later {
            diagnostic = diagnostic
                .also(later.name.span, "declared here, after the use")
                .help("declare it first: the length of a field depends on what was extracted before it");
        } else if self.diagnostics.error_count() <= Diagnostics::MAX_KEPT
            && let Some(near) = nearest(name, before.iter().map(|other| &*other.name.name))
        {
            diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
        }
        self.error(diagnostic);
    }

    /// Replaces names of integer constants by their values, since later consumers of an annotation cannot resolve
    /// names: `@field_list(CLONE_FL)`.
    fn with_constants(&self, tokens: &[Token]) -> Vec<Token> {
        let is_dot = |token: Option<&Token>| token.is_some_and(|token| matches!(token.kind, TokenKind::Punct(".")));
        let resolved = tokens.iter().enumerate().map(|(at, token)| {
            let alone = !is_dot(tokens.get(at + 1)) && !is_dot(at.checked_sub(1).and_then(|before| tokens.get(before)));
            let value = match &token.kind {
                TokenKind::Ident(name) if alone => self.named_integer(name),
                _ => None,
            };
            match value {
                Some(value) => Token { kind: TokenKind::Int(IntLiteral { value, width: None }), ..token.clone() },
                None => token.clone(),
            }
        });
        resolved.collect()
    }

    /// Returns the value of a constant, if it is an integer that is not negative.
    fn named_integer(&self, name: &str) -> Option<BigInt> {
        let Binding { symbol: Symbol::Const(constant), .. } = self.find(name, false)? else { return None };
        let value = match value_of(&constant)? {
            Value::Integer(value) => value,
            Value::Bits(bits) => BigInt::from(bits.to_u64()?),
            _ => return None,
        };
        (value.sign() != Sign::Minus).then_some(value)
    }
}

/// Whether it is `@length(...)`.
fn is_length(annotation: &ast::Annotation) -> bool {
    &*annotation.name.name == "length"
}

/// Returns the names in an annotation that are not members of others.
fn names_in(tokens: &[Token]) -> impl Iterator<Item = (&str, Span)> {
    let is_dot = |token: &Token| matches!(token.kind, TokenKind::Punct("."));
    tokens.iter().enumerate().filter_map(move |(at, token)| match &token.kind {
        TokenKind::Ident(name)
            if !is_reserved(name) && !at.checked_sub(1).is_some_and(|before| is_dot(&tokens[before])) =>
        {
            Some((&**name, token.span))
        }
        _ => None,
    })
}

/// Returns the string in an annotation `@name("...")`.
pub(super) fn string_of(annotations: &[ast::Annotation], name: &str) -> Option<(Arc<str>, Span)> {
    let annotation = annotations.iter().find(|annotation| &*annotation.name.name == name)?;
    match &annotation.body {
        AnnotationBody::Unstructured(tokens) => {
            let mut text = String::new();
            for token in tokens {
                if let TokenKind::String(part) = &token.kind {
                    text.push_str(part);
                }
            }
            Some((text.into(), annotation.span))
        }
        AnnotationBody::Expressions(list) => match list.first().map(|e| &e.kind) {
            Some(ast::ExprKind::String(text)) => Some((text.clone(), annotation.span)),
            _ => None,
        },
        _ => None,
    }
}
