//! Translates the keys of entries to the words of a search.

use engine::TableEntry;
use engine::tables::KeyShape;
use ir::{KeyValue, MatchKind, Table};
use tables::flat::FlatRule;

use crate::layout::{FlatTable, TableSearch, matched_keys, sign_mask};
use crate::split::{pieces, split_value, words_of};

/// The key of an entry in the words of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WrittenKey {
    Exact(Vec<u64>),
    Prefix(u128, u32),
    Rule(FlatRule),
}

/// Returns the key of an entry as the search has it; `None` if the search cannot have it.
pub(super) fn key(layout: &FlatTable, table: &Table, entry: &TableEntry) -> Option<WrittenKey> {
    match (&layout.search, &entry.keys[..]) {
        (TableSearch::Prefixes(_), [KeyValue::Lpm(value, length)]) => {
            Some(WrittenKey::Prefix(value.low_u128(), *length))
        }
        (TableSearch::Prefixes(_), [KeyValue::Any]) => Some(WrittenKey::Prefix(0, 0)),
        (TableSearch::Exact(_), keys) => {
            let mut words = Vec::new();
            for value in keys {
                let KeyValue::Exact(value) = value else { return None };
                words.extend(words_of(value));
            }
            Some(WrittenKey::Exact(words))
        }
        (TableSearch::Rules(_), keys) => {
            let length = |value: &KeyValue| if let KeyValue::Lpm(_, length) = value { *length } else { 0 };
            let pairs = matched_keys(table).into_iter().zip(keys);
            let pairs = pairs.flat_map(|(key, value)| self::pairs(key.into(), value)).collect();
            Some(WrittenKey::Rule(FlatRule { rank: (entry.priority, keys.iter().map(length).sum()), pairs }))
        }
        _ => None,
    }
}

/// Returns the pairs of a rule that match what a value matches, one for each piece of the key.
pub(super) fn pairs(key: KeyShape, value: &KeyValue) -> impl Iterator<Item = [u64; 2]> {
    pieces(key.width).map(move |piece| pair(key, &split_value(value, key.width, piece), piece.width))
}

/// Returns the pair for a piece of a key of `width` bits.
fn pair(key: KeyShape, value: &KeyValue, width: u32) -> [u64; 2] {
    let all = u64::MAX.checked_shr(64 - width).unwrap_or(0);
    match (key.kind, value) {
        (MatchKind::Range, KeyValue::Range(low, high)) => {
            [low, high].map(|bound| bound.low_u64() & all ^ sign_mask(key))
        }
        (MatchKind::Range, KeyValue::Exact(value)) => [value.low_u64() ^ sign_mask(key); 2],
        (MatchKind::Range, _) => [0, all],
        (_, KeyValue::Exact(value)) => [value.low_u64(), all],
        (_, KeyValue::Ternary(value, mask)) => [value.low_u64(), mask.low_u64()],
        (_, KeyValue::Lpm(value, length)) => {
            let mask = all & !all.checked_shr(*length).unwrap_or(0);
            [value.low_u64() & mask, mask]
        }
        (_, KeyValue::Any | KeyValue::Range(..)) => [0, 0],
    }
}
