//! The integration tests of `p4_constraints`, in one binary, so that their dependencies are linked once.

mod random;
mod references;
mod restrictions;
