//! Tables with one range against a scan of all entries.

use rng::SplitMix64;
use tables::inline_lookup::InlineLookup;
use tables::{FieldKind, Intervals, KeyLayout, MISS, PackedLookup};

#[derive(Clone, Debug, PartialEq)]
struct RangeEntry {
    /// The exact fields, and the beginning of the range at its position.
    values: Vec<u64>,
    high: u64,
    priority: u64,
    handle: u32,
}

struct Case {
    layout: KeyLayout,
    at: usize,
    width: u32,
}

fn ones(width: u32) -> u64 {
    if width == 0 { 0 } else { u64::MAX >> (64 - width) }
}

impl Case {
    fn new(widths: &[(u32, FieldKind)]) -> Self {
        let at = widths.iter().position(|(_, kind)| *kind == FieldKind::Range).unwrap();
        Case { layout: KeyLayout::new(widths.iter().copied()), at, width: widths[at].0 }
    }

    /// Draws numbers near each other, near the ends of the field, or any.
    fn number(&self, rng: &mut SplitMix64) -> u64 {
        let any = rng.next_u64();
        rng.pick(&[(50, any % 200), (10, any % 3), (10, u64::MAX - any % 3), (30, any)]) & ones(self.width)
    }

    /// Draws values of all fields, with few combinations of the exact ones.
    fn values(&self, rng: &mut SplitMix64) -> Vec<u64> {
        let value = |field: &tables::KeyField| match field.kind {
            FieldKind::Range => self.number(rng),
            _ => rng.below(2) & ones(field.width.min(64)),
        };
        self.layout.fields().iter().map(value).collect()
    }

    fn entry(&self, rng: &mut SplitMix64, handle: u32) -> RangeEntry {
        let values = self.values(rng);
        let low = values[self.at];
        // A single number, a short range, everything, or a random range, possibly with wrap-around.
        let high = match rng.below(6) {
            0 => low,
            1..=3 => low.saturating_add(rng.below(20)).min(ones(self.width)),
            4 => low.wrapping_sub(1) & ones(self.width),
            _ => self.number(rng),
        };
        RangeEntry { values, high, priority: rng.below(4), handle }
    }

    fn key(&self, values: &[u64]) -> Vec<u64> {
        let mut key = vec![0; self.layout.words()];
        values.iter().enumerate().for_each(|(field, value)| self.layout.put(&mut key, field, &[*value]));
        key
    }

    fn winner(&self, entries: &[RangeEntry], values: &[u64]) -> Option<u32> {
        let matches = |entry: &&RangeEntry| {
            let (low, high, number) = (entry.values[self.at], entry.high, values[self.at]);
            let inside = if low <= high { low <= number && number <= high } else { low <= number || number <= high };
            let exact = |field: &usize| *field == self.at || entry.values[*field] == values[*field];
            inside && (0..values.len()).all(|field| exact(&field))
        };
        // Entries are in insertion order; of equal priorities the first wins.
        let best = entries.iter().filter(matches).rev().max_by_key(|entry| entry.priority);
        best.map(|entry| entry.handle)
    }

    /// Compares a table with the oracle. Returns the number of keys that had an entry.
    fn check(&self, table: &Intervals, entries: &[RangeEntry], rng: &mut SplitMix64, count: usize, what: &str) -> u32 {
        let asked: Vec<_> = (0..count).map(|_| self.values(rng)).collect();
        let keys: Vec<u64> = asked.iter().flat_map(|values| self.key(values)).collect();
        let mut found = vec![0; count];
        table.lookup_batch(&keys, &mut found);
        let mut hits = 0;
        for (values, found) in asked.iter().zip(found) {
            let want = self.winner(entries, values);
            assert_eq!(table.lookup(&self.key(values)), want, "{what}: {values:x?}");
            assert_eq!(found, want.unwrap_or(MISS), "{what}, in a batch: {values:x?}");
            let InlineLookup::Called(function) = table.inline_lookup() else { panic!("such a table is a function") };
            assert_eq!(function.call(&self.key(values)), want, "{what}, by its function: {values:x?}");
            hits += u32::from(want.is_some());
        }
        hits
    }
}

