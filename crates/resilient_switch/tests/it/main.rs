//! The integration tests of `resilient_switch`, in one binary, so that their dependencies are linked once.

mod lookups;
mod random_networks;
mod rig;
mod takeover;
