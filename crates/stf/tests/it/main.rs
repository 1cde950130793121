//! The integration tests of `stf`, in one binary, so that their dependencies are linked once.

mod files;
mod mutations;
mod reports;
mod support;
mod wide_ports;
