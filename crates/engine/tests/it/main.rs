//! The integration tests of `engine`, in one binary, so that their dependencies are linked once.

mod arrays;
mod expressions;
mod fuzz;
mod parsers;
mod profiles;
mod rows;
mod snapshots;
mod tables;
mod workers;
mod world;
