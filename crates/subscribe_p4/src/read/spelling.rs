//! Checks the spelling and position of `query_…` annotations. A misspelt annotation would be ignored silently and
//! change the meaning of rules.

use diagnostics::{Diagnostic, Diagnostics, names};
use p4::ast::StructKind;
use p4::typed::{Annotation, Program, StructDecl};

use super::fields::QUERIES;

/// Annotations of header types.
const HEADER: &[&str] = &["query_size"];
/// Annotations of members of the struct of headers.
const MEMBER: &[&str] = &["query_messages"];
const ACTION: &[&str] = &["query_action"];
const CONTROL: &[&str] = &["query_egress", "query_fallback", "query_verify"];

/// Returns the annotations of header fields.
fn field() -> Vec<&'static str> {
    queries().chain(["query_codes"]).collect()
}

/// Returns the annotations of the struct of headers.
fn all_headers() -> Vec<&'static str> {
    ["query_aggregate", "query_counter"].into_iter().chain(queries()).collect()
}

fn queries() -> impl Iterator<Item = &'static str> {
    QUERIES.iter().map(|(name, _)| *name)
}

/// Reports `query_…` annotations that have no meaning in their position. `headers` is the struct of headers.
pub(super) fn check(program: &Program, headers: &StructDecl, diagnostics: &mut Diagnostics) {
    let mut of = |annotations: &[Annotation], known: &[&'static str], before: &str| {
        let unknown =
            |annotation: &&Annotation| annotation.name.starts_with("query_") && !known.contains(&&*annotation.name);
        for annotation in annotations.iter().filter(unknown) {
            diagnostics.push(refused(annotation, known, before));
        }
    };
    let (field, all_headers) = (field(), all_headers());
    for structure in program.structs.values() {
        let (before, known, members) = match structure.kind {
            StructKind::Header => ("a header type", HEADER, &field[..]),
            _ if structure.name == headers.name => ("the headers struct", &all_headers[..], MEMBER),
            _ => ("a struct", &[][..], &[][..]),
        };
        of(&structure.annotations, known, before);
        let before = if structure.kind == StructKind::Header { "a header's field" } else { "a member of a struct" };
        structure.fields.iter().for_each(|member| of(&member.annotations, members, before));
    }
    program.actions.values().for_each(|action| of(&action.annotations, ACTION, "an action"));
    program.controls.values().for_each(|control| of(&control.annotations, CONTROL, "a control"));
    program.parsers.values().for_each(|parser| of(&parser.annotations, &[], "a parser"));
}

fn refused(annotation: &Annotation, known: &[&'static str], before: &str) -> Diagnostic {
    let name = &annotation.name;
    let all = || {
        let others = [HEADER, MEMBER, ACTION, CONTROL].into_iter().flatten().copied();
        field().into_iter().chain(all_headers()).chain(others)
    };
    let exists = all().any(|other| other == &**name);
    let message =
        if exists { format!("`@{name}` cannot be on {before}") } else { format!("there is no annotation `@{name}`") };
    let written = |name: &&str| format!("@{name}");
    let known: Vec<String> = known.iter().map(written).collect();
    let near = names::nearest(name, all()).filter(|_| !exists);
    let help = match near {
        Some(near) => format!("did you mean `@{near}`?"),
        None if known.is_empty() => {
            "it can be on headers, their fields, the headers struct, actions and controls".to_owned()
        }
        None => format!("{before} can have {}", names::listed(known.iter().map(String::as_str))),
    };
    Diagnostic::error("query-annotation", annotation.span, message).help(help)
}
