//! The integration tests of `p4info`, in one binary, so that their dependencies are linked once.

mod golden;
mod limits;
