//! Diagnostics of the checker, `testdata/diagnostics/check/*.p4`, and warnings about correct programs,
//! `testdata/diagnostics/lint/*.p4`. The expected text of each program is in the `.expected` file beside it.
//! `UPDATE_EXPECT=1` regenerates these files; review them as code.

use std::fs;
use std::path::Path;

use diagnostics::{Diagnostics, SourceMap};
use p4::{DiskLoader, PreprocessorOptions};
use testing::golden::{GoldenFiles, inputs};

#[test]
fn mistakes_are_reported_as_expected() {
    compare("check", 9, false);
}

#[test]
fn warnings_are_given_as_expected() {
    compare("lint", 5, true);
}

#[test]
fn warnings_can_be_turned_off_by_kind_and_by_family() {
    let text = "action a() { } control c(inout bit<8> x) { bit<8> y; table t { actions = { a; } default_action = a; } apply { if (x >= 0) { x = 1; } } }";
    let codes = |silenced: &[&str]| {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        silenced.iter().for_each(|code| diagnostics.silence(code));
        let program = p4::parse(&mut map, "a.p4", text, &PreprocessorOptions::default(), &DiskLoader, &mut diagnostics);
        assert!(p4::check(&program, &map, &mut diagnostics).is_some());
        diagnostics.in_order().iter().map(|finding| finding.code).collect::<Vec<_>>()
    };
    assert_eq!(codes(&[]), ["unused-variable", "unused-table", "constant-comparison"]);
    assert_eq!(codes(&["unused-table"]), ["unused-variable", "constant-comparison"]);
    assert_eq!(codes(&["unused"]), ["constant-comparison"]);
    assert!(codes(&["unused", "constant-comparison"]).is_empty());
}

#[test]
fn an_assignment_for_a_comparison_is_one_mistake() {
    let text = "control c(inout bit<8> a) { apply { if (a = 5) { a = 1; } if ((a = 5) && true) { a = 2; } } }";
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let program = p4::parse(&mut map, "a.p4", text, &PreprocessorOptions::default(), &DiskLoader, &mut diagnostics);
    p4::check(&program, &map, &mut diagnostics);
    let codes: Vec<_> = diagnostics.in_order().iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["assignment-in-expression"; 2]);
}

/// Compares the diagnostics of each program of a folder with the expected text.
fn compare(folder: &str, at_least: usize, is_accepted: bool) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/diagnostics").join(folder);
    let paths = inputs(&directory, "p4");
    assert!(paths.len() >= at_least, "test data is missing");
    let mut golden = GoldenFiles::new();
    for path in paths {
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("the program can be read");
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let program = p4::parse(&mut map, &name, &text, &PreprocessorOptions::default(), &DiskLoader, &mut diagnostics);
        let syntax = diagnostics.render(&map, false);
        assert!(!diagnostics.has_errors(), "{name} must parse: it is about what comes after that\n{syntax}");
        let checked = p4::check(&program, &map, &mut diagnostics);
        assert_eq!(checked.is_some(), is_accepted, "{name}: {}", diagnostics.render(&map, false));
        let found = diagnostics.render(&map, false).trim_end().to_owned() + "\n";
        golden.compare(path.with_extension("expected"), &found);
    }
    golden.finish();
}
