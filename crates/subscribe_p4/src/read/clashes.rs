//! Clashes between names of the format and names in the generated program.

use diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};
use p4::typed::{Program, StructDecl};

use crate::format::{Parts, ProgramFormat};
use crate::write::{METADATA, TOP_LEVEL, is_declared, is_written};

/// Reports names that would be ambiguous in the program.
pub(super) fn check(program: &Program, format: &ProgramFormat, map: &SourceMap, diagnostics: &mut Diagnostics) {
    let files = || (0..).map(FileId).take_while(|file| map.contains(*file)).map(|file| (file, map.file(file).text()));
    // The check covers all of the format's text, because a checked program does not list all declarations (types,
    // constants).
    for name in TOP_LEVEL {
        if let Some(span) = files().find_map(|(file, text)| word(text, name, file)) {
            diagnostics.push(taken(span, name));
        }
    }
    let rules = crate::rule_format(format).ok();
    let is_taken = |name: &str| is_declared(name, format, rules.as_ref());
    for (name, span) in files().flat_map(|(file, text)| macros(text, file)) {
        if is_written(name, format, rules.as_ref()) {
            let message = format!("the program has the name `{name}`, and this macro would change it");
            diagnostics.push(Diagnostic::error("name", span, message).help("give the macro another name"));
        }
    }
    for action in program.actions.values().filter(|action| format.actions.iter().any(|own| *own.name == *action.name)) {
        if is_taken(&action.name) {
            diagnostics.push(taken(action.span, &action.name));
        }
    }
    let Parts { before, egress, .. } = &format.parts;
    for control in program.controls.values() {
        let is_applied = [before, egress].into_iter().flatten().any(|own| **own == *control.name);
        if is_applied && is_taken(&control.name) {
            diagnostics.push(taken(control.span, &control.name));
        }
    }
    if let Some(member) =
        metadata(program, format).and_then(|metadata| metadata.fields.iter().find(|member| &*member.name == METADATA))
    {
        let message = format!("the program adds `{METADATA}` to the metadata, and there is one");
        diagnostics.push(Diagnostic::error("name", member.span, message).help("give this member another name"));
    }
}

fn metadata<'a>(program: &'a Program, format: &ProgramFormat) -> Option<&'a StructDecl> {
    program.structs.values().find(|decl| *decl.name == *format.parts.metadata)
}

fn taken(span: Span, name: &str) -> Diagnostic {
    let message = format!("`{name}` is a name that the generated program uses");
    Diagnostic::error("name", span, message).help("give this another name")
}

/// Returns the first occurrence of a word in a text, outside comments and strings.
fn word(text: &str, wanted: &str, file: FileId) -> Option<Span> {
    words(text).find(|(_, word)| *word == wanted).map(|(at, word)| place(file, at, word))
}

/// Returns the names that `#define` defines.
fn macros(text: &str, file: FileId) -> impl Iterator<Item = (&str, Span)> {
    let mut at = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        let behind = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("define")?;
        let name = behind.trim_start();
        let end = name.find(|c: char| !is_word(c)).unwrap_or(name.len());
        let from = start + (line.len() - name.len());
        (end > 0 && name.len() < behind.len()).then(|| (&name[..end], place(file, from, &name[..end])))
    })
}

fn place(file: FileId, at: usize, word: &str) -> Span {
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
