//! Represents time as a value.

use std::fmt;

/// A time in nanoseconds since the device started. The driver defines it: by a real clock or by the time of a
/// simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start.
    pub const ZERO: Time = Time(0);

    /// Converts nanoseconds since the start.
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns)
    }

    /// Converts microseconds since the start. Saturates.
    pub const fn from_us(us: u64) -> Time {
        Time(us.saturating_mul(1_000))
    }

    /// Converts milliseconds since the start. Saturates.
    pub const fn from_ms(ms: u64) -> Time {
        Time(ms.saturating_mul(1_000_000))
    }

    /// Returns nanoseconds since the start.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Returns whole microseconds since the start, the unit of v1model's timestamps.
    pub const fn as_us(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns the time `ns` nanoseconds later. Saturates.
    pub const fn after_ns(self, ns: u64) -> Time {
        Time(self.0.saturating_add(ns))
    }

    /// Returns the nanoseconds since `earlier`; 0 if it is later.
    pub const fn since_ns(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Time {
    /// Formats seconds with six decimal places: `12.000345s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000 / 1_000)
    }
}
