//! The integration tests of `resilient_store`, in one binary, so that their dependencies are linked once.

mod attack;
mod durable;
mod live;
