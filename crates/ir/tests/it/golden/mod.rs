//! Expected texts in `testdata`. `UPDATE_EXPECT=1` overwrites them instead of comparing.

use std::path::{Path, PathBuf};

use testing::golden::assert_golden;

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// Returns the files in `testdata` with this extension, sorted.
pub fn files(extension: &str) -> Vec<PathBuf> {
    testing::golden::inputs(dir(), extension)
}

/// Formats things, one per line.
pub fn lines(things: &[impl std::fmt::Display]) -> String {
    things.iter().map(|thing| format!("{thing}\n")).collect()
}

/// Checks a file of sections: `=== name`, an input, `---`, the expected output.
pub fn sections(file: &str, mut find: impl FnMut(&str, &str) -> String) {
    let path = dir().join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut found = String::new();
    for section in text.split("=== ").skip(1) {
        let (name, rest) = section.split_once('\n').unwrap();
        let input = rest.split_once("\n---\n").map_or(rest.trim_end(), |(input, _)| input);
        let output = find(name, &format!("{input}\n"));
        let output: String = output.trim_end().lines().map(|line| format!("{}\n", line.trim_end())).collect();
        found.push_str(&format!("=== {name}\n{input}\n---\n{output}\n"));
    }
    assert_golden(path, &found);
}
