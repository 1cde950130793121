//! Diagrams against truth tables: functions of three fields of two bits, all 64 points.

use rng::SplitMix64;

use crate::{LimitExceeded, Limits, Ref, Store};

const MAX: u128 = 3;

/// The set at every point, as a bit mask of members.
type TruthTable = Vec<u32>;

fn points() -> impl Iterator<Item = [u128; 3]> {
    (0..64u128).map(|point| [point & 3, point >> 2 & 3, point >> 4])
}

fn table_of(store: &Store, function: Ref) -> TruthTable {
    let members = |point: [u128; 3]| store.evaluate(function, |level| point[level as usize]);
    points().map(|point| members(point).iter().fold(0, |mask, member| mask | 1 << (member & 31))).collect()
}

/// Returns a random condition, and whether it holds at every point.
fn condition(store: &mut Store, rng: &mut SplitMix64, depth: u32) -> (Ref, Vec<bool>) {
    if depth == 0 || rng.percent(20) {
        let level = rng.below(3) as u32;
        let (first, last) = (u128::from(rng.below(4)), u128::from(rng.below(4)));
        let (first, last) = (first.min(last), first.max(last));
        let test = store.test(level, &[(first, last)], MAX, Ref::ALWAYS, Ref::NOTHING).expect("no limits");
        return (test, points().map(|point| (first..=last).contains(&point[level as usize])).collect());
    }
    let (a, in_a) = condition(store, rng, depth - 1);
    let (b, in_b) = condition(store, rng, depth - 1);
    let both = in_a.iter().zip(&in_b);
    match rng.below(3) {
        0 => (store.union(a, b).expect("no limits"), both.map(|(a, b)| *a || *b).collect()),
        1 => (store.keep_where(a, b).expect("no limits"), both.map(|(a, b)| *a && *b).collect()),
        _ => (store.keep_unless(a, b).expect("no limits"), both.map(|(a, b)| !*a && *b).collect()),
    }
}

#[test]
fn diagrams_are_their_truth_tables_and_unique() {
    let mut rng = SplitMix64::new(7);
    let mut store = Store::new();
    let mut known: std::collections::HashMap<TruthTable, Ref> = std::collections::HashMap::new();
    for round in 0..400 {
        let mut all = Ref::NOTHING;
        let mut expected = vec![0; 64];
        for member in 0..rng.below(5) as u32 {
            let (holds, table) = condition(&mut store, &mut rng, 3);
            let constant = store.constant(&[member, member + 1]);
            let rule = store.keep_where(holds, constant).expect("no limits");
            all = store.union(all, rule).expect("no limits");
            for (mask, holds) in expected.iter_mut().zip(&table) {
                *mask |= if *holds { 3 << member } else { 0 };
            }
        }
        assert_eq!(table_of(&store, all), expected, "round {round}");
        assert_eq!(*known.entry(expected.clone()).or_insert(all), all, "one function, one diagram");
        reduced(&store, all);
    }
    assert!(known.len() > 200, "the functions are not all alike: {}", known.len());
    let (one, other) = (known.values().min().copied().expect("some"), known.values().max().copied().expect("some"));
    let path = store.difference(one, other).expect("different tables");
    let value = |level: u32| path.iter().find(|(at, _)| *at == level).map_or(0, |(_, value)| *value);
    assert_ne!(store.evaluate(one, value), store.evaluate(other, value));
    assert_eq!(store.difference(one, one), None);
}

/// Checks the invariants of a node: at least two arms, neighbours differ, levels ascend.
fn reduced(store: &Store, function: Ref) {
    for of in store.reachable(function) {
        let arms: Vec<_> = store.arms(of).collect();
        assert!(of.is_set() || arms.len() >= 2);
        assert!(arms.windows(2).all(|pair| pair[0].1 != pair[1].1 && pair[0].0 < pair[1].0));
        assert!(arms.iter().all(|(_, child)| store.level(*child).is_none_or(|below| Some(below) > store.level(of))));
    }
}

