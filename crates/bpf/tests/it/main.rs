//! The integration tests of `bpf`, in one binary, so that their dependencies are linked once.

mod atomic;
mod beside;
mod features;
mod fuel;
mod generated;
mod headers;
mod kernel;
mod limits;
mod machine;
mod meter_paths;
mod meters;
mod moved;
mod order;
mod partial;
mod profiles;
mod programs;
mod region;
mod rig;
mod router;
mod rules;
mod stacks;
mod state;
mod value_set_paths;
mod value_sets;
mod wide;
mod writer;
