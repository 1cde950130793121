//! Converts annotations for P4Info (P4Runtime specification, section on annotations).

use diagnostics::{Diagnostic, Diagnostics, SourceMap};
use num_traits::ToPrimitive;
use p4::lex::{Token, TokenKind, unescape};
use p4::typed::{Annotation, AnnotationBody, Annotations, Value};
use p4runtime_proto::config as proto;
use p4runtime_proto::config::expression::Value as Literal;
use p4runtime_proto::config::structured_annotation::Body;

/// Returns the annotation with this name.
pub(crate) fn find<'a>(annotations: &'a Annotations, name: &str) -> Option<&'a Annotation> {
    annotations.iter().find(|annotation| &*annotation.name == name)
}

/// Whether there is an annotation with this name.
pub(crate) fn has(annotations: &Annotations, name: &str) -> bool {
    find(annotations, name).is_some()
}

/// Returns the string in an annotation's body.
pub(crate) fn string(annotations: &Annotations, name: &str) -> Option<String> {
    match &find(annotations, name)?.body {
        AnnotationBody::Unstructured(_, tokens) => {
            let mut strings = tokens.iter().filter_map(|token| match &token.kind {
                TokenKind::String(text) => Some(&**text),
                _ => None,
            });
            let first = strings.next()?.to_owned();
            Some(strings.fold(first, |text, more| text + more))
        }
        AnnotationBody::Expressions(values) => match values.first()? {
            Value::String(text) => Some(text.to_string()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the number in an annotation's body.
pub(crate) fn number(annotations: &Annotations, name: &str) -> Option<num_bigint::BigInt> {
    match &find(annotations, name)?.body {
        AnnotationBody::Unstructured(_, tokens) => match &tokens[..] {
            [Token { kind: TokenKind::Int(literal), .. }] => Some(literal.value.clone()),
            _ => None,
        },
        AnnotationBody::Expressions(values) => crate::eval::integer(values.first()?, false),
        _ => None,
    }
}

/// Returns the id in `@id`.
pub(crate) fn id(annotations: &Annotations, diagnostics: &mut Diagnostics) -> Option<u32> {
    let annotation = find(annotations, "id")?;
    let id = number(annotations, "id").and_then(|id| id.to_u32());
    if id.is_none() {
        diagnostics
            .push(Diagnostic::error("id", annotation.span, "`@id` takes a 32-bit number").help("write `@id(1)`"));
    }
    id
}

/// The annotation fields of a P4Info message.
pub(crate) struct AnnotationFields {
    pub(crate) annotations: Vec<String>,
    pub(crate) structured: Vec<proto::StructuredAnnotation>,
    pub(crate) doc: Option<proto::Documentation>,
}

/// Converts annotations to P4Info. Leaves out those that P4Info represents elsewhere (`@name`, `@id`, documentation)
/// and those in `except`. Structured annotations are always included.
pub(crate) fn convert(
    annotations: &Annotations,
    except: &[&str],
    map: &SourceMap,
    diagnostics: &mut Diagnostics,
) -> AnnotationFields {
    let mut out = AnnotationFields { annotations: Vec::new(), structured: Vec::new(), doc: None };
    for annotation in annotations.iter() {
        let name = &*annotation.name;
        match &annotation.body {
            AnnotationBody::Expressions(values) => {
                let expressions: Vec<_> =
                    values.iter().filter_map(|value| literal(value, annotation, diagnostics)).collect();
                let body =
                    (!expressions.is_empty()).then_some(Body::ExpressionList(proto::ExpressionList { expressions }));
                out.structured.push(structured(name, body));
            }
            AnnotationBody::KeyValues(pairs) => {
                let pairs = pairs.iter().filter_map(|(key, value)| {
                    let value = literal(value, annotation, diagnostics)?;
                    Some(proto::KeyValuePair { key: key.to_string(), value: Some(value) })
                });
                let kv_pairs: Vec<_> = pairs.collect();
                let body = (!kv_pairs.is_empty()).then_some(Body::KvPairList(proto::KeyValuePairList { kv_pairs }));
                out.structured.push(structured(name, body));
            }
            _ if matches!(name, "name" | "id" | "brief" | "description") || except.contains(&name) => {}
            AnnotationBody::Empty => out.annotations.push(format!("@{name}")),
            AnnotationBody::Unstructured(_, tokens) if tokens.is_empty() => out.annotations.push(format!("@{name}")),
            AnnotationBody::Unstructured(_, tokens) => {
                let text: Vec<_> = tokens.iter().map(|token| written(token, map)).collect();
                out.annotations.push(format!("@{name}({})", text.join(" ")));
            }
        }
    }
    let (brief, description) = (string(annotations, "brief"), string(annotations, "description"));
    if brief.is_some() || description.is_some() {
        let text = |text: Option<String>| text.unwrap_or_default();
        out.doc = Some(proto::Documentation { brief: text(brief), description: text(description) });
    }
    out
}

fn structured(name: &str, body: Option<Body>) -> proto::StructuredAnnotation {
    proto::StructuredAnnotation { name: name.to_owned(), body, source_location: None }
}

fn literal(value: &Value, annotation: &Annotation, diagnostics: &mut Diagnostics) -> Option<proto::Expression> {
    let value = match value {
        Value::String(text) => Literal::StringValue(text.to_string()),
        Value::Bool(truth) => Literal::BoolValue(*truth),
        other => match crate::eval::integer(other, false)?.to_i64() {
            Some(number) => Literal::Int64Value(number),
            None => {
                diagnostics.push(
                    Diagnostic::error("annotation", annotation.span, "this number does not fit in 64 bits")
                        .help("write larger values as a string"),
                );
                return None;
            }
        },
    };
    Some(proto::Expression { value: Some(value) })
}

/// Returns a token as written in the program. A token that the preprocessor created or changed is formatted from its
/// value.
fn written(token: &Token, map: &SourceMap) -> String {
    let text = map.text(token.span);
    let is_as_written = match &token.kind {
        TokenKind::Int(_) => text.starts_with(|c: char| c.is_ascii_digit()),
        TokenKind::String(content) => {
            let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            inner.is_some_and(|inner| unescape(inner) == **content)
        }
        _ => false,
    };
    if is_as_written { text.to_owned() } else { token.kind.to_string() }
}

/// Returns the `key = value` pairs of an annotation, structured or not. Each value is a string or a number.
pub(crate) fn pairs(annotation: &Annotation) -> Vec<(String, Value)> {
    match &annotation.body {
        AnnotationBody::KeyValues(pairs) => pairs.iter().map(|(key, value)| (key.to_string(), value.clone())).collect(),
        AnnotationBody::Unstructured(_, tokens) => {
            let mut out = Vec::new();
            for pair in tokens.split(|token| token.kind == TokenKind::Punct(",")) {
                let [Token { kind: TokenKind::Ident(key), .. }, equals, rest @ ..] = pair else { continue };
                if equals.kind != TokenKind::Punct("=") {
                    continue;
                }
                let value = match rest {
                    [Token { kind: TokenKind::Int(literal), .. }] => Value::Integer(literal.value.clone()),
                    _ => {
                        let text = rest.iter().filter_map(|token| match &token.kind {
                            TokenKind::String(text) => Some(&**text),
                            _ => None,
                        });
                        Value::String(text.collect::<String>().into())
                    }
                };
                out.push((key.to_string(), value));
            }
            out
        }
        _ => Vec::new(),
    }
}
