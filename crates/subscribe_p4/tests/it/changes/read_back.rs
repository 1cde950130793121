//! Comparison of entries by their meaning: entries of other column orders, entries with a history, and entries after
//! one of them was changed, removed or added. A reported difference is real, as the reported message shows, and equal
//! entries are reported as equal.

use std::collections::BTreeMap;

use rng::SplitMix64;
use subscribe::{ColumnLayout, Limits, Message, Subject, Subscriptions, TargetCapabilities, UpdateMode, compare};
use subscribe_p4::ProgramOptions;
use subscribe_p4::entries::{Entity, Matched};
use subscribe_p4::read_back::{Finding, Meaning, read_back, reconstruct};

use crate::changes::program::{CODED, FEED, METER, METER_ANY, REPORTS, TestProgram};
use crate::changes::target::{ModelSwitch, Outcome};
use crate::changes::{compiler, installer, targets, walk};

fn entities(switch: &ModelSwitch) -> Vec<Entity> {
    let tables = switch.tables.values().cloned().map(Entity::Table);
    let groups = switch.groups.iter().map(|(id, ports)| Entity::Group(*id, ports.clone()));
    let sessions = switch.sessions.iter().map(|(id, port)| Entity::Session(*id, *port));
    tables.chain(groups).chain(sessions).collect()
}

fn read(program: &TestProgram, switch: &ModelSwitch, layout: &ColumnLayout) -> (Meaning, Vec<Finding>) {
    read_back(&entities(switch), &program.format, &program.rules, layout)
}

/// Returns a switch with rules, and the rules.
fn compiled(
    program: &TestProgram,
    layout: &ColumnLayout,
    target: TargetCapabilities,
    text: &[String],
) -> Option<ModelSwitch> {
    let mut all = compiler(program, layout, target, UpdateMode::Atomic);
    // The program has few slots for aggregates under other conditions, and few codes.
    all.change(&[], program.parse(&text.join("\n"))).ok()?;
    let mut switch = ModelSwitch::default();
    let updates = installer(program, layout, target, UpdateMode::Atomic).install(&all.tables()).expect("few groups");
    updates.iter().for_each(|update| switch.apply(update));
    Some(switch)
}

fn random_rules(program: &TestProgram, rng: &mut SplitMix64) -> Vec<String> {
    (0..1 + rng.below(8)).map(|_| program.random_rule(rng)).collect()
}

fn difference(program: &TestProgram, one: &Meaning, other: &Meaning) -> Option<Message> {
    let possible = program.rules.possible(&program.format);
    let found = compare(&one.chain, &other.chain, &program.rules.format, &possible, Limits::default());
    found.expect("small tables").map(|difference| difference.message)
}

/// Changes, removes or adds an entry. Groups stay.
fn disturbed(rng: &mut SplitMix64, switch: &ModelSwitch) -> ModelSwitch {
    let mut all: Vec<_> = switch.tables.iter().map(|(key, entry)| (key.clone(), entry.clone())).collect();
    let at = rng.below(all.len() as u64) as usize;
    let other = all[rng.below(all.len() as u64) as usize].1.clone();
    let is_stage = |table: &str| table != "Subscriptions.leaf" && !table.contains("do_") && !table.contains("codes");
    match rng.below(4) {
        0 => drop(all.remove(at)),
        // Redirects the entry to the target of another one.
        1 if is_stage(&all[at].1.table)
            && is_stage(&other.table)
            && all[at].1.action.starts_with("Subscriptions.to_")
            && ["Subscriptions.to_state", "Subscriptions.to_port", "Subscriptions.to_group"]
                .contains(&&*other.action) =>
        {
            (all[at].1.action, all[at].1.params) = (other.action, other.params);
        }
        // Changes the values that the entry matches.
        2 | 3 => {
            let is_added = rng.percent(50);
            let (mut key, mut entry) = all[at].clone();
            let by = u128::from(1 + rng.below(3));
            for (name, width, matched) in &mut entry.keys {
                if name != "state" && *width > 1 {
                    match matched {
                        Matched::Exact(value) => *value = value.wrapping_add(by) & subscribe::max_of(*width),
                        Matched::Range(first, _) => *first = first.saturating_sub(by),
                        _ => {}
                    }
                }
            }
            entry.priority = entry.priority.map(|priority| priority + 1);
            (key.1, key.2) = (format!("{:?}", entry.keys), entry.priority);
            if is_added { all.push((key, entry)) } else { all[at] = (key, entry) }
        }
        _ => match all[at].1.params.first_mut() {
            Some((name, _, port)) if name == "port" => *port = (*port + 1) % 5,
            _ => drop(all.remove(at)),
        },
    }
    ModelSwitch { tables: all.into_iter().collect::<BTreeMap<_, _>>(), ..switch.clone() }
}

