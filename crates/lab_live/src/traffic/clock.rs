//! Measures the time of a scenario by the machine's clock.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use switch::Time;

/// The time of a scenario. Every method waits until [`ScenarioClock::begin_in`] has been called.
#[derive(Clone)]
pub struct ScenarioClock {
    begin: Arc<OnceLock<Instant>>,
    end: Duration,
}

impl ScenarioClock {
    /// Returns a clock that has not begun.
    pub fn new(end: Duration) -> ScenarioClock {
        ScenarioClock { begin: Arc::default(), end }
    }

    /// Lets the scenario begin after a delay.
    pub fn begin_in(&self, later: Duration) {
        // Only the first call has an effect.
        let _ = self.begin.set(Instant::now() + later);
    }

    /// Returns the end of the scenario.
    fn over(&self) -> Instant {
        *self.begin.wait() + self.end
    }

    /// Returns the elapsed time of the scenario; zero before it begins.
    pub fn now(&self) -> Time {
        Time::from_ns(self.begin.wait().elapsed().as_nanos() as u64)
    }

    /// Waits until `ns` nanoseconds of the scenario have elapsed; false if it ends before.
    pub fn wait_until(&self, ns: u64) -> bool {
        let at = (*self.begin.wait() + Duration::from_nanos(ns)).min(self.over());
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
        Duration::from_nanos(ns) < self.end
    }

    /// Returns the remaining time of the scenario.
    pub fn remaining(&self) -> Duration {
        self.over().saturating_duration_since(Instant::now())
    }

    /// Whether the scenario is over. Frames still in flight then do not count as received, as in a simulation.
    pub fn is_over(&self) -> bool {
        self.remaining().is_zero()
    }
}
