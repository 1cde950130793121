//! Runs packet tests that are not part of the project: every `.stf` file beside a v1model `.p4` file in the
//! directories that `STF_CORPUS` names (separated by `:`). `STF_ONLY` picks files by a part of their name.

mod stf;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use source::{Diagnostics, SourceMap};
use v1model::{Config, DROP_PORT, Switch};

/// The program beside a script, compiled; `None` if it is for another architecture.
fn compile(path: &Path) -> Result<Option<ir::Program>, String> {
    let text = String::from_utf8_lossy(&std::fs::read(path).map_err(|error| error.to_string())?).into_owned();
    if !text.contains("v1model.p4") {
        return Ok(None);
    }
    let arch = v1model::description::V1Model;
    let options = p4::Options {
        defines: Vec::new(),
        include_dirs: Vec::new(),
        builtin: compile::Architecture::includes(&arch).to_vec(),
    };
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let ast = p4::parse(&mut map, &path.to_string_lossy(), &text, &options, &p4::DiskLoader, &mut diagnostics);
    let typed = p4::check(&ast, &map, &mut diagnostics);
    if diagnostics.has_errors() {
        return Err(diagnostics.render(&map, false));
    }
    let program = typed.and_then(|typed| compile::compile(&typed, &arch, &map, &mut diagnostics));
    program.map(Some).ok_or_else(|| diagnostics.render(&map, false))
}

fn run(path: &Path) -> Result<bool, String> {
    let text = String::from_utf8_lossy(&std::fs::read(path).map_err(|error| error.to_string())?).into_owned();
    let Some(program) = compile(&path.with_extension("p4"))? else { return Ok(false) };
    let program = Arc::new(program);
    for traced in [false, true] {
        let config = Config { cpu_port: None, ..Config::with_ports(DROP_PORT) };
        let switch = Switch::new(program.clone(), config).map_err(|error| error.to_string())?;
        stf::Stf::new(switch, traced).run(&text).map_err(|error| format!("{error} (traced: {traced})"))?;
    }
    Ok(true)
}

fn scripts() -> Vec<PathBuf> {
    let only = std::env::var("STF_ONLY").unwrap_or_default();
    let mut files = Vec::new();
    let Some(value) = std::env::var_os("STF_CORPUS") else { return files };
    for directory in std::env::split_paths(&value) {
        for entry in std::fs::read_dir(&directory).expect("the directory can be read") {
            let path = entry.expect("the entry can be read").path();
            let named = path.file_name().is_some_and(|name| name.to_string_lossy().contains(&only));
            if named && path.extension().is_some_and(|extension| extension == "stf") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

#[test]
fn packet_tests_pass() {
    let scripts = scripts();
    if scripts.is_empty() {
        return println!("skipped: STF_CORPUS is not set");
    }
    let (mut passed, mut failed) = (0, Vec::new());
    for path in scripts {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let result = std::panic::catch_unwind(|| run(&path));
        match result.unwrap_or_else(|_| Err("panicked".into())) {
            Ok(true) => passed += 1,
            Ok(false) => {}
            Err(error) => {
                println!("---- {name}\n{error}\n");
                failed.push(name);
            }
        }
    }
    println!("{passed} passed, {} failed", failed.len());
    assert!(failed.is_empty(), "{} of {} failed: {}", failed.len(), passed + failed.len(), failed.join(" "));
}
