//! Computes departure times of datagrams: evenly spaced, random, or in bursts.

use switch::Time;

use crate::random::Random;
use crate::scenario::Timing;

/// Distribution of the departure times of datagrams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Evenly spaced departures.
    Constant {
        /// Nanoseconds between consecutive departures.
        interval_ns: u64,
    },
    /// Independent departures (a Poisson process).
    Poisson {
        /// Mean number of nanoseconds between consecutive departures.
        mean_ns: f64,
    },
    /// A constant rate during on periods, and silence during off periods; the lengths of both are exponentially
    /// distributed.
    OnOff {
        /// Nanoseconds between consecutive departures during an on period.
        interval_ns: u64,
        /// Mean length of an on period, in nanoseconds.
        mean_on_ns: f64,
        /// Mean length of an off period, in nanoseconds.
        mean_off_ns: f64,
    },
}

impl Pattern {
    /// Returns the pattern for frames of `size` bytes at `rate_bps` bits of frames a second.
    pub fn of(timing: Timing, size: u32, rate_bps: u64) -> Pattern {
        let interval = f64::from(size) * 8e9 / rate_bps.max(1) as f64;
        let interval_ns = (interval.round() as u64).max(1);
        match timing {
            Timing::Constant => Pattern::Constant { interval_ns },
            Timing::Poisson => Pattern::Poisson { mean_ns: interval },
            Timing::OnOff { on, off } => {
                Pattern::OnOff { interval_ns, mean_on_ns: on.as_ns() as f64, mean_off_ns: off.as_ns() as f64 }
            }
        }
    }

    /// Returns the mean number of nanoseconds between departures, while there are some.
    pub fn mean_interval_ns(&self) -> u64 {
        match *self {
            Pattern::Constant { interval_ns } | Pattern::OnOff { interval_ns, .. } => interval_ns,
            Pattern::Poisson { mean_ns } => mean_ns as u64,
        }
    }
}

/// The sequence of a pattern's departure times. A simulation and real senders use it alike.
#[derive(Clone, Debug)]
pub struct Departures {
    pattern: Pattern,
    next: Time,
    burst_ends: Time,
}

impl Departures {
    /// Creates the sequence of departures; the first is at `start`.
    pub fn new(pattern: Pattern, start: Time) -> Departures {
        Departures { pattern, next: start, burst_ends: Time::ZERO }
    }

    /// Returns the time of the current departure.
    pub fn due(&self) -> Time {
        self.next
    }

    /// Advances to the next departure.
    pub fn advance(&mut self, random: &mut Random) {
        self.next = match self.pattern {
            Pattern::Constant { interval_ns } => self.next.after_ns(interval_ns.max(1)),
            Pattern::Poisson { mean_ns } => self.next.after_ns(random.exponential_ns(mean_ns)),
            Pattern::OnOff { interval_ns, mean_on_ns, mean_off_ns } => {
                let next = self.next.after_ns(interval_ns.max(1));
                if next < self.burst_ends {
                    next
                } else {
                    let begins = next.after_ns(random.exponential_ns(mean_off_ns));
                    self.burst_ends = begins.after_ns(random.exponential_ns(mean_on_ns).max(1));
                    begins
                }
            }
        };
    }
}
