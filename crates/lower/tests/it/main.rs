//! The integration tests of `lower`, in one binary, so that their dependencies are linked once.

mod behaviour;
mod golden;
mod limits;
mod pipeline;
