//! Parses directories of P4 programs that are not part of the project. Without the variables nothing is tested, and
//! each test reports that.
//!
//! - `TRIPLANE_P4_CORPUS`: directories, separated by `:`, with `.p4` files that must parse without diagnostics.
//! - `TRIPLANE_P4_GARBAGE`: directories with arbitrary files; parsing must not panic.
//! - `TRIPLANE_P4_INCLUDE`: include directories.

use std::path::{Path, PathBuf};

use diagnostics::{Diagnostics, SourceMap};
use p4::{DiskLoader, PreprocessorOptions};

fn directories(variable: &str) -> Vec<PathBuf> {
    let Some(value) = std::env::var_os(variable) else { return Vec::new() };
    std::env::split_paths(&value).collect()
}

fn programs(variable: &str) -> Vec<PathBuf> {
    let directories = directories(variable);
    if directories.is_empty() {
        eprintln!("skipped: {variable} is not set");
    }
    let mut files = Vec::new();
    for directory in directories {
        for entry in std::fs::read_dir(&directory).expect("the directory can be read") {
            let path = entry.expect("the entry can be read").path();
            if path.extension().is_some_and(|extension| extension == "p4") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Returns the rendered diagnostics of the program at `path`, and whether all of its includes were found.
fn findings(path: &Path) -> (String, bool) {
    let bytes = std::fs::read(path).expect("the file can be read");
    let text = String::from_utf8_lossy(&bytes);
    let options =
        PreprocessorOptions { include_dirs: directories("TRIPLANE_P4_INCLUDE"), ..PreprocessorOptions::default() };
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    p4::parse(&mut map, &path.to_string_lossy(), &text, &options, &DiskLoader, &mut diagnostics);
    let found = !diagnostics.iter().any(|diagnostic| diagnostic.code == "include-not-found");
    (diagnostics.render(&map, false), found)
}

#[test]
fn programs_parse_without_a_finding() {
    let mut bad = 0;
    for path in programs("TRIPLANE_P4_CORPUS") {
        let (text, includes_found) = findings(&path);
        if includes_found && !text.is_empty() {
            bad += 1;
            eprintln!("{text}");
        }
    }
    assert_eq!(bad, 0, "{bad} programs have findings");
}

#[test]
fn garbage_is_survived() {
    for path in programs("TRIPLANE_P4_GARBAGE") {
        let _ = findings(&path);
    }
}
