//! Parses entries files, and detects those that were compiled from rules for a different program.

use std::fs::File;

use anyhow::Context;
use diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};
use entries_file::{Entries, StreamCheck};
use ir::Program;
use subscribe_p4::ProgramMismatch;
use switch::SwitchControl;

use crate::output::Failure;

/// Parses like [`entries_file::parse`]. If the entries were compiled from rules for another program, reports one
/// finding that says so, instead of one finding for each table.
pub fn parse(map: &SourceMap, file: FileId, program: &Program, diagnostics: &mut Diagnostics) -> Option<Entries> {
    let before = diagnostics.clone();
    let parsed = entries_file::parse(map, file, program, v1model::max_port(program).into(), diagnostics);
    name_cause(map, file, program, before, diagnostics);
    parsed
}

/// Checks a file like [`parse`], as a stream, and applies it to a switch if there is no error. `file` has no text yet;
/// it gets `text()` if there is anything to report. Returns false, without findings, if the file must be parsed.
///
/// # Errors
/// If the file or `text()` cannot be read.
pub fn apply_stream(
    map: &mut SourceMap,
    file: FileId,
    input: File,
    text: impl Fn() -> Result<String, Failure>,
    switch: &mut dyn SwitchControl,
    diagnostics: &mut Diagnostics,
) -> Result<bool, Failure> {
    let before = diagnostics.clone();
    let program = switch.program().clone();
    let checked =
        entries_file::check_stream(Box::new(input), file, &program, v1model::max_port(&program).into(), diagnostics)
            .with_context(|| format!("cannot read {}", map.file(file).name()))?;
    match checked {
        StreamCheck::Unusual => return Ok(false),
        StreamCheck::Mistakes => {}
        StreamCheck::Entries(stream) => stream.apply(switch, diagnostics),
    }
    if !diagnostics.is_empty() {
        map.set_text(file, text()?);
        name_cause(map, file, &program, before, diagnostics);
    }
    Ok(true)
}

/// Replaces the findings since `before` by their common cause, if the entries are for another program.
fn name_cause(map: &SourceMap, file: FileId, program: &Program, before: Diagnostics, diagnostics: &mut Diagnostics) {
    let cause = diagnostics.iter().find_map(|finding| of_another_program(finding, map, file, program));
    if let Some(cause) = cause {
        *diagnostics = before;
        diagnostics.push(cause);
    }
}

/// Returns the options with which program and entries fit.
fn remedy(misfit: ProgramMismatch<'_>) -> &'static str {
    match misfit {
        ProgramMismatch::OtherOrder(_) => "generate both with the same `--order` from one version of the format",
        ProgramMismatch::OtherTables(_) => {
            "generate both with the same `--ranges` and `--exact-tables` from one version of the format"
        }
        ProgramMismatch::OtherFormat => {
            "generate both from one version of the format, with the same `--order`, `--ranges` and `--exact-tables`"
        }
        ProgramMismatch::OtherKind => "run the program that was generated from the rules' format",
    }
}

fn of_another_program(finding: &Diagnostic, map: &SourceMap, file: FileId, program: &Program) -> Option<Diagnostic> {
    let span = finding.primary.span;
    if span.file != file {
        return None;
    }
    if matches!(finding.code, "missing-parameter" | "unknown-parameter" | "unknown-action") {
        return of_other_bitmaps(span, map.file(file).text(), program);
    }
    if finding.code != "unknown-table" {
        return None;
    }
    let wanted = map.text(span).trim_matches('"');
    let tables = program.tables.values().map(|table| table.name.as_str());
    let misfit = subscribe_p4::mismatch(wanted, tables)?;
    let help = format!(
        "{}: `triplane subscribe compile FORMAT RULES -o ENTRIES --program PROGRAM` writes both",
        remedy(misfit)
    );
    let message = format!("entries and program {}", misfit.describe(wanted));
    Some(Diagnostic::error("other-program", span, message).help(help))
}

/// Returns a finding if entries and program deliver by bitmaps of different widths, or one of them by groups.
fn of_other_bitmaps(span: Span, entries: &str, program: &Program) -> Option<Diagnostic> {
    let params = program.actions.values().flat_map(|action| &action.params).map(|param| param.name.as_str());
    let [of_entries, of_program] =
        [subscribe_p4::bitmap_of(entries.split('"')), subscribe_p4::bitmap_of(params)].map(deliveries);
    let is_of_rules = program.tables.values().any(|table| table.name.starts_with("Subscriptions."));
    (is_of_rules && of_entries != of_program).then(|| {
        let message = format!("the entries deliver by {of_entries}, and the program by {of_program}");
        Diagnostic::error("other-program", span, message).help(
            "generate both with the same `--bitmaps` or `--groups`: `triplane subscribe compile FORMAT RULES -o ENTRIES \
             --program PROGRAM` writes both, and `--order-of PROGRAM` makes entries for this program",
        )
    })
}

/// Describes how a program delivers, by the width of its bitmaps.
fn deliveries(bitmap: Option<u32>) -> String {
    bitmap.map_or("multicast groups".to_owned(), |bits| format!("bitmaps of {bits} ports"))
}
