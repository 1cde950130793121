//! Draws random numbers from a seed. Equal seeds give equal numbers on every machine. For generated traffic, rule sets,
//! simulations, the `random()` of P4 programs, and tests; not for secrets.

#![forbid(unsafe_code)]

/// A SplitMix64 generator (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        SplitMix64(seed)
    }

    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// Returns a number from 0 up to, not including, 1.
    pub fn fraction(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Whether an event with this chance, in percent, happens.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// Returns one of several choices, by weight.
    pub fn pick<T: Copy>(&mut self, choices: &[(u64, T)]) -> T {
        let mut left = self.below(choices.iter().map(|(weight, _)| weight).sum());
        for (weight, choice) in choices {
            if left < *weight {
                return *choice;
            }
            left -= weight;
        }
        unreachable!("the weights add up")
    }
}

/// One random number that depends on all of these.
pub fn mix(numbers: [u64; 3]) -> u64 {
    numbers.into_iter().fold(0, |state, number| SplitMix64::new(state ^ number).next_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_paper_s_generator() {
        // The first words of seed 1234567, as other implementations give them.
        let mut rng = SplitMix64::new(1_234_567);
        let words: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(words, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn numbers_stay_in_their_ranges() {
        let mut rng = SplitMix64::new(1);
        assert!((0..1000).all(|_| rng.below(3) < 3 && (0.0..1.0).contains(&rng.fraction())));
        assert!((0..1000).all(|_| rng.pick(&[(0, 'a'), (1, 'b')]) == 'b'));
        assert_eq!(mix([1, 2, 3]), mix([1, 2, 3]));
        assert_ne!(mix([1, 2, 3]), mix([3, 2, 1]));
    }
}
