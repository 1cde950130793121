//! Counts latencies in fixed buckets.

/// Upper bounds of the buckets, in nanoseconds. Longer latencies count in a last bucket.
pub const BOUNDS_NS: [u64; 16] = [
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    1_000_000_000,
    10_000_000_000,
];

/// A histogram of latencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyHistogram {
    buckets: [u64; BOUNDS_NS.len() + 1],
    sum_ns: u64,
}

impl LatencyHistogram {
    /// Counts a latency.
    pub fn record(&mut self, latency_ns: u64) {
        let bucket = BOUNDS_NS.partition_point(|bound| *bound < latency_ns);
        self.buckets[bucket] += 1;
        self.sum_ns = self.sum_ns.saturating_add(latency_ns);
    }

    /// Returns each bound in nanoseconds, with the number of latencies up to it.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut count = 0;
        BOUNDS_NS.iter().zip(&self.buckets).map(move |(bound, bucket)| {
            count += bucket;
            (*bound, count)
        })
    }

    /// Returns the number of latencies.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the sum of all latencies, in nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_its_bound_and_all_below() {
        let mut latencies = LatencyHistogram::default();
        [1, 10_000, 10_001, 1_000_000_000, u64::MAX].into_iter().for_each(|ns| latencies.record(ns));
        let cumulative: Vec<u64> = latencies.cumulative().map(|(_, count)| count).collect();
        assert_eq!((cumulative[0], cumulative[1], cumulative[14], cumulative[15]), (2, 3, 4, 4));
        assert_eq!((latencies.count(), latencies.sum_ns()), (5, u64::MAX));
    }
}
