//! Implements the v1model architecture: its declarations for the compiler, and the switch that runs its programs.
//!
//! [`V1Model`] is the [`compiler::Architecture`] that callers hand to the compiler.
//!
//! The central type is [`Switch`]: a sans-IO device ([`::switch::Device`]) that processes packets as BMv2's
//! `simple_switch` is documented to do.

mod control_plane;
pub mod description;
mod lower_hash;
mod lower_object;
mod lower_packet;
mod switch;
mod version;

pub use description::V1Model;
pub use jit::{Probe, ProbedPart};
pub use switch::{
    CPU_PORT, Config, DROP_PORT, EXECUTIONS_PER_SECOND, Executor, INT_MTU, Image, IntSettings, KernelMemory,
    KernelPortCount, LoadError, MAX_PORT, Path, PathCount, PathReason, Switch, TinySettings, WIDEST_PORT, drop_port,
    kernel_pipeline, max_port, memory_map,
};
