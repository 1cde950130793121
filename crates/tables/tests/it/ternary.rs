//! Classifiers against a scan of all rules.

use rng::SplitMix64;
use tables::{Classifier, FieldKind, KeyLayout, MISS, PackedLookup, RulePattern, SmallScan, Ternary, TupleMerge};

/// A field of a rule as specified, so that the oracle does not depend on the representation of patterns.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Exact(u128),
    Prefix(u128, u32),
    Masked(u128, u128),
    Range(u128, u128),
}

#[derive(Clone, Debug)]
struct Rule {
    values: Vec<Value>,
    priority: u64,
    handle: u32,
}

fn ones(width: u32) -> u128 {
    if width == 0 { 0 } else { u128::MAX >> (128 - width) }
}

fn words(value: u128) -> [u64; 2] {
    [value as u64, (value >> 64) as u64]
}

/// Draws numbers from few distinct values, so that rules match keys, or from all.
fn number(rng: &mut SplitMix64, width: u32) -> u128 {
    let all = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
    let few = u128::from(rng.below(4)) << width.saturating_sub(3) | u128::from(rng.below(3));
    (if rng.percent(30) { all } else { few }) & ones(width)
}

fn value(rng: &mut SplitMix64, width: u32, kind: FieldKind) -> Value {
    match kind {
        FieldKind::Exact => Value::Exact(number(rng, width)),
        FieldKind::Prefix => {
            let length = if rng.percent(30) { 0 } else { rng.below(u64::from(width) + 1) as u32 };
            Value::Prefix(number(rng, width) & (ones(width) ^ ones(width - length)), length)
        }
        FieldKind::Masked => {
            let mask = rng.pick(&[(30, 0), (30, ones(width)), (20, number(&mut rng.clone(), width))]);
            let mask = if rng.percent(20) { mask & number(rng, width) } else { mask };
            Value::Masked(number(rng, width) & mask, mask)
        }
        FieldKind::Range => match rng.below(4) {
            0 => Value::Range(0, ones(width)),
            1 => {
                let low = number(rng, width);
                Value::Range(low, low)
            }
            // Some wrap around, like signed ones.
            2 => Value::Range(number(rng, width), number(rng, width)),
            _ => {
                let (a, b) = (number(rng, width), number(rng, width));
                Value::Range(a.min(b), a.max(b))
            }
        },
    }
}

fn matches(values: &[Value], widths: &[(u32, FieldKind)], key: &[u128]) -> bool {
    values.iter().zip(widths).zip(key).all(|((value, (width, _)), key)| match value {
        Value::Exact(value) => key == value,
        Value::Prefix(value, length) => (key ^ value) & (ones(*width) ^ ones(width - length)) == 0,
        Value::Masked(value, mask) => key & mask == *value,
        Value::Range(low, high) if low <= high => (low..=high).contains(&key),
        Value::Range(low, high) => key >= low || key <= high,
    })
}

fn pattern(layout: &KeyLayout, values: &[Value]) -> RulePattern {
    let mut pattern = RulePattern::any(layout);
    for (field, value) in values.iter().enumerate() {
        match value {
            Value::Exact(value) => pattern.exact(layout, field, &words(*value)),
            Value::Prefix(value, length) => pattern.prefix(layout, field, &words(*value), *length),
            Value::Masked(value, mask) => pattern.masked(layout, field, &words(*value), &words(*mask)),
            Value::Range(low, high) => pattern.range(layout, field, &words(*low), &words(*high)),
        }
    }
    pattern
}

fn pack(layout: &KeyLayout, key: &[u128]) -> Vec<u64> {
    let mut packed = vec![0; layout.words()];
    key.iter().enumerate().for_each(|(field, value)| layout.put(&mut packed, field, &words(*value)));
    packed
}

