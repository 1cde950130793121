//! Exact percentiles of a list of values.

/// Values in ascending order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SortedValues(Vec<u64>);

impl FromIterator<u64> for SortedValues {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> SortedValues {
        let mut values: Vec<u64> = values.into_iter().collect();
        values.sort_unstable();
        SortedValues(values)
    }
}

impl SortedValues {
    /// Returns the smallest value that at least a share of all values do not exceed; `None` without values.
    pub fn percentile(&self, share: f64) -> Option<u64> {
        let rank = (self.0.len() as f64 * share).ceil() as usize;
        self.0.get(rank.clamp(1, self.0.len().max(1)) - 1).copied()
    }

    /// Returns the cumulative distribution, in at most about 200 points: values, and the share that does not exceed
    /// them.
    pub fn cumulative(&self) -> Vec<(u64, f64)> {
        let mut points = Vec::new();
        let step = (self.0.len() / 200).max(1);
        for (at, value) in self.0.iter().enumerate() {
            let is_last = at + 1 == self.0.len();
            // Steps of the curve keep both ends.
            if at % step == step - 1 || is_last || self.0[at + 1] > value + value / 20 {
                points.push((*value, (at + 1) as f64 / self.0.len() as f64));
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_of_the_list() {
        let values: SortedValues = (1..=100).rev().collect();
        let percentiles = [0.0, 0.5, 0.9, 0.99, 0.991, 1.0].map(|share| values.percentile(share));
        assert_eq!(percentiles, [1, 50, 90, 99, 100, 100].map(Some));
        assert_eq!(SortedValues::default().percentile(0.5), None);
        assert_eq!([5].into_iter().collect::<SortedValues>().percentile(0.99), Some(5));
    }

    #[test]
    fn the_distribution_ends_at_the_largest_value_with_1() {
        let values: SortedValues = (0..1000).chain([5000]).collect();
        let points = values.cumulative();
        assert_eq!(points.last(), Some(&(5000, 1.0)));
        assert!(points.len() < 400 && points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 < b.1));
    }
}
