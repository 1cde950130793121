//! Random numbers from a seed, and the choices that make inputs.

use rng::SplitMix64;

/// A generator. Equal seeds give equal numbers, on every machine.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// The generator with this seed.
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed))
    }

    /// 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`; 0 if there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.next() % bound as u64) as usize }
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below((high - low) as usize + 1) as u32
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Picks one element. `from` must not be empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A number that breaks things more often than others: small, large, at the edge of a width.
    pub fn interesting(&mut self) -> u64 {
        match self.below(6) {
            0 => self.next() % 16,
            1 => u64::MAX - self.next() % 4,
            2 => (1u64 << self.below(64)).wrapping_sub(1),
            3 => 1u64 << self.below(64),
            4 => self.next() % 65536,
            _ => self.next(),
        }
    }

    /// Random bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}
