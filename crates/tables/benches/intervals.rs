//! Tables with one range beside exact fields against a hand-written index for such a table: a hash map from the exact
//! fields to a sorted list of thresholds, with binary search.
//!
//! Ranges neither overlap nor leave gaps, like those of a compiled decision diagram, so the hand-written list needs no
//! ends. Keys are uniform over all ranges; one of ten is in no group. The smaller sets include the general classifier.

mod support;

use std::time::Instant;

use hashbrown::HashMap;
use rng::SplitMix64;
use support::{compare, digest};
use tables::{Classifier, FieldKind, Intervals, KeyLayout, MISS, PackedLookup, RulePattern, Ternary};

const LOOKUPS: usize = 400_000;
/// The largest number at which a range begins or ends.
const LAST: u64 = u32::MAX as u64;

/// The hand-written index: thresholds in order, and the handle from each to the next.
#[derive(Default)]
struct ByHand(HashMap<u64, (Vec<u64>, Vec<u32>), foldhash::fast::FixedState>);

impl ByHand {
    fn lookup(&self, exact: u64, number: u64) -> u32 {
        let Some((thresholds, handles)) = self.0.get(&exact) else { return MISS };
        // Every group begins at 0.
        handles[thresholds.partition_point(|threshold| *threshold <= number) - 1]
    }
}

fn measure(entries: u64, groups: u64) {
    let layout = KeyLayout::new([(32, FieldKind::Exact), (32, FieldKind::Range)]);
    let mut rng = SplitMix64::new(entries ^ groups);
    let each = entries / groups;
    let mut hand = ByHand::default();
    let mut ranges = Vec::new();
    for group in 0..groups {
        let mut thresholds: Vec<u64> = std::iter::once(0).chain((1..each).map(|_| rng.below(LAST))).collect();
        thresholds.sort_unstable();
        thresholds.dedup();
        let exact = u64::from(group as u32 ^ 0x0a00_0000);
        let first = ranges.len() as u32;
        for (at, low) in thresholds.iter().enumerate() {
            let high = thresholds.get(at + 1).map_or(LAST, |next| next - 1);
            ranges.push((exact, *low, high, first + at as u32));
        }
        let handles = (first..).take(thresholds.len()).collect();
        hand.0.insert(exact, (thresholds, handles));
    }
    // They are inserted in random order.
    for at in (1..ranges.len()).rev() {
        ranges.swap(at, rng.below(at as u64 + 1) as usize);
    }
    let start = Instant::now();
    let mut table = Intervals::new(&layout);
    for (exact, low, high, handle) in &ranges {
        table.insert(&[exact | low << 32], *high, 1, *handle);
    }
    let insert_ns = start.elapsed().as_nanos() / ranges.len() as u128;
    let rules = (entries <= 20_000).then(|| {
        let mut rules = Ternary::new(&layout);
        for (exact, low, high, handle) in &ranges {
            let mut pattern = RulePattern::any(&layout);
            pattern.exact(&layout, 0, &[*exact]);
            pattern.range(&layout, 1, &[*low], &[*high]);
            rules.insert(&pattern, 1, *handle);
        }
        rules
    });
    let keys: Vec<u64> = (0..LOOKUPS)
        .map(|_| {
            let (exact, ..) = ranges[rng.below(ranges.len() as u64) as usize];
            (if rng.percent(10) { exact ^ 1 << 31 } else { exact }) | rng.below(LAST) << 32
        })
        .collect();
    let (mut a, mut b, mut c, mut d) = (vec![0; LOOKUPS], vec![0; LOOKUPS], vec![0; LOOKUPS], vec![0; LOOKUPS]);
    let mut ways: Vec<support::Contender> = vec![
        (
            "by hand",
            Box::new(|| {
                keys.iter().zip(&mut a).for_each(|(key, found)| *found = hand.lookup(*key & LAST, *key >> 32));
                digest(&a)
            }),
        ),
        (
            "single",
            Box::new(|| {
                let ask = |key: &u64| table.lookup(std::slice::from_ref(key)).unwrap_or(MISS);
                keys.iter().zip(&mut b).for_each(|(key, found)| *found = ask(key));
                digest(&b)
            }),
        ),
        (
            "batch",
            Box::new(|| {
                table.lookup_batch(&keys, &mut c);
                digest(&c)
            }),
        ),
    ];
    if let Some(rules) = &rules {
        let classify = || {
            rules.lookup_batch(&keys, &mut d);
            digest(&d)
        };
        ways.push(("rules", Box::new(classify)));
    }
    let times = compare(LOOKUPS, &mut ways);
    let rules = times.get(3).map_or("-".to_owned(), |time| format!("{time:.0}"));
    println!(
        "{:>8}{:>8} {:>9.1}{:>9.1}{:>9.1} {:>7.2} {:>7.2} {rules:>9} |{:>8}{insert_ns:>10}",
        ranges.len(),
        groups,
        times[0],
        times[1],
        times[2],
        times[1] / times[0],
        times[2] / times[0],
        table.memory_bytes() / table.len(),
    );
}

/// Measures ranges that do not touch: `length` numbers each at random positions, in one group.
fn apart(entries: u64, length: u64) {
    let layout = KeyLayout::new([(32, FieldKind::Exact), (32, FieldKind::Range)]);
    let mut rng = SplitMix64::new(entries ^ length);
    let lows: Vec<u64> = (0..entries).map(|_| rng.below(LAST - length)).collect();
    let mut table = Intervals::new(&layout);
    let each = |start: Instant| start.elapsed().as_nanos() / u128::from(entries);
    let start = Instant::now();
    for (handle, low) in (0..).zip(&lows) {
        table.insert(&[low << 32], low + length, handle.into(), handle);
    }
    let insert_ns = each(start);
    let bytes = table.memory_bytes() / table.len();
    // They are removed in another order than they were inserted.
    let mut order: Vec<u32> = (0..lows.len() as u32).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, rng.below(at as u64 + 1) as usize);
    }
    let start = Instant::now();
    for handle in order {
        let low = lows[handle as usize];
        assert_eq!(table.remove(&[low << 32], low + length, handle.into()), Some(handle), "it was inserted");
    }
    let remove_ns = each(start);
    println!("{entries:>8}{:>14.1} {bytes:>9}{insert_ns:>11}{remove_ns:>11}", (entries * length) as f64 / LAST as f64);
}

fn main() {
    println!("ns a lookup, medians of 9 runs; ratios to the index by hand; rules: the general classifier, in batches");
    println!(
        "{:>8}{:>8} {:>9}{:>9}{:>9} {:>7} {:>7} {:>9} |{:>8}{:>10}",
        "entries", "groups", "by hand", "single", "batch", "single", "batch", "rules", "B/entry", "ns/insert"
    );
    for (entries, groups) in
        [(100, 1), (16_000, 1), (16_000, 100), (16_000, 8_000), (1_000_000, 1), (1_000_000, 100), (1_000_000, 10_000)]
    {
        measure(entries, groups);
    }
    println!("\nranges of one length at random places, in one group; over: how many lie over a number on average");
    println!("{:>8}{:>14} {:>9}{:>11}{:>11}", "entries", "over", "B/entry", "ns/insert", "ns/remove");
    for (entries, length) in [(16_000, 1_000), (1_000, LAST / 3), (16_000, LAST / 1_000), (16_000, LAST / 3)] {
        apart(entries, length);
    }
}
