//! Recording of frames at a port.

use switch::Time;

/// What is done with a frame.
type Take = dyn FnMut(Time, Way, &[u8]) + Send;

/// Takes the frames that pass a port, with the time: what was received at its arrival, what was sent when it is handed
/// to the link.
pub struct Capture(Box<Take>);

/// Which way a frame went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It came in.
    In,
    /// It went out.
    Out,
}

impl Capture {
    /// Hands every frame to a function.
    pub fn new(take: impl FnMut(Time, Way, &[u8]) + Send + 'static) -> Capture {
        Capture(Box::new(take))
    }

    pub(super) fn take(&mut self, now: u64, way: Way, frame: &[u8]) {
        (self.0)(Time::from_ns(now), way, frame);
    }
}
