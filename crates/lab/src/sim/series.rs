//! Values over time.

use switch::Time;

use crate::topology::End;

/// The queue of one direction of a link at one moment, and what it carried until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at: Time,
    /// The end that sends.
    pub from: End,
    /// Frames that wait.
    pub waiting: u64,
    /// Bytes carried since the beginning.
    pub carried_bytes: u64,
    /// Frames dropped because the queue was full, since the beginning.
    pub queue_full: u64,
}
