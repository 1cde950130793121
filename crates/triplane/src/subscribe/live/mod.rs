//! Rules of a switch that runs: the service that changes them, and its clients.

pub mod args;
mod client;
mod serve;

pub use client::{add, list, remove, watch};
pub use serve::serve;
