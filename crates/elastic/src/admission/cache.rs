//! Caches the records of popular keys.
//!
//! A key enters when its estimate reaches the threshold and, if the cache is full, exceeds that of the least popular
//! of a few random residents (as in TinyLFU; Einziger, Friedman, Manes, 2017). For load over N servers to be even,
//! N log N entries are enough (Fan et al., 2011); more entries save READs.

use std::collections::BTreeSet;
use std::ops::Bound;

use foldhash::quality::RandomState;
use hashbrown::HashMap;
use rng::SplitMix64;

use super::sketch::CountMinSketch;

/// Residents that are compared when one has to leave.
const SAMPLE: usize = 8;

/// Size and threshold of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Largest number of entries; 0 for no cache.
    pub entries: usize,
    /// Smallest estimate of the sketch at which a key is popular.
    pub threshold: u16,
}

impl Default for CacheConfig {
    fn default() -> Self {
        CacheConfig { entries: 1024, threshold: 8 }
    }
}

/// Numbers of changes of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Keys that entered.
    pub admitted: u64,
    /// Keys that were evicted for others.
    pub evicted: u64,
    /// Keys that were removed because their entries changed.
    pub invalidated: u64,
}

#[derive(Debug)]
struct CachedEntry {
    record: Box<[u8]>,
    /// Index of its key in the residents.
    at: usize,
}

/// Records of popular keys. A record enters only after an answer has confirmed it.
#[derive(Debug)]
pub struct PopularCache {
    config: CacheConfig,
    entries: HashMap<Box<[u8]>, CachedEntry, RandomState>,
    /// Hashes and keys, from which some are drawn at random.
    residents: Vec<(u64, Box<[u8]>)>,
    /// The keys in order, if ranges of them may change.
    ordered: Option<BTreeSet<Box<[u8]>>>,
    random: SplitMix64,
    counts: CacheCounts,
}

impl PopularCache {
    /// Creates an empty cache.
    pub fn new(config: CacheConfig, seed: u64) -> PopularCache {
        let entries = HashMap::with_hasher(RandomState::default());
        let random = SplitMix64::new(seed);
        let (residents, ordered) = (Vec::new(), None);
        PopularCache { config, entries, residents, ordered, random, counts: CacheCounts::default() }
    }

    /// Creates an empty cache whose keys can be removed by range.
    pub fn with_ranges(config: CacheConfig, seed: u64) -> PopularCache {
        PopularCache { ordered: Some(BTreeSet::new()), ..PopularCache::new(config, seed) }
    }

    /// Returns the number of cached keys.
    pub fn len(&self) -> usize {
        self.residents.len()
    }

    /// Whether no key is cached.
    pub fn is_empty(&self) -> bool {
        self.residents.is_empty()
    }

    /// Returns the counts since the start.
    pub fn counts(&self) -> CacheCounts {
        self.counts
    }

    /// Returns the record of a key.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.entries.get(key).map(|entry| &*entry.record)
    }

    /// Offers the current record of a key. `hash` is the key's in the sketch.
    pub fn offer(&mut self, key: &[u8], hash: u64, record: &[u8], sketch: &CountMinSketch) {
        let estimate = sketch.estimate(hash);
        if self.config.entries == 0 || estimate < self.config.threshold || self.entries.contains_key(key) {
            return;
        }
        if self.residents.len() >= self.config.entries && !self.evict_below(estimate, sketch) {
            return;
        }
        self.counts.admitted += 1;
        let entry = CachedEntry { record: record.into(), at: self.residents.len() };
        self.entries.insert(key.into(), entry);
        self.residents.push((hash, key.into()));
        if let Some(ordered) = &mut self.ordered {
            ordered.insert(key.into());
        }
    }

    /// Evicts the least popular of some residents, if its estimate is lower.
    fn evict_below(&mut self, estimate: u16, sketch: &CountMinSketch) -> bool {
        let sample = (0..SAMPLE).map(|_| self.random.below(self.residents.len() as u64) as usize);
        let least = sample.map(|at| (sketch.estimate(self.residents[at].0), at)).min();
        let Some((_, at)) = least.filter(|(resident, _)| *resident < estimate) else { return false };
        self.remove_at(at);
        self.counts.evicted += 1;
        true
    }

    fn remove_at(&mut self, at: usize) {
        let (_, key) = self.residents.swap_remove(at);
        self.entries.remove(&key);
        if let Some(ordered) = &mut self.ordered {
            ordered.remove(&key);
        }
        if let Some((_, moved)) = self.residents.get(at) {
            self.entries.get_mut(moved).expect("residents have entries").at = at;
        }
    }

    /// Removes a key whose entry changes.
    pub fn invalidate(&mut self, key: &[u8]) {
        if let Some(at) = self.entries.get(key).map(|entry| entry.at) {
            self.remove_at(at);
            self.counts.invalidated += 1;
        }
    }

    /// Removes the keys from a first to a last one, both included.
    ///
    /// # Panics
    /// If the cache was created without ranges.
    pub fn invalidate_range(&mut self, first: &[u8], last: &[u8]) {
        let ordered = self.ordered.as_ref().expect("the cache has ranges");
        let bounds = (Bound::Included(first), Bound::Included(last));
        let changed: Vec<Box<[u8]>> = ordered.range::<[u8], _>(bounds).cloned().collect();
        changed.iter().for_each(|key| self.invalidate(key));
    }
}

#[cfg(test)]
mod tests {
    use super::super::sketch::SketchConfig;
    use super::*;

    #[test]
    fn popular_keys_replace_others_and_changed_ones_leave() {
        let mut sketch = CountMinSketch::new(SketchConfig { ageing_interval: 0, ..SketchConfig::default() });
        let mut cache = PopularCache::with_ranges(CacheConfig { entries: 4, threshold: 2 }, 1);
        for key in 0..20u64 {
            let hash = key.wrapping_mul(0x1234_5678_9abc_def1);
            (0..=key).for_each(|_| _ = sketch.add(hash));
            cache.offer(&key.to_le_bytes(), hash, &[key as u8], &sketch);
        }
        assert_eq!(cache.len(), 4);
        assert_eq!(cache.get(&19u64.to_le_bytes()), Some(&[19][..]));
        assert_eq!(cache.get(&0u64.to_le_bytes()), None);
        cache.invalidate(&19u64.to_le_bytes());
        assert_eq!((cache.get(&19u64.to_le_bytes()), cache.len()), (None, 3));
        cache.invalidate_range(&17u64.to_le_bytes(), &17u64.to_le_bytes());
        assert_eq!((cache.get(&17u64.to_le_bytes()), cache.len()), (None, 2));
        cache.invalidate_range(&[0; 8], &[0xff; 8]);
        assert!(cache.is_empty());
        assert_eq!(cache.counts(), CacheCounts { admitted: 19, evicted: 15, invalidated: 4 });
    }
}
