//! What the checker says about mistakes: each `testdata/diagnostics/check/*.p4` beside the text it must produce, in
//! `.expected`. `UPDATE_EXPECT=1` writes those files anew; review them as code.

use std::fs;
use std::path::Path;

use p4::{DiskLoader, Options};
use source::{Diagnostics, SourceMap};

#[test]
fn diagnostics_are_as_expected() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/diagnostics/check");
    let mut paths: Vec<_> = fs::read_dir(&directory)
        .expect("the test data is there")
        .map(|entry| entry.expect("the entry can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "p4"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 9, "test data is missing");
    let mut different = Vec::new();
    for path in paths {
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("the program can be read");
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let program = p4::parse(&mut map, &name, &text, &Options::default(), &DiskLoader, &mut diagnostics);
        let syntax = diagnostics.render(&map, false);
        assert!(!diagnostics.has_errors(), "{name} must parse: it is about what comes after that\n{syntax}");
        assert!(p4::check(&program, &map, &mut diagnostics).is_none(), "{name} is accepted");
        let found = diagnostics.render(&map, false).trim_end().to_owned() + "\n";
        let expected = path.with_extension("expected");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&expected, found).expect("the expectation can be written");
        } else if fs::read_to_string(&expected).unwrap_or_default() != found {
            different.push(format!("--- {name}\n{found}"));
        }
    }
    assert!(different.is_empty(), "UPDATE_EXPECT=1 accepts this:\n{}", different.join("\n"));
}
