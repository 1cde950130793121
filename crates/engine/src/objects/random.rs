//! Draws the random numbers of P4 programs from a seed. Equal seeds give equal numbers on every machine.

use bits::Bits;
use rng::SplitMix64;

/// The generator behind `random()`.
#[derive(Clone, Debug)]
pub(crate) struct RandomStream(SplitMix64);

impl RandomStream {
    pub(crate) fn new(seed: u64) -> Self {
        RandomStream(SplitMix64::new(seed))
    }

    /// Creates the generator of worker `number`, whose numbers do not repeat those of this seed's other generators.
    pub(crate) fn stream(seed: u64, number: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        (0..number).for_each(|_| _ = random.next_u64());
        // The starting point is an output of another generator, as Steele, Lea and Flood split them.
        RandomStream(SplitMix64::new(random.next_u64().rotate_left(32) ^ number))
    }

    /// Returns a number from `low` to `high`, both included, which have the same width; `low` if `high` is smaller.
    /// With 64 bits more than the span needs, the bias of the remainder is below 2^-64.
    pub(crate) fn between(&mut self, low: &Bits, high: &Bits) -> Bits {
        let width = low.width();
        if width == 0 || high.unsigned_cmp(low).is_le() {
            return low.clone();
        }
        let words = (width / 64 + 2) as usize;
        let bytes: Vec<u8> = (0..words).flat_map(|_| self.0.next_u64().to_be_bytes()).collect();
        let wide = (words * 64) as u32;
        let number = Bits::from_be_bytes(&bytes, wide);
        let span = high.sub(low).resize(wide).add(&Bits::new(1, wide));
        low.add(&number.rem(&span).resize(width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_inside_and_reaches_both_ends() {
        let mut random = RandomStream::new(1);
        let (low, high) = (Bits::new(3, 8), Bits::new(6, 8));
        let mut seen = [false; 256];
        for _ in 0..200 {
            seen[random.between(&low, &high).low_u64() as usize] = true;
        }
        let seen: Vec<_> = (0..256).filter(|i| seen[*i]).collect();
        assert_eq!(seen, [3, 4, 5, 6]);
        assert_eq!(random.between(&high, &low), high);
        assert_eq!(random.between(&Bits::zero(200), &Bits::ones(200)).width(), 200);
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let run = |seed| {
            let mut random = RandomStream::new(seed);
            (0..10).map(|_| random.between(&Bits::zero(64), &Bits::ones(64)).low_u64()).collect::<Vec<_>>()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }
}
