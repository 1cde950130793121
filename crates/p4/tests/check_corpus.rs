//! Checks directories of P4 programs that are not part of the project. Without the variables nothing is tested, and
//! each test says so.
//!
//! - `P4_ACCEPTED`: directories, separated by `:`, whose `.p4` files are correct programs.
//! - `P4_REFUSED`: directories of wrong programs, and `P4_REFUSED_AT`: the directory of what the reference compiler
//!   says about each, `NAME.p4-stderr`, of which only the lines `FILE.p4(LINE)` are read.
//! - `P4_INCLUDE`: directories that included files are looked for in.

mod guarantees;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use p4::{DiskLoader, Options};
use source::{Diagnostics, Severity, SourceMap};

/// Of a hundred correct programs, so many must be accepted.
const ACCEPTED: usize = 99;
/// Of a hundred wrong programs, so many must be refused at the right line.
const REFUSED: usize = 97;

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

struct Checked {
    typed: Option<p4::typed::Program>,
    map: SourceMap,
    diagnostics: Diagnostics,
}

fn check(path: &Path) -> Checked {
    let bytes = std::fs::read(path).expect("the file can be read");
    let text = String::from_utf8_lossy(&bytes);
    let mut include_dirs = directories("P4_INCLUDE");
    include_dirs.extend(path.parent().map(Path::to_owned));
    let options = Options { include_dirs, ..Options::default() };
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let program = p4::parse(&mut map, &path.to_string_lossy(), &text, &options, &DiskLoader, &mut diagnostics);
    let typed = if diagnostics.has_errors() { None } else { p4::check(&program, &map, &mut diagnostics) };
    Checked { typed, map, diagnostics }
}

#[test]
fn correct_programs_are_accepted_and_keep_what_is_promised() {
    let files = programs("P4_ACCEPTED");
    let (mut accepted, mut broken) = (0, 0);
    for path in &files {
        let checked = check(path);
        match &checked.typed {
            Some(program) => {
                accepted += 1;
                let promises = guarantees::broken(program);
                if !promises.is_empty() {
                    broken += 1;
                    eprintln!("{}: {promises:?}", path.display());
                }
            }
            None => {
                let first = checked.diagnostics.iter().find(|diagnostic| diagnostic.severity == Severity::Error);
                eprintln!("{}", first.map_or_else(String::new, |first| first.render(&checked.map, false)));
            }
        }
    }
    eprintln!("{accepted} of {} accepted", files.len());
    assert!(accepted * 100 >= files.len() * ACCEPTED, "only {accepted} of {}", files.len());
    assert_eq!(broken, 0, "programs whose typed form breaks a promise");
}

#[test]
fn wrong_programs_are_refused_where_they_are_wrong() {
    let files = programs("P4_REFUSED");
    let goldens = directories("P4_REFUSED_AT");
    let mut refused = 0;
    for path in &files {
        let checked = check(path);
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let golden = goldens
            .iter()
            .find_map(|directory| std::fs::read_to_string(directory.join(format!("{name}-stderr"))).ok())
            .unwrap_or_default();
        let errors = checked.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
        let lines: BTreeSet<u32> = errors
            .flat_map(|error| error.secondary.iter().chain([&error.primary]))
            .map(|label| checked.map.place(label.span).line)
            .collect();
        let wanted = lines_of(&golden);
        let is_right = match golden.contains("error") {
            false => lines.is_empty(),
            true => !lines.is_empty() && (wanted.is_empty() || wanted.iter().any(|line| lines.contains(line))),
        };
        refused += usize::from(is_right);
        if !is_right {
            eprintln!("{name}: expected lines {wanted:?}, found {lines:?}");
        }
    }
    eprintln!("{refused} of {} as expected", files.len());
    assert!(refused * 100 >= files.len() * REFUSED, "only {refused} of {}", files.len());
}

/// The line numbers in `FILE.p4(LINE)`.
fn lines_of(golden: &str) -> BTreeSet<u32> {
    golden
        .split(".p4(")
        .skip(1)
        .filter_map(|rest| rest.split(')').next().and_then(|number| number.parse().ok()))
        .collect()
}
