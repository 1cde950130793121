//! The integration tests of `tpp`, in one binary.

mod dissector;
mod execution;
mod language;
mod probe;
