//! When datagrams are sent: evenly, at random, or in bursts.

use switch::Time;

use crate::random::Random;
use crate::scenario::Timing;

/// When datagrams are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// One every so many nanoseconds.
    Constant {
        /// Nanoseconds from one to the next.
        interval_ns: u64,
    },
    /// Independent of each other (a Poisson process), one every so many nanoseconds on average.
    Poisson {
        /// The mean of the nanoseconds from one to the next.
        mean_ns: f64,
    },
    /// At a constant rate for a time, then silent for a time; both times are exponential.
    OnOff {
        /// Nanoseconds from one to the next while on.
        interval_ns: u64,
        /// The mean of the time on, in nanoseconds.
        mean_on_ns: f64,
        /// The mean of the time off, in nanoseconds.
        mean_off_ns: f64,
    },
}

impl Pattern {
    /// The pattern of frames of `size` bytes at `rate_bps` bits of frames a second.
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
}

/// The moments of a pattern, one after the other. A simulation and real senders use it alike.
#[derive(Clone, Debug)]
pub struct Departures {
    pattern: Pattern,
    next: Time,
    burst_ends: Time,
}

impl Departures {
    /// The moments from `start` on, which is the first.
    pub fn new(pattern: Pattern, start: Time) -> Departures {
        Departures { pattern, next: start, burst_ends: Time::ZERO }
    }

    /// The moment whose turn it is.
    pub fn due(&self) -> Time {
        self.next
    }

    /// Goes on to the next one.
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
