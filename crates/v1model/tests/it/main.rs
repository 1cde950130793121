//! The integration tests of `v1model`, in one binary, so that their dependencies are linked once.

mod copies;
mod declarations;
mod row_tables;
mod rows;
mod stories;
mod workers;
