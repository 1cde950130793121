//! Agreement of tables, decision diagram and direct evaluation on every message, and of incremental with one-step
//! compilation.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::support;
use rng::SplitMix64;
use subscribe::{
    ColumnLayout, Condition, Limits, Refusal, RuleId, StateId, Subscriptions, TableChange, Tables, difference, state,
};

#[test]
fn tables_and_diagram_say_what_the_rules_say() {
    let (mut delivered, mut coded) = (0, 0);
    for seed in 0..60 {
        let mut rng = SplitMix64::new(seed);
        let format = if seed % 4 == 3 { support::compressed() } else { support::format() };
        let text: Vec<String> = (0..1 + rng.below(12)).map(|_| support::rule(&mut rng)).collect();
        let rules = support::rules(&text.join("\n"), &format);
        for options in support::targets() {
            let layout = match seed % 3 {
                0 => ColumnLayout::sensible(&format, &rules),
                1 => ColumnLayout::sensible(&format, &[]),
                _ => ColumnLayout::forced(&format, &["seen", "trade.price", "stock"]).expect("fields"),
            };
            let mut all = Subscriptions::new(format.clone(), layout, options);
            let change = match all.change(&[], rules.clone()) {
                Ok(applied) => applied.change,
                // Few codes are soon exhausted.
                Err(Refusal::Codes(..)) if seed % 4 == 3 => continue,
                Err(other) => panic!("small sets of rules fit: {other:?}"),
            };
            coded += usize::from(!change.new_codes.is_empty());
            let tables = all.tables();
            assert_eq!(apply(Tables::default(), &change), tables, "the first change makes everything");
            let counted: usize = all.stats().stages.iter().map(|stage| stage.all() - stage.codes).sum();
            assert_eq!(counted, tables.entries.len(), "all entries are counted");
            for _ in 0..200 {
                let message = support::message(&mut rng, &format);
                let expected = all.evaluate(&message);
                let alone = rules.iter().filter(|rule| rule.aggregates.is_empty() && rule.matches(&format, &message));
                for action in alone.flat_map(|rule| &rule.actions) {
                    if let subscribe::RuleAction::Forward(ports) = action {
                        assert!(ports.iter().all(|port| expected.ports.contains(port)), "a matching rule acts");
                    }
                }
                assert_eq!(all.evaluate_diagram(&message), expected, "seed {seed}\n{}\n{message:?}", text.join("\n"));
                let mut by_tables = tables.run(&format, all.layout(), &message);
                if let Some(group) = by_tables.group.take() {
                    let group = tables.groups.iter().find(|other| other.id == group).expect("the group is there");
                    assert_eq!(group.ports, by_tables.ports);
                }
                assert_eq!(by_tables, expected, "seed {seed} {options:?}\n{}\n{message:?}", text.join("\n"));
                delivered += usize::from(!expected.ports.is_empty());
            }
        }
    }
    assert!(delivered > 1000, "most messages match nothing: {delivered}");
    assert!(coded > 10, "codes are used: {coded}");
}

#[test]
fn changes_step_by_step_are_what_is_made_at_once() {
    let mut spread = 0;
    for seed in 0..24 {
        let mut rng = SplitMix64::new(1000 + seed);
        let format = if seed % 3 == 2 { support::compressed() } else { support::format() };
        let options = support::targets()[seed as usize % 5];
        let mut all = support::empty(&format, options);
        let mut tables = Tables::default();
        let mut ids: Vec<RuleId> = Vec::new();
        for step in 0..40 {
            let mut remove = Vec::new();
            for _ in 0..rng.pick(&[(4, 0), (3, 1), (1, 5)]).min(ids.len() as u64) {
                remove.push(ids.swap_remove(rng.below(ids.len() as u64) as usize));
            }
            let make = if seed % 2 == 0 { support::plain_rule } else { support::rule };
            let text: Vec<String> = (0..rng.pick(&[(2, 0), (4, 1), (1, 8)])).map(|_| make(&mut rng)).collect();
            let applied = match all.change(&remove, support::rules(&text.join("\n"), &format)) {
                Ok(applied) => applied,
                Err(Refusal::Codes(..)) if seed % 3 == 2 => {
                    ids.extend(remove);
                    assert_eq!(tables, all.tables(), "a refusal changes nothing");
                    continue;
                }
                Err(other) => panic!("it fits: {other:?}"),
            };
            spread += usize::from(applied.change.new_codes.len() > 8);
            ids.extend(&applied.added);
            tables = apply(tables, &applied.change);
            assert_eq!(tables, all.tables(), "seed {seed} step {step}: the changes add up to the tables");
            if rng.percent(25) {
                all.rename_states(&other_names(&tables, &mut rng));
                let renamed = all.tables();
                if seed % 2 == 0 {
                    let always = Condition::Always;
                    let found = difference(&tables, &renamed, &format, all.layout(), &always, Limits::default());
                    assert_eq!(found, Ok(None), "seed {seed} step {step}: other numbers of the same states");
                }
                tables = renamed;
            }

            let mut anew = Subscriptions::new(format.clone(), all.layout().clone(), options);
            let rules: Vec<_> = all.rules().map(|(_, rule)| rule.clone()).collect();
            anew.change(&[], rules).expect("it fits");
            let other = anew.tables();
            let size = |tables: &Tables| (tables.entries.len(), tables.leaves.len(), tables.groups.len());
            // Slots are assigned in the order of first use, so the column order depends on history if there are
            // aggregates. The choice among several smallest sets of prefixes depends on state numbers, and codes have a
            // history.
            if options.target.wide == subscribe::Wide::Range && seed % 2 == 0 && seed % 3 != 2 {
                assert_eq!(size(&tables), size(&other), "seed {seed} step {step}");
            }
            if seed % 2 == 0 {
                let found = difference(&tables, &other, &format, all.layout(), &Condition::Always, Limits::default());
                assert_eq!(found, Ok(None), "seed {seed} step {step}");
            }
            for _ in 0..40 {
                let mut message = support::message(&mut rng, &format);
                // The aggregates of the two are in different slots.
                message.slots.fill(rng.percent(80).then(|| u128::from(rng.below(16))));
                let strip = |mut delivery: subscribe::Delivery| {
                    let slots = delivery.slots.len();
                    (delivery.group, delivery.slots) = (None, Vec::new());
                    (delivery, slots)
                };
                let (one, two) =
                    (tables.run(&format, all.layout(), &message), other.run(&format, all.layout(), &message));
                assert_eq!(strip(one), strip(two), "seed {seed} step {step}");
            }
        }
        let applied = all.change(&ids, Vec::new()).expect("less always fits");
        tables = apply(tables, &applied.change);
        assert_eq!(tables, Tables::default(), "without rules nothing is left");
    }
    assert!(spread > 3, "codes were given anew: {spread}");
}

