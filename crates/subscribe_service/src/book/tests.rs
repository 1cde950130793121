use subscribe::{NoIncludes, TooMuch};
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

fn program() -> Program {
    let options = p4::Options { builtin: vec![("v1model.p4", V1MODEL)], ..Default::default() };
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let ast = p4::parse(&mut map, "format.p4", FORMAT, &options, &p4::DiskLoader, &mut diagnostics);
    let typed = p4::check(&ast, &map, &mut diagnostics).expect("the format is right");
    let format = subscribe_p4::read(&typed, FileId(0), &map, &mut diagnostics).expect("the format is right");
    let rules = subscribe_p4::rules(&format).expect("names differ");
    let layout = Layout::sensible(&rules.format, &[]);
    let (options, info) = (subscribe_p4::Options::default(), p4runtime_proto::config::P4Info::default());
    let written = Written { layout, text: String::new(), info };
    let write = |program: &Program, layout: &Layout| Written { layout: layout.clone(), ..program.written.clone() };
    Program {
        format,
        rules,
        options,
        written,
        is_forced: false,
        limits: Limits::default(),
        write: Box::new(write),
        cpu_port: 510,
    }
}

fn read(book: &mut Book<'_>, text: &str) -> Read {
    let read = book.read("rules", text.to_owned(), &mut NoIncludes);
    assert!(!read.diagnostics.has_errors(), "{}", read.diagnostics.render(&read.map, false));
    read
}

fn change<'a>(book: &mut Book<'a>, remove: &[u64], add: &str, origin: Origin) -> Result<Changed<'a>, String> {
    let mut read = read(book, add);
    let rules = std::mem::take(&mut read.rules);
    book.change(remove, rules, origin, &read)
}

/// Rules with their ids and origins, and how many are said to be the file's.
fn held(book: &Book<'_>) -> (Vec<(u64, String, bool)>, usize) {
    let one = |(id, held): (u64, &Held)| (id, held.text.to_string(), held.origin == Origin::File);
    (book.rules().map(one).collect(), book.in_file())
}

/// What a switch has that was told everything, in no order; states and groups are numbered anew by that.
fn entries(book: &mut Book<'_>) -> usize {
    let all = book.everything().unwrap().all();
    assert!(all.iter().all(|update| matches!(update, Update::Insert(_))), "{all:?}");
    all.iter().filter(|update| matches!(update, Update::Insert(Entity::Table(_)))).count()
}

#[test]
fn changes_are_undone_as_if_they_had_not_been() {
    let program = program();
    let mut book = Book::new(&program, 10);
    change(&mut book, &[], "a == 1 : fwd(1)\na > 5 : fwd(2, 3)\n", Origin::File).unwrap();
    change(&mut book, &[], "a == 7 : fwd(4)", Origin::Added).unwrap();
    let (before, entries_before) = (held(&book), entries(&mut book));
    assert_eq!(before.1, 2);

    let changed = change(&mut book, &[1, 3], "a < 3 : fwd(5)", Origin::Added).unwrap();
    assert_eq!((&changed.ids[..], changed.steps.is_empty()), (&[4][..], false));
    assert_eq!((book.len(), book.in_file()), (2, 1));
    book.undo(changed).unwrap();
    assert_eq!((held(&book), entries(&mut book)), (before, entries_before));
    // Rules that came back can go, and an id is never given again.
    assert_eq!(change(&mut book, &[1, 2, 3], "a == 9 : fwd(1)", Origin::Added).unwrap().ids, [5]);
    assert_eq!((book.len(), book.in_file()), (1, 0));
}

