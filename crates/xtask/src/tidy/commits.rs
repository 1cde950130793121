//! Subjects of commits.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Finding;

/// Longest subject of a commit, in characters.
const MAX_SUBJECT: usize = 72;

/// This file. If there is no tag, the rule begins at the commit that added it.
const INTRODUCED_BY: &str = "crates/xtask/src/tidy/commits.rs";

/// Checks the subjects of the commits since the last tag. Without a git checkout there is nothing to check.
pub fn check(root: &Path) -> Result<Vec<Finding>> {
    if !root.join(".git").exists() {
        return Ok(Vec::new());
    }
    let base = match git(root, &["describe", "--tags", "--abbrev=0"]) {
        Ok(tag) => tag,
        Err(_) => {
            let added = git(root, &["log", "--diff-filter=A", "--format=%H", "--", INTRODUCED_BY])?;
            added.lines().last().unwrap_or("").to_owned()
        }
    };
    // The file itself is not committed yet.
    if base.trim().is_empty() {
        return Ok(Vec::new());
    }
    let log = git(root, &["log", "--no-merges", "--format=%h %s", &format!("{}..HEAD", base.trim())])?;
    Ok(log
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(hash, subject)| finding(hash, subject))
        .collect())
}

fn finding(hash: &str, subject: &str) -> Option<Finding> {
    let length = subject.chars().count();
    let message = if length > MAX_SUBJECT {
        format!("the subject has {length} characters; at most {MAX_SUBJECT}")
    } else if !has_area(subject) {
        format!("the subject is not `area: imperative`: {subject}")
    } else {
        return None;
    };
    Some(Finding::new(&format!("commit {hash}"), 0, message))
}

/// Whether a subject is `area: text` or `area, area: text`.
fn has_area(subject: &str) -> bool {
    let Some((areas, text)) = subject.split_once(": ") else { return false };
    let is_area = |area: &str| {
        !area.is_empty() && area.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-/.".contains(c))
    };
    !text.trim().is_empty() && areas.split(", ").all(is_area)
}

fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").args(arguments).current_dir(root).output().context("cannot run git")?;
    ensure!(output.status.success(), "git {} failed", arguments.join(" "));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_have_an_area_and_a_length() {
        for good in
            ["tables: reject overlapping prefixes", "p4, ir: use the specification's words", ".ci: print totals"]
        {
            assert_eq!(finding("a", good), None, "{good}");
        }
        for bad in ["Tell of sessions once", "Format", "Tables: reject", ": reject", "tables:reject", "tables: "] {
            assert!(finding("a", bad).is_some(), "{bad}");
        }
        assert!(finding("a", &format!("tables: {}", "x".repeat(65))).is_some());
        assert_eq!(finding("a", &format!("tables: {}", "x".repeat(64))), None);
    }
}
