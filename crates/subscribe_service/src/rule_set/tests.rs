use subscribe::{ExceededLimit, NoIncludes};
use subscribe_p4::entries::{Entity, Update};

use super::*;

const V1MODEL: &str = include_str!("../../../v1model/src/v1model.p4");
const FORMAT: &str = "#include <v1model.p4>
header h_t { @query_field bit<16> a; bit<8> b; }
struct headers_t { h_t h; }
struct metadata_t {}
@query_action
action mark(inout headers_t hdr, bit<8> value) { hdr.h.b = value; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
";

fn program() -> SubscriptionProgram {
    program_of(FORMAT)
}

fn program_of(text: &str) -> SubscriptionProgram {
    let options = p4::PreprocessorOptions { builtin: vec![("v1model.p4", V1MODEL)], ..Default::default() };
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let ast = p4::parse(&mut map, "format.p4", text, &options, &p4::NoFiles, &mut diagnostics);
    let typed = p4::check(&ast, &map, &mut diagnostics).expect("the format is right");
    let format = subscribe_p4::read(&typed, FileId(0), &map, &mut diagnostics).expect("the format is right");
    let rules = subscribe_p4::rule_format(&format).expect("names differ");
    let layout = ColumnLayout::sensible(&rules.format, &[]);
    let (options, info) = (subscribe_p4::ProgramOptions::default(), p4runtime_proto::config::P4Info::default());
    let written = WrittenProgram { layout, text: String::new(), info };
    let write = |program: &SubscriptionProgram, layout: &ColumnLayout| WrittenProgram {
        layout: layout.clone(),
        ..program.written.clone()
    };
    SubscriptionProgram {
        format,
        rules,
        options,
        written,
        is_forced: false,
        limits: Limits::default(),
        first_generation: 0,
        write: Box::new(write),
        cpu_port: 510,
    }
}

fn parse(rules: &mut RuleSet<'_>, text: &str) -> ParsedRules {
    let parsed = rules.parse("rules", text.to_owned(), &mut NoIncludes);
    assert!(!parsed.diagnostics.has_errors(), "{}", parsed.diagnostics.render(&parsed.map, false));
    parsed
}

fn change<'a>(
    rules: &mut RuleSet<'a>,
    remove: &[u64],
    add: &str,
    origin: RuleOrigin,
) -> Result<AppliedChange<'a>, String> {
    let mut parsed = parse(rules, add);
    let new = std::mem::take(&mut parsed.rules);
    rules.change(remove, new, origin, &parsed).map_err(|error| error.to_string())
}

/// Returns the rules with their ids and origins, and the number of rules in the file.
fn held(rules: &RuleSet<'_>) -> (Vec<(u64, String, bool)>, usize) {
    let one = |(id, held): (u64, &HeldRule)| (id, held.text.to_string(), held.origin == RuleOrigin::File);
    (rules.rules().map(one).collect(), rules.in_file())
}

/// Returns the number of table entries of a full installation.
fn entries(rules: &mut RuleSet<'_>) -> usize {
    let all = rules.full_install().unwrap().all();
    assert!(all.iter().all(|update| matches!(update, Update::Insert(_))), "{all:?}");
    all.iter().filter(|update| matches!(update, Update::Insert(Entity::Table(_)))).count()
}

#[test]
fn changes_are_undone_as_if_they_had_not_been() {
    let program = program();
    let mut rules = RuleSet::new(&program, 10);
    change(&mut rules, &[], "a == 1 : fwd(1)\na > 5 : fwd(2, 3)\n", RuleOrigin::File).unwrap();
    change(&mut rules, &[], "a == 7 : fwd(4)", RuleOrigin::Added).unwrap();
    let (before, entries_before) = (held(&rules), entries(&mut rules));
    assert_eq!(before.1, 2);

    let changed = change(&mut rules, &[1, 3], "a < 3 : fwd(5)", RuleOrigin::Added).unwrap();
    assert_eq!((&changed.ids[..], changed.steps.is_empty()), (&[4][..], false));
    assert_eq!((rules.len(), rules.in_file()), (2, 1));
    rules.undo(changed).unwrap();
    assert_eq!((held(&rules), entries(&mut rules)), (before, entries_before));
    // Restored rules can be removed, and an id is never reused.
    assert_eq!(change(&mut rules, &[1, 2, 3], "a == 9 : fwd(1)", RuleOrigin::Added).unwrap().ids, [5]);
    assert_eq!((rules.len(), rules.in_file()), (1, 0));
}

