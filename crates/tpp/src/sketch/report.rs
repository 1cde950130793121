//! Reports of hosts, and their aggregator.

use std::collections::BTreeMap;

use super::{BitmapSketch, LinkPlace, MergeRefusal, SketchHash};

/// Maximum number of periods that an aggregator keeps; the oldest are dropped.
const MAX_PERIODS: usize = 4_096;

/// What a host saw in one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SketchReport {
    /// Number of the period: the time divided by its length.
    pub period: u64,
    /// The bitmaps of the links of this period.
    pub sketch: BitmapSketch,
}

/// The sketch of a host. It starts anew in each period, so a report has only links that were seen in it.
#[derive(Clone, Debug)]
pub struct HostSketch {
    period_ns: u64,
    current: SketchReport,
}

impl HostSketch {
    /// Creates the sketch of a host with periods of `period_ns` nanoseconds.
    pub fn new(hash: SketchHash, period_ns: u64) -> HostSketch {
        let current = SketchReport { period: 0, sketch: BitmapSketch::new(hash) };
        HostSketch { period_ns: period_ns.max(1), current }
    }

    /// Records that an element passed a link, and returns the report of the latest period if that is over. A time
    /// before the current period, as of a clock that was set back, counts in the current one.
    pub fn observe(&mut self, now_ns: u64, link: LinkPlace, element: &[u8]) -> Option<SketchReport> {
        let report = self.poll(now_ns);
        self.current.sketch.observe(link, element);
        report
    }

    /// Returns the report of the latest period if that is over and something was seen in it.
    pub fn poll(&mut self, now_ns: u64) -> Option<SketchReport> {
        let period = now_ns / self.period_ns;
        if period <= self.current.period {
            return None;
        }
        let next = SketchReport { period, sketch: BitmapSketch::new(self.current.sketch.hash()) };
        Some(std::mem::replace(&mut self.current, next)).filter(|report| !report.sketch.is_empty())
    }

    /// Returns what was seen in the current period.
    pub fn current(&self) -> &SketchReport {
        &self.current
    }
}

/// Merges the reports of hosts by period. Reports may come late, twice and in any order.
#[derive(Clone, Debug)]
pub struct SketchAggregator {
    hash: SketchHash,
    periods: BTreeMap<u64, BitmapSketch>,
}

impl SketchAggregator {
    /// Creates an aggregator of sketches with this hash.
    pub fn new(hash: SketchHash) -> SketchAggregator {
        SketchAggregator { hash, periods: BTreeMap::new() }
    }

    /// Accepts a report.
    ///
    /// # Errors
    /// If the host's hash is another one.
    pub fn accept(&mut self, report: &SketchReport) -> Result<(), MergeRefusal> {
        let mut merged = self.periods.remove(&report.period).unwrap_or_else(|| BitmapSketch::new(self.hash));
        let result = merged.merge(&report.sketch);
        if !merged.is_empty() {
            self.periods.insert(report.period, merged);
        }
        if self.periods.len() > MAX_PERIODS {
            self.periods.pop_first();
        }
        result
    }

    /// Returns the merged sketch of each period in which something was seen.
    pub fn periods(&self) -> impl Iterator<Item = (u64, &BitmapSketch)> {
        self.periods.iter().map(|(period, sketch)| (*period, sketch))
    }
}
