//! The integration tests of `p4runtime_server`, in one binary, so that their dependencies are linked once.

mod beside_kernel;
mod hostile;
mod older_clients;
mod random;
mod restore;
mod spec;
mod v1model_target;
mod workers;
