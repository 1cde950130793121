//! Converts intervals to a minimal set of prefixes under longest-prefix match (Draves, King, Venkatachary, Zill:
//! Constructing Optimal IP Routing Tables, 1999).
//!
//! A prefix whose halves can have the same result needs one entry. From the longest prefixes up, the set of cheapest
//! results of a prefix is the intersection of its halves' sets, or else their union. From the shortest prefixes down, a
//! prefix gets an entry if the inherited result is not in its set.

use smallvec::{SmallVec, smallvec};

use crate::format::max_of;
use crate::tables::{EntryKey, StateId};

/// Returns the fewest prefixes that together cover the `width`-bit numbers from `first` to `last`: value and length of
/// each, ascending.
pub fn cover(first: u128, last: u128, width: u32) -> Vec<(u128, u32)> {
    assert!(first <= last && last <= max_of(width), "a stretch of numbers of {width} bits");
    let (mut out, mut next) = (Vec::new(), Some(first));
    while let Some(value) = next.filter(|value| *value <= last) {
        // The largest block that begins here and does not extend beyond the last number.
        let fits = |below: &u32| {
            let block = max_of(*below);
            value & block == 0 && last - value >= block
        };
        let below = (1..=width).take_while(fits).last().unwrap_or(0);
        let block = if below == 0 { 0 } else { max_of(below) };
        out.push((value, width - below));
        next = (value + block).checked_add(1);
    }
    out
}

/// A prefix: uniform, or split into two halves.
struct Tree {
    /// Results of least cost, ascending.
    ways: SmallVec<[StateId; 2]>,
    halves: Option<Box<[Tree; 2]>>,
}

/// Returns entries for intervals that cover all numbers of `width` bits in ascending order. State 0 is the result of a
/// miss; [`EntryKey::Rest`] replaces the empty prefix.
pub(crate) fn prefixes(stretches: &[(u128, u128, StateId)], width: u32) -> Vec<(EntryKey, StateId)> {
    let mut out = Vec::new();
    let tree = tree(stretches, 0, width);
    emit(&tree, 0, 0, width, 0, &mut out);
    out
}

/// Builds the tree of the prefix that begins at `first` and has `below` free bits; `stretches` are the intervals that
/// overlap it.
fn tree(stretches: &[(u128, u128, StateId)], first: u128, below: u32) -> Tree {
    if let [(_, _, state)] = stretches {
        return Tree { ways: smallvec![*state], halves: None };
    }
    let middle = first | 1 << (below - 1);
    let left = &stretches[..stretches.partition_point(|(from, _, _)| *from < middle)];
    let right = &stretches[stretches.partition_point(|(_, to, _)| *to < middle)..];
    let halves = Box::new([tree(left, first, below - 1), tree(right, middle, below - 1)]);
    let [a, b] = [&halves[0].ways, &halves[1].ways];
    let common: SmallVec<[StateId; 2]> = a.iter().filter(|way| b.binary_search(way).is_ok()).copied().collect();
    let ways = if common.is_empty() {
        let mut all: SmallVec<[StateId; 2]> = a.iter().chain(b).copied().collect();
        all.sort_unstable();
        all
    } else {
        common
    };
    Tree { ways, halves: Some(halves) }
}

fn emit(tree: &Tree, value: u128, length: u32, width: u32, inherited: StateId, out: &mut Vec<(EntryKey, StateId)>) {
    let way = match tree.ways.binary_search(&inherited) {
        Ok(_) => inherited,
        Err(_) => {
            let way = tree.ways[0];
            out.push((if length == 0 { EntryKey::Rest } else { EntryKey::Prefix { value, length } }, way));
            way
        }
    };
    if let Some(halves) = &tree.halves {
        emit(&halves[0], value, length + 1, width, way, out);
        emit(&halves[1], value | 1 << (width - 1 - length), length + 1, width, way, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rng::SplitMix64;

    /// Returns the result of the entries for a value.
    fn look_up(entries: &[(EntryKey, StateId)], value: u128, width: u32) -> StateId {
        let length = |key: &EntryKey| match key {
            EntryKey::Prefix { value: prefix, length } => {
                (prefix >> (width - length) == value >> (width - length)).then_some(*length)
            }
            _ => Some(0),
        };
        let fitting = entries.iter().filter_map(|(key, state)| Some((length(key)?, *state)));
        fitting.max().map_or(0, |(_, state)| state)
    }

    #[test]
    fn prefixes_do_what_the_stretches_say_and_are_few() {
        let mut rng = SplitMix64::new(17);
        for _ in 0..300 {
            let states: Vec<StateId> = (0..16).map(|_| rng.below(3) as u32 * rng.below(2) as u32).collect();
            let mut stretches: Vec<(u128, u128, StateId)> = Vec::new();
            for (value, state) in states.iter().enumerate() {
                match stretches.last_mut() {
                    Some((_, end, last)) if last == state => *end = value as u128,
                    _ => stretches.push((value as u128, value as u128, *state)),
                }
            }
            let entries = prefixes(&stretches, 4);
            for (value, state) in states.iter().enumerate() {
                assert_eq!(look_up(&entries, value as u128, 4), *state, "{stretches:?} {entries:?}");
            }
            assert!(entries.len() <= fewest(&states), "{stretches:?}: {entries:?}");
        }
        // A prefix within a prefix takes two entries, not a cover of the rest of the outer one.
        let within = [(0, 9, 0), (10, 19, 1), (20, 23, 2), (24, 31, 1), (32, 255, 0)];
        assert!(prefixes(&within, 8).len() <= 4, "{:?}", prefixes(&within, 8));
        assert_eq!(prefixes(&[(0, u128::MAX, 7)], 128), [(EntryKey::Rest, 7)]);
    }

    #[test]
    fn a_stretch_is_covered_once_by_as_few_prefixes_as_can_be() {
        for (first, last) in (0..64u128).flat_map(|first| (first..64).map(move |last| (first, last))) {
            let prefixes = cover(first, last, 6);
            let block = |(value, length): &(u128, u32)| *value..*value + (1 << (6 - length));
            let values: Vec<u128> = prefixes.iter().flat_map(block).collect();
            assert_eq!(values, (first..=last).collect::<Vec<_>>());
            // No two adjacent prefixes can be merged.
            let halves = |pair: &&[(u128, u32)]| pair[0].1 == pair[1].1 && pair[0].0 >> (6 - pair[0].1) & 1 == 0;
            assert_eq!(prefixes.windows(2).find(halves), None, "{first}..{last}");
        }
        assert_eq!(cover(0, u128::MAX, 128), [(0, 0)]);
        assert_eq!(cover(u128::MAX, u128::MAX, 128), [(u128::MAX, 128)]);
        assert_eq!(cover(1, u128::MAX - 1, 128).len(), 254);
    }

    /// Returns the minimum number of entries, by dynamic programming over the inherited result.
    fn fewest(states: &[StateId]) -> usize {
        fn cost(states: &[StateId], inherited: StateId) -> usize {
            if states.iter().all(|state| *state == inherited) {
                return 0;
            }
            let halves = |way: StateId| match states {
                [only] => {
                    if *only == way {
                        0
                    } else {
                        usize::MAX / 4
                    }
                }
                _ => {
                    let (left, right) = states.split_at(states.len() / 2);
                    cost(left, way) + cost(right, way)
                }
            };
            (0..3).map(|way| halves(way) + usize::from(way != inherited)).min().unwrap_or(0)
        }
        cost(states, 0)
    }
}
