//! Reference semantics of rules and of their state, for tests and explanations.

pub(crate) mod evaluate;
pub(crate) mod memory;
