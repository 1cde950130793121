//! Summarises distributions of latencies.

use hdrhistogram::Histogram;
use hdrhistogram::iterators::{HistogramIterator, recorded};

/// A distribution of times in nanoseconds, to three digits; the minimum and the maximum are exact.
#[derive(Clone, Debug)]
pub struct Latency {
    histogram: Histogram<u64>,
    least: Option<u64>,
    most: Option<u64>,
}

impl Default for Latency {
    fn default() -> Self {
        let histogram = Histogram::new(3).expect("three digits are possible");
        Latency { histogram, least: None, most: None }
    }
}

impl Latency {
    /// Records one time.
    pub fn record(&mut self, ns: u64) {
        self.least = Some(self.least.unwrap_or(u64::MAX).min(ns));
        self.most = self.most.max(Some(ns));
        // Histograms begin at 1.
        self.histogram.record(ns.max(1)).expect("the histogram grows with what it is given");
    }

    /// Adds all times of another distribution.
    pub fn add(&mut self, other: &Latency) {
        self.least = [self.least, other.least].into_iter().flatten().min();
        self.most = self.most.max(other.most);
        self.histogram.add(&other.histogram).expect("the histogram grows with what it is given");
    }

    /// Whether no time was recorded.
    pub fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    /// Returns the number of recorded times.
    pub fn len(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the exact minimum; 0 if there are no times.
    pub fn min(&self) -> u64 {
        self.least.unwrap_or(0)
    }

    /// Returns the exact maximum; 0 if there are no times.
    pub fn max(&self) -> u64 {
        self.most.unwrap_or(0)
    }

    /// Returns the mean, to three digits; 0 if there are no times.
    pub fn mean(&self) -> f64 {
        self.histogram.mean().clamp(self.min() as f64, self.max() as f64)
    }

    /// Returns the time that this share of the times, 0 to 1, does not exceed: to three digits, and exact for a share
    /// of 1.
    pub fn value_at_quantile(&self, share: f64) -> u64 {
        self.histogram.value_at_quantile(share).clamp(self.min(), self.max())
    }

    /// Returns the steps of the distribution in which times were recorded.
    pub fn iter_recorded(&self) -> HistogramIterator<'_, u64, recorded::Iter> {
        self.histogram.iter_recorded()
    }
}

#[cfg(test)]
mod tests {
    use super::Latency;

    #[test]
    fn the_least_and_the_most_are_exact_and_shares_lie_between() {
        let mut latency = Latency::default();
        assert_eq!((latency.min(), latency.max(), latency.value_at_quantile(0.5)), (0, 0, 0));
        latency.record(1_234_567);
        assert_eq!((latency.min(), latency.max()), (1_234_567, 1_234_567));
        assert_eq!([0.5, 1.0].map(|share| latency.value_at_quantile(share)), [1_234_567; 2]);
        let mut other = Latency::default();
        other.record(0);
        other.record(9_999_999);
        latency.add(&other);
        assert_eq!((latency.min(), latency.max(), latency.len()), (0, 9_999_999, 3));
    }
}
