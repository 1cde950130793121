//! docs/p4runtime.md: every test that it names is one.

use std::fs;
use std::path::Path;

/// The names of the test functions in a file.
fn tests(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let named = |pair: &[&str]| {
        let name = pair[1].strip_prefix("fn ")?.split('(').next()?;
        (pair[0] == "#[test]").then(|| name.to_owned())
    };
    lines.windows(2).filter_map(named).collect()
}

#[test]
fn every_test_that_the_list_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = root.ancestors().nth(2).expect("the crate is two levels deep").join("docs/p4runtime.md");
    let list = fs::read_to_string(&list).unwrap_or_else(|error| panic!("{}: {error}", list.display()));
    let list = list.split("## Requirements").nth(1).expect("the list has a section of requirements");
    let list = list.split("\n## ").next().unwrap_or_default();
    let mut rows = 0;
    for row in list.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| section")) {
        let Some(test) = row.trim_end_matches(" |").rsplit(" | ").next() else { continue };
        let Some((module, name)) = test.trim_matches('`').split_once("::").filter(|_| test.starts_with('`')) else {
            // Not a test: says why there is none.
            assert!(["not ", "open"].iter().any(|word| test.starts_with(word)), "{row}");
            continue;
        };
        rows += 1;
        // Encodings are of the messages' crate.
        let folders = ["tests/it/spec", "tests/it", "src", "../p4runtime_proto/src"];
        let files = folders.map(|folder| root.join(folder).join(format!("{module}.rs")));
        let found = files.iter().filter(|file| file.exists()).flat_map(|file| tests(file)).any(|test| test == name);
        assert!(found, "there is no test `{module}::{name}`");
    }
    assert!(rows > 150, "{rows} rows: the list is not read");
}
