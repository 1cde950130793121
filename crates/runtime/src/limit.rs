//! Decides when a live run ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum time between two looks at the stop flag.
const MAX_SLEEP: Duration = Duration::from_millis(100);

/// A stop flag and an optional deadline.
#[derive(Clone, Copy)]
pub(crate) struct RunLimit<'a> {
    stop: &'a AtomicBool,
    deadline: Option<Instant>,
}

impl RunLimit<'_> {
    /// Returns the limit of a run that starts now. A duration that ends beyond the range of the clock is none.
    pub(crate) fn new(stop: &AtomicBool, duration: Option<Duration>) -> RunLimit<'_> {
        RunLimit { stop, deadline: duration.and_then(|duration| Instant::now().checked_add(duration)) }
    }

    pub(crate) fn is_reached(self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.longest_sleep().is_zero()
    }

    /// Returns how long a thread may sleep before it must look at the limit again.
    pub(crate) fn longest_sleep(self) -> Duration {
        self.deadline.map_or(MAX_SLEEP, |at| at.saturating_duration_since(Instant::now()).min(MAX_SLEEP))
    }
}
