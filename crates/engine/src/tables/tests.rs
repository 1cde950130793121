//! Every backend against a scan of all entries that selects the winner in one expression.

use std::cmp::Reverse;

use ir::MatchKind::{Exact, Lpm, Optional, Range, Ternary};

use super::inline_lookup::{EMPTY, GROUP, HashedKeys, SECRET};
use super::*;
use crate::objects::RandomStream;

fn shape(kinds: &[MatchKind], width: u32, signed: bool) -> Vec<KeyShape> {
    kinds.iter().map(|kind| KeyShape { width, kind: *kind, signed: signed && *kind == Range }).collect()
}

struct RandomEntries(RandomStream);

impl RandomEntries {
    fn bits(&mut self, width: u32) -> Bits {
        self.0.between(&Bits::zero(width), &Bits::ones(width))
    }

    fn below(&mut self, end: u32) -> u32 {
        self.0.between(&Bits::zero(32), &Bits::new(u128::from(end - 1), 32)).low_u64() as u32
    }

    fn value(&mut self, shape: &KeyShape) -> KeyValue {
        let width = shape.width;
        match shape.kind {
            Exact => KeyValue::Exact(self.bits(width)),
            Optional if self.below(3) == 0 => KeyValue::Any,
            Optional => KeyValue::Exact(self.bits(width)),
            Lpm => {
                let prefix = self.below(width + 1);
                KeyValue::Lpm(self.bits(width).and(&prefix_mask(width, prefix)), prefix)
            }
            Ternary => {
                let mask = self.bits(width);
                KeyValue::Ternary(self.bits(width).and(&mask), mask)
            }
            Range => {
                let (a, b) = (self.bits(width), self.bits(width));
                let in_order = if shape.signed { a.signed_cmp(&b) } else { a.unsigned_cmp(&b) };
                if in_order.is_le() { KeyValue::Range(a, b) } else { KeyValue::Range(b, a) }
            }
            MatchKind::Selector => unreachable!("selectors are not matched"),
        }
    }
}

type Rule = (Vec<KeyValue>, i32, Handle);

fn winner(shape: &[KeyShape], rules: &[Rule], key: &[Bits]) -> Lookup {
    let prefixes = |values: &[KeyValue]| -> u32 {
        values.iter().map(|value| if let KeyValue::Lpm(_, prefix) = value { *prefix } else { 0 }).sum()
    };
    let matching = rules.iter().filter(|(values, ..)| matches(shape, values, key));
    let best = matching.min_by_key(|(values, priority, _)| (Reverse(*priority), Reverse(prefixes(values))));
    best.map_or(Lookup::Miss, |(.., handle)| Lookup::Hit(*handle))
}

/// Looks a key up by the description of an inline lookup.
fn inline_lookup(way: &InlineLookup<'_>, key: &[u64]) -> Option<u32> {
    match way {
        InlineLookup::Dense(keys) => {
            let place = key[0].rotate_right(keys.shift).wrapping_sub(keys.first);
            keys.handles.get(place as usize).copied().filter(|found| *found != MISS)
        }
        InlineLookup::Hashed(keys) => hashed(keys, key),
        InlineLookup::Called(table) => table.call(key),
    }
}

fn hashed(keys: &HashedKeys<'_>, key: &[u64]) -> Option<u32> {
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let mut hash = fold(key[0] ^ SECRET[0], key.get(1).copied().unwrap_or(0) ^ SECRET[1]);
    for pair in key.get(2..).unwrap_or_default().chunks(2) {
        hash = match pair {
            [c, d] => fold(c ^ hash, d ^ SECRET[2]),
            _ => fold(pair[0] ^ hash, SECRET[3]),
        };
    }
    let group = (((hash >> 32) * keys.tags.len() as u64) >> 32) as usize;
    for group in (group..keys.tags.len()).chain(0..group) {
        let tags = keys.tags[group].iter().enumerate();
        for (at, _) in tags.filter(|(_, tag)| u64::from(**tag) == hash & 0x7f) {
            let slot = &keys.slots[(group * GROUP + at) * (key.len() + 1)..][..key.len() + 1];
            if slot[..key.len()] == *key {
                return Some(slot[key.len()] as u32);
            }
        }
        if keys.tags[group].contains(&EMPTY) {
            return None;
        }
    }
    None
}

