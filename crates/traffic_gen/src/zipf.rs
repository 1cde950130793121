//! Draws from Zipf's law: the k-th most popular of n has a frequency proportional to 1/k^s.

use rng::SplitMix64;

/// Samples ranks in constant time and memory, independent of n, by rejection-inversion (Hörmann, Derflinger:
/// Rejection-inversion to generate variates from monotone discrete distributions, 1996).
#[derive(Clone, Debug)]
pub struct Zipf {
    count: f64,
    exponent: f64,
    /// Integral of the density's hat up to 1.5 minus the first rank's share, and up to the end.
    from: f64,
    to: f64,
    /// Distance above the candidate within which no rejection is needed.
    sure: f64,
}

impl Zipf {
    /// Creates a distribution of ranks below `count`, which must not be 0, with a positive exponent.
    pub fn new(count: u64, exponent: f64) -> Zipf {
        let mut zipf = Zipf { count: count as f64, exponent, from: 0.0, to: 0.0, sure: 0.0 };
        zipf.from = zipf.integral(1.5) - 1.0;
        zipf.to = zipf.integral(zipf.count + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn density(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// Returns the integral of the density from 1 to x.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let power = (1.0 - self.exponent) * log;
        // (e^power - 1) / power, and its limit for an exponent near 1.
        let slope = if power.abs() > 1e-8 { power.exp_m1() / power } else { 1.0 + power / 2.0 };
        slope * log
    }

    fn inverse(&self, area: f64) -> f64 {
        let power = (area * (1.0 - self.exponent)).max(-1.0);
        let slope = if power.abs() > 1e-8 { power.ln_1p() / power } else { 1.0 - power / 2.0 };
        (slope * area).exp()
    }

    /// Returns the next rank; 0 is the most popular.
    pub fn next(&self, rng: &mut SplitMix64) -> u64 {
        loop {
            let area = self.to + rng.fraction() * (self.from - self.to);
            let x = self.inverse(area);
            let rank = x.round().clamp(1.0, self.count);
            if rank - x <= self.sure || area >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64 - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_come_up_by_the_law() {
        const DRAWS: u32 = 200_000;
        for exponent in [0.5, 0.99, 1.0, 1.5] {
            let (zipf, mut rng) = (Zipf::new(1000, exponent), SplitMix64::new(7));
            let mut counts = vec![0u32; 1000];
            for _ in 0..DRAWS {
                counts[zipf.next(&mut rng) as usize] += 1;
            }
            let whole: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for rank in [1u32, 2, 3, 10] {
                let expected = f64::from(rank).powf(-exponent) / whole * f64::from(DRAWS);
                let found = f64::from(counts[rank as usize - 1]);
                assert!(
                    (found - expected).abs() < 6.0 * expected.sqrt(),
                    "{exponent}, rank {rank}: {found}, {expected}"
                );
            }
        }
        let mut rng = SplitMix64::new(1);
        assert!((0..100).all(|_| Zipf::new(1, 0.99).next(&mut rng) == 0));
    }
}
