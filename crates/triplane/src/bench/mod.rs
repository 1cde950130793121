//! What `triplane bench` does: traffic through a program, and where its time goes.
//!
//! [`memory`] runs a switch on batches in memory and times them; [`parts`] tells where the time goes, by what [`sampler`]
//! measured in a second run of code that says where it is. [`traffic`] decides what frames there are. [`report`] is what
//! people read and [`json`] what programs do. [`live`] measures whatever forwards between two interfaces.

pub mod derive;
pub mod histogram;
pub mod json;
pub mod live;
pub mod memory;
pub mod parts;
pub mod report;
pub mod sampler;
pub mod traffic;

use memory::{Counts, Measured};
use parts::Breakdown;

/// What a benchmark in memory found.
#[derive(Clone, Debug)]
pub struct Results {
    /// The program's file.
    pub program: String,
    /// Whether machine code ran.
    pub compiled: bool,
    /// Why the interpreter ran although nobody asked for it.
    pub why_interpreted: Option<String>,
    /// What frames there were.
    pub traffic: String,
    /// What the switch did with them.
    pub counts: Counts,
    /// How long it took.
    pub measured: Measured,
    /// The median of batches in each of the rounds, in nanoseconds a packet.
    pub rounds: Vec<f64>,
    /// How long the interpreter took for the same, if that was asked for.
    pub interpreter: Option<Measured>,
    /// Where the time went.
    pub breakdown: Breakdown,
    /// Nanoseconds a packet while parts were timed.
    pub probed_ns: f64,
}