/// A switch that applies updates one after the other is repaired from where it stopped: states, groups and priorities
/// are the same.
#[test]
fn a_change_undone_between_phases_keeps_all_numbers() {
    let program = program();
    let mut rules = RuleSet::new(&program, 20);
    let text = "a < 9 : fwd(1)\na in 3..20 : fwd(2, 3); to_controller\na == 4 : fwd(7, 8); to_controller";
    change(&mut rules, &[], text, RuleOrigin::File).unwrap();
    rules.set_update_mode(UpdateMode::PerMessageConsistent).unwrap();
    // Earlier changes give numbers that a compilation from scratch would not give.
    change(&mut rules, &[], "a in 5..12 : fwd(4, 5)\na == 15 : fwd(9); to_controller", RuleOrigin::Added).unwrap();
    change(&mut rules, &[4], "a in 6..30 : fwd(5, 6)", RuleOrigin::Added).unwrap();
    let (before, generation) = ((held(&rules), rules.full_install().unwrap().all()), rules.generation());
    for (remove, add) in [(&[1, 3][..], "a < 7 : fwd(1, 2); to_controller"), (&[5], ""), (&[], "a != 8 : fwd(3, 4)")] {
        let changed = change(&mut rules, remove, add, RuleOrigin::Added).unwrap();
        assert!(!changed.steps.is_empty());
        rules.undo(changed).unwrap();
        assert_eq!((held(&rules), rules.full_install().unwrap().all()), before, "{remove:?} {add}");
    }
    assert_eq!(rules.generation(), generation);
}

/// During a change another primary may load a program with another order of fields. All rules are compiled from scratch
/// then, with other numbers.
#[test]
fn a_change_undone_after_a_compilation_from_scratch_has_new_numbers() {
    let program = program();
    let mut rules = RuleSet::new(&program, 20);
    rules.set_update_mode(UpdateMode::PerMessageConsistent).unwrap();
    change(&mut rules, &[], "a < 9 : fwd(1)\na in 3..20 : fwd(2, 3)\na == 4 : fwd(7, 8)", RuleOrigin::Added).unwrap();
    change(&mut rules, &[1], "a in 5..12 : fwd(4, 5)", RuleOrigin::Added).unwrap();
    let before = held(&rules);
    let changed = change(&mut rules, &[2], "a in 6..30 : fwd(5, 6)", RuleOrigin::Added).unwrap();
    rules.set_update_mode(UpdateMode::Atomic).unwrap();
    rules.set_update_mode(UpdateMode::PerMessageConsistent).unwrap();
    let generation = rules.generation();
    rules.undo(changed).unwrap();
    assert_eq!(held(&rules), before);
    assert_ne!(rules.generation(), generation, "the switch has to be compared again");
    rules.set_update_mode(UpdateMode::Atomic).unwrap();
    change(&mut rules, &[2, 3], "", RuleOrigin::Added).unwrap();
    let mut alone = RuleSet::new(&program, 20);
    change(&mut alone, &[], "a in 5..12 : fwd(4, 5)", RuleOrigin::Added).unwrap();
    assert_eq!(entries(&mut rules), entries(&mut alone));
}

/// The decision diagrams of the rules before and after a change may together exceed a limit.
#[test]
fn a_change_is_complete_or_undone_under_every_limit() {
    let mut undone = 0;
    for nodes in (20..1500).step_by(10) {
        let program = SubscriptionProgram { limits: Limits { nodes, ..Limits::default() }, ..program() };
        let mut rules = RuleSet::new(&program, 100);
        let text = |from: u32| -> String {
            (from..from + 12).map(|at| format!("a in {at}..{} : fwd({at})\n", 3 * at)).collect()
        };
        if change(&mut rules, &[], &text(1), RuleOrigin::File).is_err() {
            continue;
        }
        let before = held(&rules);
        let Ok(changed) = change(&mut rules, &(1..=12).collect::<Vec<u64>>(), &text(20), RuleOrigin::File) else {
            continue;
        };
        let after = held(&rules);
        match rules.undo(changed) {
            Ok(()) => assert_eq!(held(&rules), before, "{nodes} nodes"),
            Err(why) => assert!(held(&rules) == after && why.to_string().contains("nodes"), "{why}"),
        }
        assert!(entries(&mut rules) > 0);
        undone += 1;
    }
    assert!(undone > 10, "{undone} changes fit");
}

