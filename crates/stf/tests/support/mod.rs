//! From a program's and a script's text to a report, as the tests here need it.

use std::path::Path;
use std::sync::Arc;

use compile::Architecture;
use source::{Diagnostics, SourceMap};
use v1model::description::V1Model;

/// Runs the script `stf_path` on the program `p4_path`: the report, or what was found in the two files.
pub fn report(p4_path: &Path, stf_path: &Path, map: &mut SourceMap) -> Result<stf::Report, String> {
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (text, script) = (read(p4_path)?, read(stf_path)?);
    let mut diagnostics = Diagnostics::new();
    let options = p4::Options {
        defines: Vec::new(),
        include_dirs: p4_path.parent().map(Path::to_owned).into_iter().collect(),
        builtin: V1Model.includes().to_vec(),
    };
    let ast = p4::parse(map, &name(p4_path), &text, &options, &p4::DiskLoader, &mut diagnostics);
    let typed = p4::check(&ast, map, &mut diagnostics).filter(|_| !diagnostics.has_errors());
    let program = typed.and_then(|typed| compile::compile(&typed, &V1Model, map, &mut diagnostics)).map(Arc::new);
    let Some(program) = program.filter(|_| !diagnostics.has_errors()) else {
        return Err(diagnostics.render(map, false));
    };
    // Warnings of the program are not what is tested.
    let mut diagnostics = Diagnostics::new();
    let file = map.add(&name(stf_path), script);
    let script = stf::parse(map, file, &mut diagnostics);
    let test = script.and_then(|script| stf::bind(&script, &program, &mut diagnostics));
    let test = test.ok_or_else(|| diagnostics.render(map, false))?;
    test.run(&program, &stf::RunOptions::default()).map_err(|error| error.to_string())
}
