//! The yardstick of packet tests: v1model programs that have one.

use std::path::Path;

use anyhow::Result;
use diagnostics::{Diagnostics, SourceMap};

use super::cases::{faults, programs};
use super::{Request, Row, compiled, errors};

/// Programs that need not pass: a path and why, a line each.
const EXCUSED: &str = include_str!("stf.excused");

/// Runs every packet test.
pub fn row(request: &Request) -> Result<Row> {
    let folder = request.p4c.join("testdata/p4_16_samples");
    let mut paths = programs(&folder)?;
    paths.retain(|path| {
        let wanted = path.display().to_string().contains(&request.name);
        wanted && path.with_extension("stf").exists() && is_v1model(path)
    });
    let total = paths.len();
    let own = request.alone();
    let mut short = faults(&paths, &folder, move |path| passes(&own, path));
    let excuses = EXCUSED.lines().filter_map(|line| line.split_once(": "));
    let excuses: Vec<(String, String)> = excuses.map(|(name, why)| (name.to_owned(), why.to_owned())).collect();
    let excused =
        excuses.into_iter().filter(|(name, _)| short.iter().any(|fault| fault.name == *name)).collect::<Vec<_>>();
    short.retain(|fault| !excused.iter().any(|(name, _)| *name == fault.name));
    Ok(Row { name: "stf", what: "packet tests of v1model programs pass", required: 100.0, total, excused, short })
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