#[test]
fn refusals_change_nothing_and_are_rendered_with_carets() {
    let program = program();
    let mut rules = RuleSet::new(&program, 3);
    change(&mut rules, &[], "a == 1 : mark(1)\na == 2 : fwd(2)", RuleOrigin::File).unwrap();
    let before = held(&rules);
    // The third rule takes the place of the second, and gets into the way of the first.
    let conflict = change(&mut rules, &[2], "a > 5 : fwd(1)\na < 3 : mark(2)", RuleOrigin::Added).err().unwrap();
    assert!(conflict.contains("rules:2:1") && conflict.ends_with("the other is rule `#1`"), "{conflict}");
    let many = change(&mut rules, &[], "a == 8 : fwd(1)\na == 9 : fwd(1)", RuleOrigin::Added).err().unwrap();
    assert!(many.contains("more than 3 rules"), "{many}");
    assert_eq!(held(&rules), before);
    assert_eq!(change(&mut rules, &[2], "a == 2 : fwd(3)", RuleOrigin::File).unwrap().ids, [3]);

    // An earlier rule has no place in the text that was just parsed.
    let at = rules.subscriptions.rules().next().expect("the first rule").1.span;
    let parsed = parse(&mut rules, "a == 3 : fwd(1)");
    let (full, own) = (ExceededLimit::Steps, parsed.rules[0].rule.span);
    let refusal =
        |at| Refusal::TooLarge { full: full.clone(), rules: (1, 2), ranges: Vec::new(), values: Vec::new(), at };
    let rendered = |at| render(refusal(at), &parsed).to_string();
    assert!(!rendered(at).contains("rules:1"), "{}", rendered(at));
    assert!(rendered(own).contains("rules:1:1"), "{}", rendered(own));
}

#[test]
fn more_groups_with_the_controller_than_there_are_change_nothing() {
    let program = program();
    let mut rules = RuleSet::new(&program, 20_000);
    change(&mut rules, &[], "a == 1 : fwd(1)\na == 2 : fwd(2)", RuleOrigin::File).unwrap();
    let before = held(&rules);
    let pairs = (0..200).flat_map(|one| (one + 1..200).map(move |other| (one, other)));
    let rule = |(number, (one, other))| format!("a == {number} : fwd({one}, {other}); to_controller\n");
    let text: String = (10..).zip(pairs.take(9_000)).map(rule).collect();
    let many = change(&mut rules, &[2], &text, RuleOrigin::Added).err().unwrap();
    assert!(many.contains("together with the controller"), "{many}");
    assert_eq!(held(&rules), before);
    assert!(
        !change(&mut rules, &[1, 2], "", RuleOrigin::File).unwrap().steps.is_empty(),
        "restored rules can be removed"
    );
    assert_eq!(entries(&mut rules), 0);
}

#[test]
fn rules_keep_their_ids_when_the_update_mode_changes_and_files_are_read_again() {
    let program = program();
    let mut rules = RuleSet::new(&program, 10);
    let text = "a == 1 : fwd(1)\na == 1 : fwd(1)\na > 5 : fwd(2, 3)\n";
    change(&mut rules, &[], text, RuleOrigin::File).unwrap();
    change(&mut rules, &[], "a == 1 : fwd(1)", RuleOrigin::Added).unwrap();
    let before = held(&rules);
    rules.set_update_mode(UpdateMode::PerMessageConsistent).unwrap();
    assert_eq!(held(&rules), before);
    // Of two equal rules the later one is removed. The rule that was added is not in the file.
    let new = parse(&mut rules, "a > 5 : fwd(2, 3)\na == 1 : fwd(1)\na == 4 : drop\n");
    let (removed, added) = rules.compare_file(&new.rules);
    assert_eq!((removed, added.iter().map(|new| &*new.text).collect::<Vec<_>>()), (vec![2], vec!["a == 4 : drop"]));
    rules.change(&[2], added, RuleOrigin::File, &new).unwrap();
    assert_eq!(rules.rules().map(|(id, _)| id).collect::<Vec<_>>(), [1, 3, 4, 5]);
}

#[test]
fn a_name_is_that_of_one_rule() {
    let program = program();
    let mut rules = RuleSet::new(&program, 10);
    change(&mut rules, &[], "rule b: a == 1 : fwd(1)\nrule c: a == 2 : fwd(1)\n", RuleOrigin::File).unwrap();
    let before = held(&rules);
    let refused = change(&mut rules, &[2], "a == 3 : fwd(1)\nrule b: a == 4 : fwd(2)", RuleOrigin::Added);
    let refused = refused.err().expect("rule 1 has this name");
    assert!(refused.contains("rule 1 is already named `b`") && refused.contains("rules:2:1"), "{refused}");
    assert_eq!(held(&rules), before);
    // Another rule of the same name may replace it in one change.
    let changed = change(&mut rules, &[1], "rule b: a == 4 : fwd(2)", RuleOrigin::File).unwrap();
    rules.undo(changed).unwrap();
    assert!(change(&mut rules, &[], "rule b: a == 5 : fwd(2)", RuleOrigin::Added).is_err());
    change(&mut rules, &[1], "", RuleOrigin::File).unwrap();
    change(&mut rules, &[], "rule b: a == 5 : fwd(2)", RuleOrigin::Added).unwrap();

    let twice = rules.parse("rules", "rule d: a == 1 : fwd(1)\nrule d: a == 2 : fwd(1)".to_owned(), &mut NoIncludes);
    assert!(twice.diagnostics.render(&twice.map, false).contains("two rules have the name `d`"));
}

