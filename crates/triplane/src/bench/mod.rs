//! `triplane bench`: sends traffic through a program and breaks down the time by part.
//!
//! [`v1model_runtime::bench`] runs the switch and takes the times. [`breakdown`] breaks the time down by part, from the
//! measurements of a second run with instrumented code. [`traffic`] chooses the frames. [`report`] renders the results
//! for people and [`json`] for programs. [`live`] measures any forwarder between two interfaces.

pub mod breakdown;
pub mod derive;
pub mod json;
pub mod live;
pub mod report;
pub mod traffic;

use breakdown::Breakdown;
use v1model_runtime::bench::memory::{Counts, Measured};

/// The results of a benchmark in memory.
#[derive(Clone, Debug)]
pub struct Results {
    /// The program's file.
    pub program: String,
    /// Whether machine code ran.
    pub compiled: bool,
    /// The reason why the interpreter ran without being requested.
    pub why_interpreted: Option<String>,
    /// A description of the traffic.
    pub traffic: String,
    /// Number of packets by their outcome.
    pub counts: Counts,
    /// The measured times.
    pub measured: Measured,
    /// The median of the batches in each round, in nanoseconds a packet.
    pub rounds: Vec<f64>,
    /// The interpreter's times for the same traffic, if requested.
    pub interpreter: Option<Measured>,
    /// The time by part.
    pub breakdown: Breakdown,
    /// Nanoseconds a packet while parts were being timed.
    pub probed_ns: f64,
}
