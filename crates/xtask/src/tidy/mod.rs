//! Runs `cargo xtask tidy`: checks the part of the project's style that a machine can check.
//!
//! | check | rule |
//! |---|---|
//! | width | comments and Markdown have at most 120 columns; table rows, links and code blocks may be longer |
//! | length | a source file has at most 600 lines |
//! | words | comments and Markdown use none of the banned words |
//! | openers | at most 5 % of a crate's doc comments begin with What, How, Who, Where, Which or Why |
//! | names | a type name is defined in at most three crates |
//! | subjects | commit subjects since the last tag, and since this rule, are `area: imperative`, at most 72 characters |
//!
//! Foreign interface files (`.proto`) and test data are not checked. The checks are pure functions from a file's text
//! to findings; this module reads the files.

mod comments;
mod commits;
mod names;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

/// Text that `cargo xtask tidy --help` prints below the first line.
pub const HELP: &str = "\
Usage: cargo xtask tidy [OPTIONS]

Checks line width, file length, banned words, the openers of doc comments, ambiguous type names, and the subjects of the
commits since the last tag. Lists every finding with its file and line.

Options:
  --counters   Also print the counters of every crate
";

/// Longest line of a comment or of Markdown, in columns.
const MAX_COLUMNS: usize = 120;

/// Most lines of a source file.
const MAX_LINES: usize = 600;

/// Largest share of doc comments that begin with a question word, in per cent of a crate's doc comments.
const MAX_OPENERS_PERCENT: usize = 5;

/// A violation: file, line (0 for the whole file) and message.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    file: String,
    line: usize,
    message: String,
}

impl Finding {
    fn new(file: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { file: file.to_owned(), line, message: message.into() }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.line == 0 {
            write!(f, "{}: {}", self.file, self.message)
        } else {
            write!(f, "{}:{}: {}", self.file, self.line, self.message)
        }
    }
}

/// Counters of one crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    doc_comments: usize,
    question_openers: usize,
}

/// Runs all checks and prints the findings. Returns false if there are any.
pub fn run(arguments: &[String]) -> Result<bool> {
    let mut show_counters = false;
    for argument in arguments {
        ensure!(argument == "--counters", "unknown option `{argument}`; see `cargo xtask tidy --help`");
        show_counters = true;
    }
    let mut findings = Vec::new();
    let mut crates: BTreeMap<String, Counters> = BTreeMap::new();
    let mut definitions = names::Definitions::default();
    for file in source_files()? {
        let path = crate::root().join(&file);
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if file.ends_with(".md") {
            findings.extend(comments::check_markdown(&file, &text));
        } else if file.ends_with(".rs") {
            let name = crate_of(&file);
            let counters = comments::check_rust(&file, &text, &mut findings);
            let sum = crates.entry(name.to_owned()).or_default();
            sum.doc_comments += counters.doc_comments;
            sum.question_openers += counters.question_openers;
            if !file.contains("/tests/") && !file.contains("/benches/") {
                definitions.add(name, &file, &text);
            }
        }
    }
    for (name, Counters { doc_comments, question_openers }) in &crates {
        if question_openers * 100 > doc_comments * MAX_OPENERS_PERCENT {
            let message = format!(
                "{question_openers} of {doc_comments} doc comments begin with a question word; begin with a verb or a noun phrase \
                 (at most {MAX_OPENERS_PERCENT} %)"
            );
            findings.push(Finding::new(name, 0, message));
        }
        if show_counters {
            println!("{name:20} {question_openers:>4} of {doc_comments:>5} doc comments begin with a question word");
        }
    }
    findings.extend(definitions.check());
    findings.extend(commits::check(crate::root())?);
    for finding in &findings {
        eprintln!("{finding}");
    }
    println!("{} files of {} crates, {} findings", definitions.files(), crates.len(), findings.len());
    Ok(findings.is_empty())
}

/// Returns the Rust and Markdown files that the rules apply to: all but test data, generated code and build results.
fn source_files() -> Result<Vec<String>> {
    let root = crate::root();
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let unreadable = || format!("cannot read {}", folder.display());
        for entry in std::fs::read_dir(&folder).with_context(unreadable)? {
            let path = entry.with_context(unreadable)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_build_result = path.join("CACHEDIR.TAG").exists();
            let is_data = matches!(name, "testdata" | "generated");
            if path.is_dir() && !path.is_symlink() && !name.starts_with('.') && !is_data && !is_build_result {
                folders.push(path);
            } else if path.is_file() && (name.ends_with(".rs") || name.ends_with(".md")) {
                files.extend(path.strip_prefix(root)?.to_str().map(str::to_owned));
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the crate that a file belongs to: `crates/NAME/…` to `NAME`, `fuzz/…` to `fuzz`.
fn crate_of(file: &str) -> &str {
    let path = file.strip_prefix("crates/").unwrap_or(file);
    path.split('/').next().unwrap_or(path)
}
