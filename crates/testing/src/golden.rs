//! Compares results with expected ones in files beside the test's input.
//!
//! With `UPDATE_EXPECT=1` the files are rewritten instead of compared. Review the difference as code.

use std::path::{Path, PathBuf};

/// Whether expected files are to be rewritten.
pub fn is_update() -> bool {
    std::env::var_os("UPDATE_EXPECT").is_some()
}

/// Returns the files of a folder with this extension (`p4`), sorted.
///
/// # Panics
/// If there are none.
pub fn inputs(folder: impl AsRef<Path>, extension: &str) -> Vec<PathBuf> {
    let folder = folder.as_ref();
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("a folder can be read").path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|it| it == extension)).collect();
    assert!(!paths.is_empty(), "{} has no .{extension} files", folder.display());
    paths.sort();
    paths
}

/// A comparison of several texts with their files. It reports all differences at the end, not only the first.
#[derive(Debug, Default)]
pub struct GoldenFiles {
    differences: Vec<String>,
}

impl GoldenFiles {
    /// A comparison without differences.
    pub fn new() -> GoldenFiles {
        GoldenFiles::default()
    }

    /// Compares a text with a file, or writes it there. A file that does not exist is a difference.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn compare(&mut self, path: impl AsRef<Path>, found: &str) {
        let path = path.as_ref();
        if is_update() {
            let written =
                path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(path, found));
            return written.unwrap_or_else(|error| panic!("{} cannot be written: {error}", path.display()));
        }
        match std::fs::read_to_string(path) {
            Ok(expected) if expected == found => {}
            Ok(expected) => self.differences.push(difference(path, &expected, found)),
            Err(error) => self.differences.push(format!("{}: {error}\nfound:\n{found}", path.display())),
        }
    }

    /// Ends the comparison.
    ///
    /// # Panics
    /// If there was a difference; the message contains all of them.
    #[track_caller]
    pub fn finish(self) {
        let GoldenFiles { differences } = self;
        assert!(differences.is_empty(), "{}\nUPDATE_EXPECT=1 accepts this.", differences.join("\n"));
    }
}

/// Compares one text with its file, or writes it there.
///
/// # Panics
/// If they differ, or if the file can be neither read nor written.
#[track_caller]
pub fn assert_golden(path: impl AsRef<Path>, found: &str) {
    let mut files = GoldenFiles::new();
    files.compare(path, found);
    files.finish();
}

/// The first line that differs, and the whole text found.
fn difference(path: &Path, expected: &str, found: &str) -> String {
    let (mut expected_lines, mut found_lines) = (expected.lines(), found.lines());
    let mut number = 1;
    let (wanted, got) = loop {
        match (expected_lines.next(), found_lines.next()) {
            (Some(wanted), Some(got)) if wanted == got => number += 1,
            (wanted, got) => break (wanted.unwrap_or("(end)"), got.unwrap_or("(end)")),
        }
    };
    format!("{}:{number} differs\nexpected: {wanted}\nfound:    {got}\nin\n{found}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_its_line() {
        let text = difference(Path::new("a.expected"), "one\ntwo\n", "one\nthree\n");
        assert!(text.starts_with("a.expected:2 differs\nexpected: two\nfound:    three\n"), "{text}");
        let text = difference(Path::new("a.expected"), "one\n", "one\ntwo\n");
        assert!(text.starts_with("a.expected:2 differs\nexpected: (end)\nfound:    two\n"), "{text}");
    }

    #[test]
    fn a_file_that_is_missing_is_a_difference() {
        let mut files = GoldenFiles::new();
        files.differences.push("earlier".to_owned());
        if !is_update() {
            files.compare("/nowhere/at.all", "text");
            assert_eq!(files.differences.len(), 2);
            assert!(files.differences[1].starts_with("/nowhere/at.all: "), "{:?}", files.differences);
        }
    }
}
