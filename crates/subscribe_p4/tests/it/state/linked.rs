//! Linked aggregates: one program computes all of them, and its slots are linked anew while it runs.

use diagnostics::{Diagnostics, SourceMap};
use rng::SplitMix64;
use subscribe::{ColumnLayout, CompileOptions, Memory, NoIncludes, Refusal, Subscriptions};
use subscribe_p4::entries::Installer;
use v1model::Executor;

use super::keys::results;
use super::{BOTH, METER, PORTS, compare, remembered, send, switch::Made, switch::TestSwitch};

/// Returns the format with this number of linked slots and no declared aggregates.
fn format(slots: u32) -> String {
    let own = |line: &&str| !line.starts_with("@query_aggregate");
    let text: Vec<&str> = METER.lines().filter(own).collect();
    let any = format!("@query_aggregate(\"any\", 512, {slots})\n@query_counter(total)");
    text.join("\n").replace("@query_counter(total)", &any)
}

#[test]
fn one_program_computes_all_aggregates_of_the_language() {
    let made = Made::new(&format(8), PORTS, None, |program| program);
    let tally = compare(&made, &BOTH, 0..40).unwrap_or_else(|difference| panic!("{difference}"));
    assert!(tally.stateful > 5000, "{} messages saw what others left", tally.stateful);
    assert!(tally.used.iter().all(|uses| *uses > 3), "every slot was used: {:?}", tally.used);
}

#[test]
fn aggregates_without_room_are_refused() {
    let made = Made::new(&format(1), PORTS, None, |program| program);
    let findings = |text: &str| {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        subscribe::parse(&mut map, "rules", text, &made.rules.format, &mut NoIncludes, &mut diagnostics);
        diagnostics.render(&map, false)
    };
    assert_eq!(findings("count() by site, value > 1 : drop"), "");
    let three = findings("count() by site, unit, value > 1 : drop");
    assert!(three.contains("at most 2 fields after `by`"), "{three}");
    let options = CompileOptions { target: made.options.target, ..CompileOptions::default() };
    let format = &made.rules.format;
    let mut all = Subscriptions::new(format.clone(), ColumnLayout::sensible(format, &[]), options);
    all.change(&[], made.parse("count() by site > 1 : fwd(0)")).expect("there is one slot");
    let refused = all.change(&[], made.parse("count() by unit > 1 : fwd(0)"));
    assert!(matches!(&refused, Err(Refusal::Slots { slots: 1, .. })), "{refused:?}");
}

#[test]
fn aggregates_of_the_format_and_of_rules_work_side_by_side() {
    let own = METER.replace("@query_counter(total)", "@query_aggregate(\"any\", 512, 3)\n@query_counter(total)");
    let made = Made::new(&own, PORTS, None, |program| program);
    let tally = compare(&made, &BOTH, 300..340).unwrap_or_else(|difference| panic!("{difference}"));
    assert!(tally.used.iter().all(|uses| *uses > 0), "every slot was used: {:?}", tally.used);
}

/// Changes rules between messages. Returns the first message that is delivered wrongly, and how often a slot changed
/// hands.
fn change(made: &Made, executor: Executor, seeds: std::ops::Range<u64>) -> Result<usize, String> {
    let format = &made.rules.format;
    let mut linked = 0;
    for seed in seeds {
        let mut rng = SplitMix64::new(7000 + seed);
        let options = CompileOptions { target: made.options.target, ..CompileOptions::default() };
        let layout = ColumnLayout::sensible(format, &[]);
        let mut all = Subscriptions::new(format.clone(), layout, options);
        let mut installer = Installer::new(&made.format, &made.rules, all.layout(), &made.options, 510);
        let mut switch = TestSwitch::new(made, executor);
        installer.install(&all.tables()).expect("no groups").iter().for_each(|update| switch.apply(update));
        let (mut memory, mut micros, mut ids) = (Memory::new(format), 0, Vec::new());
        for step in 0..300 {
            if step % 12 == 0 {
                let count = rng.below(3).min(ids.len() as u64);
                let gone: Vec<_> = (0..count).map(|_| ids.swap_remove(rng.below(ids.len() as u64) as usize)).collect();
                // A rule without tests of its key: a key that a rule names for the first time changes its cell.
                let text = format!("value < 9 and {} : fwd({})", remembered(&mut rng), rng.below(4));
                match all.change(&gone, made.parse(&text)) {
                    Ok(applied) => {
                        memory.assign(&applied.slots);
                        linked += applied.change.links.len();
                        ids.extend(applied.added);
                        let updates = installer.change(&applied.change).expect("few groups");
                        updates.iter().for_each(|update| switch.apply(update));
                    }
                    Err(_) => ids.extend(gone),
                }
            }
            micros += rng.pick(&[(3, 5), (3, 10), (2, 1), (1, 45), (1, 200)]);
            let sent = send(&mut rng, made, (&all, &mut memory), &mut switch, micros);
            sent.map_err(|difference| format!("seed {seed}, message {step}: {difference}"))?;
        }
    }
    Ok(linked)
}

