//! Describes the extent of a published feed.

/// Limits after which publishing stops; without any, it never stops.
#[derive(Clone, Copy, Debug, Default)]
pub struct PublishLimit {
    /// Maximum duration in seconds.
    pub seconds: Option<f64>,
    /// Maximum number of datagrams.
    pub datagrams: Option<u64>,
}

impl PublishLimit {
    /// Whether the limit is reached.
    pub fn is_reached(&self, due_ns: u64, datagrams: u64) -> bool {
        self.seconds.is_some_and(|seconds| due_ns as f64 >= seconds * 1e9)
            || self.datagrams.is_some_and(|most| datagrams >= most)
    }
}

/// Statistics of a published feed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Published {
    /// Number of datagrams with messages.
    pub datagrams: u64,
    /// Number of messages in them.
    pub messages: u64,
    /// Number of these datagrams for which the machine's own queues had no room.
    pub refused: u64,
    /// Duration of publishing, in seconds.
    pub seconds: f64,
    /// Time by which the sender fell behind, in seconds.
    pub late_seconds: f64,
}
