//! Defines the faults that can be injected.

/// A fault at a node, or the end of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// The node stops. Arriving frames are lost, and so is a switch's state.
    Crash,
    /// The node restarts with fresh state.
    Restart,
    /// The node stops like a suspended process: arrivals and timers wait, and its state is kept.
    Suspend,
    /// The node continues.
    Resume,
    /// The link at a port goes down; frames on it are lost. The fault has to be injected at both ends.
    LinkDown(u32),
    /// The link at a port comes up again.
    LinkUp(u32),
    /// From now on a host needs this number of nanoseconds for each frame it receives; 0 for none.
    Slow(u64),
    /// From now on a host's clock has an offset and a drift.
    Skew {
        /// Nanoseconds that the clock is ahead; negative if it is behind.
        offset_ns: i64,
        /// Nanoseconds that the clock gains per second; negative if it loses time.
        drift_ppb: i64,
    },
}
