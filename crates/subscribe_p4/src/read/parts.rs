//! Finds the pipeline parts that the program provides, identified by their parameters.

use diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};
use p4::ast::StructKind;
use p4::typed::{Annotation, Control, Param, Program, StructDecl, Type};

use super::annotation::find;
use crate::format::Parts;

/// Returns the parts, the struct of headers, and the location of the parser's name.
pub(super) fn read<'a>(
    program: &'a Program,
    main: FileId,
    map: &SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<(Parts, &'a StructDecl, Span)> {
    let structure = |param: &Param| match &program.vars[param.var].ty {
        Type::Struct(id) => Some(&program.structs[*id]),
        _ => None,
    };
    let parsers: Vec<_> = program
        .parsers
        .values()
        .filter_map(|parser| {
            let [packet, headers, metadata, standard] = &parser.params[..] else { return None };
            let packet = matches!(program.vars[packet.var].ty, Type::Extern(_));
            let standard = structure(standard).is_some_and(is_standard);
            Some((parser, structure(headers)?, structure(metadata)?)).filter(|_| packet && standard)
        })
        .collect();
    let [(parser, headers, metadata)] = parsers[..] else {
        let message = match parsers.len() {
            0 => "there is no parser for messages",
            _ => "there are several parsers: which one is for messages?",
        };
        let span = parsers.get(1).map_or(Span { file: main, ..Span::default() }, |(parser, ..)| parser.span);
        diagnostics.push(Diagnostic::error("parser", span, message).help(
            "write one parser with the parameters (packet_in, out headers, inout metadata, inout standard_metadata_t)",
        ));
        return None;
    };
    let Some(metadata_at) = open_brace(metadata, main, map) else {
        diagnostics.push(
            Diagnostic::error("metadata", metadata.span, "the metadata struct must be in the main file, with its `{`")
                .help("the generated program adds a field to it"),
        );
        return None;
    };
    let same = |param: &Param, wanted: &StructDecl| structure(param).is_some_and(|found| found.name == wanted.name);
    let mut parts = Parts {
        headers: headers.name.to_string(),
        metadata: metadata.name.to_string(),
        metadata_at,
        parser: parser.name.to_string(),
        verify: None,
        before: None,
        fallback: None,
        egress: None,
        compute: None,
        deparser: None,
        ethernet: ethernet(program, headers),
    };
    for control in program.controls.values() {
        if let Some(wrong) = misplaced_mark(program, control, headers, metadata) {
            diagnostics.push(wrong);
            continue;
        }
        let role =
            match &control.params[..] {
                [first, second] if same(first, headers) && same(second, metadata) => {
                    if marked(control, "query_verify") { &mut parts.verify } else { &mut parts.compute }
                }
                [first, second, third] if same(first, headers) && same(second, metadata) => {
                    if !structure(third).is_some_and(is_standard) {
                        continue;
                    }
                    if marked(control, "query_egress") {
                        &mut parts.egress
                    } else if marked(control, "query_fallback") {
                        &mut parts.fallback
                    } else {
                        &mut parts.before
                    }
                }
                [packet, second] if matches!(program.vars[packet.var].ty, Type::Extern(_)) && same(second, headers) => {
                    &mut parts.deparser
                }
                _ => continue,
            };
        if let Some(other) = role {
            let message = format!("`{}` has the same parameters as `{other}`: which one is meant?", control.name);
            diagnostics.push(Diagnostic::error("two-parts", control.span, message).help(
                "mark one of them: `@query_verify` checks checksums, `@query_egress` is applied in egress, \
                 `@query_fallback` to packets that no rule delivers; without a mark a control computes checksums, or \
                 is applied before the rules",
            ));
            continue;
        }
        *role = Some(control.name.to_string());
    }
    Some((parts, headers, parser.span))
}

/// Reports a mark on a control that does not have the parameters of its role: the control would not be applied.
fn misplaced_mark(
    program: &Program,
    control: &Control,
    headers: &StructDecl,
    metadata: &StructDecl,
) -> Option<Diagnostic> {
    let has_standard = |name: &str| name != "query_verify";
    let mark = ["query_egress", "query_fallback", "query_verify"].into_iter().find(|name| marked(control, name))?;
    let is = |param: &Param, wanted: &str| match &program.vars[param.var].ty {
        Type::Struct(id) => *program.structs[*id].name == *wanted,
        _ => false,
    };
    let mut wanted = vec![&*headers.name, &*metadata.name];
    wanted.extend(has_standard(mark).then_some("standard_metadata_t"));
    let fits = control.params.len() == wanted.len()
        && control.params.iter().zip(&wanted).all(|(param, wanted)| is(param, wanted));
    let params: Vec<String> = wanted.iter().map(|name| format!("inout {name}")).collect();
    let message = format!("`{}` does not have the parameters of a control marked `@{mark}`", control.name);
    let help = format!("its parameters are ({})", params.join(", "));
    (!fits).then(|| Diagnostic::error("control-parameters", control.span, message).help(help))
}

/// Returns the name and the destination field of the first header, if it begins like Ethernet's.
fn ethernet(program: &Program, headers: &StructDecl) -> Option<(String, String)> {
    let first = headers.fields.first()?;
    let Type::Struct(id) = &first.ty else { return None };
    let decl = &program.structs[*id];
    match &decl.fields[..] {
        [to, from, ..] if decl.kind == StructKind::Header && [to, from].iter().all(|one| one.ty == Type::Bit(48)) => {
            Some((first.name.to_string(), to.name.to_string()))
        }
        _ => None,
    }
}

fn marked(control: &Control, name: &str) -> bool {
    let annotations: &[Annotation] = &control.annotations;
    find(annotations, name).is_some()
}

fn is_standard(decl: &StructDecl) -> bool {
    &*decl.name == "standard_metadata_t"
}

/// Returns the offset after the `{` of a struct in the main file.
fn open_brace(decl: &StructDecl, main: FileId, map: &SourceMap) -> Option<usize> {
    if decl.span.file != main {
        return None;
    }
    let mut at = decl.span.end as usize;
    let text = map.file(main).text();
    loop {
        let rest = text.get(at..)?;
        at += match rest.chars().next()? {
            '{' => return Some(at + 1),
            // The brace comes from a macro.
            '}' | ';' => return None,
            '/' if rest.starts_with("/*") => rest[2..].find("*/")? + 4,
            '/' if rest.starts_with("//") => rest.find('\n')?,
            other => other.len_utf8(),
        };
    }
}
