//! Extracts the message format from a checked program.

mod actions;
mod annotation;
mod clashes;
mod fields;
mod measures;
mod messages;
mod parts;
mod size;
mod spelling;
mod state;
mod taken_names;

use diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};
use p4::ast::StructKind;
use p4::typed::{Program, StructDecl, Type};

use crate::format::{FormatHeader, HeaderId, Path, ProgramFormat};
use crate::possible::{self, Possible};
use crate::widths;
use annotation::find;

/// Reads the annotations of `program`, whose main file is `main`. Returns `None` after an error.
///
/// Errors: no parser or several; a field that cannot be matched; one name for fields of several headers that disagree;
/// names in `@query_messages` that the headers do not have.
pub fn read(program: &Program, main: FileId, map: &SourceMap, diagnostics: &mut Diagnostics) -> Option<ProgramFormat> {
    let before = diagnostics.error_count();
    if let Some(main) = program.main {
        diagnostics.push(whole_program(program, program.instances[main].span));
        return None;
    }
    let (parts, headers_struct, span) = parts::read(program, main, map, diagnostics)?;
    spelling::check(program, headers_struct, diagnostics);
    let mut reader = FormatReader { program, diagnostics, headers: Vec::new(), fields: Vec::new() };
    let messages = reader.headers(headers_struct);
    reader.named_from_outside(headers_struct);
    let actions = actions::read(program, &parts, reader.diagnostics);
    let FormatReader { headers, mut fields, .. } = reader;
    if fields.is_empty() && diagnostics.error_count() == before {
        let stack = headers_struct.fields.iter().find(|field| matches!(field.ty, Type::Stack(..)));
        diagnostics.push(no_fields(stack.filter(|_| messages.is_none()).map(|stack| &*stack.name), span));
    }
    // Exact tables first: they split messages into many small sets at the lowest cost.
    fields.sort_by_key(|field| field.matched != crate::format::Match::Exact);
    let (counters, aggregates) = (Vec::new(), Vec::new());
    let possible = Possible::default();
    let mut format = ProgramFormat { parts, headers, fields, messages, actions, counters, aggregates, possible };
    state::read(&mut format, headers_struct, diagnostics);
    clashes::check(program, &format, map, diagnostics);
    format.possible = possible::read(program, &format);
    if format.messages.is_some() && possible::clones_before(program, &format) {
        diagnostics.push(clone_before(&format, span));
    }
    shared(&format, diagnostics);
    (diagnostics.error_count() == before).then_some(format)
}

/// Reports a program with `main`.
fn whole_program(program: &Program, span: Span) -> Diagnostic {
    let is_generated = program.controls.values().any(|control| *control.name == *"Subscriptions");
    let help = if is_generated {
        "`triplane subscribe` generated this program: give the format from which it was generated"
    } else {
        "a format has header types, a struct of headers, a struct of metadata and a parser: remove `main` and the \
         controls whose work the rules do"
    };
    Diagnostic::error("format-main", span, "this is a whole program, not a format").help(help)
}

/// Reports a format without fields that rules can test. `stack` is a header stack that may be meant to hold messages.
fn no_fields(stack: Option<&str>, span: Span) -> Diagnostic {
    let help = match stack {
        Some(stack) => format!(
            "rules do not test `{stack}`, a stack: write `@query_messages[count = \"HEADER.FIELD\"]` before it if its \
             elements are the messages of a packet",
        ),
        None => "write `@query_field`, `@query_field_exact` or `@query_field_lpm` before the fields that rules test"
            .to_owned(),
    };
    Diagnostic::error("no-query-fields", span, "no field of these headers can be subscribed to").help(help)
}

/// Warns about a control before the rules that clones: the clone replaces the one with the messages of the next pass.
fn clone_before(format: &ProgramFormat, span: Span) -> Diagnostic {
    let control = format.parts.before.as_deref().unwrap_or_default();
    let message = format!("`{control}` runs before the rules and clones packets");
    Diagnostic::warning("clone-before", span, message).help(
        "clone only packets without messages: a clone takes the place of the messages that wait for the next pass of \
         their packet; a rule `true : fwd(PORT)` delivers all messages",
    )
}

