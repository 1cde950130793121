//! Runs every packet test of the project's `testdata/stf`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::support;
use diagnostics::SourceMap;
use stf::PacketPath;

fn folder() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/stf is two levels deep");
    root.join("testdata/stf")
}

/// Returns the reason why a test fails.
fn fault(path: &Path) -> Option<String> {
    let mut map = SourceMap::new();
    match support::report(&path.with_extension("p4"), path, &mut map) {
        Ok(report) if report.passed() => None,
        Ok(report) => Some(report.render(&map)),
        Err(error) => Some(error),
    }
}

#[test]
fn every_packet_test_passes() {
    let entries = std::fs::read_dir(folder()).expect("testdata/stf");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let of_kind = |kind: &'static str| paths.iter().filter(move |path| path.extension().is_some_and(|it| it == kind));
    let mut failing = Vec::new();
    for path in of_kind("stf") {
        if let Some(fault) = fault(path) {
            failing.push(format!("--- {}\n{fault}", path.display()));
        }
    }
    let total = of_kind("stf").count();
    assert!(total > 0, "there are packet tests");
    assert!(failing.is_empty(), "{} of {total} fail\n{}", failing.len(), failing.join("\n"));
    let untested: Vec<&PathBuf> = of_kind("p4").filter(|program| !program.with_extension("stf").exists()).collect();
    assert!(untested.is_empty(), "programs without a packet test: {untested:?}");
}

/// Interpreted with traces, by `step`, or in place: packets and all counters are the same.
#[test]
fn every_way_through_the_switch_comes_to_the_same() {
    let mut compared = 0;
    for entry in std::fs::read_dir(folder()).expect("testdata/stf") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|it| it != "stf") {
            continue;
        }
        let came_to = |way: PacketPath| {
            let mut map = SourceMap::new();
            let report = support::report_by(way, &path.with_extension("p4"), &path, &mut map);
            let report = report.unwrap_or_else(|error| panic!("{error}"));
            let failures = format!("{:?}", report.failures);
            (report.arrivals, report.readings, report.counted, failures)
        };
        let traced = came_to(PacketPath::Traced);
        for way in [PacketPath::HandedOver, PacketPath::InPlace] {
            assert_eq!(came_to(way), traced, "{}, {way:?}", path.display());
        }
        compared += 1;
    }
    assert!(compared > 0);
}

/// The list beside the tests names every one of them, and no others.
#[test]
fn the_list_is_complete() {
    let list = std::fs::read_to_string(folder().join("README.md")).expect("the list");
    let rows = list.lines().filter_map(|line| line.strip_prefix('|')?.trim_end_matches('|').rsplit_once(" | "));
    let named: BTreeSet<String> =
        rows.flat_map(|(_, tests)| tests.split('`').skip(1).step_by(2)).map(str::to_owned).collect();
    let entries = std::fs::read_dir(folder()).expect("testdata/stf").map(|entry| entry.expect("an entry").path());
    let scripts = entries.filter(|path| path.extension().is_some_and(|it| it == "stf"));
    let there: BTreeSet<String> =
        scripts.filter_map(|path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned())).collect();
    assert_eq!(named, there);
}
