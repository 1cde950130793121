//! Prefix tables against a scan of all prefixes.

use std::collections::BTreeMap;

use rng::SplitMix64;
use tables::{FieldKind, INDEX_FROM, KeyLayout, Lpm, MISS, PackedLookup};

/// A prefix as a packed key with zeros after it, and its length.
type Prefix = (Vec<u64>, u32);

/// Returns the value's bits from the top.
fn bits(value: &[u64], width: u32) -> Vec<bool> {
    (0..width).rev().map(|bit| value[bit as usize / 64] >> (bit % 64) & 1 == 1).collect()
}

struct Case {
    layout: KeyLayout,
    at: usize,
    width: u32,
}

impl Case {
    /// Creates exact fields around a prefix, with spare bits in the words of the exact ones.
    fn new(widths: &[(u32, FieldKind)]) -> Self {
        let at = widths.iter().position(|(_, kind)| *kind == FieldKind::Prefix).unwrap();
        Case { layout: KeyLayout::new(widths.iter().copied()), at, width: widths[at].0 }
    }

    /// Draws a random prefix, with few distinct leading bits, so that prefixes contain each other.
    fn prefix(&self, rng: &mut SplitMix64) -> (Vec<u64>, Vec<u64>, u32) {
        let words = self.width.div_ceil(64) as usize;
        let mut value: Vec<u64> =
            (0..words).map(|_| rng.next_u64() & rng.next_u64() & rng.next_u64() & rng.next_u64()).collect();
        let mut key = vec![0; self.layout.words()];
        for (index, field) in self.layout.fields().iter().enumerate() {
            if field.kind == FieldKind::Exact {
                self.layout.put(&mut key, index, &[rng.below(2)]);
            }
        }
        let mut full = key.clone();
        self.layout.put(&mut full, self.at, &value);
        let length = if rng.percent(10) { self.width } else { rng.below(u64::from(self.width) + 1) as u32 };
        for bit in 0..self.width - length {
            value[bit as usize / 64] &= !(1 << (bit % 64));
        }
        self.layout.put(&mut key, self.at, &value);
        (key, full, length)
    }

    fn winner(&self, prefixes: &BTreeMap<Prefix, u32>, key: &[u64]) -> Option<u32> {
        let field = self.layout.fields()[self.at];
        let take = |key: &[u64]| -> (Vec<u64>, Vec<bool>) {
            let mut value = Vec::new();
            let mut rest = key.to_vec();
            for part in 0..field.words() {
                value.push(key[field.word + part] >> field.shift & field.ones(part));
                rest[field.word + part] &= !(field.ones(part) << field.shift);
            }
            (rest, bits(&value, self.width))
        };
        let (rest, key) = take(key);
        let matching = prefixes.iter().filter(|((prefix, length), _)| {
            let (other, bits) = take(prefix);
            other == rest && bits[..*length as usize] == key[..*length as usize]
        });
        matching.max_by_key(|((_, length), _)| *length).map(|(_, handle)| *handle)
    }
}

#[test]
fn agrees_with_a_scan() {
    use FieldKind::{Exact, Prefix};
    let cases: &[&[(u32, FieldKind)]] = &[
        &[(0, Prefix)],
        &[(1, Prefix)],
        &[(5, Prefix)],
        &[(6, Prefix)],
        &[(32, Prefix)],
        &[(33, Prefix)],
        &[(64, Prefix)],
        &[(65, Prefix)],
        &[(128, Prefix)],
        &[(200, Prefix)],
        &[(12, Exact), (32, Prefix)],
        &[(48, Prefix), (48, Exact), (0, Exact)],
        &[(9, Exact), (128, Prefix), (70, Exact)],
    ];
    let mut hits = 0;
    for (seed, widths) in cases.iter().enumerate() {
        let case = Case::new(widths);
        let mut rng = SplitMix64::new(seed as u64);
        let mut table = Lpm::new(&case.layout);
        let mut prefixes = BTreeMap::new();
        for step in 0..1500u32 {
            let (key, _, length) = case.prefix(&mut rng);
            let what = format!("{widths:?} step {step}");
            assert_eq!(table.find(&key, length), prefixes.get(&(key.clone(), length)).copied(), "{what}");
            if rng.percent(if step < 1000 { 70 } else { 10 }) {
                assert_eq!(table.insert(&key, length, step), prefixes.insert((key, length), step), "{what}");
            } else {
                // A prefix that usually exists.
                let some = prefixes.keys().nth(rng.below(prefixes.len() as u64 + 1) as usize).cloned();
                let (key, length) = some.unwrap_or((key, length));
                assert_eq!(table.remove(&key, length), prefixes.remove(&(key, length)), "{what}");
            }
            assert_eq!(table.len(), prefixes.len());
            let keys: Vec<_> = (0..3).map(|_| case.prefix(&mut rng).1).collect();
            let mut found = [0; 3];
            table.lookup_batch(&keys.concat(), &mut found);
            for (key, found) in keys.iter().zip(found) {
                let want = case.winner(&prefixes, key);
                assert_eq!(table.lookup(key), want, "{what} {key:x?}");
                assert_eq!(found, want.unwrap_or(MISS), "{what} {key:x?} in a batch");
                hits += u32::from(want.is_some());
            }
        }
    }
    assert!(hits > 20_000, "only {hits} hits: the test sees too little");
}

