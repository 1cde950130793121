//! Reads `@query_size`: the size of a header in bytes, as an expression over its fields.

use diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};
use p4::lex::TokenKind;
use p4::typed::{Annotation, AnnotationBody, StructDecl, Type};

use super::FormatReader;
use super::annotation::word;
use crate::format::{Piece, Size};

const HELP: &str = "use numbers and names of the header's own fields, combined with `+`, `-`, `*` and parentheses: `@query_size(\"2 + length\")`";

impl FormatReader<'_> {
    /// Parses `2 + length`: names, numbers, `+`, `-`, `*` and parentheses.
    pub(super) fn expression(&mut self, decl: &StructDecl, annotation: &Annotation) -> Size {
        let text = word(annotation).unwrap_or_default();
        let before = self.diagnostics.error_count();
        let mut pieces = Vec::new();
        let mut at = 0;
        for piece in words(&text) {
            let span = span_within(annotation, &text, at, at + piece.len());
            at += piece.len();
            let problem = if piece.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                pieces.push(Piece::Field(piece.to_owned()));
                let known = decl.fields.iter().any(|field| *field.name == *piece && matches!(field.ty, Type::Bit(_)));
                (!known).then(|| format!("`{piece}` is not a `bit<>` field of `{}`", decl.name))
            } else {
                pieces.push(Piece::Text(piece.to_owned()));
                let fits = piece.chars().all(|c| c.is_ascii_digit() || " +-*()".contains(c));
                (!fits).then(|| format!("`{}` is not allowed in a size expression", piece.trim()))
            };
            if let Some(message) = problem {
                self.diagnostics.push(Diagnostic::error("query-size", span, message).help(HELP));
            }
        }
        if text.trim().is_empty() {
            let message = "`@query_size` takes an expression in quotes";
            self.diagnostics.push(Diagnostic::error("query-size", annotation.span, message).help(HELP));
        } else if self.diagnostics.error_count() == before
            && let Some((message, from, to)) = first_error(&text, &pieces)
        {
            let span = span_within(annotation, &text, from, to);
            self.diagnostics.push(Diagnostic::error("query-size", span, format!("`{text}`: {message}")).help(HELP));
        }
        Size::Computed(pieces)
    }
}

/// Splits a string into words (names and numbers) and the characters between them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = rest.find(|c: char| is_word(c) != is_word(first)).unwrap_or(rest.len());
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        Some(piece)
    })
}

/// Returns the first P4 error in the expression and its byte range. The expression is compiled as in the generated
/// program, with fields as 32-bit numbers.
fn first_error(text: &str, pieces: &[Piece]) -> Option<(String, usize, usize)> {
    let mut fields: Vec<&str> = pieces
        .iter()
        .filter_map(|piece| match piece {
            Piece::Field(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
        .collect();
    fields.sort_unstable();
    fields.dedup();
    let params: Vec<String> = fields.iter().map(|name| format!("in bit<32> {name}")).collect();
    let head = format!("bit<32> size_of({}) {{ return ", params.join(", "));
    let (mut map, mut found) = (SourceMap::new(), Diagnostics::new());
    found.silence("unused");
    let program = format!("{head}{text}; }}");
    let ast = p4::parse(&mut map, "size", &program, &p4::PreprocessorOptions::default(), &p4::NoFiles, &mut found);
    if !found.has_errors() {
        p4::check(&ast, &map, &mut found);
    }
    let first = found.iter().next()?;
    let offset_in_text = |at: u32| (at as usize).saturating_sub(head.len()).min(text.len());
    let (from, to) = (offset_in_text(first.primary.span.start), offset_in_text(first.primary.span.end));
    // Messages about the surrounding program would confuse the user.
    let message = match &*first.message {
        _ if from == text.len() => "the expression is incomplete",
        message if message.contains("`return`") => "unexpected text after the expression",
        message => message,
    };
    Some((message.to_owned(), from, to))
}

/// Returns the span of a byte range of the annotation's string, or the whole annotation's span if the range cannot be
/// mapped.
fn span_within(annotation: &Annotation, text: &str, from: usize, to: usize) -> Span {
    let AnnotationBody::Unstructured(_, tokens) = &annotation.body else { return annotation.span };
    let [token] = &tokens[..] else { return annotation.span };
    // Offsets carry over only if the string has no escapes and does not come from a macro.
    let as_written =
        matches!(token.kind, TokenKind::String(_)) && (token.span.end - token.span.start) as usize == text.len() + 2;
    if !as_written {
        return annotation.span;
    }
    let start = token.span.start + 1;
    Span { start: start + from as u32, end: start + to.max(from + 1).min(text.len() + 1) as u32, ..token.span }
}
