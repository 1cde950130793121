//! The integration tests of `tables`, in one binary, so that their dependencies are linked once.

mod exact;
mod intervals;
mod lpm;
mod publish;
mod ternary;
