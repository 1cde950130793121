//! The scenario's time, on the machine's clock.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use switch::Time;

/// The scenario's time. It stands still, and whoever looks at it waits, until everybody is ready.
#[derive(Clone)]
pub struct Clock {
    begin: Arc<OnceLock<Instant>>,
    end: Duration,
}

impl Clock {
    /// A clock that has not begun.
    pub fn new(end: Duration) -> Clock {
        Clock { begin: Arc::default(), end }
    }

    /// Has the scenario begin so much later.
    pub fn begin_in(&self, later: Duration) {
        // It begins once.
        let _ = self.begin.set(Instant::now() + later);
    }

    /// When the scenario is over.
    fn over(&self) -> Instant {
        *self.begin.wait() + self.end
    }

    /// How far the scenario is; zero before it begins.
    pub fn now(&self) -> Time {
        Time::from_ns(self.begin.wait().elapsed().as_nanos() as u64)
    }

    /// Waits until so many nanoseconds of the scenario are over; false if it ends before.
    pub fn wait_until(&self, ns: u64) -> bool {
        let at = (*self.begin.wait() + Duration::from_nanos(ns)).min(self.over());
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
        Duration::from_nanos(ns) < self.end
    }

    /// What is left of the scenario.
    pub fn left(&self) -> Duration {
        self.over().saturating_duration_since(Instant::now())
    }

    /// Whether the scenario is over. What is still on its way then has not arrived, as in a simulation.
    pub fn is_over(&self) -> bool {
        self.left().is_zero()
    }
}
