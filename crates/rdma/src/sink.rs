//! Memory that frames are written to.

use std::collections::VecDeque;

/// Memory for frames to send, such as that of a port. Frames leave in the order in which they were committed.
pub trait FrameSink {
    /// Lends memory for a frame of `len` bytes; none if there is no room. The contents are undefined.
    fn room(&mut self, len: usize) -> Option<&mut [u8]>;

    /// Sends the first `len` bytes of the memory that was lent last.
    fn commit(&mut self, len: usize);
}

/// A list of frames.
#[derive(Debug, Default)]
pub struct FrameList {
    frames: VecDeque<Vec<u8>>,
    lent: Vec<u8>,
}

impl FrameList {
    /// Removes and returns the first frame.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        self.frames.pop_front()
    }

    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there are no frames.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

impl FrameSink for FrameList {
    fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        self.lent.resize(len, 0);
        Some(&mut self.lent)
    }

    fn commit(&mut self, len: usize) {
        let mut frame = std::mem::take(&mut self.lent);
        frame.truncate(len);
        self.frames.push_back(frame);
    }
}
