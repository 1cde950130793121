//! Entries files, and those among them that were compiled from rules for another program than the one they are given to.

use diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap};
use entries_file::Entries;
use ir::Program;

/// As [`entries_file::parse`]. Entries of rules that belong to another program are one finding that says so, and no finding for each
/// table that follows from that.
pub fn parse(map: &SourceMap, file: FileId, program: &Program, diagnostics: &mut Diagnostics) -> Option<Entries> {
    let before = diagnostics.clone();
    let parsed = entries_file::parse(map, file, program, diagnostics);
    let cause = diagnostics.iter().find_map(|finding| of_another_program(finding, map, file, program));
    if let Some(cause) = cause {
        *diagnostics = before;
        diagnostics.push(cause);
    }
    parsed
}

fn of_another_program(finding: &Diagnostic, map: &SourceMap, file: FileId, program: &Program) -> Option<Diagnostic> {
    let span = finding.primary.span;
    if finding.code != "unknown-table" || span.file != file {
        return None;
    }
    let wanted = map.text(span).trim_matches('"');
    let tables = program.tables.values().map(|table| table.name.as_str());
    let misfit = subscribe_p4::mismatch(wanted, tables)?;
    let help = format!(
        "{}: `triplane subscribe compile FORMAT RULES -o ENTRIES --program PROGRAM` makes both",
        misfit.remedy()
    );
    let message = format!("entries and program {}", misfit.describe(wanted));
    Some(Diagnostic::error("other-program", span, message).help(help))
}
