//! Implements an ordered copy-on-write map of bytes to bytes, for millions of short entries: a snapshot costs one
//! reference count, and an entry little more than its bytes.
//!
//! Like [`CowMap`](crate::cow_map::CowMap), it has entries in order in chunks that snapshots share, and a list of
//! bounds. Keys and values of a chunk lie one after the other in one allocation.

use std::sync::Arc;

use crate::cow_map::MapCursor;
use crate::key::EntryKey;

/// Maximum number of entries in a chunk, and of bytes in a chunk of several.
const CHUNK: usize = 128;
const CHUNK_BYTES: usize = 1 << 16;

/// The entries of a chunk: key, value, key, value, ...
#[derive(Clone, Debug, Default)]
struct PackedChunk {
    bytes: Vec<u8>,
    /// For each entry, the ends of its key and of its value.
    ends: Vec<(u32, u32)>,
}

/// A lower bound and its chunk: no key of the chunk is below the bound, and all keys of earlier chunks are.
type Bounded = (EntryKey, Arc<PackedChunk>);

/// An ordered map. A clone is a snapshot.
#[derive(Clone, Debug, Default)]
pub(crate) struct PackedMap {
    /// No chunk is empty; keys ascend within and across chunks.
    chunks: Arc<Vec<Bounded>>,
}

/// Reserves memory for a few more elements than are needed now.
fn reserve<T>(vec: &mut Vec<T>, more: usize) {
    if vec.capacity() - vec.len() < more {
        vec.reserve_exact(more + vec.len() / 8);
    }
}

impl PackedChunk {
    fn start(&self, entry: usize) -> usize {
        entry.checked_sub(1).map_or(0, |before| self.ends[before].1 as usize)
    }

    fn key(&self, entry: usize) -> &[u8] {
        &self.bytes[self.start(entry)..self.ends[entry].0 as usize]
    }

    fn value(&self, entry: usize) -> &[u8] {
        let (start, end) = self.ends[entry];
        &self.bytes[start as usize..end as usize]
    }

    fn get(&self, entry: usize) -> Option<(&[u8], &[u8])> {
        (entry < self.ends.len()).then(|| (self.key(entry), self.value(entry)))
    }

    /// Returns the index of a key, or the index at which it would be inserted.
    fn find(&self, key: &[u8]) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.key(middle).cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Replaces the bytes from `from` to `to` by `new`, and moves the ends of entries from `entry` on.
    fn splice(&mut self, from: usize, to: usize, new: [&[u8]; 2], entry: usize) {
        let (len, old_len) = (new[0].len() + new[1].len(), to - from);
        let rest = self.bytes.len() - to;
        if len > old_len {
            reserve(&mut self.bytes, len - old_len);
            self.bytes.resize(self.bytes.len() + len - old_len, 0);
            self.bytes.copy_within(to..to + rest, from + len);
        } else {
            self.bytes.copy_within(to..to + rest, from + len);
            self.bytes.truncate(from + len + rest);
        }
        self.bytes[from..from + new[0].len()].copy_from_slice(new[0]);
        self.bytes[from + new[0].len()..from + len].copy_from_slice(new[1]);
        let moved = |end: u32| end.wrapping_add(len as u32).wrapping_sub(old_len as u32);
        for (key_end, end) in &mut self.ends[entry..] {
            (*key_end, *end) = (moved(*key_end), moved(*end));
        }
    }

    fn insert(&mut self, entry: usize, key: &[u8], value: &[u8]) {
        let start = self.start(entry);
        self.splice(start, start, [key, value], entry);
        reserve(&mut self.ends, 1);
        let key_end = start + key.len();
        self.ends.insert(entry, (key_end as u32, (key_end + value.len()) as u32));
    }

    fn replace(&mut self, entry: usize, value: &[u8]) -> Box<[u8]> {
        let before = self.value(entry).into();
        let (start, end) = self.ends[entry];
        self.splice(start as usize, end as usize, [value, &[]], entry + 1);
        self.ends[entry].1 = start + value.len() as u32;
        before
    }

    fn remove(&mut self, entry: usize) -> Box<[u8]> {
        let before = self.value(entry).into();
        let (start, end) = (self.start(entry), self.ends[entry].1 as usize);
        self.splice(start, end, [&[], &[]], entry + 1);
        self.ends.remove(entry);
        before
    }

    /// Returns the entries from one on as a chunk of their own.
    fn split_off(&mut self, entry: usize) -> PackedChunk {
        let start = self.start(entry);
        let bytes = self.bytes[start..].to_vec();
        let moved = |(key_end, end): &(u32, u32)| (key_end - start as u32, end - start as u32);
        let ends = self.ends[entry..].iter().map(moved).collect();
        self.bytes.truncate(start);
        self.bytes.shrink_to_fit();
        self.ends.truncate(entry);
        self.ends.shrink_to_fit();
        PackedChunk { bytes, ends }
    }
}

