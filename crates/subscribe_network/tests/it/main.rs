//! The integration tests of `subscribe_network`, in one binary, so that their dependencies are linked once.

mod routes;
mod shapes;