/// Returns other numbers for some of the states in tables: those of other states, and new ones.
fn other_names(tables: &Tables, rng: &mut SplitMix64) -> HashMap<StateId, StateId> {
    let in_entries = tables.entries.iter().flat_map(|entry| [entry.state, entry.next]);
    let all: BTreeSet<StateId> = in_entries.chain(tables.leaves.iter().map(|leaf| leaf.state)).collect();
    let mut by_tag: BTreeMap<u32, Vec<StateId>> = BTreeMap::new();
    for state in all.into_iter().filter(|state| *state != 0) {
        by_tag.entry(state::tag(state)).or_default().push(state);
    }
    let mut names = HashMap::new();
    for (tag, states) in by_tag {
        let targets: BTreeSet<StateId> =
            states.iter().copied().chain((0..5).map(|more| state::of(tag, 1_000 + more))).collect();
        let mut targets: Vec<StateId> = targets.into_iter().collect();
        for state in states {
            if rng.percent(60) {
                names.insert(state, targets.swap_remove(rng.below(targets.len() as u64) as usize));
            }
        }
    }
    names
}

/// Applies a change to tables and checks that each write is valid.
fn apply(mut tables: Tables, change: &TableChange) -> Tables {
    let same =
        |a: &subscribe::StageEntry, b: &subscribe::StageEntry| (a.stage, a.state, &a.key) == (b.stage, b.state, &b.key);
    for code in &change.old_codes {
        let at = tables.codes.iter().position(|other| other == code).expect("it is deleted");
        tables.codes.swap_remove(at);
    }
    for code in &change.new_codes {
        let apart = |other: &subscribe::CodeEntry| {
            other.stage != code.stage || other.last < code.first || code.last < other.first
        };
        assert!(tables.codes.iter().all(apart), "{code:?} overlaps");
        tables.codes.push(code.clone());
    }
    for link in &change.links {
        tables.links.retain(|other| other.slot != link.slot);
        tables.links.extend(link.aggregate.is_some().then(|| link.clone()));
    }
    for group in &change.new_groups {
        assert!(tables.groups.iter().all(|other| other.id != group.id), "group {} is there", group.id);
        tables.groups.push(group.clone());
    }
    for leaf in &change.new_leaves {
        assert!(tables.leaves.iter().all(|other| other.state != leaf.state), "leaf {} is there", leaf.state);
        tables.leaves.push(leaf.clone());
    }
    for leaf in &change.modified_leaves {
        *tables.leaves.iter_mut().find(|other| other.state == leaf.state).expect("it is modified") = leaf.clone();
    }
    for entry in &change.inserted {
        assert!(!tables.entries.iter().any(|other| same(other, entry)), "{entry:?} is there");
        tables.entries.push(entry.clone());
    }
    for entry in &change.modified {
        let old = tables.entries.iter_mut().find(|other| same(other, entry)).expect("it is modified");
        assert_ne!(old.next, entry.next, "a write for nothing");
        *old = entry.clone();
    }
    for entry in &change.deleted {
        let at = tables.entries.iter().position(|other| other == entry).expect("it is deleted");
        tables.entries.swap_remove(at);
    }
    for state in &change.old_leaves {
        let at = tables.leaves.iter().position(|other| other.state == *state).expect("it is deleted");
        tables.leaves.swap_remove(at);
    }
    for id in &change.old_groups {
        let at = tables.groups.iter().position(|other| other.id == *id).expect("it is deleted");
        tables.groups.swap_remove(at);
    }
    tables.codes.sort_unstable();
    tables.links.sort_unstable_by_key(|link| link.slot);
    tables.entries.sort_unstable();
    tables.leaves.sort_unstable_by_key(|leaf| leaf.state);
    tables.groups.sort_unstable();
    tables
}
