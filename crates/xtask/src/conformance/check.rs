//! Computes the rows of the front end: correct programs are accepted, wrong ones are refused where they are wrong.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use diagnostics::{Severity, SourceMap};
use v1model::V1Model;

use super::cases::{failures_of, programs};
use super::{Request, Row, checked, errors, front_end};

/// Architectures that the project does not have yet; programs that include one of them do not count.
const OTHER_ARCHITECTURES: [&str; 5] = ["psa.p4", "pna.p4", "ebpf_model.p4", "ubpf_model.p4", "xdp_model.p4"];

/// Correct programs for v1model, for `core.p4` alone or without any include.
pub fn accepted(request: &Request) -> Result<Row> {
    let folder = request.p4c.join("testdata/p4_16_samples");
    let mut paths = programs(&folder)?;
    // A file that others include is not a program of its own, and need not be valid alone.
    paths.retain(|path| {
        let text = std::fs::read(path).unwrap_or_default();
        let is_part = path.components().any(|part| part.as_os_str() == "include");
        !is_part && is_for_us(&String::from_utf8_lossy(&text)) && path.display().to_string().contains(&request.name)
    });
    let total = paths.len();
    let checkout = request.checkout_only();
    let failures =
        failures_of(&paths, &folder, move |path| checked(&checkout, path, &mut SourceMap::new()).map(|_| ()));
    Ok(Row {
        name: "check",
        what: "correct programs are accepted",
        required: 99.0,
        total,
        expected_failures: Vec::new(),
        failures,
    })
}

/// Whether a program's architecture, as far as its own includes show, is one that the project has.
fn is_for_us(text: &str) -> bool {
    let includes = text.lines().filter(|line| line.trim_start().starts_with("#include"));
    !includes.filter_map(|line| line.split(['"', '<', '>']).nth(1)).any(|file| {
        let name = file.rsplit('/').next().unwrap_or(file);
        OTHER_ARCHITECTURES.contains(&name)
    })
}

/// Wrong programs, each with what the reference compiler says about it.
pub fn refused(request: &Request) -> Result<Row> {
    let folder = request.p4c.join("testdata/p4_16_errors");
    let mut paths = programs(&folder)?;
    paths.retain(|path| path.display().to_string().contains(&request.name));
    let total = paths.len();
    let checkout = request.checkout_only();
    let goldens = request.p4c.join("testdata/p4_16_errors_outputs");
    let failures = failures_of(&paths, &folder, move |path| is_refused(&checkout, &goldens, path));
    let what = "wrong programs are refused, at the right line";
    Ok(Row { name: "errors", what, required: 98.5, total, expected_failures: Vec::new(), failures })
}

/// A program of the errors must be refused at one of the lines that the errors in its golden output name. Where the
/// golden output has no error but only warnings, the program must be accepted.
fn is_refused(request: &Request, goldens: &Path, path: &Path) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let golden = std::fs::read_to_string(goldens.join(format!("{name}-stderr"))).unwrap_or_default();
    let mut map = SourceMap::new();
    let (typed, mut diagnostics) = front_end(request, path, &mut map)?;
    // p4c generates P4Info for these programs too, and some of them are only wrong for control planes.
    let complete = typed.filter(|typed| compiler::is_for(typed, &V1Model));
    let compiled = complete.and_then(|typed| compiler::compile_checked(&typed, &V1Model, &mut map, &mut diagnostics));
    let names = compiled.map_or(Ok(()), |compiled| compiler::check_names(&compiled.p4info));
    let errors_found = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let lines: BTreeSet<u32> = errors_found
        .flat_map(|error| error.secondary.iter().chain([&error.primary]))
        .map(|label| map.position(label.span).line)
        .collect();
    let wanted = lines_of(&golden);
    match (golden.contains("error"), lines.is_empty()) {
        (false, true) => names.map_err(|error| format!("should be accepted: {error}")),
        (false, false) => Err(format!("should be accepted: {}", errors(&map, &diagnostics))),
        // An error about names has no place, neither here nor in p4c.
        (true, true) if names.is_err() && wanted.is_empty() => Ok(()),
        (true, true) => Err(format!("is accepted; wrong in {wanted:?}")),
        (true, false) if wanted.is_empty() || wanted.iter().any(|line| lines.contains(line)) => Ok(()),
        (true, false) => Err(format!("refused in {lines:?} instead of {wanted:?}: {}", errors(&map, &diagnostics))),
    }
}

/// Returns the line numbers in `FILE.p4(LINE)` of errors, without those of warnings.
fn lines_of(golden: &str) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut is_error = false;
    for line in golden.lines() {
        let names_error = line.contains("error:") || line.contains("syntax error");
        if names_error || line.contains("warning:") {
            is_error = names_error;
        }
        let number: Option<u32> = line.split_once(".p4(").and_then(|(_, rest)| rest.split(')').next()?.parse().ok());
        found.extend(number.filter(|_| is_error));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_from_what_p4c_says() {
        let golden = "a.p4(12): [--Werror=x] error: no\n  x\n  ^\nb.p4(7)\n  y\n";
        assert_eq!(lines_of(golden).into_iter().collect::<Vec<_>>(), [7, 12]);
        let warned = format!("a.p4(3): [--Wwarn=y] warning: unused\na.p4(4)\n  z\n{golden}");
        assert_eq!(lines_of(&warned), lines_of(golden));
        assert!(lines_of("error: something (3)").is_empty());
    }

    #[test]
    fn architectures_are_detected_by_their_includes() {
        assert!(is_for_us("#include <core.p4>\n#include <v1model.p4>\n"));
        assert!(is_for_us("header h {}\n"));
        assert!(!is_for_us("#include <core.p4>\n#include \"bmv2/psa.p4\"\n"));
    }
}
