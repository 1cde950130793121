//! The integration tests of `resilient_store`, in one binary, so that their dependencies are linked once.

mod durable;
mod live;