/// Returns the entities that an empty switch gets.
fn installed(rules: &mut RuleSet<'_>) -> (UpdatePlan, Vec<Entity>) {
    let plan = rules.full_install().unwrap();
    let entity = |update: Update| match update {
        Update::Insert(entity) | Update::Modify(entity) => Some(entity),
        Update::Delete(_) => None,
    };
    let mut entities: Vec<Entity> = plan.clone().all().into_iter().filter_map(entity).collect();
    entities.sort_by_key(|entity| format!("{entity:?}"));
    (plan, entities)
}

#[test]
fn linked_aggregates_keep_their_slots_and_values_when_the_service_starts_again() {
    let text = FORMAT.replace("struct headers_t", "@query_aggregate(\"any\", 16, 4) struct headers_t");
    let mut program = program_of(&text);
    let rule = |number: u32| format!("a > {number} and sum(a) over {number}ms > {number} : fwd(1)\n");
    let all = [2, 3, 4, 5].map(rule).concat();
    let (links, entries) = {
        let mut rules = RuleSet::new(&program, 10);
        change(&mut rules, &[], &[1, 2, 3].map(rule).concat(), RuleOrigin::File).unwrap();
        // The slots of rules 1 and 2 get others, and rule 2 another one.
        change(&mut rules, &[1], &rule(4), RuleOrigin::File).unwrap();
        change(&mut rules, &[2], &rule(5), RuleOrigin::File).unwrap();
        change(&mut rules, &[], &rule(2), RuleOrigin::File).unwrap();
        (rules.subscriptions.linked_identities(), installed(&mut rules).1)
    };
    assert_eq!(links.len(), 4);
    program.first_generation = 1_000;
    let mut again = RuleSet::new(&program, 10);
    change(&mut again, &[], &all, RuleOrigin::File).unwrap();
    assert_ne!(installed(&mut again).1, entries, "a new compiler assigns slots in the order of the file");
    assert!(again.adopt_slots(&entries).unwrap());
    assert_eq!(again.subscriptions.linked_identities(), links);
    let (plan, _) = installed(&mut again);
    again.adopt_states(&plan, &entries);
    assert_eq!(installed(&mut again).1, entries, "nothing is to be written");
    assert!(!again.adopt_slots(&entries).unwrap(), "they are the same now");
    // A slot that changes hands gets a generation that no earlier run has used.
    change(&mut again, &[1], &rule(6), RuleOrigin::File).unwrap();
    let now = again.subscriptions.linked_identities();
    let new: Vec<_> = now.iter().filter(|(slot, identity)| links.get(slot) != Some(identity)).collect();
    assert!(matches!(new[..], [(_, identity)] if identity.generation >= 1_000), "{new:?}");

    // A new rule in front takes no slot of the others, as long as one is free.
    program.first_generation = 1_500;
    let known = {
        let mut two = RuleSet::new(&program, 10);
        change(&mut two, &[], &[2, 3].map(rule).concat(), RuleOrigin::File).unwrap();
        let known = installed(&mut two).1;
        (two.subscriptions.linked_identities(), known)
    };
    let mut three = RuleSet::new(&program, 10);
    change(&mut three, &[], &[7, 2, 3].map(rule).concat(), RuleOrigin::File).unwrap();
    three.adopt_slots(&known.1).unwrap();
    let now = three.subscriptions.linked_identities();
    assert!(known.0.iter().all(|(slot, identity)| now.get(slot) == Some(identity)), "{now:?}");

    // If every slot is where it was, only the generations of the switch are taken over.
    let mut fresh = RuleSet::new(&program, 10);
    change(&mut fresh, &[], &all, RuleOrigin::File).unwrap();
    let own = installed(&mut fresh).1;
    program.first_generation = 2_000;
    let mut last = RuleSet::new(&program, 10);
    change(&mut last, &[], &all, RuleOrigin::File).unwrap();
    assert!(last.adopt_slots(&own).unwrap());
    assert_eq!(installed(&mut last).1, own);
}
