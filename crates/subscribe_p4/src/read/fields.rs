//! Fields that rules can test.

use diagnostics::{Diagnostic, Span};
use p4::typed::{Annotation, Annotations, FieldDecl, StructDecl, Type};

use super::FormatReader;
use super::annotation::{find, word, words};
use crate::format::{FieldSource, FormatField, HeaderId, Match, Notation};

/// The annotations with the match kinds that they select.
pub(super) const QUERIES: [(&str, Match); 4] = [
    ("query_field", Match::Range),
    ("query_field_exact", Match::Exact),
    ("query_field_lpm", Match::Lpm),
    ("query_field_range", Match::Range),
];

/// Maximum width of codes in bits: a code table holds at most about 2^20 entries.
const MAX_CODE_BITS: u32 = 20;

impl<'a> FormatReader<'a> {
    /// Adds a header and the fields that its type's annotations declare.
    pub(super) fn header(&mut self, name: String, decl: &'a StructDecl, in_message: bool) -> HeaderId {
        let id = self.add_header(name.clone(), in_message);
        for field in &decl.fields {
            let queries: Vec<_> = queries(&field.annotations).collect();
            if let [_, (second, _), ..] = queries[..] {
                self.error("two-queries", second.span, format!("`{}` has more than one match annotation", field.name));
            }
            let Some((annotation, matched)) = queries.first() else {
                self.headers[id.0].untested.push(field.name.to_string());
                if let Some(annotation) = find(&field.annotations, "query_codes") {
                    self.error("query-codes", annotation.span, "`@query_codes` needs `@query_field` on the same field");
                }
                continue;
            };
            let shared = match words(annotation).as_deref() {
                Some([]) => format!("{name}.{}", field.name),
                Some([shared]) => shared.clone(),
                _ => {
                    let message = format!("`@{}` takes no argument, or the field's name in rules", annotation.name);
                    self.error("query-argument", annotation.span, message);
                    continue;
                }
            };
            let Some(width) = self.width(&field.ty, annotation.span) else { continue };
            let notation = self.notation(&field.annotations, width);
            let codes = self.codes(&field.annotations, *matched, width);
            let source = source(id, field);
            self.offer(FormatField {
                name: shared,
                width,
                matched: *matched,
                notation,
                codes,
                sources: vec![source],
                span: annotation.span,
            });
        }
        id
    }

    /// Adds the fields that annotations of the struct of headers declare by path: `@query_field(add_order.price)`.
    pub(super) fn named_from_outside(&mut self, all: &'a StructDecl) {
        for (annotation, matched) in queries(&all.annotations) {
            let Some(path) = word(annotation) else {
                let message = format!("`@{}` before the headers struct takes the path of one field", annotation.name);
                let error = Diagnostic::error("query-argument", annotation.span, message);
                self.diagnostics.push(error.help(format!("write `@{}(add_order.price)`", annotation.name)));
                continue;
            };
            let found = path.rsplit_once('.').and_then(|(header, field)| {
                let id = self.headers.iter().position(|candidate| candidate.name == header)?;
                let decl = self.declaration(all, header)?;
                let field = decl.fields.iter().find(|candidate| *candidate.name == *field)?;
                Some((HeaderId(id), field))
            });
            let Some((id, field)) = found else {
                let names = diagnostics::names::listed(self.headers.iter().map(|header| &*header.name));
                self.diagnostics.push(
                    Diagnostic::error("no-such-field", annotation.span, format!("`{path}` is not a field of a header"))
                        .help(format!("name a header and its field, `add_order.price`; the headers are {names}")),
                );
                continue;
            };
            let Some(width) = self.width(&field.ty, annotation.span) else { continue };
            let notation = self.notation(&field.annotations, width);
            let sources = vec![source(id, field)];
            self.offer(FormatField {
                name: path,
                width,
                matched,
                notation,
                codes: None,
                sources,
                span: annotation.span,
            });
        }
    }

