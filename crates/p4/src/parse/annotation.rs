//! Parses annotations (specification section 20).

use super::{ParseResult, SourceParser};
use crate::ast::{Annotation, AnnotationBody, Annotations, Ident};
use crate::lex::TokenKind;

impl SourceParser<'_> {
    /// Parses zero or more annotations.
    pub(super) fn annotations(&mut self) -> ParseResult<Annotations> {
        let mut annotations = Vec::new();
        while self.is("@") {
            annotations.push(self.annotation()?);
        }
        Ok(annotations)
    }

    fn annotation(&mut self) -> ParseResult<Annotation> {
        let start = self.span();
        self.bump();
        let name_span = self.span();
        // Any word can name an annotation, keywords included.
        let TokenKind::Ident(name) = self.kind() else {
            return Err(self.unexpected("the name of an annotation", "after `@`"));
        };
        let name = Ident { name: name.clone(), span: name_span };
        self.bump();
        let body = if self.is("(") {
            self.annotation_tokens()?
        } else if self.is("[") {
            self.structured_body()?
        } else {
            AnnotationBody::Empty
        };
        Ok(Annotation { name, body, span: self.since(start) })
    }

    /// Parses `( any tokens, parentheses balanced )`.
    fn annotation_tokens(&mut self) -> ParseResult<AnnotationBody> {
        let open = self.span();
        self.bump();
        let start = self.at;
        let mut depth = 0usize;
        loop {
            match self.kind() {
                TokenKind::Punct("(") => depth += 1,
                TokenKind::Punct(")") if depth == 0 => break,
                TokenKind::Punct(")") => depth -= 1,
                // A string without a closing quote has swallowed the `)` and the rest of its line.
                TokenKind::String(_) if self.is_open_string() => {
                    self.bump();
                    return Ok(AnnotationBody::Unstructured(self.tokens[start..self.at].to_vec()));
                }
                TokenKind::End => {
                    // The tokens swallowed by the annotation are most likely the program.
                    self.at = start;
                    let message = "the `(` of this annotation is not closed";
                    return Err(self.mistaken("unexpected-token", open, message, "write `)` after its arguments"));
                }
                _ => {}
            }
            self.bump();
        }
        let tokens = self.tokens[start..self.at].to_vec();
        self.bump();
        Ok(AnnotationBody::Unstructured(tokens))
    }

    /// Parses `[ e1, e2 ]` or `[ k1 = e1, k2 = e2 ]`.
    fn structured_body(&mut self) -> ParseResult<AnnotationBody> {
        let open = self.span();
        self.bump();
        let context = "at the end of the annotation";
        if self.nth_word(0).is_some() && self.nth_is(1, "=") {
            let pairs = self.list(open, "]", context, |p| {
                let key = p.name("a key")?;
                p.expect("=", "after the key of an annotation")?;
                Ok((key, p.expr()?))
            })?;
            return Ok(AnnotationBody::KeyValues(pairs));
        }
        Ok(AnnotationBody::Expressions(self.list(open, "]", context, Self::expr)?))
    }
}
