//! Records values over time.

use switch::Time;

use crate::topology::End;

/// The queue of one direction of a link at one moment, with its counters until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time of the sample.
    pub at: Time,
    /// The end that sends.
    pub from: End,
    /// Number of frames that wait.
    pub waiting: u64,
    /// Bytes carried since the simulation began.
    pub carried_bytes: u64,
    /// Frames dropped because the queue was full, since the simulation began.
    pub queue_full: u64,
}