    /// Returns the declaration of a header by its name in rules.
    fn declaration(&self, all: &'a StructDecl, name: &str) -> Option<&'a StructDecl> {
        let (first, second) = name.split_once('.').map_or((name, None), |(first, second)| (first, Some(second)));
        let direct = all.fields.iter().find(|field| *field.name == *first).map(|field| &field.ty);
        let decl = |ty: &Type| match ty {
            Type::Struct(id) => Some(&self.program.structs[*id]),
            _ => None,
        };
        let member = |decl: &'a StructDecl, name: &str| decl.fields.iter().find(|field| *field.name == *name);
        match (direct, second) {
            (Some(ty), None) => decl(ty),
            (Some(ty), Some(second)) => decl(&member(decl(ty)?, second)?.ty),
            // A message kind: a member of the stack's union.
            (None, _) => all.fields.iter().find_map(|field| match &field.ty {
                Type::Stack(element, _) => decl(&member(decl(element)?, first)?.ty),
                _ => None,
            }),
        }
    }

    /// Adds a field, or adds a source to the field with the same name.
    fn offer(&mut self, field: FormatField) {
        let Some(known) = self.fields.iter_mut().find(|known| known.name == field.name) else {
            self.fields.push(field);
            return;
        };
        let key = |field: &FormatField| (field.width, field.matched, field.notation, field.codes);
        let same = key(known) == key(&field);
        let message = if !same {
            format!("`{}` has {} bits and is matched differently elsewhere", field.name, field.width)
        } else if known.sources.iter().any(|source| source.header == field.sources[0].header) {
            format!("two fields of one header have the name `{}`", field.name)
        } else {
            known.sources.extend(field.sources);
            return;
        };
        let diagnostic = Diagnostic::error("query-clash", field.span, message).also(known.span, "here");
        self.diagnostics.push(diagnostic);
    }

    fn width(&mut self, ty: &Type, span: Span) -> Option<u32> {
        let bits = match ty {
            Type::Bit(width) => Some(*width),
            Type::New(id) => match self.program.new_types[*id].underlying {
                Type::Bit(width) => Some(width),
                _ => None,
            },
            Type::Enum(id) => match self.program.enums[*id].underlying {
                Some(Type::Bit(width)) => Some(width),
                _ => None,
            },
            _ => None,
        };
        let width = bits.filter(|width| (1..=128).contains(width));
        if width.is_none() {
            self.error("query-type", span, "rules can test unsigned fields of 1 to 128 bits");
        }
        width
    }

    /// Returns the width in bits of a field's codes, if it has codes.
    fn codes(&mut self, annotations: &Annotations, matched: Match, width: u32) -> Option<u32> {
        let annotation = find(annotations, "query_codes")?;
        let bits = word(annotation).and_then(|word| word.parse().ok()).filter(|bits| *bits < width);
        let bits = bits.filter(|bits| (1..=MAX_CODE_BITS).contains(bits));
        let message = match bits {
            Some(_) if matched != Match::Exact => return bits,
            Some(_) => "codes are for fields that are tested for ranges or prefixes, not for single values".to_owned(),
            None if width == 1 => "codes have no use for a one-bit field".to_owned(),
            None => {
                let most = MAX_CODE_BITS.min(width.saturating_sub(1));
                format!("`@query_codes` takes the width of the codes, 1 to {most} bits for a field of {width}")
            }
        };
        self.error("query-codes", annotation.span, message);
        None
    }

    fn notation(&mut self, annotations: &Annotations, width: u32) -> Notation {
        let Some(annotation) = find(annotations, "format") else { return Notation::Number };
        let (notation, fits) = match word(annotation).as_deref() {
            Some("TEXT") => (Notation::Text, width.is_multiple_of(8)),
            Some("IPV4_ADDRESS") => (Notation::Ipv4, width == 32),
            Some("IPV6_ADDRESS") => (Notation::Ipv6, width == 128),
            Some("MAC_ADDRESS") => (Notation::Mac, width == 48),
            _ => {
                let message = "`@format` takes TEXT, IPV4_ADDRESS, IPV6_ADDRESS or MAC_ADDRESS";
                self.error("format", annotation.span, message);
                return Notation::Number;
            }
        };
        if !fits {
            self.error("format", annotation.span, format!("{width} bits cannot be written in this format"));
        }
        notation
    }
}

fn source(header: HeaderId, field: &FieldDecl) -> FieldSource {
    FieldSource { header, member: field.name.to_string(), is_new_type: matches!(field.ty, Type::New(_)) }
}

fn queries(annotations: &[Annotation]) -> impl Iterator<Item = (&Annotation, Match)> {
    annotations.iter().filter_map(|annotation| {
        let (_, matched) = QUERIES.iter().find(|(name, _)| *name == &*annotation.name)?;
        Some((annotation, *matched))
    })
}
