//! From a program's and a script's text to a report, as the tests here need it.

use std::path::Path;
use std::sync::Arc;

use diagnostics::{Diagnostics, SourceMap};
use lower::Architecture;
use v1model::description::V1Model;

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// A compiled program, or what is wrong with it.
pub fn program(path: &Path, map: &mut SourceMap) -> Result<Arc<ir::Program>, String> {
    let text = read(path)?;
    let mut diagnostics = Diagnostics::new();
    let options = p4::Options {
        defines: Vec::new(),
        include_dirs: path.parent().map(Path::to_owned).into_iter().collect(),
        builtin: V1Model.includes().to_vec(),
    };
    let ast = p4::parse(map, &name(path), &text, &options, &p4::DiskLoader, &mut diagnostics);
    let typed = p4::check(&ast, map, &mut diagnostics).filter(|_| !diagnostics.has_errors());
    let program = typed.and_then(|typed| lower::compile(&typed, &V1Model, map, &mut diagnostics)).map(Arc::new);
    program.filter(|_| !diagnostics.has_errors()).ok_or_else(|| diagnostics.render(map, false))
}

/// Runs the script `stf_path` on the program `p4_path`: the report, or what was found in the two files.
#[allow(dead_code, reason = "not every test that shares this module runs scripts from files")]
pub fn report(p4_path: &Path, stf_path: &Path, map: &mut SourceMap) -> Result<stf::Report, String> {
    report_by(stf::Way::Traced, p4_path, stf_path, map)
}

/// The same, whichever way packets go.
#[allow(dead_code, reason = "as above")]
pub fn report_by(way: stf::Way, p4_path: &Path, stf_path: &Path, map: &mut SourceMap) -> Result<stf::Report, String> {
    let program = program(p4_path, map)?;
    let mut diagnostics = Diagnostics::new();
    let file = map.add(&name(stf_path), read(stf_path)?);
    let script = stf::parse(map, file, &mut diagnostics);
    let test = script.and_then(|script| stf::bind(&script, &program, &mut diagnostics));
    let test = test.ok_or_else(|| diagnostics.render(map, false))?;
    test.run(&program, &stf::RunOptions { way, ..stf::RunOptions::default() }).map_err(|error| error.to_string())
}
