//! Reads `@query_messages`, which describes the header stack that holds a packet's messages.

use std::ops::RangeInclusive;

use diagnostics::Diagnostic;
use p4::ast::StructKind;
use p4::typed::{Annotation, AnnotationBody, FieldDecl, StructDecl, Type, Value};

use super::FormatReader;
use super::annotation::find;
use crate::format::{MessageKind, Messages, Path, Session, Size};
use crate::widths;

/// The keys of `@query_messages`.
const KEYS: [&str; 6] = ["count", "sequence", "session", "lengths", "clear", "checksum"];
/// Keys that take several fields.
const LISTS: [&str; 2] = ["lengths", "clear"];
/// The key of the maximum number of concurrent streams.
const STREAMS: &str = "streams";
/// The key of the number of messages among which duplicates are found.
const ARBITRATE: &str = "arbitrate";
/// Default number of streams.
const DEFAULT_STREAMS: u32 = 64;
/// Maximum number of streams: each takes several registers of 512 cells, one cell per port.
const MAX_STREAMS: u32 = 4096;
/// Minimum and maximum number of messages among which duplicates are found: a bit for each and stream.
const ARBITRATED: RangeInclusive<u32> = 128..=1 << 20;
/// Maximum number of bits for duplicates in all streams.
const MAX_ARBITRATED: u64 = 1 << 28;
/// Maximum number of messages of a pass, if duplicates are found.
const MAX_PER_PASS: u32 = 64;

impl<'a> FormatReader<'a> {
    /// Reads `@query_messages[count = "…", …]` of a stack.
    pub(super) fn messages(
        &mut self,
        headers: &'a StructDecl,
        stack: &'a FieldDecl,
        element: &'a Type,
        max: u32,
        annotation: &'a Annotation,
    ) -> Option<Messages> {
        let kinds = self.kinds(stack, element);
        let AnnotationBody::KeyValues(pairs) = &annotation.body else {
            self.diagnostics.push(
                Diagnostic::error(
                    "messages",
                    annotation.span,
                    "`@query_messages` must name the field that holds the number of messages",
                )
                .help("write `@query_messages[count = \"mold.count\", lengths = \"udp.length\"]`"),
            );
            return None;
        };
        let mut paths: [Vec<Path>; KEYS.len()] = Default::default();
        let (mut streams, mut arbitrate) = (None, None);
        for (key, value) in pairs {
            let number = match &**key {
                STREAMS => Some((&mut streams, 1..=MAX_STREAMS)),
                ARBITRATE => Some((&mut arbitrate, ARBITRATED)),
                _ => None,
            };
            if let Some((number, range)) = number {
                *number = power_of_two(value, &range);
                if number.is_none() {
                    let message = format!("`{key}` must be a power of two from {} to {}", range.start(), range.end());
                    self.error("messages", annotation.span, message);
                }
                continue;
            }
            let (Some(at), Value::String(text)) = (KEYS.iter().position(|known| **known == **key), value) else {
                if !KEYS.contains(&&**key) {
                    let all = KEYS.into_iter().chain([STREAMS, ARBITRATE]);
                    let error = Diagnostic::error("messages", annotation.span, format!("there is no key `{key}`"));
                    self.diagnostics.push(match diagnostics::names::nearest(key, all.clone()) {
                        Some(near) => error.help(format!("did you mean `{near}`?")),
                        None => error.help(format!("the keys are {}", diagnostics::names::listed(all))),
                    });
                    continue;
                }
                let keys = diagnostics::names::listed(KEYS.into_iter());
                let message = format!(
                    "`@query_messages` takes strings for {keys}, and numbers for `{STREAMS}` and `{ARBITRATE}`"
                );
                self.error("messages", annotation.span, message);
                continue;
            };
            for part in text.split(',') {
                paths[at].extend(self.path(headers, part, annotation.span));
            }
        }
        for (key, found) in KEYS.iter().zip(&paths).filter(|(key, _)| !LISTS.contains(key)) {
            if found.len() > 1 {
                self.error("messages", annotation.span, format!("`{key}` must name one field, not {}", found.len()));
            }
        }
        let [count, sequence, session, lengths, clear, checksum] = paths;
        let Some(count) = count.into_iter().next() else {
            // A wrong path has been reported.
            if !pairs.iter().any(|(key, _)| **key == *KEYS[0]) {
                let message = "`count` is missing: the field that holds the number of messages";
                self.error("messages", annotation.span, message);
            }
            return None;
        };
        for (key, other, is_alone) in [
            ("session", "sequence", !session.is_empty() && sequence.is_empty()),
            (STREAMS, "session", streams.is_some() && session.is_empty()),
            (ARBITRATE, "session", arbitrate.is_some() && session.is_empty()),
        ] {
            if is_alone {
                let message = format!("`{key}` needs `{other} = …`");
                self.error("messages", annotation.span, message);
            }
        }
        let bits = u64::from(arbitrate.unwrap_or(0)) * u64::from(streams.unwrap_or(DEFAULT_STREAMS));
        if bits > MAX_ARBITRATED {
            let message = format!("`{ARBITRATE}` times `{STREAMS}` is more than {MAX_ARBITRATED}");
            self.error("messages", annotation.span, message);
        }
        if arbitrate.is_some() && sequence.first().is_some_and(|path| path.width < 64) {
            let message = format!("with `{ARBITRATE}`, `sequence` must have 64 bits: numbers must not begin again");
            self.error("messages", annotation.span, message);
        }
        if arbitrate.is_some() && max > MAX_PER_PASS {
            let message = format!("with `{ARBITRATE}`, the stack can have at most {MAX_PER_PASS} elements");
            self.error("messages", annotation.span, message);
        }
        let session = session.into_iter().next();
        let messages = Messages {
            stack: stack.name.to_string(),
            max_messages: max,
            kinds,
            count,
            sequence: sequence.into_iter().next(),
            session: session.map(|field| Session { field, streams: streams.unwrap_or(DEFAULT_STREAMS), arbitrate }),
            lengths,
            before: 0,
            clear,
            checksum: checksum.into_iter().next(),
            others: self.others(headers, stack),
        };
        self.check_widths(&messages, annotation.span);
        let before = match messages.innermost_length() {
            Some(length) => self.before(headers, stack, length, annotation.span)?,
            None => 0,
        };
        Some(Messages { before, ..messages })
    }

