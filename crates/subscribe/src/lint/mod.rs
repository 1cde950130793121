//! Runs lints on sets of rules. Each module finds one kind of [`finding`].

pub(crate) mod covered;
pub(crate) mod finding;
pub(crate) mod ineffective_drop;
pub(crate) mod never_matches;
