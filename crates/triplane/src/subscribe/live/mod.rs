//! Manages the rules of a running switch: the service that changes them, and its clients.

pub mod args;
mod client;
mod remedy;
mod serve;

pub use client::{add, list, remove, watch};
pub use serve::serve;
