//! Keeps a histogram of the durations of batches.

/// Number of significant bits of a counted value: an error of at most half a percent.
const BITS: u32 = 8;

/// Counts values by size, in memory that does not depend on the number of values.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: vec![0; ((65 - BITS as usize) << BITS) + 1], total: 0 }
    }
}

/// Returns the place that counts a value. Each small value has its own place; each further power of two has `2^BITS`
/// places.
fn place(value: u64) -> usize {
    let shift = (64 - value.leading_zeros()).saturating_sub(BITS + 1);
    ((shift as usize) << BITS) + (value >> shift) as usize
}

/// Returns the middle of the values that are counted at a place.
fn value(place: usize) -> u64 {
    let shift = (place >> BITS).saturating_sub(1);
    let low = (place - (shift << BITS)) as u64;
    (low << shift) + ((1u64 << shift) - 1) / 2
}

impl Histogram {
    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        self.counts[place(value)] += 1;
        self.total += 1;
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.total += other.total;
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Returns the value that `percent` percent of the values do not exceed; 0 if there are no values.
    pub fn percentile(&self, percent: f64) -> u64 {
        let rank = ((self.total as f64 * percent / 100.0).ceil() as u64).max(1);
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return value(at);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_values() {
        let mut last = 0;
        for exponent in 0..64 {
            for value_ in [1u64 << exponent, (1 << exponent) + (1 << exponent) / 3] {
                let at = place(value_);
                assert!(at >= last, "{value_}");
                last = at;
                let error = value(at).abs_diff(value_) as f64 / value_ as f64;
                assert!(error < 0.005, "{value_}: {}", value(at));
            }
        }
        assert!(place(u64::MAX) < Histogram::default().counts.len());
    }

    #[test]
    fn percentiles_are_of_the_values_added() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(50.0), 0);
        (1..=200).for_each(|value| histogram.add(value));
        assert_eq!((histogram.percentile(50.0), histogram.percentile(99.0), histogram.count()), (100, 198, 200));
        let mut both = Histogram::default();
        both.add(1000);
        both.merge(&histogram);
        assert_eq!((both.count(), both.percentile(50.0)), (201, 101));
        assert_eq!((histogram.percentile(0.0), histogram.percentile(100.0)), (1, 200));
    }
}
