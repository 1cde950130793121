//! Frames, ports, and what takes and gives frames.

use std::fmt;

use crate::Time;

/// The number of a port, as the program sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u32);

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A frame and the port it came in on, or is to leave by. The data begin with the link-layer header and end before
/// the frame check sequence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The port.
    pub port: PortId,
    /// The bytes.
    pub data: Vec<u8>,
}

impl Frame {
    /// A frame of these bytes.
    pub fn new(port: u32, data: impl Into<Vec<u8>>) -> Frame {
        Frame { port: PortId(port), data: data.into() }
    }
}

/// Something with ports, driven from outside.
pub trait Device {
    /// Takes all of `input`, in order, and appends what leaves now to `output`, in the order it leaves; reads no
    /// clock. `now` does not go backwards from call to call.
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>);

    /// When `step` has something to do next although no frame came: a queue may send, an entry times out. `None`
    /// while only a frame can change anything.
    fn next_event(&self) -> Option<Time>;
}
