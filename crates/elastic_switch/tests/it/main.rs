//! The integration tests of `elastic_switch`, in one binary, so that their dependencies are linked once.

mod membership;
mod ports;
mod prefixes;
mod random;
mod rig;
mod tables;
