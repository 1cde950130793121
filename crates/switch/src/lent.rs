//! Frames that stay where a driver put them.
//!
//! ```text
//! room() = headroom | frame        a switch changes the frame where it lies, and moves its beginning if headers come or go
//! ```
//!
//! A switch that is lent a batch says of each frame that leaves whether it is the one it was lent, in place, or one that it
//! made: a copy, a frame that waited, one that outgrew its room. Everything that is not named has been dealt with.

use crate::{Frame, PortId};

/// A frame in memory that a switch may change.
pub trait Lend {
    /// The bytes before the frame that may be written, and the frame behind them: all of it, and where the frame begins.
    fn room(&mut self) -> (&mut [u8], usize);

    /// Moves the beginning of the frame within its [`room`](Lend::room); its end stays.
    fn set_start(&mut self, start: usize);
}

/// A frame that leaves a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Departed {
    /// The frame with this number in the batch that was lent, as it lies there now.
    Lent {
        /// Its place in the batch.
        number: usize,
        /// The port it leaves by.
        port: PortId,
    },
    /// Another frame.
    Made(Frame),
}

/// A frame on the heap with room before it: what a switch can be lent where no driver has memory of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roomy {
    buffer: Vec<u8>,
    start: usize,
}

impl Roomy {
    /// A copy of these bytes with so many bytes of room before them.
    pub fn new(bytes: &[u8], room: usize) -> Roomy {
        let mut buffer = vec![0; room + bytes.len()];
        buffer[room..].copy_from_slice(bytes);
        Roomy { buffer, start: room }
    }

    /// The frame.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
    }
}

impl Lend for Roomy {
    fn room(&mut self) -> (&mut [u8], usize) {
        (&mut self.buffer, self.start)
    }

    fn set_start(&mut self, start: usize) {
        assert!(start <= self.buffer.len(), "a frame begins within its room");
        self.start = start;
    }
}
