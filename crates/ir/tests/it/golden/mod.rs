//! Expected texts in `testdata`. `UPDATE_EXPECT=1` overwrites them instead of comparing.

#![allow(dead_code)]

use std::path::{Path, PathBuf};

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// Returns the files in `testdata` with this extension, sorted.
pub fn files(extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    files.sort();
    files
}

/// Formats things, one per line.
pub fn lines(things: &[impl std::fmt::Display]) -> String {
    things.iter().map(|thing| format!("{thing}\n")).collect()
}

/// Compares a file with the actual text.
pub fn check(path: &Path, found: &str) {
    let expected = std::fs::read_to_string(path).unwrap();
    if expected == found {
        return;
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        return std::fs::write(path, found).unwrap();
    }
    let line = expected.lines().zip(found.lines()).position(|(a, b)| a != b);
    let line = line.unwrap_or_else(|| expected.lines().count().min(found.lines().count()));
    panic!(
        "{}:{} is not as expected (UPDATE_EXPECT=1 accepts this)\nexpected: {:?}\nfound:    {:?}\nin\n{found}",
        path.display(),
        line + 1,
        expected.lines().nth(line),
        found.lines().nth(line)
    );
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
    check(&path, &found);
}
