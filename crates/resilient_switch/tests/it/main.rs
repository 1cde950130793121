//! The integration tests of `resilient_switch`, in one binary, so that their dependencies are linked once.

mod aging;
mod batches;
mod interpreted_histories;
mod lookups;
mod operations;
mod piggyback;
mod random_networks;
mod rig;
mod sharing;
mod snapshots;
mod takeover;
