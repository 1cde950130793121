//! The integration tests of `tpp`, in one binary.

mod dissector;
mod execution;
mod int;
mod language;
mod probe;
