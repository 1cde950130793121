//! The integration tests of `runtime`, in one binary, so that their dependencies are linked once.

mod compile;
mod hooks;
mod links;
mod offline;
mod pool;
mod rig;
mod worker;
mod wrapper;