#[test]
fn collecting_keeps_what_is_needed_and_nothing_else() {
    let mut rng = SplitMix64::new(11);
    let mut store = Store::new();
    let (kept, table) = condition(&mut store, &mut rng, 4);
    let kept_size = store.reachable(kept).len();
    for _ in 0..200 {
        condition(&mut store, &mut rng, 4);
        store.constant(&[rng.below(1000) as u32]);
    }
    store.collect([kept]);
    assert!(store.len() <= kept_size + 2, "{} of {kept_size}", store.len());
    let holds: Vec<bool> = table_of(&store, kept).iter().map(|mask| *mask != 0).collect();
    assert_eq!(holds, table);
    // Functions rebuilt in freed slots are correct, and equal functions are found again.
    for _ in 0..50 {
        let (again, table) = condition(&mut store, &mut rng, 4);
        let holds: Vec<bool> = table_of(&store, again).iter().map(|mask| *mask != 0).collect();
        assert_eq!(holds, table);
    }
    store.collect([]);
    assert!(store.is_empty() && store.bytes() < 200, "{} bytes", store.bytes());
}

#[test]
fn limits_stop_operations_and_leave_the_store_sound() {
    let mut store = Store::new();
    // Overlapping ranges of three fields: the diagram of n of them grows faster than n squared.
    let mut rng = SplitMix64::new(3);
    store.set_limits(Limits { nodes: 500, ..Limits::NONE });
    let mut all = Ref::NOTHING;
    let mut stopped = None;
    for member in 0..100 {
        let mut add = || {
            let mut rule = store.constant(&[member]);
            for level in (0..3).rev() {
                let first = u128::from(rng.below(900));
                rule = store.test(level, &[(first, first + 90)], 1023, rule, Ref::NOTHING)?;
            }
            store.union(all, rule)
        };
        match add() {
            Ok(more) => all = more,
            Err(full) => {
                stopped = Some(full);
                break;
            }
        }
    }
    assert_eq!(stopped, Some(LimitExceeded::Nodes));
    assert!(store.len() <= 500);
    reduced(&store, all);
    store.set_limits(Limits { steps: 0, ..Limits::NONE });
    let (one, other) = (store.constant(&[1, 9]), store.constant(&[2, 9]));
    assert_eq!(store.union(one, other), Err(LimitExceeded::Steps));
}

#[test]
fn common_arms_are_those_at_both_ends() {
    let mut rng = SplitMix64::new(11);
    let mut store = Store::new();
    let constants: Vec<Ref> = (0..3).map(|number| store.constant(&[number])).collect();
    let mut node = |store: &mut Store| {
        let arms: Vec<(u128, Ref)> = (0..8).map(|first| (first, constants[rng.below(3) as usize])).collect();
        store.node(0, arms).expect("no limits")
    };
    let mut differing = 0;
    for _ in 0..500 {
        let (a, b) = (node(&mut store), node(&mut store));
        let [in_a, in_b]: [Vec<_>; 2] = [a, b].map(|of| store.arms(of).collect());
        let (front, back) = store.common_arms(a, b);
        assert_eq!((in_a.len(), in_b.len()), (store.arm_count(a), store.arm_count(b)));
        assert!(front + back <= in_a.len().min(in_b.len()));
        assert_eq!(in_a[..front], in_b[..front]);
        assert_eq!(in_a[in_a.len() - back..], in_b[in_b.len() - back..]);
        // No more arms are equal, unless the others have none left.
        let rest = |arms: &[(u128, Ref)]| arms[front..arms.len() - back].to_vec();
        let (rest_a, rest_b) = (rest(&in_a), rest(&in_b));
        if let (Some(a), Some(b)) = (rest_a.first(), rest_b.first()) {
            assert_ne!(a, b);
            assert_ne!(rest_a.last(), rest_b.last());
            differing += 1;
        }
        assert_eq!(store.arms_in(a, front..in_a.len() - back).collect::<Vec<_>>(), rest_a);
    }
    assert!(differing > 300, "{differing}");
    assert_eq!((store.common_arms(constants[0], constants[1]), store.arm_count(constants[0])), ((0, 0), 0));
}
