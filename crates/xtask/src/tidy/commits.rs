//! Checks the subjects of commits.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Finding;

/// Longest subject of a commit, in characters.
const MAX_SUBJECT: usize = 72;

/// This file. The rule holds for the descendants of the commit that added it.
const INTRODUCED_BY: &str = "crates/xtask/src/tidy/commits.rs";

/// Checks the subjects of the commits since the rule exists, or since the last tag if that is later.
///
/// Merges are not checked. Neither are the commits of a branch that left before the rule and was merged after it. In a
/// shallow clone the oldest commit adds every file, so the later ones are checked.
pub fn check(root: &Path) -> Result<Vec<Finding>> {
    if !root.join(".git").exists() {
        println!("commit subjects are not checked: not a git checkout");
        return Ok(Vec::new());
    }
    let added = git(root, &["log", "--diff-filter=A", "--format=%H", "--", INTRODUCED_BY])?;
    // The file itself is not committed yet.
    let Some(introduced) = added.lines().last() else {
        println!("commit subjects are not checked: no commit adds {INTRODUCED_BY}");
        return Ok(Vec::new());
    };
    let is_later = |tag: &String| git(root, &["merge-base", "--is-ancestor", introduced, tag]).is_ok();
    let last_tag = git(root, &["describe", "--tags", "--abbrev=0"]).ok().map(|tag| tag.trim().to_owned());
    let base = last_tag.filter(is_later).unwrap_or_else(|| introduced.to_owned());
    let log = git(root, &["log", "--no-merges", "--ancestry-path", "--format=%h %s", &format!("{base}..HEAD")])?;
    Ok(log
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(hash, subject)| finding(hash, subject))
        .collect())
}

fn finding(hash: &str, subject: &str) -> Option<Finding> {
    let length = subject.chars().count();
    let message = if length > MAX_SUBJECT {
        format!("the subject has {length} characters; the maximum is {MAX_SUBJECT}")
    } else if !has_area(subject) {
        format!("the subject is not `area: imperative`: {subject}")
    } else {
        return None;
    };
    Some(Finding::new(&format!("commit {hash}"), 0, message))
}

/// Whether a subject is `area: text`, `area,area: text` or `area, area: text`.
fn has_area(subject: &str) -> bool {
    let Some((areas, text)) = subject.split_once(": ") else { return false };
    let is_area = |area: &str| {
        !area.is_empty() && area.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-/.".contains(c))
    };
    !text.trim().is_empty() && areas.split(',').all(|area| is_area(area.strip_prefix(' ').unwrap_or(area)))
}

fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    // A checkout may belong to another user than the one that checks it.
    let safe = ["-c", "safe.directory=*"];
    let output = Command::new("git").args(safe).args(arguments).current_dir(root).output().context("cannot run git")?;
    let reason = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git {} failed: {}", arguments.join(" "), reason.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a repository with an old subject, the rule, and a branch that left before the rule. `None` where git is
    /// not installed.
    fn repository(name: &str) -> Option<std::path::PathBuf> {
        Command::new("git").arg("--version").output().ok()?;
        let root = std::env::temp_dir().join(format!("tidy-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(root.join(INTRODUCED_BY).parent().expect("a folder")).expect("a temporary folder");
        git(&root, &["init", "-q", "-b", "main"]).expect("git works");
        commit(&root, "Say it the old way");
        git(&root, &["branch", "old"]).expect("git works");
        std::fs::write(root.join(INTRODUCED_BY), "").expect("a temporary file");
        git(&root, &["add", "."]).expect("git works");
        commit(&root, "Introduce the rule");
        Some(root)
    }

    fn commit(root: &Path, subject: &str) {
        let user = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"];
        git(root, &[&user[..], &["commit", "-q", "--allow-empty", "-m", subject]].concat()).expect("git commits");
    }

    fn subjects(root: &Path) -> Vec<String> {
        let findings = check(root).expect("the history can be read");
        findings.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn commits_before_the_rule_and_branches_that_left_before_it_are_not_checked() {
        let Some(root) = repository("branches") else { return testing::skip("git is not installed") };
        assert_eq!(subjects(&root), Vec::<String>::new());
        git(&root, &["checkout", "-q", "old"]).expect("git works");
        commit(&root, "Still the old way");
        git(&root, &["checkout", "-q", "main"]).expect("git works");
        commit(&root, "tables: reject overlapping prefixes");
        let user = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
        git(&root, &[&user[..], &["merge", "-q", "--no-ff", "-m", "Merge old", "old"]].concat()).expect("git merges");
        assert_eq!(subjects(&root), Vec::<String>::new());
        commit(&root, "Format");
        assert_eq!(subjects(&root), ["the subject is not `area: imperative`: Format"]);
        std::fs::remove_dir_all(&root).expect("it can be removed");
    }

    #[test]
    fn the_last_tag_counts_if_it_is_later_than_the_rule() {
        let Some(root) = repository("tags") else { return testing::skip("git is not installed") };
        git(&root, &["tag", "v0", "old"]).expect("git tags");
        commit(&root, "Format");
        assert_eq!(subjects(&root).len(), 1, "the tag is older than the rule");
        git(&root, &["tag", "v1"]).expect("git tags");
        assert_eq!(subjects(&root), Vec::<String>::new());
        commit(&root, "Format again");
        assert_eq!(subjects(&root), ["the subject is not `area: imperative`: Format again"]);
        std::fs::remove_dir_all(&root).expect("it can be removed");
    }

    #[test]
    fn a_shallow_clone_is_checked_after_its_oldest_commit() {
        let Some(root) = repository("whole") else { return testing::skip("git is not installed") };
        for subject in ["Format", "tables: reject overlapping prefixes"] {
            commit(&root, subject);
        }
        let shallow = root.with_extension("shallow");
        let _ = std::fs::remove_dir_all(&shallow);
        let (from, to) = (format!("file://{}", root.display()), shallow.display().to_string());
        git(&root, &["clone", "-q", "--depth", "2", &from, &to]).expect("git clones");
        assert_eq!(subjects(&shallow), Vec::<String>::new());
        git(&root, &["clone", "-q", "--depth", "3", &from, &format!("{to}3")]).expect("git clones");
        assert_eq!(subjects(Path::new(&format!("{to}3"))).len(), 1);
        for directory in [root, format!("{to}3").into(), shallow] {
            std::fs::remove_dir_all(directory).expect("it can be removed");
        }
    }

    #[test]
    fn subjects_have_an_area_and_a_length() {
        for good in [
            "tables: reject overlapping prefixes",
            "p4, ir: use the specification's words",
            "p4,ir: print totals",
            ".ci: x",
        ] {
            assert_eq!(finding("a", good), None, "{good}");
        }
        for bad in [
            "Tell of sessions once",
            "Format",
            "Tables: reject",
            ": reject",
            "tables:reject",
            "tables: ",
            "p4,: x",
            "p4,  ir: x",
        ] {
            assert!(finding("a", bad).is_some(), "{bad}");
        }
        assert!(finding("a", &format!("tables: {}", "x".repeat(65))).is_some());
        assert_eq!(finding("a", &format!("tables: {}", "x".repeat(64))), None);
    }
}