#[test]
fn a_slot_that_gets_another_aggregate_is_empty() {
    let made = Made::new(&format(3), PORTS, None, |program| program);
    for executor in BOTH {
        let linked = change(&made, executor, 0..20).unwrap_or_else(|difference| panic!("{difference}"));
        assert!(linked > 200, "slots changed hands {linked} times");
    }
}

/// Possible bugs of a program, as text replacements.
const MISTAKES: [(&str, &str); 15] = [
    // Values of another aggregate.
    ("if (slot_0_identity != slot_0_link_identity)", "if (slot_0_identity == 1)"),
    ("slot_0_identity = slot_0_link_identity;", ""),
    // Windows.
    ("slot_0_end - meta.subscription.now - 1", "slot_0_end - meta.subscription.now"),
    ("slot_0_link_packets != 0 && slot_0_count >= slot_0_link_packets", "slot_0_count >= slot_0_link_packets"),
    ("slot_0_count >= slot_0_link_packets", "slot_0_count > slot_0_link_packets"),
    ("slot_0_previous_count = slot_0_count;", ""),
    ("slot_0_previous_amount = slot_0_amount[63:0];", ""),
    (
        "else if (slot_0_is_over == 1 && slot_0_link_previous == 1)",
        "else if (slot_0_is_over == 1 && slot_0_link_previous == 0)",
    ),
    // Functions.
    ("slot_0_amount[63:0] |+| slot_0_input[63:0]", "slot_0_amount[63:0] + slot_0_input[63:0]"),
    ("slot_0_input < slot_0_amount ?", "slot_0_input > slot_0_amount ?"),
    ("96w0xffffffffffffffff : 0", "96w0 : 0"),
    ("if (slot_0_link_function == 6) {\n", "if (slot_0_link_function == 7) {\n"),
    (">> (slot_0_link_shift + 1)", ">> slot_0_link_shift"),
    ("slot_0_scaled = slot_0_input << (slot_0_link_shift + 1)", "slot_0_scaled = slot_0_input << slot_0_link_shift"),
    // The second field of a key.
    ("if (slot_0_link_key_1 == 2)", "if (slot_0_link_key_1 == 3)"),
];

#[test]
fn keys_that_no_rule_names_take_cells_from_each_other() {
    let text = format(1).replace("512, 1", "1, 1");
    let messages = [(1, b'A'), (1, b'A'), (2, b'A'), (1, b'A'), (1, b'A'), (1, b'B'), (1, b'A')];
    let rule = "count() by site, unit >= 1 : fwd(0)";
    let counted = |change: &dyn Fn(String) -> String| {
        results(&Made::new(&text, PORTS, None, change), rule, &messages, "slot_0_kept_evictions")
    };
    let expected = (vec![false, true, false, false, true, false, false], 4);
    assert_eq!(counted(&|program| program), [expected.clone(), expected.clone()]);
    // Programs that compare a part of the key only.
    for wrong in ["slot_0_key_0 != slot_0_link_key_0_value || ", " || slot_0_key_1 != slot_0_link_key_1_value"] {
        let change = |program: String| {
            assert!(program.contains(wrong));
            program.replace(wrong, "")
        };
        assert_ne!(counted(&change)[0], expected, "without {wrong}");
    }
    // A named key keeps its cell.
    let rules = format!("{rule}\nsite == 1 and unit == \"A\" and count() by site, unit >= 1 : fwd(1)");
    let made = Made::new(&text, PORTS, None, |program| program);
    let expected = (vec![false, true, false, true, true, false, true], 1);
    assert_eq!(results(&made, &rules, &messages, "slot_0_kept_evictions"), [expected.clone(), expected]);
}

#[test]
fn mistakes_in_the_code_of_linked_aggregates_are_found() {
    let mut missed = Vec::new();
    for (right, wrong) in MISTAKES {
        let made = Made::new(&format(2), PORTS, None, |program| {
            assert!(program.contains(right), "the program has no `{right}`");
            program.replace(right, wrong)
        });
        let is_found = compare(&made, &[Executor::Interpreter], 0..300).is_err()
            || change(&made, Executor::Interpreter, 0..100).is_err();
        if !is_found {
            missed.push((right, wrong));
        }
    }
    assert!(missed.is_empty(), "these mistakes were not found: {missed:#?}");
}
