//! Draws random numbers that are the same on every machine.

use rng::SplitMix64;

/// A stream of random numbers.
///
/// Each random part of a simulation has its own stream, derived from the seed and the purpose of the stream. Numbers
/// that one part draws therefore never change those that another part sees.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

/// SplitMix64's increment.
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// Creates the stream numbered `stream`, derived from `seed`.
    pub fn new(seed: u64, stream: u64) -> Random {
        // SplitMix64 adds the increment before it mixes: subtracting it here makes the mixed word `stream * GAMMA + 1`.
        let stream = stream.wrapping_mul(GOLDEN_GAMMA).wrapping_add(1).wrapping_sub(GOLDEN_GAMMA);
        Random(SplitMix64::new(SplitMix64::new(seed).next_u64() ^ SplitMix64::new(stream).next_u64()))
    }

    /// Returns a number from the full 64-bit range.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number less than `end`, which is not 0; the bias is below 2^-64 times `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    /// Returns a number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        self.0.fraction()
    }

    /// Returns true with probability `chance`, in [0, 1]. Draws nothing if it is 0.
    pub fn chance(&mut self, chance: f64) -> bool {
        chance > 0.0 && self.unit() < chance
    }

    /// Returns the nanoseconds to the next event of a Poisson process with this mean time between events.
    pub fn exponential_ns(&mut self, mean_ns: f64) -> u64 {
        // `libm`, not `f64::ln_1p`: the latter calls the C library, whose result differs between machines in the last
        // bit.
        let ns = -libm::log1p(-self.unit()) * mean_ns;
        ns.min(1e18) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn streams_are_the_same_on_every_machine_and_differ_from_each_other() {
        let mut random = Random::new(1, 2);
        let words: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(words, [13_782_664_598_465_056_799, 11_049_924_693_891_846_907, 15_153_185_287_229_151_088]);
        assert_ne!(Random::new(1, 3).next_u64(), Random::new(1, 2).next_u64());
        assert_ne!(Random::new(2, 2).next_u64(), Random::new(1, 2).next_u64());
    }

    #[test]
    fn sample_means_match_the_requested_means() {
        let mut random = Random::new(7, 0);
        let count = 200_000;
        let total: u64 = (0..count).map(|_| random.exponential_ns(1000.0)).sum();
        let mean = total as f64 / f64::from(count);
        assert!((980.0..1020.0).contains(&mean), "{mean}");
        let hits = (0..count).filter(|_| random.chance(0.1)).count();
        assert!((19_000..21_000).contains(&hits), "{hits}");
        assert!((0..count).all(|_| random.below(3) < 3));
    }
}