/// A switch that takes writes one after the other is taken back from where it stopped: states, groups and priorities are the same.
#[test]
fn what_is_undone_for_writes_in_turn_has_the_numbers_that_it_had() {
    let program = program();
    let mut book = Book::new(&program, 20);
    let text = "a < 9 : fwd(1)\na in 3..20 : fwd(2, 3); to_controller\na == 4 : fwd(7, 8); to_controller";
    change(&mut book, &[], text, Origin::File).unwrap();
    book.write(Writes::InTurn).unwrap();
    // With a history, so that numbers are not those that rules compiled anew get.
    change(&mut book, &[], "a in 5..12 : fwd(4, 5)\na == 15 : fwd(9); to_controller", Origin::Added).unwrap();
    change(&mut book, &[4], "a in 6..30 : fwd(5, 6)", Origin::Added).unwrap();
    let (before, numbering) = ((held(&book), book.everything().unwrap().all()), book.numbering());
    for (remove, add) in [(&[1, 3][..], "a < 7 : fwd(1, 2); to_controller"), (&[5], ""), (&[], "a != 8 : fwd(3, 4)")] {
        let changed = change(&mut book, remove, add, Origin::Added).unwrap();
        assert!(!changed.steps.is_empty());
        book.undo(changed).unwrap();
        assert_eq!((held(&book), book.everything().unwrap().all()), before, "{remove:?} {add}");
    }
    assert_eq!(book.numbering(), numbering);
}

/// While a change is at work, another primary's program may turn the order, and all is compiled anew: rules have other numbers.
#[test]
fn what_is_undone_after_all_was_compiled_anew_has_its_new_numbers() {
    let program = program();
    let mut book = Book::new(&program, 20);
    book.write(Writes::InTurn).unwrap();
    change(&mut book, &[], "a < 9 : fwd(1)\na in 3..20 : fwd(2, 3)\na == 4 : fwd(7, 8)", Origin::Added).unwrap();
    change(&mut book, &[1], "a in 5..12 : fwd(4, 5)", Origin::Added).unwrap();
    let before = held(&book);
    let changed = change(&mut book, &[2], "a in 6..30 : fwd(5, 6)", Origin::Added).unwrap();
    book.write(Writes::Together).unwrap();
    book.write(Writes::InTurn).unwrap();
    let numbering = book.numbering();
    book.undo(changed).unwrap();
    assert_eq!(held(&book), before);
    assert_ne!(book.numbering(), numbering, "the switch is to be compared anew");
    book.write(Writes::Together).unwrap();
    change(&mut book, &[2, 3], "", Origin::Added).unwrap();
    let mut alone = Book::new(&program, 20);
    change(&mut alone, &[], "a in 5..12 : fwd(4, 5)", Origin::Added).unwrap();
    assert_eq!(entries(&mut book), entries(&mut alone));
}

/// The diagrams of the rules before and after may be too large together.
#[test]
fn a_change_is_undone_or_stays_whatever_the_limits_are() {
    let mut undone = 0;
    for nodes in (20..1500).step_by(10) {
        let program = Program { limits: Limits { nodes, ..Limits::default() }, ..program() };
        let mut book = Book::new(&program, 100);
        let rules = |from: u32| -> String {
            (from..from + 12).map(|at| format!("a in {at}..{} : fwd({at})\n", 3 * at)).collect()
        };
        if change(&mut book, &[], &rules(1), Origin::File).is_err() {
            continue;
        }
        let before = held(&book);
        let Ok(changed) = change(&mut book, &(1..=12).collect::<Vec<u64>>(), &rules(20), Origin::File) else {
            continue;
        };
        let after = held(&book);
        match book.undo(changed) {
            Ok(()) => assert_eq!(held(&book), before, "{nodes} nodes"),
            Err(why) => assert!(held(&book) == after && why.contains("nodes"), "{why}"),
        }
        assert!(entries(&mut book) > 0);
        undone += 1;
    }
    assert!(undone > 10, "{undone} changes fit");
}

#[test]
fn refusals_change_nothing_and_are_told_at_their_places() {
    let program = program();
    let mut book = Book::new(&program, 3);
    change(&mut book, &[], "a == 1 : mark(1)\na == 2 : fwd(2)", Origin::File).unwrap();
    let before = held(&book);
    // The third rule takes the place of the second, and gets into the way of the first.
    let conflict = change(&mut book, &[2], "a > 5 : fwd(1)\na < 3 : mark(2)", Origin::Added).err().unwrap();
    assert!(conflict.contains("rules:2:1") && conflict.ends_with("the other is rule `#1`"), "{conflict}");
    let many = change(&mut book, &[], "a == 8 : fwd(1)\na == 9 : fwd(1)", Origin::Added).err().unwrap();
    assert!(many.contains("more than 3 rules"), "{many}");
    assert_eq!(held(&book), before);
    assert_eq!(change(&mut book, &[2], "a == 2 : fwd(3)", Origin::File).unwrap().ids, [3]);

    // A rule from before has no place in what was just read.
    let at = book.subscriptions.rules().next().expect("the first rule").1.span;
    let read = read(&mut book, "a == 3 : fwd(1)");
    let (full, own) = (TooMuch::Steps, read.rules[0].rule.span);
    let refusal =
        |at| Refusal::TooLarge { full: full.clone(), rules: (1, 2), ranges: Vec::new(), values: Vec::new(), at };
    assert!(!told(refusal(at), &read).contains("rules:1"), "{}", told(refusal(at), &read));
    assert!(told(refusal(own), &read).contains("rules:1:1"), "{}", told(refusal(own), &read));
}

