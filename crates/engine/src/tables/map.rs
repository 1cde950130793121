//! Hash maps from packed keys to handles, with the common numbers of words apart.

use super::{Handle, words::Words};
use crate::objects::FoldMap;

#[derive(Debug)]
pub(super) enum WordMap {
    One(FoldMap<u64, Handle>),
    Two(FoldMap<[u64; 2], Handle>),
    More(FoldMap<Words, Handle>),
}

impl WordMap {
    pub(super) fn new(words: usize) -> Self {
        match words {
            0 | 1 => WordMap::One(FoldMap::default()),
            2 => WordMap::Two(FoldMap::default()),
            _ => WordMap::More(FoldMap::default()),
        }
    }

    #[inline]
    pub(super) fn get(&self, key: &[u64]) -> Option<Handle> {
        match self {
            WordMap::One(map) => map.get(&one(key)),
            WordMap::Two(map) => map.get(&two(key)),
            WordMap::More(map) => map.get(key),
        }
        .copied()
    }

    pub(super) fn insert(&mut self, key: &[u64], handle: Handle) {
        match self {
            WordMap::One(map) => map.insert(one(key), handle),
            WordMap::Two(map) => map.insert(two(key), handle),
            WordMap::More(map) => map.insert(key.into(), handle),
        };
    }

    pub(super) fn remove(&mut self, key: &[u64]) -> Option<Handle> {
        match self {
            WordMap::One(map) => map.remove(&one(key)),
            WordMap::Two(map) => map.remove(&two(key)),
            WordMap::More(map) => map.remove(key),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            WordMap::One(map) => map.is_empty(),
            WordMap::Two(map) => map.is_empty(),
            WordMap::More(map) => map.is_empty(),
        }
    }
}

/// The only word; 0 for a key without bits.
#[inline]
fn one(key: &[u64]) -> u64 {
    key.first().copied().unwrap_or(0)
}

#[inline]
fn two(key: &[u64]) -> [u64; 2] {
    [key[0], key[1]]
}