/// Warns about fields of headers that a packet can have both: a rule then tests one of the two values.
fn shared(format: &ProgramFormat, diagnostics: &mut Diagnostics) {
    let Some(packets) = &format.possible.packets else { return };
    for field in &format.fields {
        let is_packets = |header: &HeaderId| !format.headers[header.0].in_message;
        let sources: Vec<HeaderId> = field.sources.iter().map(|source| source.header).filter(is_packets).collect();
        let pairs =
            sources.iter().enumerate().flat_map(|(at, one)| sources[at + 1..].iter().map(move |other| (one, other)));
        let mut both = pairs.filter(|(one, other)| {
            packets.iter().any(|known| [one, other].iter().all(|header| known.valid.get(header) == Some(&true)))
        });
        let Some((one, other)) = both.next() else { continue };
        let [one, other] = [one, other].map(|header| &format.headers[header.0].name);
        let message = format!("`{}` is a field of `{one}` and of `{other}`, and a packet can have both", field.name);
        diagnostics.push(
            Diagnostic::warning("query-shared", field.span, message)
                .label(format!("rules then test the field of `{other}`"))
                .help("give the two fields different names, unless that is what rules should test"),
        );
    }
}

struct FormatReader<'a> {
    program: &'a Program,
    diagnostics: &'a mut Diagnostics,
    headers: Vec<FormatHeader>,
    fields: Vec<crate::format::FormatField>,
}

impl<'a> FormatReader<'a> {
    /// Reads the struct of headers. Returns the messages, if there is a message stack.
    fn headers(&mut self, all: &'a StructDecl) -> Option<crate::format::Messages> {
        let mut messages = None;
        for field in &all.fields {
            let annotation = find(&field.annotations, "query_messages");
            match (&field.ty, annotation) {
                (Type::Stack(element, most), Some(annotation)) => {
                    let found = self.messages(all, field, element, *most, annotation);
                    if messages.is_some() {
                        self.error("two-stacks", annotation.span, "only one stack can hold the messages");
                    }
                    messages = messages.or(found);
                }
                (_, Some(annotation)) => {
                    self.error("not-a-stack", annotation.span, "`@query_messages` must be on a header stack");
                }
                (Type::Struct(id), None) => {
                    let decl = &self.program.structs[*id];
                    match decl.kind {
                        StructKind::Header => {
                            self.header(field.name.to_string(), decl, false);
                        }
                        StructKind::Union => {
                            for member in &decl.fields {
                                if let Type::Struct(id) = &member.ty {
                                    let name = format!("{}.{}", field.name, member.name);
                                    self.header(name, &self.program.structs[*id], false);
                                }
                            }
                        }
                        StructKind::Struct => {}
                    }
                }
                _ => {}
            }
        }
        messages
    }

    /// Resolves the path of a field that every packet has once.
    fn path(&mut self, all: &StructDecl, text: &str, span: Span) -> Option<Path> {
        let found = text.trim().split_once('.').and_then(|(header, field)| {
            let decl = all.fields.iter().find(|candidate| *candidate.name == *header)?;
            let Type::Struct(id) = &decl.ty else { return None };
            let structure = &self.program.structs[*id];
            if structure.kind != StructKind::Header {
                return None;
            }
            let at = structure.fields.iter().position(|candidate| *candidate.name == *field)?;
            let (before, found) = (&structure.fields[..at], &structure.fields[at]);
            let Type::Bit(width) = found.ty else { return None };
            let offset = before.iter().map(|field| widths::fixed(self.program, &field.ty)).sum();
            Some(Path { header: header.to_owned(), field: field.to_owned(), width, offset })
        });
        if found.is_none() {
            let message = format!("`{}` is not a `bit<>` field of a header of `{}`", text.trim(), all.name);
            self.diagnostics.push(
                Diagnostic::error("no-such-field", span, message)
                    .help("write the header and the field: `\"mold.count\"`"),
            );
        }
        found
    }

    fn add_header(&mut self, name: String, in_message: bool) -> HeaderId {
        self.headers.push(FormatHeader { name, in_message, untested: Vec::new() });
        HeaderId(self.headers.len() - 1)
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(code, span, message));
    }
}
