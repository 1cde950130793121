//! The integration tests of `jit`, in one binary, so that their dependencies are linked once.

mod both;
mod chains;
mod generated;
mod hostile;
mod pipelines;
