//! Records frames at a port.

use switch::Time;

/// Callback that receives each recorded frame.
type Take = dyn FnMut(Time, Way, &[u8]) + Send;

/// Records the frames that pass a port, with the time: a received frame at its arrival, a sent frame when it is handed
/// to the link.
pub struct Capture(Box<Take>);

/// Direction of a frame at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Received by the port.
    In,
    /// Sent by the port.
    Out,
}

impl Capture {
    /// Passes every frame to a function.
    pub fn new(take: impl FnMut(Time, Way, &[u8]) + Send + 'static) -> Capture {
        Capture(Box::new(take))
    }

    pub(super) fn take(&mut self, now: u64, way: Way, frame: &[u8]) {
        (self.0)(Time::from_ns(now), way, frame);
    }
}
