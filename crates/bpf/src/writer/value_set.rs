//! Writes value sets.

use std::sync::atomic::AtomicU64;

use ir::{KeyValue, ValueSet};

use super::key::pairs;
use crate::layout::{FlatSet, MAX_MEMBERS, TOO_MANY, set_keys};
use crate::region::store;

/// Writes the members of a set to the copy that begins this many bytes behind the first one.
pub(super) fn write_set(
    region: &[AtomicU64],
    (layout, base): (&FlatSet, u32),
    set: &ValueSet,
    members: &[Vec<KeyValue>],
) {
    let first = (layout.first + base) / 8;
    let count = if members.len() <= MAX_MEMBERS { members.len() as u64 } else { TOO_MANY };
    store(region, first, count);
    let keys = set_keys(set);
    let members = members.iter().take(MAX_MEMBERS);
    let words =
        members.flat_map(|member| keys.iter().zip(member).flat_map(|(key, value)| pairs(*key, value)).flatten());
    (first + 1..).zip(words).for_each(|(at, word)| store(region, at, word));
}
