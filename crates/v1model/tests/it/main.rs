//! The integration tests of `v1model`, in one binary, so that their dependencies are linked once.

mod copies;
mod declarations;
mod rows;
mod stories;
mod workers;