#[test]
fn backends_agree_with_a_linear_scan() {
    let kinds: &[&[MatchKind]] = &[
        &[],
        &[Exact],
        &[Exact, Exact],
        &[Lpm],
        &[Exact, Lpm],
        &[Lpm, Exact, Exact],
        &[Lpm, Lpm],
        &[Ternary],
        &[Range],
        &[Exact, Range],
        &[Range, Exact, Exact],
        &[Optional],
        &[Lpm, Ternary],
        &[Exact, Optional, Range],
        &[Exact, Lpm, Ternary, Range, Optional],
    ];
    let (mut hits, mut ways) = (0, [0; 3]);
    for (seed, kinds) in kinds.iter().enumerate() {
        for (width, signed) in [(3, false), (4, true), (9, false)] {
            let shape = shape(kinds, width, signed);
            let mut rng = RandomEntries(RandomStream::new(seed as u64));
            let mut backend = backend_for(&shape);
            let mut rules: Vec<Rule> = Vec::new();
            for step in 0..400 {
                let what = format!("{kinds:?} width {width} step {step}");
                if rng.below(4) == 0 && !rules.is_empty() {
                    let (values, priority, handle) = rules.remove(rng.below(rules.len() as u32) as usize);
                    assert_eq!(backend.remove(&values, priority), Some(handle), "{what}");
                    assert_eq!(backend.find(&values, priority), None, "{what}");
                    assert_eq!(backend.remove(&values, priority), None, "{what}");
                } else {
                    let values: Vec<_> = shape.iter().map(|shape| rng.value(shape)).collect();
                    assert_eq!(canonical(&shape, values.clone()).as_ref(), Ok(&values), "{what}");
                    let priority = if needs_priority(&shape) { rng.below(5) as i32 + 1 } else { 0 };
                    let there = rules.iter().find(|rule| rule.0 == values && rule.1 == priority).map(|rule| rule.2);
                    assert_eq!(backend.find(&values, priority), there, "{what}");
                    if there.is_none() {
                        backend.insert(&values, priority, Handle(step));
                        rules.push((values, priority, Handle(step)));
                    }
                }
                for _ in 0..4 {
                    let key: Vec<_> = shape.iter().map(|shape| rng.bits(shape.width)).collect();
                    let want = winner(&shape, &rules, &key);
                    assert_eq!(backend.lookup(&key), want, "{what} key {key:?}");
                    hits += u32::from(want != Lookup::Miss);
                    if let Some(way) = backend.inline_lookup().filter(|_| !kinds.is_empty()) {
                        let words = KeyWords::new(kinds.iter().map(|kind| (width, *kind))).pack(&key);
                        let found = inline_lookup(&way, &words);
                        assert_eq!(Lookup::from(found), want, "{what} key {key:?} by {way:?}");
                        let is = [
                            matches!(way, InlineLookup::Dense(_)),
                            matches!(way, InlineLookup::Hashed(_)),
                            matches!(way, InlineLookup::Called(_)),
                        ];
                        ways.iter_mut().zip(is).for_each(|(count, this)| *count += u32::from(this));
                    }
                }
            }
        }
    }
    assert!(hits > 10_000, "only {hits} hits: the test sees too little");
    assert!(ways.iter().all(|count| *count > 1_000), "only {ways:?} in place: the test sees too little");
}

#[test]
fn every_kind_means_what_it_says() {
    let bits = |value: i128| Bits::new(value as u128, 8);
    let one = |kind, signed| [KeyShape { width: 8, kind, signed }];
    let check = |kind, signed, value: KeyValue, yes: &[i128], no: &[i128]| {
        let shape = one(kind, signed);
        let value = canonical(&shape, vec![value]).unwrap();
        yes.iter().for_each(|key| assert!(matches(&shape, &value, &[bits(*key)]), "{value:?} misses {key}"));
        no.iter().for_each(|key| assert!(!matches(&shape, &value, &[bits(*key)]), "{value:?} hits {key}"));
    };
    check(Exact, false, KeyValue::Exact(bits(5)), &[5], &[4, 255]);
    check(Lpm, false, KeyValue::Lpm(bits(0xa0), 4), &[0xa0, 0xaf], &[0xb0, 0x0a]);
    check(Lpm, false, KeyValue::Lpm(bits(0), 0), &[0, 255], &[]);
    check(Lpm, false, KeyValue::Any, &[0, 255], &[]);
    check(Lpm, false, KeyValue::Exact(bits(7)), &[7], &[6]);
    check(Ternary, false, KeyValue::Ternary(bits(0x81), bits(0x81)), &[0x81, 0xff], &[0x80, 1]);
    check(Ternary, false, KeyValue::Any, &[0, 255], &[]);
    check(Range, false, KeyValue::Range(bits(5), bits(200)), &[5, 6, 200], &[4, 201]);
    check(Range, true, KeyValue::Range(bits(-3), bits(2)), &[-3, -1, 0, 2], &[-4, 3, 127]);
    check(Range, true, KeyValue::Any, &[-128, 127, 0], &[]);
    check(Range, false, KeyValue::Exact(bits(9)), &[9], &[8, 10]);
    check(Optional, false, KeyValue::Any, &[0, 255], &[]);
    check(Optional, false, KeyValue::Exact(bits(9)), &[9], &[8]);
}

#[test]
fn values_that_do_not_fit_say_why() {
    use EntryError::*;
    let bits = |value: u128| Bits::new(value, 8);
    let why = |kind, signed, value| canonical(&[KeyShape { width: 8, kind, signed }], vec![value]).unwrap_err();
    assert_eq!(why(Exact, false, KeyValue::Any), KeyKind { key: 0, kind: Exact });
    assert_eq!(why(Exact, false, KeyValue::Lpm(bits(0), 8)), KeyKind { key: 0, kind: Exact });
    assert_eq!(why(Optional, false, KeyValue::Ternary(bits(0), bits(0))), KeyKind { key: 0, kind: Optional });
    assert_eq!(why(Exact, false, KeyValue::Exact(Bits::new(0, 9))), KeyWidth { key: 0, want: 8, got: 9 });
    assert_eq!(why(Ternary, false, KeyValue::Ternary(bits(0), Bits::new(0, 7))), KeyWidth { key: 0, want: 8, got: 7 });
    assert_eq!(why(Lpm, false, KeyValue::Lpm(bits(0), 9)), PrefixTooLong { key: 0, width: 8, got: 9 });
    assert_eq!(why(Lpm, false, KeyValue::Lpm(bits(1), 7)), BitsBehindMask { key: 0 });
    assert_eq!(why(Ternary, false, KeyValue::Ternary(bits(3), bits(1))), BitsBehindMask { key: 0 });
    assert_eq!(why(Range, false, KeyValue::Range(bits(4), bits(3))), EmptyRange { key: 0 });
    assert_eq!(why(Range, true, KeyValue::Range(bits(1), bits(0xff))), EmptyRange { key: 0 });
    assert_eq!(canonical(&[], vec![KeyValue::Any]), Err(KeyCount { want: 0, got: 1 }));
}
