//! The integration tests of `bpf`, in one binary, so that their dependencies are linked once.

mod features;
mod generated;
mod headers;
mod kernel;
mod machine;
mod programs;
mod region;
mod rig;
mod router;
mod writer;
