//! The integration tests of `p4`, in one binary, so that their dependencies are linked once.

mod check_diagnostics;
mod check_facts;
mod check_limits;
mod check_mutations;
mod fuzz_parse;
mod guarantees;
mod limits;
mod parse_diagnostics;
mod preprocess;
mod shape;
