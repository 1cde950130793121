//! Every v1model program in the directories in `TRIPLANE_P4_CORPUS` (separated by colons, searched recursively) must
//! pass through the whole compiler, or be rejected with a diagnostic. Skipped when the variable is not set.
//! `TRIPLANE_P4_CORPUS_REPORT` names a file to which the outcomes are written.

#[path = "it/pipeline/mod.rs"]
mod pipeline;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn programs(dir: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            programs(&path, out);
        } else if path.extension().is_some_and(|ext| ext == "p4") {
            out.push(path);
        }
    }
}

#[test]
fn every_program_of_the_corpus_compiles_or_is_refused_in_words() {
    let Some(dirs) = std::env::var_os("TRIPLANE_P4_CORPUS") else {
        eprintln!("skipped: TRIPLANE_P4_CORPUS is not set");
        return;
    };
    let mut files = Vec::new();
    for dir in std::env::split_paths(&dirs) {
        programs(&dir, &mut files);
    }
    files.sort();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut report = String::new();
    let mut panics = Vec::new();
    for path in &files {
        let Ok(bytes) = fs::read(path) else { continue };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if !text.contains("v1model.p4") || !text.contains("V1Switch") {
            continue;
        }
        let name = path.display().to_string();
        let dir = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let result = std::panic::catch_unwind(|| pipeline::compile(&name, &text, &[&dir]));
        let stage = match &result {
            Ok(outcome) => outcome.stage,
            Err(_) => "panic",
        };
        *counts.entry(stage).or_default() += 1;
        match result {
            Ok(outcome) if outcome.stage == "ok" => {}
            Ok(outcome) => report.push_str(&format!("=== {stage} {name}\n{}\n", outcome.findings)),
            Err(panic) => {
                let message = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                let message: String = message.lines().next().unwrap_or_default().to_owned();
                report.push_str(&format!("=== panic {name}\n{message}\n\n"));
                panics.push(name);
            }
        }
    }
    eprintln!("{counts:?}");
    if let Some(to) = std::env::var_os("TRIPLANE_P4_CORPUS_REPORT") {
        fs::write(to, report).unwrap();
    }
    assert!(panics.is_empty(), "the compiler panicked on {panics:?}");
}
