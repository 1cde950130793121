//! Limits the time that the client of a read takes for its responses.

use std::time::Duration;

/// Minimum rate at which the client of a read takes its responses, in bytes per second. A read keeps what it reads as
/// it was when the read began, at the cost of memory.
const SLOWEST_READ_BYTES_A_SECOND: u64 = 32 << 10;

/// The pace at which the client of a read takes its responses.
#[derive(Default)]
pub(crate) struct ReadPace {
    /// Length of the parts so far.
    pub(crate) bytes: u64,
    /// Total time spent waiting for the client.
    pub(crate) waited: Duration,
}

impl ReadPace {
    /// Returns how long the client may take for the next part. `timeout` is its maximum for each.
    pub(crate) fn left(&self, timeout: Duration) -> Duration {
        let due = Duration::from_millis(self.bytes * 1000 / SLOWEST_READ_BYTES_A_SECOND);
        timeout.min((timeout + due).saturating_sub(self.waited))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_the_timeout_and_the_time_that_the_minimum_rate_takes() {
        let timeout = Duration::from_secs(20);
        let mut pace = ReadPace::default();
        assert_eq!(pace.left(timeout), timeout);
        // A part of 64 KiB every second is the minimum rate twice over.
        for _ in 0..100 {
            pace.bytes += 64 << 10;
            pace.waited += Duration::from_secs(1);
            assert_eq!(pace.left(timeout), timeout);
        }
        // One part every 19 s is within the timeout of each part, and far below the rate.
        let mut parts = 0;
        while pace.left(timeout) >= Duration::from_secs(19) {
            pace.bytes += 64 << 10;
            pace.waited += Duration::from_secs(19);
            parts += 1;
        }
        assert!((3..10).contains(&parts), "{parts} parts");
    }
}
