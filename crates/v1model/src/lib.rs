//! The v1model architecture: what its programs are given at compile time, and the switch that runs them.
//!
//! The central type is [`Switch`]: a sans-IO device ([`::switch::Device`]) that does with packets what BMv2's
//! `simple_switch` is documented to do.

pub mod description;
mod lower_hash;
mod lower_object;
mod lower_packet;
mod switch;

pub use jit::{Part, Probe};
pub use switch::{CPU_PORT, Config, DROP_PORT, Executor, Image, LoadError, Switch};
