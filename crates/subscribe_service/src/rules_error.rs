//! Rules that cannot be read or used.

use std::path::PathBuf;

use crate::rule_files::FileError;
use crate::rule_journal::JournalError;
use crate::rule_set::RuleSetError;

/// Rules, or a file of them, that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The rules have mistakes, as rendered diagnostics.
    #[error("{0}")]
    Mistakes(String),
    /// The rules cannot be compiled together.
    #[error(transparent)]
    Set(#[from] RuleSetError),
    /// The rules file cannot be read.
    #[error("{} {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: FileError,
    },
    /// The journal cannot be used.
    #[error("{} {source}", path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// The reason.
        source: JournalError,
    },
    /// A text in the journal is no rule, or several.
    #[error("{} has lines that do not contain exactly one rule", path.display())]
    JournalRules {
        /// The journal.
        path: PathBuf,
    },
    /// The journal cannot be compacted.
    #[error("cannot write {}: {source}", path.display())]
    JournalNotWritten {
        /// The journal.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}
