//! Reports names of the format that clash with names in the generated program.

use diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};
use p4::typed::{Program, StructDecl};

use crate::format::{Parts, ProgramFormat};
use crate::write::{METADATA, TOP_LEVEL, is_declared_by_generator, occurs_in_generated_text};

/// Reports names that would be ambiguous in the generated program.
pub(super) fn check(checked_format: &Program, format: &ProgramFormat, map: &SourceMap, diagnostics: &mut Diagnostics) {
    let files = || (0..).map(FileId).take_while(|file| map.contains(*file)).map(|file| (file, map.file(file).text()));
    // The check covers all of the format's text, because a checked program does not list all declarations (types,
    // constants).
    for name in TOP_LEVEL {
        if let Some(span) = files().find_map(|(file, text)| find_word(text, name, file)) {
            diagnostics.push(reserved_name(span, name));
        }
    }
    let rules = crate::rule_format(format).ok();
    let is_reserved = |name: &str| is_declared_by_generator(name, format, rules.as_ref());
    for (name, span) in files().flat_map(|(file, text)| macro_definitions(text, file)) {
        if occurs_in_generated_text(name, format, rules.as_ref()) {
            let message = format!("the generated program uses the name `{name}`, which this macro would replace");
            diagnostics.push(Diagnostic::error("name", span, message).help("rename the macro"));
        }
    }
    for action in checked_format
        .actions
        .values()
        .filter(|action| format.actions.iter().any(|listed| *listed.name == *action.name))
    {
        if is_reserved(&action.name) {
            diagnostics.push(reserved_name(action.span, &action.name));
        }
    }
    let Parts { before, egress, fallback, .. } = &format.parts;
    for control in checked_format.controls.values() {
        let is_applied = [before, egress, fallback].into_iter().flatten().any(|part| **part == *control.name);
        if is_applied && is_reserved(&control.name) {
            diagnostics.push(reserved_name(control.span, &control.name));
        }
    }
    if let Some(member) = metadata(checked_format, format)
        .and_then(|metadata| metadata.fields.iter().find(|member| &*member.name == METADATA))
    {
        let message =
            format!("the generated program adds a member `{METADATA}` to the metadata struct, which already has one");
        diagnostics.push(Diagnostic::error("name", member.span, message).help("rename this member"));
    }
}

fn metadata<'a>(checked_format: &'a Program, format: &ProgramFormat) -> Option<&'a StructDecl> {
    checked_format.structs.values().find(|decl| *decl.name == *format.parts.metadata)
}

fn reserved_name(span: Span, name: &str) -> Diagnostic {
    let message = format!("`{name}` is a name that the generated program uses");
    Diagnostic::error("name", span, message).help("rename this declaration")
}

/// Returns the first occurrence of a word in a source file, outside comments and strings.
fn find_word(text: &str, wanted: &str, file: FileId) -> Option<Span> {
    words(text).find(|(_, word)| *word == wanted).map(|(at, word)| span_at(file, at, word))
}

/// Returns the names that `#define` defines.
fn macro_definitions(text: &str, file: FileId) -> impl Iterator<Item = (&str, Span)> {
    let mut at = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("define")?;
        let name = rest.trim_start();
        let end = name.find(|c: char| !is_word(c)).unwrap_or(name.len());
        let from = start + (line.len() - name.len());
        (end > 0 && name.len() < rest.len()).then(|| (&name[..end], span_at(file, from, &name[..end])))
    })
}

fn span_at(file: FileId, at: usize, word: &str) -> Span {
    Span::new(file, at as u32, (at + word.len()) as u32)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the names and numbers of a program with their offsets.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = &text[at..];
            let first = rest.chars().next()?;
            let until = |end: Option<usize>| end.unwrap_or(rest.len());
            let length = match first {
                _ if is_word(first) => {
                    let length = until(rest.find(|c: char| !is_word(c)));
                    at += length;
                    return Some((at - length, &rest[..length]));
                }
                '/' if rest.starts_with("//") => until(rest.find('\n')),
                '/' if rest.starts_with("/*") => until(rest[2..].find("*/").map(|end| end + 4)),
                '"' => until(rest[1..].find('"').map(|end| end + 2)),
                _ => first.len_utf8(),
            };
            at += length;
        }
    })
}
