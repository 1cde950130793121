//! Counts keys in little memory (Cormode, Muthukrishnan: An improved data stream summary, 2005).
//!
//! Counters saturate and age: a sweep halves each of them once in [`SketchConfig::ageing_interval`] additions, a few
//! with each addition. So an estimate is about the number of occurrences in the last two intervals, and keys that are
//! no longer popular lose their rank.

use crate::mutant::{ElasticMutant, ElasticMutation};

/// Sizes of a sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SketchConfig {
    /// Number of rows, from 1 to 4.
    pub rows: u32,
    /// Counters a row, a power of two up to 65,536.
    pub width: u32,
    /// Number of additions in which each counter is halved once; 0 for never.
    pub ageing_interval: u64,
}

impl Default for SketchConfig {
    /// Four rows of 65,536 counters of 16 bits: 512 KiB.
    fn default() -> Self {
        SketchConfig { rows: 4, width: 1 << 16, ageing_interval: 1 << 20 }
    }
}

/// A count-min sketch over hashes of keys.
#[derive(Clone, Debug)]
pub struct CountMinSketch {
    config: SketchConfig,
    counters: Vec<u16>,
    /// Next counter to halve.
    swept: usize,
    /// Counters to halve, in units of one part of the interval.
    due: u64,
}

impl CountMinSketch {
    /// Creates a sketch of zeros. Sizes beyond the limits are reduced to them.
    pub fn new(config: SketchConfig) -> CountMinSketch {
        let rows = config.rows.clamp(1, 4);
        let width = config.width.clamp(1, 1 << 16).next_power_of_two();
        let config = SketchConfig { rows, width, ..config };
        CountMinSketch { config, counters: vec![0; (rows * width) as usize], swept: 0, due: 0 }
    }

    pub(crate) fn mutated(mut self, mutation: ElasticMutation) -> CountMinSketch {
        if mutation.is(ElasticMutant::NeverAges) {
            self.config.ageing_interval = 0;
        }
        self
    }

    fn slots(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        // The hash places the key, too: multiplying makes its bits independent of the place.
        let mixed = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (rows, width) = (self.config.rows, self.config.width);
        (0..rows).map(move |row| (row * width + ((mixed >> (16 * row)) as u32 & (width - 1))) as usize)
    }

    /// Counts a key, and returns the estimate: at least its true number unless counters saturated or aged.
    pub fn add(&mut self, hash: u64) -> u16 {
        let mut estimate = u16::MAX;
        for slot in self.slots(hash) {
            self.counters[slot] = self.counters[slot].saturating_add(1);
            estimate = estimate.min(self.counters[slot]);
        }
        self.age();
        estimate
    }

    /// Returns the estimate for a key.
    pub fn estimate(&self, hash: u64) -> u16 {
        self.slots(hash).map(|slot| self.counters[slot]).min().unwrap_or(0)
    }

    fn age(&mut self) {
        let interval = self.config.ageing_interval;
        if interval == 0 {
            return;
        }
        self.due += self.counters.len() as u64;
        while self.due >= interval {
            self.due -= interval;
            self.counters[self.swept] /= 2;
            self.swept = (self.swept + 1) % self.counters.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rng::SplitMix64;

    #[test]
    fn estimates_are_never_too_low_and_mostly_exact() {
        let mut sketch = CountMinSketch::new(SketchConfig { ageing_interval: 0, ..SketchConfig::default() });
        let mut random = SplitMix64::new(1);
        let keys: Vec<(u64, u16)> = (0..10_000).map(|_| (random.next_u64(), random.below(20) as u16)).collect();
        for (hash, count) in &keys {
            (0..*count).for_each(|_| _ = sketch.add(*hash));
        }
        assert!(keys.iter().all(|(hash, count)| sketch.estimate(*hash) >= *count));
        let exact = keys.iter().filter(|(hash, count)| sketch.estimate(*hash) == *count).count();
        assert!(exact > 9_900, "{exact}");
    }

    #[test]
    fn counters_saturate_and_age() {
        let config = SketchConfig { rows: 4, width: 1024, ageing_interval: 200_000 };
        let mut sketch = CountMinSketch::new(SketchConfig { ageing_interval: 0, ..config });
        (0..70_000).for_each(|_| _ = sketch.add(5));
        assert_eq!(sketch.estimate(5), u16::MAX);
        let mut sketch = CountMinSketch::new(config);
        (0..20_000).for_each(|_| _ = sketch.add(5));
        let heavy = sketch.estimate(5);
        let mut random = SplitMix64::new(2);
        (0..2_000_000).for_each(|_| _ = sketch.add(random.next_u64()));
        let noise = sketch.estimate(random.next_u64());
        assert!(heavy > 9_000 && sketch.estimate(5) < noise + 100, "{heavy} {} {noise}", sketch.estimate(5));
    }
}
