//! Time as a value.

use std::fmt;

/// A moment, in nanoseconds since the device began. Whoever drives a device decides what that means: a real clock's
/// reading, or the time of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The beginning.
    pub const ZERO: Time = Time(0);

    /// So many nanoseconds after the beginning.
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns)
    }

    /// So many microseconds after the beginning; the end of time if that is too far.
    pub const fn from_us(us: u64) -> Time {
        Time(us.saturating_mul(1_000))
    }

    /// So many milliseconds after the beginning; the end of time if that is too far.
    pub const fn from_ms(ms: u64) -> Time {
        Time(ms.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the beginning.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Whole microseconds since the beginning, the unit of v1model's timestamps.
    pub const fn as_us(self) -> u64 {
        self.0 / 1_000
    }

    /// This moment and so many nanoseconds; the end of time if that is too far.
    pub const fn after_ns(self, ns: u64) -> Time {
        Time(self.0.saturating_add(ns))
    }

    /// Nanoseconds from `earlier` to this moment; 0 if it is not earlier.
    pub const fn since_ns(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Time {
    /// Seconds with six digits behind the point: `12.000345s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000 / 1_000)
    }
}
