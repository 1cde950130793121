//! Helpers from a program's and a script's text to a report.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use compiler::Source;
use diagnostics::{Diagnostics, SourceMap};
use v1model::V1Model;

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Compiles a program, or returns its errors.
pub fn program(path: &Path, map: &mut SourceMap) -> Result<Arc<ir::Program>, String> {
    let text = read(path)?;
    let mut diagnostics = Diagnostics::new();
    let include_dirs: Vec<PathBuf> = path.parent().map(Path::to_owned).into_iter().collect();
    let name = name(path);
    let source = Source { include_dirs: &include_dirs, ..Source::new(&name, &text) };
    let program = compiler::compile(&source, &V1Model, map, &mut diagnostics);
    program.map(|compiled| Arc::new(compiled.ir)).ok_or_else(|| diagnostics.render(map, false))
}

/// Runs the script `stf_path` on the program `p4_path`. Returns the report, or the errors in the two files.
pub fn report(p4_path: &Path, stf_path: &Path, map: &mut SourceMap) -> Result<stf::Report, String> {
    report_by(stf::PacketPath::Traced, p4_path, stf_path, map)
}

/// Does the same, with packets on the given path.
pub fn report_by(
    packet_path: stf::PacketPath,
    p4_path: &Path,
    stf_path: &Path,
    map: &mut SourceMap,
) -> Result<stf::Report, String> {
    let program = program(p4_path, map)?;
    let mut diagnostics = Diagnostics::new();
    let file = map.add(&name(stf_path), read(stf_path)?);
    let script = stf::parse(map, file, &mut diagnostics);
    let test = script.and_then(|script| stf::bind(&script, &program, &mut diagnostics));
    let test = test.ok_or_else(|| diagnostics.render(map, false))?;
    test.run(&program, &stf::RunOptions { path: packet_path, ..stf::RunOptions::default() })
        .map_err(|error| error.to_string())
}
