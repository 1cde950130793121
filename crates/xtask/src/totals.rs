//! Counts tests that passed, failed and were skipped, from the output of `cargo test` and the log of skipped tests.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Totals over all test programs of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Totals {
    succeeded: usize,
    failed: usize,
    ignored: usize,
    skipped: usize,
    failures: Vec<String>,
}

impl Totals {
    /// Adds a line of `cargo test`: `test result: ok. 12 passed; 0 failed; 1 ignored; ...`, or the name of a test that
    /// failed. Other lines are ignored.
    pub fn read(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.trim_end().strip_suffix(" ... FAILED")) {
            self.failures.push(name.to_owned());
        }
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        let words: Vec<&str> = counts.split_whitespace().collect();
        for pair in words.windows(2) {
            let Ok(count) = pair[0].parse::<usize>() else { continue };
            match pair[1] {
                "passed;" => self.succeeded += count,
                "failed;" => self.failed += count,
                "ignored;" => self.ignored += count,
                _ => {}
            }
        }
    }

    /// Adds `count` tests that recorded that they did not run; the test harness counted them as passed.
    pub fn skip(&mut self, count: usize) {
        self.skipped += count;
    }

    /// Tests that ran and passed.
    pub fn passed(&self) -> usize {
        self.succeeded.saturating_sub(self.skipped)
    }

    /// Names of the tests that failed.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Tests that did not run.
    pub fn skipped(&self) -> usize {
        self.skipped + self.ignored
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed(), self.failed, self.skipped())
    }
}

/// The file in which tests record that they skip: a line each.
pub struct SkipLog(PathBuf);

impl SkipLog {
    /// Creates an empty log, in the target directory.
    pub fn new() -> Result<SkipLog> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
        let path = crate::root().join(target).join("skipped-tests");
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", path.display()))
            }
            _ => Ok(SkipLog(path)),
        }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the recorded lines; none if the file does not exist.
    pub fn lines(&self) -> Result<Vec<String>> {
        match std::fs::read_to_string(&self.0) {
            Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", self.0.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_totals_of_several_test_programs_add_up() {
        let mut totals = Totals::default();
        totals.read("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.1s\n");
        totals.read("test lex::strings ... ok");
        totals.read("test lex::numbers ... FAILED\n");
        totals.read("test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s\n");
        assert_eq!(totals.to_string(), "17 passed, 2 failed, 1 skipped");
        assert_eq!(totals.failures(), ["lex::numbers"]);
    }

    #[test]
    fn a_test_that_skipped_did_not_pass() {
        let mut totals = Totals::default();
        totals.read("test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
        totals.skip(2);
        assert_eq!(totals.to_string(), "1 passed, 0 failed, 2 skipped");
    }
}
