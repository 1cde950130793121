//! Defines frames, ports, and devices that process frames.

use std::fmt;

use crate::Time;

/// A port number, as programs see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u32);

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A frame with its ingress or egress port. The data begin with the link-layer header and end before the frame check
/// sequence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The port.
    pub port: PortId,
    /// The bytes.
    pub data: Vec<u8>,
}

impl Frame {
    /// Makes a frame of these bytes.
    pub fn new(port: u32, data: impl Into<Vec<u8>>) -> Frame {
        Frame { port: PortId(port), data: data.into() }
    }
}

/// A device with ports, driven from outside.
pub trait Device {
    /// Processes all of `input`, in order, and appends the frames that leave now to `output`, in the order in which
    /// they leave. Reads no clock; `now` must not decrease from call to call.
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>);

    /// Returns the time at which `step` has something to do even without a new frame, such as sending from a queue or
    /// an idle timeout. Returns `None` if only a frame can change anything.
    fn next_event(&self) -> Option<Time>;
}
