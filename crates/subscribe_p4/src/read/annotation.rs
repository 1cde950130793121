//! Contents of annotations.

use p4::lex::TokenKind;
use p4::typed::{Annotation, AnnotationBody, Value};

/// Returns the annotation with this name.
pub(super) fn find<'a>(annotations: &'a [Annotation], name: &str) -> Option<&'a Annotation> {
    annotations.iter().find(|annotation| &*annotation.name == name)
}

/// Returns the contents of an annotation as words: dotted names, strings and numbers; `None` for any other contents.
pub(super) fn words(annotation: &Annotation) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    match &annotation.body {
        AnnotationBody::Empty => {}
        AnnotationBody::Unstructured(_, tokens) => {
            let mut joins = false;
            // `@pragma NAME(…)`: the parentheses are part of the text.
            let inner = match &tokens[..] {
                [open, inner @ .., close]
                    if (&open.kind, &close.kind) == (&TokenKind::Punct("("), &TokenKind::Punct(")")) =>
                {
                    inner
                }
                all => all,
            };
            for token in inner {
                match &token.kind {
                    TokenKind::Ident(name) if joins => {
                        let last = words.last_mut()?;
                        last.push('.');
                        last.push_str(name);
                        joins = false;
                    }
                    TokenKind::Ident(name) => words.push(name.to_string()),
                    TokenKind::String(text) => words.push(text.to_string()),
                    TokenKind::Int(literal) => words.push(literal.value.to_string()),
                    TokenKind::Punct(".") => joins = true,
                    TokenKind::Punct(",") => {}
                    _ => return None,
                }
            }
        }
        AnnotationBody::Expressions(values) => {
            for value in values {
                match value {
                    Value::String(text) => words.push(text.to_string()),
                    _ => return None,
                }
            }
        }
        AnnotationBody::KeyValues(_) => return None,
    }
    Some(words)
}

/// Returns the only word of an annotation.
pub(super) fn word(annotation: &Annotation) -> Option<String> {
    let words = words(annotation)?;
    let [word] = &words[..] else { return None };
    Some(word.clone())
}
