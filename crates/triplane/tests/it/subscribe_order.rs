//! The order of the fields that the command chooses, and its memory use for rules.

use std::fmt::Write;

use crate::support::{Directory, Done, run, triplane};
use rng::SplitMix64;
use subscribe::workload;

/// A format with three numeric fields that are annotated alike.
fn format(names: [&str; 3]) -> String {
    let fields: String = names.iter().map(|name| format!("@query_field bit<32> {name}; ")).collect();
    format!(
        "#include <v1model.p4>
header m_t {{ {fields}}}
struct headers_t {{ m_t m; }}
struct metadata_t {{}}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{
    state start {{ packet.extract(hdr.m); transition accept; }}
}}
"
    )
}

/// Rules that all test the last field for a value.
fn venues(rules: usize, to: &str) -> String {
    let mut rng = SplitMix64::new(3);
    let mut text = String::new();
    for _ in 0..rules {
        let (venue, price, shares) = (rng.below(100), rng.below(1000), rng.below(21) * 100);
        let host = 1 + rng.below(4);
        writeln!(text, "venue == {venue} and price > {price} and shares > {shares} : fwd({to}{host})")
            .expect("a string");
    }
    text
}

/// Returns the number of entries in the tables of fields, as the command reports it.
fn entries(done: &Done) -> u64 {
    let line = done.stderr.lines().find(|line| line.contains("in the tables of fields")).expect("a summary");
    let count = line.split(": ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a number");
    count.replace(',', "").parse().expect("a number")
}

/// A format, rules, and a directory for the output.
struct Case {
    directory: Directory,
    format: String,
    rules: String,
}

impl Case {
    fn new() -> Case {
        let directory = Directory::new();
        let format = directory.write("format.p4", format(["shares", "price", "venue"]));
        let rules = directory.write("rules.sub", venues(400, ""));
        Case { directory, format, rules }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path(name)
    }

    fn compile(&self, more: &[&str]) -> Done {
        let compile = ["subscribe", "compile", &self.format, &self.rules, "-o", &self.path("entries.json")];
        run(&mut triplane(&[&compile[..], more].concat()))
    }
}

#[test]
fn program_and_entries_that_are_made_together_have_an_order_that_suits_the_rules() {
    let case = Case::new();
    let program = case.path("program.p4");
    let chosen = case.compile(&["--program", &program, "--stats"]).ok();
    assert!(chosen.stderr.contains("order of the fields: venue, "), "{chosen:?}");
    assert!(!chosen.stderr.contains("would take"), "{chosen:?}");
    let text = std::fs::read_to_string(&program).unwrap();
    assert!(text.starts_with("// Made by") && text.contains("\n// --order venue,"), "{}", &text[..200]);
    let check = run(&mut triplane(&["subscribe", "check", &case.format, &case.rules])).ok();
    assert_eq!(entries(&check), entries(&chosen));
    let orders = ["venue,shares,price", "venue,price,shares", "price,venue,shares", "shares,venue,price"];
    let all = orders.map(|order| entries(&case.compile(&["--order", order]).ok()));
    let best = *all.iter().min().unwrap();
    assert!(entries(&chosen) <= 2 * best && all.iter().any(|of| *of > 4 * best), "{all:?}, {chosen:?}");

    // Entries that are compiled later match that program, and run with it.
    let other = case.path("other.p4");
    run(&mut triplane(&["subscribe", "program", &case.format, &case.rules, "-o", &other])).ok();
    assert_eq!(std::fs::read_to_string(&other).unwrap(), text);
    let later = case.compile(&["--order-of", &other]).ok();
    assert_eq!(entries(&later), entries(&chosen));
    run(&mut triplane(&["check", &program, "--entries", &case.path("entries.json")])).ok();
    let compiled = case.path("program.tpl");
    run(&mut triplane(&["build", &program, "-o", &compiled])).ok();
    assert_eq!(entries(&case.compile(&["--order-of", &compiled]).ok()), entries(&chosen));
    let router = case.compile(&["--order-of", "examples/router/router.p4"]);
    assert!(router.code == Some(1) && router.stderr.contains("was not made of"), "{router:?}");
}

#[test]
fn who_compiles_for_a_program_that_is_there_is_told_of_a_much_better_order() {
    let case = Case::new();
    // The order of the annotations, as in a program without rules.
    let plain = case.compile(&[]).ok();
    run(&mut triplane(&["subscribe", "program", &case.format, "-o", &case.path("plain.p4")])).ok();
    run(&mut triplane(&["check", &case.path("plain.p4"), "--entries", &case.path("entries.json")])).ok();
    let told = plain.stderr.lines().find(|line| line.contains("would take")).expect("a better order");
    let order = told.split('`').nth(1).and_then(|order| order.strip_prefix("--order ")).expect("an order");
    let better = case.compile(&["--order", order]).ok();
    let grouped = |count: u64| {
        count
            .to_string()
            .as_bytes()
            .rchunks(3)
            .rev()
            .map(|part| std::str::from_utf8(part).unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(",")
    };
    let wanted = format!("would take {} entries instead of {}", grouped(entries(&better)), grouped(entries(&plain)));
    assert!(told.contains(&wanted), "{wanted}: {told}");
    assert!(!better.stderr.contains("would take"), "{better:?}");
    // Orders with a small difference are not reported.
    assert!(!case.compile(&["--order", "venue,price"]).ok().stderr.contains("would take"));
}

#[test]
fn switches_of_a_network_have_a_program_in_the_order_that_suits_all_rules() {
    let case = Case::new();
    let lab = case.path("lab.toml");
    let made = run(&mut triplane(&["lab", "new", "fat-tree", "--k", "2"])).ok();
    std::fs::write(&lab, made.stdout).unwrap();
    let rules = case.directory.write("network.sub", venues(400, "h").replace("(h3)", "(h1)").replace("(h4)", "(h2)"));
    let out = case.path("out");
    let done = run(&mut triplane(&["subscribe", "network", &case.format, &rules, "--lab", &lab, "-o", &out])).ok();
    assert!(done.stderr.contains("order of the fields: venue, "), "{done:?}");
    let program = std::fs::read_to_string(format!("{out}/switch.p4")).unwrap();
    assert!(program.contains("\n// --order venue,"), "{}", &program[..200]);
}

#[test]
fn memory_that_there_is_limits_diagrams_before_it_runs_out() {
    let directory = Directory::new();
    let format = directory.write("format.p4", format(["x", "y", "z"]));
    let rules = directory.write("rules.sub", workload::ranges(1, 10_000, 10).text);
    let compile = |before: &str, more: &str| {
        let line = format!("{before} exec \"$0\" subscribe compile {format} {rules} -o /dev/null {more}");
        let mut command = triplane(&[]);
        let program = command.get_program().to_owned();
        command = std::process::Command::new("sh");
        run(command.args(["-c", &line]).arg(program))
    };
    // A limit on the address space, a limit that the user sets, and both.
    for (before, more, why) in [
        ("ulimit -v 700000;", "", "MB of address space that `ulimit -v` leaves; --memory sets another one)"),
        ("", "--memory 100M", "more than 100 MB: "),
        ("ulimit -v 900000;", "--memory 100M", "(the limit of --memory)"),
    ] {
        let done = compile(before, more);
        assert!(done.code == Some(1), "{before} {more}: {done:?}");
        for part in ["error[rules-too-large]", why] {
            assert!(done.stderr.contains(part), "{before} {more}, `{part}`: {done:?}");
        }
    }
    let done = compile("", "--memory much");
    assert!(done.code == Some(2) && done.stderr.contains("512M"), "{done:?}");
}
