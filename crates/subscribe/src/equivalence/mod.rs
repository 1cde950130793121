//! Equivalence of tables: tables as installed on a switch are converted to decision diagrams and compared.

pub mod chain;
pub(crate) mod check;
