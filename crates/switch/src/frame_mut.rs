//! Frames that a switch processes in the driver's own memory.
//!
//! ```text
//! headroom() = free bytes | frame      a switch rewrites the frame in place, moves its start when headers grow or
//!                                      shrink, and moves its end only to truncate it
//! ```
//!
//! For a batch processed in place, the switch returns one [`Egress`] per frame that leaves: the index of a frame of the
//! batch, or an owned frame that the switch allocated (a copy, a frame that was queued, a frame that outgrew its
//! headroom). The driver may reuse every frame of the batch that no [`Egress`] names.

use crate::{Frame, PortId};

/// A frame in memory that a switch may rewrite.
pub trait FrameMut {
    /// Returns the writable buffer, from the start of the headroom to the end of the frame, and the offset at which the
    /// frame starts.
    fn headroom(&mut self) -> (&mut [u8], usize);

    /// Moves the start of the frame to an offset within [`headroom`](FrameMut::headroom). The end stays.
    fn set_start(&mut self, start: usize);

    /// Truncates the frame to `length` bytes; a shorter one stays unchanged.
    fn truncate(&mut self, length: usize);
}

/// A frame that leaves a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Egress {
    /// A frame of the batch, rewritten in place.
    InPlace {
        /// Index of the frame in the batch.
        index: usize,
        /// The port it leaves by.
        port: PortId,
    },
    /// A frame that the switch allocated.
    Owned(Frame),
}

/// A heap-allocated frame with headroom, for callers without driver memory (tests, benchmarks).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadroomBuf {
    buffer: Vec<u8>,
    start: usize,
}

impl HeadroomBuf {
    /// Copies `bytes` after `headroom` free bytes.
    pub fn new(bytes: &[u8], headroom: usize) -> HeadroomBuf {
        let mut buffer = vec![0; headroom + bytes.len()];
        buffer[headroom..].copy_from_slice(bytes);
        HeadroomBuf { buffer, start: headroom }
    }

    /// Returns the frame.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
    }
}

impl FrameMut for HeadroomBuf {
    fn headroom(&mut self) -> (&mut [u8], usize) {
        (&mut self.buffer, self.start)
    }

    fn set_start(&mut self, start: usize) {
        assert!(start <= self.buffer.len(), "a frame starts within its buffer");
        self.start = start;
    }

    fn truncate(&mut self, length: usize) {
        self.buffer.truncate(self.start.saturating_add(length));
    }
}
