//! Widths and offsets of fields that the program computes with.

use diagnostics::{Diagnostic, Span};
use p4::ast::StructKind;
use p4::typed::{FieldDecl, StructDecl, Type};

use super::FormatReader;
use crate::format::{Messages, Path, Size};
use crate::widths;

impl FormatReader<'_> {
    /// Checks field widths against the generated arithmetic, which uses 16, 32 and 64 bits.
    pub(super) fn check_widths(&mut self, messages: &Messages, span: Span) {
        let mut check = |path: &Path, most: u32, what: &str| {
            if path.width > most {
                let message =
                    format!("`{}.{}` has {} bits, but {what} at most {most}", path.header, path.field, path.width);
                self.error("messages", span, message);
            }
        };
        check(&messages.count, 16, "a message count has");
        messages.sequence.iter().for_each(|path| check(path, 64, "a sequence number has"));
        messages.session.iter().for_each(|session| check(&session.field, 128, "a session identifier has"));
        messages.lengths.iter().for_each(|path| check(path, 32, "a length has"));
        self.covered(messages, span);
    }

    /// Checks that checksums can be updated incrementally: the 16-bit words of each covered field must be known.
    fn covered(&mut self, messages: &Messages, span: Span) {
        let Some(checksum) = &messages.checksum else { return };
        let what = match checksum {
            Path { width, .. } if *width != 16 => Some(format!("has {width} bits, but a checksum has 16")),
            Path { offset: Some(offset), .. } if offset % 16 == 0 => None,
            Path { offset: Some(offset), .. } => {
                Some(format!("is at bit offset {offset}, but a checksum must be at a multiple of 16 bits"))
            }
            Path { offset: None, .. } => Some("comes after a field of variable length".to_owned()),
        };
        let changed =
            [&messages.count].into_iter().chain(&messages.sequence).chain(&messages.lengths).chain(&messages.clear);
        let unknown = changed.filter(|path| messages.covers(path)).find(|path| path.offset.is_none());
        let wrong = match (what, unknown) {
            (Some(what), _) => Some((checksum, what)),
            (None, Some(path)) => Some((path, "comes after a field of variable length".to_owned())),
            (None, None) => None,
        };
        if let Some((path, what)) = wrong {
            let message = format!("`{}.{}` {what}: the checksum cannot be updated", path.header, path.field);
            self.diagnostics.push(Diagnostic::error("messages", span, message).help(
                "omit `checksum`, and compute it in a control with the parameters (inout headers, inout metadata)",
            ));
        }
    }

    /// Returns all headers outside the message stack with their sizes in bytes.
    pub(super) fn others(&mut self, all: &StructDecl, stack: &FieldDecl) -> Vec<(String, Size)> {
        let mut found = Vec::new();
        for field in all.fields.iter().filter(|field| field.name != stack.name) {
            self.headers_in(field.name.to_string(), &field.ty, &mut found);
        }
        found
    }

    fn headers_in(&mut self, at: String, ty: &Type, found: &mut Vec<(String, Size)>) {
        match ty {
            Type::Stack(element, count) => {
                (0..*count).for_each(|index| self.headers_in(format!("{at}[{index}]"), element, found));
            }
            Type::Struct(id) => {
                let decl = &self.program.structs[*id];
                if decl.kind == StructKind::Header {
                    let size = self.size(decl);
                    found.push((at, size));
                    return;
                }
                for member in &decl.fields {
                    self.headers_in(format!("{at}.{}", member.name), &member.ty, found);
                }
            }
            _ => {}
        }
    }

    /// Returns the number of bytes from the header of `length` to the stack, which must be equal in every packet.
    pub(super) fn before(&mut self, all: &StructDecl, stack: &FieldDecl, length: &Path, span: Span) -> Option<u32> {
        let from = all.fields.iter().position(|field| *field.name == *length.header)?;
        let to = all.fields.iter().position(|field| field.name == stack.name)?;
        let bits = all.fields.get(from..to).and_then(|between| {
            between.iter().map(|field| widths::fixed(self.program, &field.ty)).sum::<Option<u32>>()
        });
        let bytes = bits.filter(|bits| bits % 8 == 0).map(|bits| bits / 8);
        if bytes.is_none() {
            let message = format!(
                "the headers from `{}` to `{}` must come in that order and have fixed lengths",
                length.header, stack.name
            );
            self.error("messages", span, message);
        }
        bytes
    }
}