#[test]
fn entries_that_differ_are_shown_with_a_message_that_distinguishes_them() {
    let (mut same, mut different) = (0, 0);
    for (number, program) in [REPORTS, FEED, METER, CODED, METER_ANY].map(TestProgram::read).into_iter().enumerate() {
        let layout = ColumnLayout::sensible(&program.rules.format, &[]);
        let possible = program.rules.possible(&program.format);
        for (at, target) in targets().into_iter().enumerate() {
            let mut rng = SplitMix64::new(1000 * number as u64 + at as u64);
            for round in 0..40 {
                let text = random_rules(&program, &mut rng);
                let Some(switch) = compiled(&program, &layout, target, &text) else { continue };
                if switch.tables.is_empty() {
                    continue;
                }
                let (meaning, findings) = read(&program, &switch, &layout);
                assert_eq!(findings, [], "what is compiled is right: {text:?}");
                let after = disturbed(&mut rng, &switch);
                let (other, findings) = read(&program, &after, &layout);
                if findings.iter().any(|finding| finding.is_error) {
                    continue;
                }
                let both = |message: &Message| {
                    let [one, other] = [&switch, &after].map(|switch| program.run(target, message, &mut |_| switch));
                    // The decoded tables must agree with a lookup in the original ones.
                    let read = meaning.chain.run(&program.rules.format, message);
                    assert_eq!(Outcome::of(&read, program.format.counters.len()), one, "{message:?}");
                    (one, other)
                };
                match difference(&program, &meaning, &other) {
                    Some(message) => {
                        different += 1;
                        let (one, other) = both(&message);
                        assert_ne!(one, other, "program {number}, round {round}: {text:#?}\n{message:?}");
                    }
                    None => {
                        same += 1;
                        for _ in 0..200 {
                            let message = program.possible_message(&mut rng);
                            let value = |subject| match subject {
                                Subject::Field(id) => message.field(&program.rules.format, id),
                                _ => None,
                            };
                            assert!(possible.holds(&|header| message.is_valid(header), &value), "{message:?}");
                            let (one, other) = both(&message);
                            assert_eq!(one, other, "program {number}, round {round}: {text:#?}\n{message:?}");
                        }
                    }
                }
            }
        }
    }
    assert!(same > 10 && different > 200, "{same} the same, {different} not");
}

