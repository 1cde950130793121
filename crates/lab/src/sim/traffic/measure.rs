//! Measures flows.

use switch::Time;

use super::latency::Latency;

/// Measurements of one application.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Packets that were sent, requests or flows that were begun.
    pub sent: u64,
    /// Packets that arrived, requests that were answered, flows that were completed.
    pub received: u64,
    /// Bytes of payload that arrived.
    pub bytes: u64,
    /// Time of the first arrival.
    pub first: Option<Time>,
    /// Time of the last arrival.
    pub last: Option<Time>,
    /// Nanoseconds from sending to arrival, from request to answer, or from beginning to completion.
    pub latency: Latency,
    /// Bytes that arrived in each interval of [`Measured::INTERVAL_NS`].
    pub series: Vec<u64>,
}

/// An application that measures.
pub trait Measurement {
    /// Returns the measurements so far.
    fn measured(&self) -> &Measured;
}

impl Measured {
    /// The interval of [`Measured::series`]: 10 ms.
    pub const INTERVAL_NS: u64 = 10_000_000;

    /// Maximum number of intervals; later bytes are counted in the last one.
    const MAX_INTERVALS: u64 = 1 << 20;

    /// Counts bytes that arrived.
    pub fn arrived(&mut self, now: Time, bytes: u64) {
        self.bytes += bytes;
        self.first.get_or_insert(now);
        self.last = Some(now);
        let interval = (now.as_ns() / Self::INTERVAL_NS).min(Self::MAX_INTERVALS - 1) as usize;
        if self.series.len() <= interval {
            self.series.resize(interval + 1, 0);
        }
        self.series[interval] += bytes;
    }

    /// Adds the measurements of another application.
    pub fn add(&mut self, other: &Measured) {
        self.sent += other.sent;
        self.received += other.received;
        self.bytes += other.bytes;
        self.first = [self.first, other.first].into_iter().flatten().min();
        self.last = self.last.max(other.last);
        self.latency.add(&other.latency);
        if self.series.len() < other.series.len() {
            self.series.resize(other.series.len(), 0);
        }
        self.series.iter_mut().zip(&other.series).for_each(|(sum, bytes)| *sum += bytes);
    }

    /// Records a latency.
    pub fn took(&mut self, ns: u64) {
        self.latency.record(ns);
    }

    /// Returns the payload rate in bits per second, from the first arrival to the last.
    pub fn rate_bps(&self) -> f64 {
        match (self.first, self.last) {
            (Some(first), Some(last)) if last > first => self.bytes as f64 * 8e9 / last.since_ns(first) as f64,
            _ => 0.0,
        }
    }
}
