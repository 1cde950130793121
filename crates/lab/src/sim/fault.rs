//! What can go wrong.

/// Something that goes wrong with a node, or right again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// The node stops: what arrives is lost, a switch's state too.
    Crash,
    /// The node starts again, as new.
    Restart,
    /// The link at a port carries nothing; what is on it is lost. Both ends have to be told.
    LinkDown(u32),
    /// The link at a port carries frames again.
    LinkUp(u32),
    /// From now on a host needs so many nanoseconds for each frame it receives; 0 for none.
    Slow(u64),
    /// A host's clock is off by so many nanoseconds, and gains so many nanoseconds a second from now on.
    Skew {
        /// Nanoseconds that the clock is ahead; negative if behind.
        offset_ns: i64,
        /// Nanoseconds that the clock gains a second; negative if it loses.
        drift_ppb: i64,
    },
}
