//! The integration tests of `compiler`, in one binary, so that their dependencies are linked once.

mod form;
mod missing_include;
mod shared_names;
