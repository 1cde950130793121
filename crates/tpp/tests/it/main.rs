//! The integration tests of `tpp`, in one binary.

mod dissector;
mod execution;
mod executor;
mod int;
mod language;
mod probe;
