//! Diagnostics of the parser: each `testdata/diagnostics/parse/*.p4` has its expected text in the `.expected` file
//! beside it. `UPDATE_EXPECT=1` regenerates these files; review them as code.

use std::fs;
use std::path::Path;

use diagnostics::{Diagnostics, SourceMap};
use p4::{DiskLoader, PreprocessorOptions};
use testing::golden::{GoldenFiles, inputs};

#[test]
fn diagnostics_are_as_expected() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/diagnostics/parse");
    let paths = inputs(&directory, "p4");
    assert!(paths.len() > 10, "test data is missing");
    let mut golden = GoldenFiles::new();
    for path in paths {
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("the program can be read");
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let options = PreprocessorOptions { include_dirs: vec![directory.clone()], ..PreprocessorOptions::default() };
        p4::parse(&mut map, &name, &text, &options, &DiskLoader, &mut diagnostics);
        let found = diagnostics.render(&map, false);
        // The location of the checkout is irrelevant to the test.
        let place = directory.display().to_string();
        let found = found.replace(&format!("{place}/"), "").replace(&place, ".").trim_end().to_owned() + "\n";
        golden.compare(path.with_extension("expected"), &found);
    }
    golden.finish();
}
