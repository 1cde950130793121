//! Measures the switch in memory, for `triplane bench`.
//!
//! [`memory`] passes batches of frames through the switch and times them, in a [`histogram`]. With instrumentation,
//! [`sampler`] times the parts of a packet's path; the interpreter reports them through a watcher.

pub mod histogram;
pub mod memory;
pub mod sampler;
mod watcher;