fn winner(rules: &[Rule], widths: &[(u32, FieldKind)], key: &[u128]) -> Option<u32> {
    // The list is in insertion order; of equal priorities the first wins.
    let matching = rules.iter().filter(|rule| matches(&rule.values, widths, key));
    matching
        .fold(None, |best: Option<&Rule>, rule| best.filter(|best| best.priority >= rule.priority).or(Some(rule)))
        .map(|rule| rule.handle)
}

/// Compares a classifier with the oracle for random keys and keys derived from rules.
fn check(
    table: &dyn Classifier,
    rules: &[Rule],
    (layout, widths): (&KeyLayout, &[(u32, FieldKind)]),
    rng: &mut SplitMix64,
    count: usize,
    what: &str,
) -> u32 {
    let keys: Vec<Vec<u128>> =
        (0..count).map(|_| widths.iter().map(|(width, _)| number(rng, *width)).collect()).collect();
    let packed: Vec<u64> = keys.iter().flat_map(|key| pack(layout, key)).collect();
    let mut found = vec![0; count];
    table.lookup_batch(&packed, &mut found);
    let mut hits = 0;
    for (key, found) in keys.iter().zip(found) {
        let want = winner(rules, widths, key);
        assert_eq!(table.lookup(&pack(layout, key)), want, "{what}: {key:x?}");
        assert_eq!(found, want.unwrap_or(MISS), "{what}, in a batch: {key:x?}");
        hits += u32::from(want.is_some());
    }
    hits
}

type Make = fn(&KeyLayout) -> Box<dyn Classifier>;
const METHODS: [(&str, Make); 4] = [
    ("scan", |layout| Box::new(SmallScan::new(layout.words()))),
    ("merge, one by one", |layout| Box::new(TupleMerge::new(layout))),
    ("merge, batches together", |layout| Box::new(TupleMerge::new(layout).with_near_words(0))),
    ("ternary", |layout| Box::new(Ternary::new(layout))),
];

#[test]
fn every_method_agrees_with_a_scan_while_rules_come_and_go() {
    use FieldKind::{Exact, Masked, Prefix, Range};
    let shapes: &[&[(u32, FieldKind)]] = &[
        &[],
        &[(1, Masked)],
        &[(16, Range)],
        &[(32, Masked)],
        &[(64, Range)],
        &[(100, Range), (8, Masked)],
        &[(128, Prefix), (128, Prefix), (16, Range), (16, Range), (8, Masked)],
        &[(32, Prefix), (32, Prefix), (16, Range), (16, Range), (8, Masked)],
        &[(9, Exact), (48, Masked), (12, Range), (0, Masked)],
        &[(128, Masked), (128, Masked), (128, Masked), (128, Range), (64, Exact)],
        &[(3, Range), (3, Range), (3, Range), (3, Range), (3, Range), (3, Masked)],
    ];
    let mut hits = 0;
    for (seed, widths) in shapes.iter().enumerate() {
        for (name, make) in METHODS {
            let layout = KeyLayout::new(widths.iter().copied());
            let mut rng = SplitMix64::new(seed as u64);
            let mut table = make(&layout);
            let mut rules: Vec<Rule> = Vec::new();
            for step in 0..600u32 {
                let what = format!("{name} {widths:?} step {step}");
                if rng.percent(if step < 400 { 25 } else { 75 }) && !rules.is_empty() {
                    let Rule { values, priority, handle } = rules.remove(rng.below(rules.len() as u64) as usize);
                    let pattern = pattern(&layout, &values);
                    assert_eq!(table.find(&pattern, priority), Some(handle), "{what}");
                    assert_eq!(table.remove(&pattern, priority), Some(handle), "{what}");
                    assert_eq!(table.find(&pattern, priority), None, "{what}");
                    assert_eq!(table.remove(&pattern, priority), None, "{what}");
                } else {
                    let values: Vec<_> = widths.iter().map(|(width, kind)| value(&mut rng, *width, *kind)).collect();
                    let values = match rules.last() {
                        // The same pattern with another priority.
                        Some(rule) if rng.percent(10) => rule.values.clone(),
                        _ => values,
                    };
                    let priority = rng.below(6);
                    let pattern = pattern(&layout, &values);
                    let same =
                        |rule: &&mut Rule| rule.priority == priority && self::pattern(&layout, &rule.values) == pattern;
                    match rules.iter_mut().find(same) {
                        Some(rule) => {
                            assert_eq!(table.insert(&pattern, priority, step), Some(rule.handle), "{what}");
                            rule.handle = step;
                        }
                        None => {
                            assert_eq!(table.insert(&pattern, priority, step), None, "{what}");
                            rules.push(Rule { values, priority, handle: step });
                        }
                    }
                }
                assert_eq!(table.len(), rules.len());
                let count = if step % 10 == 0 { 40 } else { 3 };
                hits += check(&*table, &rules, (&layout, widths), &mut rng, count, &what);
            }
            let mut visited = Vec::new();
            table.for_each(&mut |pattern, priority, handle| visited.push((pattern.clone(), priority, handle)));
            let want: Vec<_> =
                rules.iter().map(|rule| (pattern(&layout, &rule.values), rule.priority, rule.handle)).collect();
            assert_eq!(visited, want, "{name} {widths:?}");
        }
    }
    assert!(hits > 40_000, "only {hits} hits: the test sees too little");
}

