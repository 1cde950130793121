//! Entries by their whole key.

use bits::Bits;
use ir::KeyValue;

use super::{Backend, Handle, Lookup};
use crate::objects::FoldMap;

#[derive(Debug, Default)]
pub(super) struct Exact {
    entries: FoldMap<Box<[Bits]>, Handle>,
}

/// The bits of values that are all exact.
fn plain(keys: &[KeyValue]) -> Option<Box<[Bits]>> {
    let each = |key: &KeyValue| match key {
        KeyValue::Exact(value) => Some(value.clone()),
        _ => None,
    };
    keys.iter().map(each).collect()
}

impl Backend for Exact {
    fn lookup(&self, key: &[Bits]) -> Lookup {
        self.entries.get(key).map_or(Lookup::Miss, |handle| Lookup::Hit(*handle))
    }

    fn find(&self, keys: &[KeyValue], _: i32) -> Option<Handle> {
        self.entries.get(&plain(keys)?).copied()
    }

    fn insert(&mut self, keys: &[KeyValue], _: i32, handle: Handle) {
        let key = plain(keys).expect("an exact table's values are exact");
        self.entries.insert(key, handle);
    }

    fn remove(&mut self, keys: &[KeyValue], _: i32) -> Option<Handle> {
        self.entries.remove(&plain(keys)?)
    }
}