impl PackedMap {
    /// Returns the index of the chunk for the key, and the key's index in it, or the index at which it would be
    /// inserted.
    fn find(&self, key: &[u8]) -> (usize, Result<usize, usize>) {
        let after = self.chunks.partition_point(|(bound, _)| **bound <= *key);
        let chunk = after.saturating_sub(1);
        match self.chunks.get(chunk) {
            Some((_, entries)) => (chunk, entries.find(key)),
            None => (0, Err(0)),
        }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let (chunk, found) = self.find(key);
        found.ok().map(|entry| self.chunks[chunk].1.value(entry))
    }

    /// Inserts a value and returns the one that it replaces.
    pub(crate) fn insert(&mut self, key: &[u8], value: &[u8]) -> Option<Box<[u8]>> {
        assert!(key.len() + value.len() < 1 << 30, "messages are shorter");
        let (at, found) = self.find(key);
        let chunks = Arc::make_mut(&mut self.chunks);
        if chunks.is_empty() {
            chunks.push((key.into(), Arc::default()));
        }
        let last = at + 1 == chunks.len();
        let (bound, chunk) = &mut chunks[at];
        let chunk = Arc::make_mut(chunk);
        let before = match found {
            Ok(entry) => Some(chunk.replace(entry, value)),
            Err(entry) => {
                // Only a key below all others is below the bound of its chunk.
                if *key < **bound {
                    *bound = key.into();
                }
                chunk.insert(entry, key, value);
                None
            }
        };
        let len = chunk.ends.len();
        if len > CHUNK || (len > 1 && chunk.bytes.len() > CHUNK_BYTES) {
            // Keys inserted in ascending order leave full chunks behind.
            let appended = last && found == Err(len - 1);
            let tail = chunk.split_off(if appended { len - 1 } else { len / 2 });
            reserve(chunks, 1);
            chunks.insert(at + 1, (tail.key(0).into(), Arc::new(tail)));
        }
        before
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<Box<[u8]>> {
        let (at, found) = self.find(key);
        let entry = found.ok()?;
        let chunks = Arc::make_mut(&mut self.chunks);
        let chunk = Arc::make_mut(&mut chunks[at].1);
        let value = chunk.remove(entry);
        if chunk.ends.is_empty() {
            chunks.remove(at);
        }
        Some(value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.chunks.iter().flat_map(|(_, chunk)| (0..chunk.ends.len()).filter_map(|entry| chunk.get(entry)))
    }

    /// Returns up to `count` entries from the cursor on, and advances the cursor past them.
    pub(crate) fn next(&self, cursor: &mut MapCursor, count: usize) -> Vec<(&[u8], &[u8])> {
        let mut out = Vec::new();
        while out.len() < count
            && let Some((_, chunk)) = self.chunks.get(cursor.chunk)
        {
            match chunk.get(cursor.entry) {
                Some(entry) => {
                    out.push(entry);
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
        let mut map = PackedMap::default();
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let mut snapshots = Vec::new();
        // A small generator: each step inserts or removes one of few keys, so that both happen often.
        let mut random = 1u64;
        for step in 0..40_000usize {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = (random >> 33) % 3_000;
            let key = &number.to_be_bytes()[8 - 2 - number as usize % 7..];
            // A value in a thousand is longer than a chunk of several may be.
            let len = if number % 1000 == 7 { 70_000 } else { (random >> 50) as usize % 40 };
            let value = vec![step as u8; len];
            let (ours, theirs) = match random >> 62 {
                0 => (map.remove(key), model.remove(key)),
                _ => (map.insert(key, &value), model.insert(key.to_vec(), value)),
            };
            assert_eq!(ours.map(<[u8]>::into_vec), theirs);
            assert_eq!(map.get(key), model.get(key).map(Vec::as_slice));
            if step % 8_000 == 0 {
                snapshots.push((map.clone(), model.clone()));
            }
        }
        snapshots.push((map, model));
        for (map, model) in snapshots {
            let all = || model.iter().map(|(key, value)| (key.as_slice(), value.as_slice()));
            assert!(map.iter().eq(all()));
            let (mut cursor, mut pieces) = (MapCursor::default(), Vec::<(&[u8], &[u8])>::new());
            loop {
                let piece = map.next(&mut cursor, 7);
                pieces.extend(&piece);
                if piece.len() < 7 {
                    break;
                }
            }
            assert!(pieces.into_iter().eq(all()));
        }
    }

    #[test]
    fn keys_in_order_fill_their_chunks() {
        let mut map = PackedMap::default();
        (0..100_000u32).for_each(|key| assert!(map.insert(&key.to_be_bytes(), &[1]).is_none()));
        assert!(map.chunks.len() <= 100_000 / CHUNK + 1);
    }
}
