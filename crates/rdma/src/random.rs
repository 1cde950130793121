//! Sources of random numbers.

use rng::SplitMix64;

/// A source of random numbers, which identify connections and memory. Peers see some of them, and must not be able to
/// predict those of others. So a source is a cryptographic generator, such as the kernel's, except in simulations.
pub trait NumberSource {
    /// Returns the next 64 random bits.
    fn next_u64(&mut self) -> u64;

    /// Returns a number below `end`, which is not 0.
    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(end)) >> 64) as u64
    }
}

/// For simulations and tests: the next number follows from the one before.
impl NumberSource for SplitMix64 {
    fn next_u64(&mut self) -> u64 {
        SplitMix64::next_u64(self)
    }
}
