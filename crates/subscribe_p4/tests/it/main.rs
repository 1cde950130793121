//! The integration tests of `subscribe_p4`, in one binary, so that their dependencies are linked once.

mod changes;
mod formats;
mod possible;
mod random;
mod state;
mod support;