/// Compares the index of large tables with the trie of a table that has an additional, unused exact field.
#[test]
fn large_tables_agree_with_small_ones() {
    for width in [20, 24, 27, 32] {
        let mut rng = SplitMix64::new(u64::from(width));
        let layout = KeyLayout::new([(width, FieldKind::Prefix)]);
        let mut table = Lpm::new(&layout);
        // The exact field keeps every part of this one too small for an index.
        let split = KeyLayout::new([(width, FieldKind::Prefix), (32, FieldKind::Exact)]);
        let mut lengths: Vec<Lpm> = (0..=width).map(|_| Lpm::new(&split)).collect();
        let small = |lengths: &[Lpm], value: u64| {
            let cut = |length: u32| if length == 0 { 0 } else { value >> (width - length) << (width - length) };
            let found = |length: u32| lengths[length as usize].find(&split_key(cut(length), width), length);
            (0..=width).rev().find_map(found)
        };
        let mut there = Vec::new();
        for step in 0..INDEX_FROM as u32 * 2 {
            let length = rng.pick(&[(1, 0), (8, 8.min(width)), (30, 16), (60, 20), (40, width.min(24)), (30, width)]);
            let value = rng.next_u64() & ((1 << width) - 1);
            let value = if length == 0 { 0 } else { value >> (width - length) << (width - length) };
            assert_eq!(
                table.insert(&[value], length, step),
                lengths[length as usize].insert(&split_key(value, width), length, step)
            );
            there.push((value, length));
        }
        let check = |table: &Lpm, lengths: &[Lpm], rng: &mut SplitMix64, there: &[(u64, u32)]| {
            for _ in 0..5000 {
                let near = there[rng.below(there.len() as u64) as usize].0;
                let value = (near ^ rng.below(600)) & ((1 << width) - 1);
                let want = small(lengths, value);
                assert_eq!(table.lookup(&[value]), want, "width {width} {value:x}");
                let mut found = [0];
                table.lookup_batch(&[value], &mut found);
                assert_eq!(found[0], want.unwrap_or(MISS));
            }
        };
        check(&table, &lengths, &mut rng, &there);
        let most = table.memory_bytes();
        let all = there.clone();
        while !there.is_empty() {
            let (value, length) = there.swap_remove(rng.below(there.len() as u64) as usize);
            assert_eq!(
                table.remove(&[value], length),
                lengths[length as usize].remove(&split_key(value, width), length)
            );
            if there.len() % 4000 == 0 {
                check(&table, &lengths, &mut rng, &all);
            }
        }
        assert!(table.is_empty());
        // The first level of an index has 2^16 results and their lengths.
        assert!(table.memory_bytes() + (5 << 16) <= most, "an empty table has no index");
    }
}

/// Returns a key of the table split by an exact field: the value's top bits select the part, so that no part grows
/// large.
fn split_key(value: u64, width: u32) -> [u64; 1] {
    [value | (value >> (width - 8)) << 32]
}

#[test]
fn small_tables_are_small() {
    let layout = KeyLayout::new([(32, FieldKind::Prefix)]);
    let tables: Vec<Lpm> = (0..100)
        .map(|table| {
            let mut lpm = Lpm::new(&layout);
            for entry in 0..100 {
                lpm.insert(&[(table * 1_000_003 + entry) << 8 & 0xffff_ffff], 24, 0);
            }
            lpm
        })
        .collect();
    let bytes: usize = tables.iter().map(Lpm::memory_bytes).sum();
    assert!(bytes < 3 << 20, "100 tables of 100 prefixes take {bytes} bytes");
}

