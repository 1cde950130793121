//! Metrics that their owner names itself: one metric, and its samples with labels.

use crate::text::labels;

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A number that only grows. Its name ends with `_total`.
    Counter,
    /// A number that grows and shrinks.
    Gauge,
    /// Numbers of observations up to bounds.
    Histogram,
}

impl MetricKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

/// A metric with its samples.
#[derive(Clone, Debug)]
pub struct MetricFamily {
    pub(crate) name: &'static str,
    pub(crate) kind: MetricKind,
    pub(crate) help: &'static str,
    /// Suffix of the name with labels, and the value.
    pub(crate) samples: Vec<(String, f64)>,
}

impl MetricFamily {
    /// Creates a counter without samples.
    pub fn counter(name: &'static str, help: &'static str) -> MetricFamily {
        MetricFamily { name, kind: MetricKind::Counter, help, samples: Vec::new() }
    }

    /// Creates a gauge without samples.
    pub fn gauge(name: &'static str, help: &'static str) -> MetricFamily {
        MetricFamily { kind: MetricKind::Gauge, ..MetricFamily::counter(name, help) }
    }

    /// Creates a histogram from the number of observations up to each bound, their number and their sum.
    pub fn histogram(
        name: &'static str,
        help: &'static str,
        cumulative: impl IntoIterator<Item = (f64, u64)>,
        (count, sum): (u64, f64),
    ) -> MetricFamily {
        let bucket = |bound: &str, count: u64| (format!("_bucket{}", labels(&[("le", bound)])), count as f64);
        let mut samples: Vec<(String, f64)> =
            cumulative.into_iter().map(|(bound, count)| bucket(&bound.to_string(), count)).collect();
        samples.extend([bucket("+Inf", count), ("_sum".to_owned(), sum), ("_count".to_owned(), count as f64)]);
        MetricFamily { name, kind: MetricKind::Histogram, help, samples }
    }

    /// Returns the metric with one more sample, without labels.
    #[must_use]
    pub fn with(self, value: f64) -> MetricFamily {
        self.labelled(&[], value)
    }

    /// Returns the metric with one more sample.
    #[must_use]
    pub fn labelled(mut self, labels: &[(&str, &str)], value: f64) -> MetricFamily {
        self.add(labels, value);
        self
    }

    /// Adds a sample.
    pub fn add(&mut self, labels: &[(&str, &str)], value: f64) {
        let text = if labels.is_empty() { String::new() } else { self::labels(labels) };
        self.samples.push((text, value));
    }
}