#[test]
fn hostile_rule_sets_stay_correct() {
    use FieldKind::{Masked, Range};
    let widths: &[(u32, FieldKind)] = &[(32, Masked), (16, Range)];
    let layout = KeyLayout::new(widths.iter().copied());
    type Values = fn(&mut SplitMix64, u64) -> Vec<Value>;
    let sets: [(&str, Values); 4] = [
        ("a mask for each rule", |rng, _| {
            let mask = u128::from(rng.next_u64() as u32);
            vec![Value::Masked(u128::from(rng.next_u64() as u32) & mask, mask), Value::Range(0, 0xffff)]
        }),
        ("ranges that overlap", |rng, _| {
            let low = rng.below(30_000);
            vec![Value::Masked(0, 0), Value::Range(low.into(), (low + rng.below(30_000)).into())]
        }),
        ("everything matches everything", |_, _| vec![Value::Masked(0, 0), Value::Range(0, 0xffff)]),
        ("one value, many ranges", |_, at| vec![Value::Masked(1, 0xffff_ffff), Value::Range(at.into(), 0xfff0)]),
    ];
    for (name, make) in sets {
        let mut rng = SplitMix64::new(7);
        let mut table = TupleMerge::new(&layout).with_near_words(0);
        let mut rules: Vec<Rule> = Vec::new();
        for handle in 0..1500u32 {
            let values = make(&mut rng, handle.into());
            // Distinct priorities in random order, so that no two rules are the same.
            let priority = u64::from(handle.wrapping_mul(7919) % 1511);
            assert_eq!(table.insert(&pattern(&layout, &values), priority, handle), None);
            rules.push(Rule { values, priority, handle });
        }
        assert!(table.tuples().count() <= 260, "{name}: {} tuples", table.tuples().count());
        check(&table, &rules, (&layout, widths), &mut rng, 300, name);
        while rules.len() > 3 {
            let Rule { values, priority, handle } = rules.swap_remove(rng.below(rules.len() as u64) as usize);
            assert_eq!(table.remove(&pattern(&layout, &values), priority), Some(handle), "{name}");
        }
        check(&table, &rules, (&layout, widths), &mut rng, 300, name);
    }
}

