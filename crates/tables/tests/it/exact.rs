//! The exact table against the standard library's map.

use std::collections::BTreeMap;

use rng::SplitMix64;
use tables::{Exact, MISS, PackedLookup};

/// Looks every key of a list up, alone and in batches, and compares the results with the map.
fn compare(table: &Exact, map: &BTreeMap<Vec<u64>, u32>, keys: &[Vec<u64>]) {
    let mut found = vec![0; keys.len()];
    table.lookup_batch(&keys.concat(), &mut found);
    for (key, found) in keys.iter().zip(found) {
        let want = map.get(key).copied();
        assert_eq!(table.lookup(key), want, "{key:?}");
        assert_eq!(found, want.unwrap_or(MISS), "{key:?} in a batch");
    }
}

#[test]
fn agrees_with_a_map() {
    for words in [0, 1, 2, 3, 4, 5, 6, 9, 17] {
        // Few values at first, so that keys repeat; then many.
        for end in [2u64, 40, 5000] {
            let mut rng = SplitMix64::new(words as u64 * 1000 + end);
            let key = |rng: &mut SplitMix64| -> Vec<u64> {
                let mut key: Vec<_> = (0..words).map(|_| rng.below(2)).collect();
                key.first_mut().into_iter().for_each(|word| *word = rng.below(end) << 40);
                key
            };
            let mut table = Exact::new(words);
            let mut map = BTreeMap::new();
            for step in 0..6000u32 {
                let some = key(&mut rng);
                // The table grows for a while, then shrinks.
                if rng.percent(if step < 4000 { 70 } else { 20 }) {
                    assert_eq!(table.insert(&some, step), map.insert(some, step));
                } else {
                    assert_eq!(table.remove(&some), map.remove(&some));
                }
                assert_eq!(table.len(), map.len());
                if step % 100 == 0 {
                    let keys: Vec<_> = (0..70).map(|_| key(&mut rng)).collect();
                    compare(&table, &map, &keys);
                }
            }
            let mut all = BTreeMap::new();
            table.for_each(|key, handle| assert_eq!(all.insert(key.to_vec(), handle), None));
            assert_eq!(all, map);
        }
    }
}

#[test]
fn insertions_and_removals_for_ever_do_not_grow_it() {
    let mut table = Exact::new(1);
    for key in 0..1000 {
        table.insert(&[key], 0);
    }
    let before = table.memory_bytes();
    for key in 1000..200_000 {
        table.insert(&[key], 0);
        assert_eq!(table.remove(&[key - 1000]), Some(0));
    }
    assert_eq!(table.len(), 1000);
    assert!(table.memory_bytes() <= before * 2, "{} bytes were {before}", table.memory_bytes());
}

#[test]
fn a_million_entries_take_the_memory_that_is_said() {
    let mut table = Exact::new(2);
    for key in 0..1_000_000 {
        table.insert(&[key, key << 32], key as u32);
    }
    assert!(table.memory_bytes() <= 1_000_000 * 25 * 12 / 7 + 10_000, "{} bytes", table.memory_bytes());
    assert_eq!(table.lookup(&[999_999, 999_999 << 32]), Some(999_999));
    let keys: Vec<u64> = (0..2_000_000).flat_map(|key| [key, key << 32]).collect();
    let mut found = vec![0; 2_000_000];
    table.lookup_batch(&keys, &mut found);
    assert!(found.iter().zip(0..).all(|(found, key)| *found == if key < 1_000_000 { key } else { MISS }));
    assert_eq!(table.lookup(&[999_999, 0]), None);
}

/// Returns the key of a step.
type Key<'a> = &'a dyn Fn(u64, &mut SplitMix64) -> u64;

#[test]
fn keys_close_to_each_other_are_found_however_they_come_and_go() {
    let mut rng = SplitMix64::new(7);
    // Keys that descend, drift up, are spaced by a power of two, and are dense except for a few.
    let keys: [Key; 4] =
        [&|at, _| 1_000_000 - at, &|at, rng| at / 4 + rng.below(300), &|at, _| (at % 700) << 32, &|at, rng| {
            if rng.percent(1) { rng.next_u64() } else { u64::MAX - at % 2000 }
        }];
    for key in keys {
        let (mut table, mut map) = (Exact::new(1), BTreeMap::new());
        for at in 0..8000 {
            let some = vec![key(at, &mut rng)];
            assert_eq!(table.insert(&some, at as u32), map.insert(some, at as u32));
            if map.len() > 1000 {
                let gone = map.keys().nth(rng.below(1000) as usize).cloned().expect("there are more");
                assert_eq!(table.remove(&gone), map.remove(&gone));
                assert_eq!(table.remove(&gone), None);
            }
            if at % 100 == 0 {
                let near = |rng: &mut SplitMix64| vec![key(at, rng).wrapping_add(rng.below(5)).wrapping_sub(2)];
                let mut asked: Vec<_> = (0..40).map(|_| near(&mut rng)).collect();
                asked.extend(map.keys().take(30).cloned());
                compare(&table, &map, &asked);
            }
        }
    }
}

#[test]
fn keys_close_to_each_other_take_the_memory_that_is_said() {
    let mut rng = SplitMix64::new(8);
    let keys: [Key; 4] =
        [&|at, _| at, &|at, _| 1_000_000 - at, &|at, rng| 2 * at + rng.below(2), &|at, _| 3_000_000 - 2 * at - at % 2];
    for key in keys {
        let (mut close, mut apart) = (Exact::new(1), Exact::new(1));
        for at in 0..60_000 {
            close.insert(&[key(at, &mut rng)], at as u32);
            apart.insert(&[at.wrapping_mul(0x9e37_79b9_7f4a_7c15)], at as u32);
            if at >= 1000 {
                let more = close.memory_bytes() - apart.memory_bytes();
                let of_each = more as f64 / close.len() as f64;
                assert!((4.0..=12.5).contains(&of_each), "{of_each} bytes for each of {at} entries");
            }
        }
    }
}