    fn kinds(&mut self, stack: &'a FieldDecl, element: &'a Type) -> Vec<MessageKind> {
        let Type::Struct(id) = element else { return Vec::new() };
        let decl = &self.program.structs[*id];
        if decl.kind != StructKind::Union {
            let header = self.header(stack.name.to_string(), decl, true);
            return vec![MessageKind { header, member: None, size: self.size(decl) }];
        }
        let mut kinds = Vec::new();
        for member in &decl.fields {
            if let Type::Struct(id) = &member.ty {
                let decl = &self.program.structs[*id];
                let header = self.header(member.name.to_string(), decl, true);
                kinds.push(MessageKind { header, member: Some(member.name.to_string()), size: self.size(decl) });
            }
        }
        kinds
    }

    /// Returns the size of a header: the sum of its fields, or `@query_size`.
    pub(super) fn size(&mut self, decl: &StructDecl) -> Size {
        if let Some(annotation) = find(&decl.annotations, "query_size") {
            return self.expression(decl, annotation);
        }
        match widths::of_fields(self.program, decl) {
            Some(bits) if bits % 8 == 0 => Size::Fixed(bits / 8),
            Some(_) => {
                self.error(
                    "query-size",
                    decl.span,
                    format!("the size of `{}` is not a whole number of bytes", decl.name),
                );
                Size::Fixed(0)
            }
            None => {
                let message = format!("`{}` has a field of varying length, and nothing says how long it is", decl.name);
                self.diagnostics.push(
                    Diagnostic::error("query-size", decl.span, message)
                        .help("give the header's size in bytes in terms of its fields: `@query_size(\"2 + length\")`"),
                );
                Size::Fixed(0)
            }
        }
    }
}

/// Parses a power of two in a range.
fn power_of_two(value: &Value, range: &RangeInclusive<u32>) -> Option<u32> {
    let Value::Integer(number) = value else { return None };
    let number: u32 = number.to_string().parse().ok()?;
    (number.is_power_of_two() && range.contains(&number)).then_some(number)
}
