//! Draws flow sizes from distributions.

use crate::random::Random;

/// A distribution of flow sizes, as points of its cumulative distribution (bytes and probability) with linear
/// interpolation.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeDistribution(Vec<(f64, f64)>);

/// Web search (Alizadeh et al.: Data Center TCP, SIGCOMM 2010), with the points that simulations commonly use.
const WEB_SEARCH: [(f64, f64); 12] = [
    (0.0, 0.0),
    (10e3, 0.15),
    (20e3, 0.20),
    (30e3, 0.30),
    (50e3, 0.40),
    (80e3, 0.53),
    (200e3, 0.60),
    (1e6, 0.70),
    (2e6, 0.80),
    (5e6, 0.90),
    (10e6, 0.97),
    (30e6, 1.0),
];

/// Data mining (Greenberg et al.: VL2, SIGCOMM 2009), with the points that simulations commonly use.
const DATA_MINING: [(f64, f64); 9] = [
    (0.0, 0.0),
    (100.0, 0.1),
    (300.0, 0.3),
    (1e3, 0.5),
    (2e3, 0.6),
    (10e3, 0.7),
    (100e3, 0.8),
    (10e6, 0.95),
    (1e9, 1.0),
];

impl SizeDistribution {
    /// Returns the distribution of web search flows.
    pub fn web_search() -> SizeDistribution {
        SizeDistribution(WEB_SEARCH.to_vec())
    }

    /// Returns the distribution of data mining flows.
    pub fn data_mining() -> SizeDistribution {
        SizeDistribution(DATA_MINING.to_vec())
    }

    /// Returns a distribution in which all flows have one size.
    pub fn fixed(bytes: u64) -> SizeDistribution {
        SizeDistribution(vec![(bytes as f64, 0.0), (bytes as f64, 1.0)])
    }

    /// Returns the mean, in bytes.
    pub fn mean(&self) -> f64 {
        self.0.windows(2).map(|pair| (pair[0].0 + pair[1].0) / 2.0 * (pair[1].1 - pair[0].1)).sum()
    }

    /// Draws one size, 1 byte at least.
    pub fn draw(&self, random: &mut Random) -> u64 {
        let chance = random.unit();
        let pair = self.0.windows(2).find(|pair| chance < pair[1].1).unwrap_or(&self.0[self.0.len() - 2..]);
        let ((low, from), (high, to)) = (pair[0], pair[1]);
        let share = if to > from { (chance - from) / (to - from) } else { 0.0 };
        ((low + (high - low) * share) as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_what_is_drawn_is_the_mean_of_the_distribution() {
        for sizes in [SizeDistribution::web_search(), SizeDistribution::fixed(700)] {
            let mut random = Random::new(3, 0);
            let count = 100_000;
            let mean = (0..count).map(|_| sizes.draw(&mut random) as f64).sum::<f64>() / f64::from(count);
            assert!((mean / sizes.mean() - 1.0).abs() < 0.03, "{mean} against {}", sizes.mean());
        }
    }
}