#[test]
fn agrees_with_a_scan_while_entries_come_and_go() {
    use FieldKind::{Exact, Range};
    let cases: &[&[(u32, FieldKind)]] = &[
        &[(0, Range)],
        &[(1, Range)],
        &[(8, Range)],
        &[(16, Range)],
        &[(64, Range)],
        &[(32, Exact), (32, Range)],
        &[(9, Range), (9, Exact), (100, Exact)],
        &[(0, Exact), (32, Range), (64, Exact), (48, Exact), (64, Exact)],
        &[(64, Exact), (64, Exact), (64, Exact), (64, Exact), (64, Exact), (63, Range)],
    ];
    let mut hits = 0;
    for (seed, widths) in cases.iter().enumerate() {
        let case = Case::new(widths);
        let mut rng = SplitMix64::new(seed as u64);
        let mut table = Intervals::new(&case.layout);
        let mut entries: Vec<RangeEntry> = Vec::new();
        for step in 0..1500u32 {
            let what = format!("{widths:?} step {step}");
            if rng.percent(if step < 800 { 20 } else { 60 }) && !entries.is_empty() {
                let RangeEntry { values, high, priority, handle } =
                    entries.remove(rng.below(entries.len() as u64) as usize);
                let key = case.key(&values);
                assert_eq!(table.find_entry(&key, high, priority), Some(handle), "{what}");
                assert_eq!(table.remove(&key, high, priority), Some(handle), "{what}");
                assert_eq!(table.find_entry(&key, high, priority), None, "{what}");
                assert_eq!(table.remove(&key, high, priority), None, "{what}");
            } else {
                let mut new = case.entry(&mut rng, step);
                if let Some(last) = entries.last().filter(|_| rng.percent(10)) {
                    // The same range, usually with another priority.
                    new = RangeEntry { priority: new.priority, handle: step, ..last.clone() };
                }
                let same = |entry: &&mut RangeEntry| {
                    (&entry.values, entry.high, entry.priority) == (&new.values, new.high, new.priority)
                };
                let before = entries.iter_mut().find(same).map(|entry| std::mem::replace(&mut entry.handle, step));
                assert_eq!(table.insert(&case.key(&new.values), new.high, new.priority, step), before, "{what}");
                if before.is_none() {
                    entries.push(new);
                }
            }
            assert_eq!(table.len(), entries.len());
            hits += case.check(&table, &entries, &mut rng, if step % 10 == 0 { 40 } else { 3 }, &what);
        }
        let empty = Intervals::new(&case.layout).memory_bytes();
        for RangeEntry { values, high, priority, handle } in entries.drain(..) {
            assert_eq!(table.remove(&case.key(&values), high, priority), Some(handle));
        }
        assert!(table.is_empty() && empty <= table.memory_bytes());
        assert_eq!(case.check(&table, &[], &mut rng, 40, "emptied"), 0);
    }
    assert!(hits > 30_000, "only {hits} hits: the test sees too little");
}

/// A catch-all below others, nested ranges, and ranges that all share a number may make changes slow, but never wrong.
#[test]
fn overlapping_entries_stay_correct() {
    let case = Case::new(&[(32, FieldKind::Range)]);
    type Ends = fn(&mut SplitMix64, u64) -> (u64, u64);
    let sets: [(&str, Ends); 3] = [
        ("each in the one before", |_, at| (at, 0xffff_ffff - at)),
        ("all share a number", |rng, _| (100 - rng.below(100), 100 + rng.below(100))),
        ("everything, and parts of it", |_, at| if at == 500 { (0, 0xffff_ffff) } else { (at * 7, at * 7 + 5) }),
    ];
    for (name, ends) in sets {
        let mut rng = SplitMix64::new(3);
        let mut table = Intervals::new(&case.layout);
        let mut entries = Vec::new();
        for handle in 0..1000u32 {
            let (low, high) = ends(&mut rng, handle.into());
            // Distinct priorities in random order; the catch-all has the lowest.
            let priority = if handle == 500 { 0 } else { u64::from(handle.wrapping_mul(7919) % 1511) + 1 };
            assert_eq!(table.insert(&[low], high, priority, handle), None, "{name}");
            entries.push(RangeEntry { values: vec![low], high, priority, handle });
        }
        while !entries.is_empty() {
            case.check(&table, &entries, &mut rng, 200, name);
            for _ in 0..entries.len().min(50) {
                let RangeEntry { values, high, priority, handle } =
                    entries.swap_remove(rng.below(entries.len() as u64) as usize);
                // The oracle uses the order of entries only for equal priorities, and there are none.
                assert_eq!(table.remove(&values, high, priority), Some(handle), "{name}");
            }
        }
    }
}

#[test]
fn many_entries_are_found_in_the_memory_that_is_said() {
    let layout = KeyLayout::new([(32, FieldKind::Exact), (32, FieldKind::Range)]);
    const COUNT: u64 = 200_000;
    for groups in [1u64, 1000] {
        let mut table = Intervals::new(&layout);
        let each = COUNT / groups;
        // Neighbours are inserted at different times and leave gaps.
        let key = |entry: u64| {
            let low = (entry / groups).wrapping_mul(7_919) % each * 16;
            [(entry % groups) | (low << 32)]
        };
        for entry in 0..COUNT {
            let key = key(entry);
            assert_eq!(table.insert(&key, (key[0] >> 32) + 9, 1, entry as u32), None);
        }
        let bytes = table.memory_bytes() as u64 / COUNT;
        assert!(bytes < 180, "{bytes} bytes an entry in {groups} groups");
        let keys: Vec<u64> =
            (0..COUNT).flat_map(|entry| [key(entry)[0] + (9 << 32), key(entry)[0] + (10 << 32)]).collect();
        let mut found = vec![0; keys.len()];
        table.lookup_batch(&keys, &mut found);
        assert!(found.chunks(2).zip(0..).all(|(found, entry)| found == [entry, MISS]));
        for entry in 0..COUNT - 1000 {
            let key = key(entry);
            assert_eq!(table.remove(&key, (key[0] >> 32) + 9, 1), Some(entry as u32));
        }
        table.lookup_batch(&keys, &mut found);
        let left = |entry: u32| if u64::from(entry) < COUNT - 1000 { MISS } else { entry };
        assert!(found.chunks(2).zip(0..).all(|(found, entry)| found == [left(entry), MISS]));
    }
}