#[test]
fn entries_of_other_orders_and_targets_are_compared_and_their_names_give_the_order() {
    let (mut same, mut different) = (0, 0);
    for (number, program) in [REPORTS, FEED, METER, METER_ANY].map(TestProgram::read).into_iter().enumerate() {
        let format = &program.rules.format;
        let sensible = ColumnLayout::sensible(format, &[]);
        let mut rng = SplitMix64::new(77 + number as u64);
        for round in 0..40 {
            let mut names: Vec<&str> = format.fields().iter().map(|field| field.name.as_str()).collect();
            let from = rng.below(names.len() as u64) as usize;
            names.rotate_left(from);
            names.reverse();
            let layout = ColumnLayout::forced(format, &names).expect("each field once");
            let text = random_rules(&program, &mut rng);
            let less: Vec<String> = text.iter().skip(1).cloned().collect();
            let [target, other] = [targets()[0], targets()[round % 3]];
            let one = compiled(&program, &sensible, target, &text);
            let (Some(one), Some(two), Some(less)) =
                (one, compiled(&program, &layout, other, &text), compiled(&program, &layout, other, &less))
            else {
                continue;
            };
            // Tables without entries may be in any position.
            let tables = || two.tables.values().map(|entry| entry.table.as_str());
            let (told, wide) =
                reconstruct(tables(), &program.rules, ProgramOptions::default().target).expect("one order");
            assert!(!tables().any(|table| table.contains("ternary")) || wide.wide == subscribe::Wide::Ternary);
            let (one, two) = (read(&program, &one, &sensible).0, read(&program, &two, &told).0);
            assert_eq!(difference(&program, &one, &two), None, "{text:?}");
            assert_eq!(difference(&program, &two, &one), None, "{text:?}");
            same += 1;
            // Aggregates that are no longer tested free their slots for others.
            if program.format.aggregates.is_empty() {
                let fewer = read(&program, &less, &layout).0;
                let rules = compiler(&program, &sensible, target, UpdateMode::Atomic);
                let does = |text: &[String], message: &Message| {
                    let mut all = Subscriptions::new(rules.format().clone(), sensible.clone(), Default::default());
                    all.change(&[], program.parse(&text.join("\n"))).expect("they fit");
                    Outcome::of(&all.evaluate(message), program.format.counters.len())
                };
                if let Some(message) = difference(&program, &one, &fewer) {
                    different += 1;
                    assert_ne!(does(&text, &message), does(&text[1..], &message), "{text:?} {message:?}");
                }
            }
        }
    }
    assert!(same > 60 && different > 20, "{same} the same, {different} not");
}

/// Entries of a program with exact tables, and the layout reconstructed from its table names.
#[test]
fn exact_tables_of_prefix_fields_are_recognised_by_name() {
    let program = TestProgram::read("testdata/behind.p4");
    let layout = ColumnLayout::sensible(&program.rules.format, &[]);
    for wide in [subscribe::Wide::Range, subscribe::Wide::Ternary, subscribe::Wide::Lpm] {
        let default = ProgramOptions::default().target;
        let has_ranges = wide == subscribe::Wide::Range;
        let target = TargetCapabilities { exact_beside: true, wide, has_ranges, ..default };
        let rules = ["b == 3 : fwd(1)", "b in 0/2 : fwd(2)", "a in 3..9 : fwd(3)"].map(str::to_owned);
        let switch = compiled(&program, &layout, target, &rules).expect("they fit");
        let tables = || switch.tables.values().map(|entry| entry.table.as_str());
        assert!(tables().any(|table| table.contains("b_exact")), "{:?}", tables().collect::<Vec<_>>());
        let (own, told) = reconstruct(tables(), &program.rules, default).expect("one order");
        assert_eq!((own.keys(), told), (layout.keys(), target));
        let of_b = [rules[0].clone()];
        let one = compiled(&program, &layout, target, &of_b).expect("they fit");
        let (_, told) = reconstruct(one.tables.values().map(|entry| entry.table.as_str()), &program.rules, default)
            .expect("one order");
        assert!(told.exact_beside, "an exact table of a field with prefixes says so by itself");
    }
}

