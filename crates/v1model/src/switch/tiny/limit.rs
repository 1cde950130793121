//! Limits the rate of executions with a token bucket.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use switch::Time;

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// Rate of executions, with a burst of 100 ms, at least one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionRate {
    interval_ns: u64,
    /// Duration of a burst after its first execution, in nanoseconds.
    tolerance_ns: u64,
}

impl ExecutionRate {
    /// Returns a rate of at most `per_second` executions. 0 counts as 1. Intervals are whole nanoseconds, rounded up.
    pub fn new(per_second: u32) -> ExecutionRate {
        let interval_ns = SECOND.div_ceil(u64::from(per_second.max(1)));
        let burst = u64::from((per_second / 10).max(1));
        ExecutionRate { interval_ns, tolerance_ns: (burst - 1) * interval_ns }
    }
}

/// A token bucket, full at first. Workers share it.
///
/// It is one number, the time at which the bucket is full again (the virtual scheduling algorithm, ITU-T I.371).
#[derive(Debug, Default)]
pub struct TokenBucket {
    full_at_ns: AtomicU64,
}

impl TokenBucket {
    /// Takes a token, if there is one.
    pub fn take(&self, now: Time, rate: ExecutionRate) -> bool {
        let now = now.as_ns();
        let take = |full_at: u64| {
            let is_there = full_at.saturating_sub(now) <= rate.tolerance_ns;
            is_there.then(|| full_at.max(now).saturating_add(rate.interval_ns))
        };
        self.full_at_ns.fetch_update(Relaxed, Relaxed, take).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// Returns the number of tokens that can be taken at a time.
    fn taken(bucket: &TokenBucket, at_us: u64, rate: ExecutionRate) -> usize {
        (0..1000).take_while(|_| bucket.take(Time::from_us(at_us), rate)).count()
    }

    #[test]
    fn tokens_come_back_at_the_rate_and_no_more_than_the_burst() {
        let (bucket, rate) = (TokenBucket::default(), ExecutionRate::new(1000));
        assert_eq!(taken(&bucket, 0, rate), 100, "a full bucket");
        assert_eq!(taken(&bucket, 999, rate), 0);
        assert_eq!(taken(&bucket, 1_000, rate), 1);
        assert_eq!(taken(&bucket, 11_500, rate), 10);
        assert_eq!(taken(&bucket, 12_000, rate), 1, "half of a token was there");
        assert_eq!(taken(&bucket, 60_000_000, rate), 100, "a minute fills the bucket, and no more");
        assert_eq!(taken(&bucket, 59_000_000, rate), 0, "earlier times have none");
    }

    #[test]
    fn small_rates_and_late_times_are_exact() {
        for per_second in [0, 1] {
            let (bucket, rate) = (TokenBucket::default(), ExecutionRate::new(per_second));
            assert_eq!([0, 999_999, 1_000_000].map(|us| taken(&bucket, us, rate)), [1, 0, 1]);
        }
        let (bucket, rate) = (TokenBucket::default(), ExecutionRate::new(u32::MAX));
        assert!((0..1000).all(|_| bucket.take(Time::from_ns(u64::MAX), rate)), "the end of time does not wrap around");
    }

    #[test]
    fn workers_take_no_token_twice() {
        // All begin at once, so that they take tokens at the same time.
        let (bucket, rate, start) = (TokenBucket::default(), ExecutionRate::new(10_000_000), Barrier::new(4));
        let take_many = || {
            start.wait();
            (0..1_000_000).filter(|_| bucket.take(Time::from_us(5), rate)).count()
        };
        let taken: usize = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(take_many)).collect();
            workers.into_iter().map(|worker| worker.join().expect("it ends")).sum()
        });
        assert_eq!(taken, 1_000_000);
    }
}
