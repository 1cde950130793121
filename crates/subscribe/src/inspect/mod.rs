//! Inspects a set of rules: explanations, drawings and sizes.

pub(crate) mod dot;
pub(crate) mod explain;
pub(crate) mod stats;
