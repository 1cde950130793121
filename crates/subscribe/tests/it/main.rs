//! The integration tests of `subscribe`, in one binary, so that their dependencies are linked once.

mod agreement;
mod analysis;
mod keywords;
mod language;
mod order;
mod state;
mod state_explosion;
mod support;
