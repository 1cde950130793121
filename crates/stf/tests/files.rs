//! Runs every packet test of the project's `testdata/stf`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use compile::Architecture;
use source::{Diagnostics, SourceMap};
use v1model::description::V1Model;

fn folder() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/stf is two levels deep");
    root.join("testdata/stf")
}

/// Why a test does not pass.
fn fault(stf_path: &Path) -> Option<String> {
    let program_path = stf_path.with_extension("p4");
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let (text, script) = match (read(&program_path), read(stf_path)) {
        (Ok(text), Ok(script)) => (text, script),
        (Err(error), _) | (_, Err(error)) => return Some(error),
    };
    let mut map = SourceMap::new();
    let mut diagnostics = Diagnostics::new();
    let options =
        p4::Options { defines: Vec::new(), include_dirs: vec![folder()], builtin: V1Model.includes().to_vec() };
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let ast = p4::parse(&mut map, &name(&program_path), &text, &options, &p4::DiskLoader, &mut diagnostics);
    let program = p4::check(&ast, &map, &mut diagnostics)
        .filter(|_| !diagnostics.has_errors())
        .and_then(|typed| compile::compile(&typed, &V1Model, &map, &mut diagnostics));
    let file = map.add(&name(stf_path), script);
    let Some(program) = program.filter(|_| !diagnostics.has_errors()).map(Arc::new) else {
        return Some(diagnostics.render(&map, false));
    };
    let script = stf::parse(&map, file, &mut diagnostics);
    let test = script.and_then(|script| stf::bind(&script, &program, &mut diagnostics));
    let Some(test) = test else { return Some(diagnostics.render(&map, false)) };
    match test.run(&program, &stf::RunOptions::default()) {
        Ok(report) if report.passed() => None,
        Ok(report) => Some(report.render(&map)),
        Err(error) => Some(error.to_string()),
    }
}

#[test]
fn every_packet_test_passes() {
    let entries = std::fs::read_dir(folder()).expect("testdata/stf");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let tests: Vec<&PathBuf> = paths.iter().filter(|path| path.extension().is_some_and(|ext| ext == "stf")).collect();
    assert!(!tests.is_empty(), "there are packet tests");
    let mut failing = Vec::new();
    for path in &tests {
        if let Some(fault) = fault(path) {
            failing.push(format!("--- {}\n{fault}", path.display()));
        }
    }
    assert!(failing.is_empty(), "{} of {} fail\n{}", failing.len(), tests.len(), failing.join("\n"));
    let untested = paths.iter().filter(|path| path.extension().is_some_and(|ext| ext == "p4"));
    for program in untested.filter(|program| !program.with_extension("stf").exists()) {
        panic!("{} has no packet test", program.display());
    }
}
