//! Reports of failing and invalid packet tests: each `testdata/NAME.stf` runs on `testdata/switch.p4` and has a
//! `NAME.expected`. `UPDATE_EXPECT=1` regenerates the expectations.

use std::path::Path;

use crate::support;
use diagnostics::SourceMap;
use testing::golden::{GoldenFiles, inputs};

#[test]
fn reports_are_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut golden = GoldenFiles::new();
    for path in inputs(&folder, "stf") {
        let mut map = SourceMap::new();
        let text = match support::report(&folder.join("switch.p4"), &path, &mut map) {
            Ok(report) if report.passed() => "passed\n".to_owned(),
            Ok(report) => report.render(&map),
            Err(error) => error,
        };
        golden.compare(path.with_extension("expected"), &text);
    }
    golden.finish();
}

/// The JSON form of a failing test has the same content.
#[test]
fn a_json_report_has_failures_packets_and_traces() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut map = SourceMap::new();
    let report = support::report(&folder.join("switch.p4"), &folder.join("differs.stf"), &mut map).expect("it runs");
    let json = report.to_json(&map, true);
    assert_eq!(json["passed"], false);
    let failure = &json["failures"][0];
    assert_eq!(failure["kind"], "differs");
    assert_eq!(failure["line"], 3);
    assert_eq!(failure["port"], 2);
    assert_eq!(failure["expected"], "0002beef**44$");
    assert_eq!(failure["got"], "0002aabbccdd");
    assert_eq!(json["packets"][0]["left"][0]["data"], "0002aabbccdd");
    assert_eq!(json["packets"][0]["trace"]["port"], 0);
    assert!(report.to_json(&map, false)["packets"][0].get("trace").is_none());
}
