//! The path from a file to IR, for the tests of this crate.

use std::path::Path;

use compiler::Architecture;
use diagnostics::{Diagnostics, SourceMap};
use p4::{DiskLoader, PreprocessorOptions};
use v1model::V1Model;

/// Outcome of compiling a program.
pub struct Outcome {
    /// The stage that failed (`parse`, `check`, `compile`), or `ok`.
    pub stage: &'static str,
    pub program: Option<ir::Program>,
    /// Rendered diagnostics.
    pub findings: String,
}

/// Compiles a program text for v1model. `includes` are searched before the built-in files.
pub fn compile(name: &str, text: &str, includes: &[&Path]) -> Outcome {
    let mut map = SourceMap::new();
    let mut diagnostics = Diagnostics::new();
    let options = PreprocessorOptions {
        include_dirs: includes.iter().map(|dir| dir.to_path_buf()).collect(),
        builtin: V1Model.includes().to_vec(),
        ..PreprocessorOptions::default()
    };
    let ast = p4::parse(&mut map, name, text, &options, &DiskLoader, &mut diagnostics);
    let mut outcome = Outcome { stage: "parse", program: None, findings: String::new() };
    if !diagnostics.has_errors() {
        outcome.stage = "check";
        if let Some(typed) = p4::check(&ast, &map, &mut diagnostics) {
            outcome.stage = "compile";
            outcome.program = lower::lower(&typed, &V1Model, &map, &mut diagnostics);
            if outcome.program.is_some() {
                outcome.stage = "ok";
            }
        }
    }
    outcome.findings = diagnostics.render(&map, false);
    outcome
}