#[test]
fn patterns_match_what_they_say() {
    let mut rng = SplitMix64::new(3);
    for widths in
        [vec![(7, FieldKind::Range), (64, FieldKind::Range)], vec![(90, FieldKind::Range), (40, FieldKind::Prefix)]]
    {
        let layout = KeyLayout::new(widths.iter().copied());
        for _ in 0..3000 {
            let values: Vec<_> = widths.iter().map(|(width, kind)| value(&mut rng, *width, *kind)).collect();
            let pattern = pattern(&layout, &values);
            let mut key: Vec<_> = widths.iter().map(|(width, _)| number(&mut rng, *width)).collect();
            if let (Value::Range(low, high), true) = (&values[0], rng.percent(50)) {
                // The edges of a range.
                let edge = [*low, *high, low.wrapping_sub(1), high.wrapping_add(1)][rng.below(4) as usize];
                key[0] = edge & ones(widths[0].0);
            }
            assert_eq!(pattern.matches(&pack(&layout, &key)), matches(&values, &widths, &key), "{values:x?} {key:x?}");
        }
    }
}

/// With this many rules, some share half of their hash, and the tuple grows many times.
#[test]
fn each_of_many_rules_is_found() {
    let layout = KeyLayout::new([(32, FieldKind::Masked)]);
    let mut table = TupleMerge::new(&layout);
    let key = |rule: u32| [u64::from(rule.wrapping_mul(0x9e37_79b1))];
    let exact = |rule| {
        let mut pattern = RulePattern::any(&layout);
        pattern.exact(&layout, 0, &key(rule));
        pattern
    };
    for rule in 0..300_000u32 {
        // Later rules have higher priorities, and one of the rules matches everything.
        table.insert(&exact(rule), u64::from(rule), rule);
        if rule == 150_000 {
            table.insert(&RulePattern::any(&layout), 0, u32::MAX - 1);
        }
    }
    for rule in 0..300_000 {
        assert_eq!(table.lookup(&key(rule)), Some(rule), "rule {rule}");
    }
    let keys: Vec<u64> = (0..300_000).flat_map(key).collect();
    let mut found = vec![0; 300_000];
    table.lookup_batch(&keys, &mut found);
    assert!(found.iter().zip(0..).all(|(found, rule)| *found == rule));
    assert!(table.memory_bytes() < 300_000 * 150, "{} bytes", table.memory_bytes());
}

/// Compares results for realistic rule sets with the generator's oracle, while rules are removed.
#[test]
fn generated_rule_sets_agree_with_a_scan() {
    use tables::classbench::{self, Family};
    for family in [Family::Acl, Family::Fw, Family::Ipc] {
        let layout = classbench::layout();
        let mut rules: Vec<_> = classbench::rules(family, 3000, 5).into_iter().zip(0u32..).collect();
        assert_eq!(rules.len(), 3000);
        let headers = classbench::headers(&rules.iter().map(|rule| rule.0).collect::<Vec<_>>(), 600, 6);
        let keys: Vec<u64> = headers.iter().flat_map(|header| header.key()).collect();
        let mut table = Ternary::new(&layout);
        // From last to first, so that each rule wins over the existing ones.
        for (rule, handle) in rules.iter().rev() {
            table.insert(&rule.pattern(&layout), u64::from(3000 - handle), *handle);
        }
        let mut rng = SplitMix64::new(1);
        while !rules.is_empty() {
            let mut found = vec![0; headers.len()];
            table.lookup_batch(&keys, &mut found);
            for (header, found) in headers.iter().zip(found) {
                let want = rules.iter().find(|(rule, _)| rule.matches(header)).map(|(_, handle)| *handle);
                assert_eq!(table.lookup(&header.key()), want, "{family:?} {header:?}");
                assert_eq!(found, want.unwrap_or(MISS), "{family:?} {header:?} in a batch");
            }
            for _ in 0..rules.len().min(500) {
                let (rule, handle) = rules.remove(rng.below(rules.len() as u64) as usize);
                assert_eq!(table.remove(&rule.pattern(&layout), u64::from(3000 - handle)), Some(handle));
            }
        }
        assert!(table.is_empty());
    }
}
