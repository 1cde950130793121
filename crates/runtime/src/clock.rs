//! Measures the time of a live run.

use std::time::Instant;

use switch::Time;

/// A monotonic clock that starts at 0 when a live run starts. All workers and hooks of a run share one.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Returns a clock that reads 0 now.
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// Returns the time since the start.
    pub fn now(&self) -> Time {
        Time::from_ns(self.0.elapsed().as_nanos() as u64)
    }
}
