//! An ordered map whose snapshots are free.
//!
//! The entries lie in order in chunks that a snapshot shares; whoever changes a chunk that is shared copies it first. So
//! a reader goes through a million entries as they were when it began, and a writer meanwhile pays for the chunks that
//! it touches. Where a key belongs is read from a list of bounds alone, without a look into the chunks.

use std::sync::Arc;

/// Entries of a chunk, at most.
const CHUNK: usize = 256;

type Chunk<K, V> = Arc<Vec<(K, V)>>;

/// A chunk behind a bound: none of its keys is below it, and all keys of the chunks before it are.
type Bounded<K, V> = (K, Chunk<K, V>);

/// An ordered map. A clone is a snapshot.
#[derive(Clone, Debug)]
pub(crate) struct Shelf<K, V> {
    /// None is empty; keys ascend within and across.
    chunks: Arc<Vec<Bounded<K, V>>>,
    len: usize,
}

impl<K, V> Default for Shelf<K, V> {
    fn default() -> Self {
        Shelf { chunks: Arc::new(Vec::new()), len: 0 }
    }
}

/// A place between two entries of one snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    chunk: usize,
    entry: usize,
}

impl<K: Ord + Clone, V: Clone> Shelf<K, V> {
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The chunk that has the key, if any has, and the key's place in it, or where it would be.
    fn find(&self, key: &K) -> (usize, Result<usize, usize>) {
        let after = self.chunks.partition_point(|(bound, _)| bound <= key);
        let chunk = after.saturating_sub(1);
        match self.chunks.get(chunk) {
            Some((_, entries)) => (chunk, entries.binary_search_by(|(other, _)| other.cmp(key))),
            None => (0, Err(0)),
        }
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let (chunk, found) = self.find(key);
        found.ok().map(|entry| &self.chunks[chunk].1[entry].1)
    }

    /// The first key that is not below this one.
    pub(crate) fn first_from(&self, key: &K) -> Option<&K> {
        let (chunk, found) = self.find(key);
        let (Ok(entry) | Err(entry)) = found;
        let here = self.chunks.get(chunk)?.1.get(entry);
        here.or_else(|| self.chunks.get(chunk + 1)?.1.first()).map(|(key, _)| key)
    }

    /// Puts a value in; returns the one it replaces.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (at, found) = self.find(&key);
        let chunks = Arc::make_mut(&mut self.chunks);
        if chunks.is_empty() {
            chunks.push((key.clone(), Arc::new(Vec::new())));
        }
        let last = at + 1 == chunks.len();
        let (bound, chunk) = &mut chunks[at];
        let chunk = Arc::make_mut(chunk);
        match found {
            Ok(entry) => return Some(std::mem::replace(&mut chunk[entry].1, value)),
            Err(entry) => {
                // Only a key below all others comes before the bound of its chunk.
                if key < *bound {
                    *bound = key.clone();
                }
                chunk.insert(entry, (key, value));
            }
        }
        self.len += 1;
        if chunk.len() > CHUNK {
            // Keys that come in order leave full chunks behind.
            let appended = last && found == Err(CHUNK);
            let tail = chunk.split_off(if appended { CHUNK } else { CHUNK / 2 });
            chunks.insert(at + 1, (tail[0].0.clone(), Arc::new(tail)));
        }
        None
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let (at, found) = self.find(key);
        let entry = found.ok()?;
        let chunks = Arc::make_mut(&mut self.chunks);
        let chunk = Arc::make_mut(&mut chunks[at].1);
        let (_, value) = chunk.remove(entry);
        if chunk.is_empty() {
            chunks.remove(at);
        }
        self.len -= 1;
        Some(value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.chunks.iter().flat_map(|(_, chunk)| chunk.iter().map(|(key, value)| (key, value)))
    }

    /// Up to `count` entries from a place on, which moves behind them.
    pub(crate) fn next<'a>(&'a self, place: &mut Place, count: usize) -> Vec<(&'a K, &'a V)> {
        let mut out = Vec::new();
        while out.len() < count
            && let Some((_, chunk)) = self.chunks.get(place.chunk)
        {
            match chunk.get(place.entry) {
                Some((key, value)) => {
                    out.push((key, value));
                    place.entry += 1;
                }
                None => *place = Place { chunk: place.chunk + 1, entry: 0 },
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn it_is_an_ordered_map_and_snapshots_stay_as_they_were() {
        let mut shelf = Shelf::default();
        let mut model = BTreeMap::new();
        let mut snapshots = Vec::new();
        // A small generator: every step inserts or removes one of few keys, so that both happen often.
        let mut random = 1u64;
        for step in 0..20_000u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = (random >> 33) % 3_000;
            match random >> 63 {
                0 => assert_eq!(shelf.insert(key, step), model.insert(key, step)),
                _ => assert_eq!(shelf.remove(&key), model.remove(&key)),
            }
            assert_eq!(shelf.get(&key), model.get(&key));
            if step % 4_000 == 0 {
                snapshots.push((shelf.clone(), model.clone()));
            }
        }
        snapshots.push((shelf, model));
        for (shelf, model) in snapshots {
            assert_eq!(shelf.len(), model.len());
            assert!(shelf.iter().eq(model.iter()));
            let (mut place, mut pieces) = (Place::default(), Vec::new());
            loop {
                let piece = shelf.next(&mut place, 7);
                pieces.extend(piece.iter().map(|(key, value)| (**key, **value)));
                if piece.len() < 7 {
                    break;
                }
            }
            assert!(pieces.into_iter().eq(model));
        }
    }

    #[test]
    fn keys_in_order_fill_their_chunks() {
        let mut shelf = Shelf::default();
        (0..100_000u32).for_each(|key| assert!(shelf.insert(key, ()).is_none()));
        assert!(shelf.chunks.len() <= 100_000 / CHUNK + 1);
    }
}
