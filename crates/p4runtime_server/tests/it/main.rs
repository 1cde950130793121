//! The integration tests of `p4runtime_server`, in one binary, so that their dependencies are linked once.

mod hostile;
mod random;
mod spec;
mod v1model_target;
