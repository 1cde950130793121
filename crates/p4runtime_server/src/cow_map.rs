//! Implements an ordered copy-on-write map: a snapshot costs one reference count.
//!
//! Entries lie in order in chunks that snapshots share. A writer copies a shared chunk before it changes it. A reader
//! can thus iterate over a million entries as they were when it began, while a writer pays only for the chunks that
//! it touches. The chunk of a key is found in a list of bounds, without access to the chunks.

use std::sync::Arc;

/// Maximum number of entries in a chunk.
const CHUNK: usize = 256;

type Chunk<K, V> = Arc<Vec<(K, V)>>;

/// A lower bound and its chunk: no key of the chunk is below the bound, and all keys of earlier chunks are.
type Bounded<K, V> = (K, Chunk<K, V>);

/// An ordered map. A clone is a snapshot.
#[derive(Clone, Debug)]
pub(crate) struct CowMap<K, V> {
    /// No chunk is empty; keys ascend within and across chunks.
    chunks: Arc<Vec<Bounded<K, V>>>,
    len: usize,
}

impl<K, V> Default for CowMap<K, V> {
    fn default() -> Self {
        CowMap { chunks: Arc::new(Vec::new()), len: 0 }
    }
}

/// A position between two entries of one snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MapCursor {
    pub(crate) chunk: usize,
    pub(crate) entry: usize,
}

impl<K: Ord + Clone, V: Clone> CowMap<K, V> {
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the index of the chunk for the key, and the key's index in it, or the index at which it would be
    /// inserted.
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

    /// Returns the first key that is not below `key`.
    pub(crate) fn first_from(&self, key: &K) -> Option<&K> {
        let (chunk, found) = self.find(key);
        let (Ok(entry) | Err(entry)) = found;
        let here = self.chunks.get(chunk)?.1.get(entry);
        here.or_else(|| self.chunks.get(chunk + 1)?.1.first()).map(|(key, _)| key)
    }

    /// Inserts a value and returns the one that it replaces.
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
                // Only a key below all others is below the bound of its chunk.
                if key < *bound {
                    *bound = key.clone();
                }
                chunk.insert(entry, (key, value));
            }
        }
        self.len += 1;
        if chunk.len() > CHUNK {
            // Keys inserted in ascending order leave full chunks behind.
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

    /// Returns up to `count` entries from the cursor on, and advances the cursor past them.
    pub(crate) fn next<'a>(&'a self, cursor: &mut MapCursor, count: usize) -> Vec<(&'a K, &'a V)> {
        let mut out = Vec::new();
        while out.len() < count
            && let Some((_, chunk)) = self.chunks.get(cursor.chunk)
        {
            match chunk.get(cursor.entry) {
                Some((key, value)) => {
                    out.push((key, value));
                    cursor.entry += 1;
                }
                None => *cursor = MapCursor { chunk: cursor.chunk + 1, entry: 0 },
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
        let mut map = CowMap::default();
        let mut model = BTreeMap::new();
        let mut snapshots = Vec::new();
        // A small generator: each step inserts or removes one of few keys, so that both happen often.
        let mut random = 1u64;
        for step in 0..20_000u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = (random >> 33) % 3_000;
            match random >> 63 {
                0 => assert_eq!(map.insert(key, step), model.insert(key, step)),
                _ => assert_eq!(map.remove(&key), model.remove(&key)),
            }
            assert_eq!(map.get(&key), model.get(&key));
            if step % 4_000 == 0 {
                snapshots.push((map.clone(), model.clone()));
            }
        }
        snapshots.push((map, model));
        for (map, model) in snapshots {
            assert_eq!(map.len(), model.len());
            assert!(map.iter().eq(model.iter()));
            let (mut cursor, mut pieces) = (MapCursor::default(), Vec::new());
            loop {
                let piece = map.next(&mut cursor, 7);
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
        let mut map = CowMap::default();
        (0..100_000u32).for_each(|key| assert!(map.insert(key, ()).is_none()));
        assert!(map.chunks.len() <= 100_000 / CHUNK + 1);
    }
}
