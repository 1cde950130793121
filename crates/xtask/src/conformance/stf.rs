//! Computes the STF row of the conformance report: p4c's v1model samples that come with an `.stf` test.

use std::path::Path;

use anyhow::Result;
use diagnostics::{Diagnostics, SourceMap};

use super::cases::{failures_of, programs};
use super::{Request, Row, compiled, errors};

/// Known failures, one `path: reason` per line.
const EXPECTED_FAILURES: &str = include_str!("stf.expected_failures");

/// Runs every packet test.
pub fn row(request: &Request) -> Result<Row> {
    let folder = request.p4c.join("testdata/p4_16_samples");
    let mut paths = programs(&folder)?;
    paths.retain(|path| {
        let wanted = path.display().to_string().contains(&request.name);
        wanted && path.with_extension("stf").exists() && is_v1model(path)
    });
    let total = paths.len();
    let checkout = request.checkout_only();
    let mut failures = failures_of(&paths, &folder, move |path| passes(&checkout, path));
    let known = EXPECTED_FAILURES.lines().filter_map(|line| line.split_once(": "));
    let known = known.map(|(name, why)| (name.to_owned(), why.to_owned()));
    let expected_failures: Vec<(String, String)> =
        known.filter(|(name, _)| failures.iter().any(|failure| failure.name == *name)).collect();
    failures.retain(|failure| !expected_failures.iter().any(|(name, _)| *name == failure.name));
    Ok(Row {
        name: "stf",
        what: "packet tests of v1model programs pass",
        required: 100.0,
        total,
        expected_failures,
        failures,
    })
}

fn is_v1model(path: &Path) -> bool {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().any(|line| line.trim_start().starts_with("#include") && line.contains("v1model.p4"))
}

fn passes(request: &Request, path: &Path) -> Result<(), String> {
    let mut map = SourceMap::new();
    let program = compiled(request, path, &mut map)?;
    let path = path.with_extension("stf");
    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let file = map.add(&name, text);
    let mut diagnostics = Diagnostics::new();
    let script = stf::parse(&map, file, &mut diagnostics);
    let test = script.and_then(|script| stf::bind(&script, &program, &mut diagnostics));
    let test = test.ok_or_else(|| errors(&map, &diagnostics))?;
    let report = test.run(&program, &stf::RunOptions::default()).map_err(|error| error.to_string())?;
    if report.passed() { Ok(()) } else { Err(report.render(&map)) }
}
