//! The integration tests of `translation`, in one binary, so that their dependencies are linked once.

mod translation;