#[test]
fn more_groups_with_the_controller_than_there_are_change_nothing() {
    let program = program();
    let mut book = Book::new(&program, 20_000);
    change(&mut book, &[], "a == 1 : fwd(1)\na == 2 : fwd(2)", Origin::File).unwrap();
    let before = held(&book);
    let pairs = (0..200).flat_map(|one| (one + 1..200).map(move |other| (one, other)));
    let rule = |(number, (one, other))| format!("a == {number} : fwd({one}, {other}); to_controller\n");
    let text: String = (10..).zip(pairs.take(9_000)).map(rule).collect();
    let many = change(&mut book, &[2], &text, Origin::Added).err().unwrap();
    assert!(many.contains("together with the controller"), "{many}");
    assert_eq!(held(&book), before);
    assert!(!change(&mut book, &[1, 2], "", Origin::File).unwrap().steps.is_empty(), "what came back can go");
    assert_eq!(entries(&mut book), 0);
}

#[test]
fn rules_keep_their_ids_when_the_way_of_writing_changes_and_files_are_read_anew() {
    let program = program();
    let mut book = Book::new(&program, 10);
    let text = "a == 1 : fwd(1)\na == 1 : fwd(1)\na > 5 : fwd(2, 3)\n";
    change(&mut book, &[], text, Origin::File).unwrap();
    change(&mut book, &[], "a == 1 : fwd(1)", Origin::Added).unwrap();
    let before = held(&book);
    book.write(Writes::InTurn).unwrap();
    assert_eq!(held(&book), before);
    // One of two that are the same goes, the later one; the one that was added is not the file's.
    let new = read(&mut book, "a > 5 : fwd(2, 3)\na == 1 : fwd(1)\na == 4 : drop\n");
    let (go, come) = book.reload(&new.rules);
    assert_eq!((go, come.iter().map(|new| &*new.text).collect::<Vec<_>>()), (vec![2], vec!["a == 4 : drop"]));
    book.change(&[2], come, Origin::File, &new).unwrap();
    assert_eq!(book.rules().map(|(id, _)| id).collect::<Vec<_>>(), [1, 3, 4, 5]);
}

#[test]
fn a_name_is_that_of_one_rule() {
    let program = program();
    let mut book = Book::new(&program, 10);
    change(&mut book, &[], "rule b: a == 1 : fwd(1)\nrule c: a == 2 : fwd(1)\n", Origin::File).unwrap();
    let before = held(&book);
    let refused = change(&mut book, &[2], "a == 3 : fwd(1)\nrule b: a == 4 : fwd(2)", Origin::Added);
    let refused = refused.err().expect("rule 1 has this name");
    assert!(refused.contains("rule 1 is called `b` already") && refused.contains("rules:2:1"), "{refused}");
    assert_eq!(held(&book), before);
    // Another of its name may take its place, and comes and goes with it.
    let changed = change(&mut book, &[1], "rule b: a == 4 : fwd(2)", Origin::File).unwrap();
    book.undo(changed).unwrap();
    assert!(change(&mut book, &[], "rule b: a == 5 : fwd(2)", Origin::Added).is_err());
    change(&mut book, &[1], "", Origin::File).unwrap();
    change(&mut book, &[], "rule b: a == 5 : fwd(2)", Origin::Added).unwrap();

    let twice = book.read("rules", "rule d: a == 1 : fwd(1)\nrule d: a == 2 : fwd(1)".to_owned(), &mut NoIncludes);
    assert!(twice.diagnostics.render(&twice.map, false).contains("two rules are called `d`"));
}