#[test]
fn entries_with_a_history_are_those_made_from_scratch() {
    let mut compared = 0;
    for (number, program) in [REPORTS, FEED, CODED].map(TestProgram::read).into_iter().enumerate() {
        for (at, writes) in [UpdateMode::Atomic, UpdateMode::PerMessageConsistent].into_iter().enumerate() {
            // Code changes require atomic writes.
            if program.has_codes() && writes == UpdateMode::PerMessageConsistent {
                continue;
            }
            let target = targets()[at];
            let layout = ColumnLayout::sensible(&program.rules.format, &[]);
            walk(500 + number as u64, &program, target, writes, |_, before, steps, rules| {
                let mut switch = before.clone();
                steps.all().iter().for_each(|update| switch.apply(update));
                let text: Vec<_> = rules.rules().map(|(_, rule)| rule.clone()).collect();
                let mut anew = compiler(&program, &layout, target, UpdateMode::Atomic);
                anew.change(&[], text).expect("it fits");
                let mut fresh = ModelSwitch::default();
                let install = installer(&program, &layout, target, UpdateMode::Atomic).install(&anew.tables());
                install.expect("few groups").iter().for_each(|update| fresh.apply(update));
                let (one, other) = (read(&program, &switch, &layout), read(&program, &fresh, &layout));
                assert_eq!((one.1, other.1), (Vec::new(), Vec::new()));
                assert_eq!(difference(&program, &one.0, &other.0), None);
                assert_eq!((one.0.everyone, one.0.goes_round), (other.0.everyone, other.0.goes_round));
                compared += 1;
                switch
            });
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn entries_of_other_tables_are_reported() {
    let program = TestProgram::read(REPORTS);
    let layout = ColumnLayout::sensible(&program.rules.format, &[]);
    let rules = ["switch_id == 3 and hop_latency in 5..9 : fwd(1, 2)", "switch_id == 4 : mark(2)"].map(str::to_owned);
    let switch = compiled(&program, &layout, ProgramOptions::default().target, &rules).expect("they fit");
    let all = entities(&switch);
    let told = |change: &dyn Fn(&mut Vec<Entity>)| {
        let mut all = all.clone();
        change(&mut all);
        let (_, findings) = read_back(&all, &program.format, &program.rules, &layout);
        let told = findings.into_iter().map(|finding| (finding.is_error, finding.message));
        told.collect::<Vec<_>>()
    };
    let edit = |table: &'static str, edit: &dyn Fn(&mut subscribe_p4::entries::ProgramEntry)| {
        told(&|all| {
            let entry = all.iter_mut().find_map(|entity| match entity {
                Entity::Table(entry) if entry.table.contains(table) => Some(entry),
                _ => None,
            });
            edit(entry.expect("there is one"));
        })
    };
    assert_eq!(told(&|_| ()), []);
    let groups = told(&|all| all.retain(|entity| !matches!(entity, Entity::Group(..))));
    assert_eq!(groups, [(false, "there is no multicast group 1: its messages are dropped".to_owned())]);
    let back = edit("switch_id_exact", &|entry| entry.params[0].2 = 2 << 24);
    assert!(back[0].1.contains("leads back") && !back[0].0, "{back:?}");
    let elsewhere = edit("latency_range", &|entry| entry.keys[0].2 = Matched::Exact(2 << 24));
    assert!(elsewhere[0].1.contains("another table matches it"), "{elsewhere:?}");
    let unknown = edit("switch_id_exact", &|entry| entry.table = "Subscriptions.price_exact_1".to_owned());
    assert!(unknown[0].0 && unknown[0].1.contains("no table `Subscriptions.price_exact_1`"), "{unknown:?}");
    let other = edit("switch_id_exact", &|entry| entry.table = "MyIngress.t".to_owned());
    assert!(!other[0].0 && other[0].1.contains("is not a rule table"), "{other:?}");
    let twice = told(&|all| {
        let range = all.iter().find_map(|entity| match entity {
            Entity::Table(entry) if entry.table.contains("latency_range") => Some(entry.clone()),
            _ => None,
        });
        let mut range = range.expect("there is one");
        (range.keys[1].2, range.params[0].2) = (Matched::Range(9, 12), 3);
        range.action = "Subscriptions.to_port".to_owned();
        range.params[0].0 = "port".to_owned();
        all.push(Entity::Table(range));
    });
    assert!(twice.len() == 1 && twice[0].0 && twice[0].1.contains("same priority"), "{twice:?}");
    let left_out = edit("switch_id_exact", &|entry| entry.params.clear());
    assert!(left_out[0].0 && left_out[0].1.contains("has no value for `state`"), "{left_out:?}");
    let without = edit("switch_id_exact", &|entry| entry.keys.retain(|(name, ..)| name != "state"));
    assert!(without[0].0 && without[0].1.contains("no value for `state`"), "{without:?}");
    let mark = edit("do_mark", &|entry| entry.params.clear());
    assert!(mark[0].0 && mark[0].1.contains("`mark` has no value for"), "{mark:?}");
    let names = ["Subscriptions.source_lpm_1", "Subscriptions.report_switch_id_exact_1"];
    let of =
        |names: &[&'static str]| reconstruct(names.iter().copied(), &program.rules, ProgramOptions::default().target);
    assert!(of(&names).is_err_and(|why| why.to_string().contains("a different field order")));
    let keys = of(&names[..1]).expect("an order").0.keys()[layout.validities()].name(&program.rules.format);
    assert_eq!(keys, "source");
}

/// Returns the errors reported for the entries of a switch after an entry of one table is changed.
fn errors_of(
    program: &TestProgram,
    rules: &[&str],
    target: TargetCapabilities,
    table: &str,
    edit: &dyn Fn(&mut subscribe_p4::entries::ProgramEntry),
) -> Vec<String> {
    let layout = ColumnLayout::sensible(&program.rules.format, &[]);
    let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
    let switch = compiled(program, &layout, target, &rules).expect("they fit");
    let mut all = entities(&switch);
    let entry = all.iter_mut().find_map(|entity| match entity {
        Entity::Table(entry) if entry.table.contains(table) => Some(entry),
        _ => None,
    });
    edit(entry.unwrap_or_else(|| panic!("there is no entry of {table}: {:?}", switch.tables.keys())));
    let (_, findings) = read_back(&all, &program.format, &program.rules, &layout);
    findings.into_iter().filter(|finding| finding.is_error).map(|finding| finding.message).collect()
}

#[test]
fn entries_without_their_parameters_are_reported() {
    let meter = TestProgram::read(METER);
    let target = ProgramOptions::default().target;
    let rules = [
        "site == 3 and avg(value) by site over 60us > 9 : fwd(1)",
        "site == 4 : total += 7; fwd(2)",
        "site == 5 : few += value",
    ];
    for (table, param) in [
        ("counts", "slots"),
        ("update_total", "function"),
        ("update_few", "function"),
        ("place_0", "index"),
        ("leaf", "port"),
    ] {
        let found = errors_of(&meter, &rules, target, table, &|entry| entry.params.clear());
        assert!(found.iter().any(|found| found.contains(&format!("no value for `{param}`"))), "{table}: {found:?}");
        let found = errors_of(&meter, &rules, target, table, &|entry| entry.action = "NoAction".to_owned());
        assert_eq!(found, Vec::<String>::new(), "{table}: nothing is done there");
    }
    let number =
        errors_of(&meter, &rules, target, "update_total", &|entry| entry.params.retain(|(name, ..)| name != "number"));
    assert!(number.iter().any(|found| found.contains("no value for `number`")), "{number:?}");
}

#[test]
fn codes_are_read_as_switches_look_them_up() {
    let coded = TestProgram::read(CODED);
    let layout = ColumnLayout::sensible(&coded.rules.format, &[]);
    let ternary = targets().into_iter().find(|target| target.wide == subscribe::Wide::Ternary).expect("one of them");
    let lpm = TargetCapabilities { wide: subscribe::Wide::Lpm, has_ranges: false, ..ternary };
    let rules = ["level in 3..9 : fwd(1)"];
    let found = errors_of(&coded, &rules, lpm, "codes", &|entry| entry.params.clear());
    assert!(found.iter().any(|found| found.contains("no value for `code`")), "{found:?}");
    let holes = errors_of(&coded, &rules, ternary, "codes", &|entry| {
        entry.keys[0].2 = Matched::Ternary(1, 0x1001);
    });
    assert!(holes.iter().any(|found| found.contains("more ranges of values")), "{holes:?}");
    // A prefix within another is valid: the longer one wins.
    let switch = compiled(&coded, &layout, lpm, &rules.map(str::to_owned)).expect("they fit");
    let mut all = entities(&switch);
    let known = all.iter().find_map(|entity| match entity {
        Entity::Table(entry) if entry.table.contains("codes") => Some(entry.clone()),
        _ => None,
    });
    let mut whole = known.expect("there are codes");
    whole.keys[0].2 = Matched::Lpm(0, 0);
    whole.params[0].2 = 0;
    let before = read_back(&all, &coded.format, &coded.rules, &layout);
    all.push(Entity::Table(whole));
    let after = read_back(&all, &coded.format, &coded.rules, &layout);
    assert_eq!((before.1, after.1), (Vec::new(), Vec::new()));
    // Values without an entry have code 0 in any case.
    assert_eq!(difference(&coded, &before.0, &after.0), None);
}
