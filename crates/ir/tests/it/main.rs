//! The integration tests of `ir`, in one binary, so that their dependencies are linked once.

mod generate;
mod golden;
mod random;
mod rules;
mod text;
