//! The rate at which a sender itself sends on a path.

use std::collections::VecDeque;

/// Maximum number of samples that are awaited.
const MAX_AWAITED: usize = 64;

/// The smoothed rate of what a sender sends on a path, in bytes a second: now, and when samples were sent.
#[derive(Clone, Debug, Default)]
pub struct OwnRate {
    rate: f64,
    /// Time of `rate`, in nanoseconds.
    at_ns: u64,
    /// The time and the rate at which each sample was sent, the oldest first.
    samples: VecDeque<(u64, f64)>,
    /// The rate at the latest sample that came back.
    rate_at_sample: f64,
}

impl OwnRate {
    fn at(&self, now_ns: u64, smoothing_ns: u64) -> f64 {
        let passed_ns = now_ns.saturating_sub(self.at_ns) as f64;
        self.rate * (-passed_ns / smoothing_ns.max(1) as f64).exp()
    }

    /// Counts bytes that are sent.
    pub fn sent(&mut self, bytes: u64, now_ns: u64, smoothing_ns: u64) {
        self.rate = self.at(now_ns, smoothing_ns) + bytes as f64 / smoothing_ns.max(1) as f64 * 1e9;
        self.at_ns = now_ns.max(self.at_ns);
    }

    /// Remembers the rate at the time at which a sample is sent.
    pub fn sample_sent(&mut self, now_ns: u64, smoothing_ns: u64) {
        self.samples.push_back((now_ns, self.at(now_ns, smoothing_ns)));
        if self.samples.len() > MAX_AWAITED {
            self.samples.pop_front();
        }
    }

    /// Takes the sample that was sent at a time: its program counted what was sent before.
    pub fn sample_returned(&mut self, sent_ns: u64) {
        while let Some((at_ns, rate)) = self.samples.front().copied()
            && at_ns <= sent_ns
        {
            self.rate_at_sample = rate;
            self.samples.pop_front();
        }
    }

    /// Returns by how much the rate grew since the latest sample was sent.
    pub fn since_sample(&self, now_ns: u64, smoothing_ns: u64) -> f64 {
        self.at(now_ns, smoothing_ns) - self.rate_at_sample
    }
}