/// Draws a prefix of a routing table whose prefixes contain each other; the exact field, if any, is 0 or 1.
fn nested_prefix(layout: &KeyLayout, rng: &mut SplitMix64) -> (Vec<u64>, u32) {
    let mut key = vec![0; layout.words()];
    let mut length = 0;
    for (index, field) in layout.fields().iter().enumerate() {
        if field.kind == FieldKind::Exact {
            layout.put(&mut key, index, &[rng.below(8) / 7]);
            continue;
        }
        let width = field.width;
        let lengths = [(4, width / 4), (10, width / 2), (10, width / 2 + 3), (60, width * 3 / 4), (16, width)];
        length = if rng.below(2000) == 0 { rng.below(4) as u32 } else { rng.pick(&lengths) };
        let site = u128::from(rng.below(40)) << 64 | u128::from(rng.next_u64() & rng.next_u64());
        let value = if width == 128 { site << 40 } else { site & ((1 << width) - 1) };
        let value = if length == 0 { 0 } else { value >> (width - length) << (width - length) };
        layout.put(&mut key, index, &[value as u64, (value >> 64) as u64][..field.words()]);
    }
    (key, length)
}

/// Compares two tables in keys near these prefixes.
fn assert_same_results(one: &Lpm, other: &Lpm, prefixes: &[(Vec<u64>, u32)], rng: &mut SplitMix64) {
    assert_eq!(one.len(), other.len());
    for _ in 0..4000 {
        let (mut key, length) = prefixes[rng.below(prefixes.len() as u64) as usize].clone();
        assert_eq!(one.find(&key, length), other.find(&key, length));
        // The neighbours, and keys in the prefix.
        key[0] = match rng.below(3) {
            0 => key[0].wrapping_add(rng.below(3)).wrapping_sub(1),
            1 => key[0] ^ rng.below(1 << 9),
            _ => key[0] ^ 1 << rng.below(32),
        };
        let mut found = [0; 2];
        let want = one.lookup(&key);
        assert_eq!(other.lookup(&key), want, "{key:x?}");
        one.lookup_batch(&key, &mut found[..1]);
        other.lookup_batch(&key, &mut found[1..]);
        assert_eq!(found, [want.unwrap_or(MISS); 2], "{key:x?} in a batch");
    }
}

#[test]
fn a_load_gives_the_table_of_single_insertions() {
    use FieldKind::{Exact, Prefix};
    let cases: &[&[(u32, FieldKind)]] = &[
        &[(9, Prefix)],
        &[(20, Prefix)],
        &[(24, Prefix)],
        &[(32, Prefix)],
        &[(128, Prefix)],
        &[(4, Exact), (32, Prefix)],
    ];
    for (case, before) in cases.iter().zip([0, 0, 30_000, 100, 10, 0]) {
        let layout = KeyLayout::new(case.iter().copied());
        let mut rng = SplitMix64::new(before);
        let (mut single, mut loaded) = (Lpm::new(&layout), Lpm::new(&layout));
        let mut prefixes = Vec::new();
        let count = before as usize + 2 * INDEX_FROM;
        for step in 0..count {
            if step == before as usize {
                loaded.begin_load(2 * INDEX_FROM);
            }
            let (key, length) = nested_prefix(&layout, &mut rng);
            let handle = step as u32;
            assert_eq!(single.insert(&key, length, handle), loaded.insert(&key, length, handle));
            prefixes.push((key, length));
            if step % 16 == 0 {
                let (key, length) = &prefixes[rng.below(prefixes.len() as u64) as usize];
                assert_eq!(single.remove(key, *length), loaded.remove(key, *length));
            }
            if step % 10_000 == 9_999 {
                assert_same_results(&single, &loaded, &prefixes, &mut rng);
            }
        }
        loaded.finish_load();
        assert_same_results(&single, &loaded, &prefixes, &mut rng);
        if case.len() == 1 && case[0].0 <= 32 {
            // Vectors grow by an eighth.
            let (one, other) = (single.memory_bytes(), loaded.memory_bytes());
            assert!(other <= one + one / 8, "{case:?}: the load takes {other} bytes, single insertions {one}");
        }
        // Changes after the load, until the indices are gone.
        for step in 0..prefixes.len() {
            let (key, length) = prefixes[step].clone();
            assert_eq!(single.remove(&key, length), loaded.remove(&key, length));
            if step % 5 == 0 {
                let (key, length) = nested_prefix(&layout, &mut rng);
                assert_eq!(single.insert(&key, length, step as u32), loaded.insert(&key, length, step as u32));
                prefixes[step] = (key, length);
            }
            if step % 8_000 == 7_999 {
                assert_same_results(&single, &loaded, &prefixes, &mut rng);
            }
        }
        assert_same_results(&single, &loaded, &prefixes, &mut rng);
    }
}
