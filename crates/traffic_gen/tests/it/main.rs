//! The integration tests of `traffic_gen`, in one binary, so that their dependencies are linked once.

mod specs;
