//! Estimates the round-trip time and computes the retransmission timeout (RFC 6298).

/// Timeout in nanoseconds before the first round trip has been measured (RFC 6298 section 2.1).
const FIRST_NS: u64 = 1_000_000_000;

/// Minimum margin of the timeout beyond the round-trip time: 200 ms, as in Linux. RFC 6298 asks for a timeout of at
/// least one second in all.
const MIN_MARGIN_NS: u64 = 200_000_000;

/// Maximum timeout.
const MAX_TIMEOUT_NS: u64 = 60_000_000_000;

/// A sender's estimate of its round-trip time.
#[derive(Debug, Default)]
pub struct RoundTrip {
    measured: Option<Measured>,
    /// Number of timeouts since the last acknowledgement.
    timeouts: u32,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    smoothed_ns: u64,
    variation_ns: u64,
    least_ns: u64,
}

impl RoundTrip {
    /// Records the round-trip time of a segment that was sent only once.
    pub fn took(&mut self, ns: u64) {
        self.measured = Some(match self.measured {
            None => Measured { smoothed_ns: ns, variation_ns: ns / 2, least_ns: ns },
            Some(Measured { smoothed_ns, variation_ns, least_ns }) => Measured {
                variation_ns: (3 * variation_ns + smoothed_ns.abs_diff(ns)) / 4,
                smoothed_ns: (7 * smoothed_ns + ns) / 8,
                least_ns: least_ns.min(ns),
            },
        });
    }

    /// Returns the smoothed round-trip time in nanoseconds, 0 if none was measured.
    pub fn smoothed_ns(&self) -> u64 {
        self.measured.map_or(0, |measured| measured.smoothed_ns)
    }

    /// Returns the minimum round-trip time in nanoseconds, 0 if none was measured.
    pub fn least_ns(&self) -> u64 {
        self.measured.map_or(0, |measured| measured.least_ns)
    }

    /// Returns the retransmission timeout in nanoseconds.
    pub fn timeout_ns(&self) -> u64 {
        let once = self.measured.map_or(FIRST_NS, |Measured { smoothed_ns, variation_ns, .. }| {
            smoothed_ns + (4 * variation_ns).max(MIN_MARGIN_NS)
        });
        (once << self.timeouts.min(16)).min(MAX_TIMEOUT_NS)
    }

    /// Doubles the timeout, because it expired without an acknowledgement (section 5.5). Returns true the first time in
    /// a row.
    pub fn timed_out(&mut self) -> bool {
        self.timeouts += 1;
        self.timeouts == 1
    }

    /// Resets the count of timeouts, because something was acknowledged.
    pub fn heard(&mut self) {
        self.timeouts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::RoundTrip;

    #[test]
    fn the_timeout_follows_the_round_trip_and_doubles_when_it_passes() {
        let mut trip = RoundTrip::default();
        assert_eq!(trip.timeout_ns(), 1_000_000_000);
        trip.took(100_000_000);
        assert_eq!(trip.timeout_ns(), 300_000_000);
        (0..100).for_each(|_| trip.took(20_000_000));
        assert!((219_000_000..222_000_000).contains(&trip.timeout_ns()), "{}", trip.timeout_ns());
        let once = trip.timeout_ns();
        assert!(trip.timed_out() && !trip.timed_out());
        assert_eq!(trip.timeout_ns(), 4 * once);
        trip.heard();
        assert_eq!(trip.timeout_ns(), once);
    }
}
