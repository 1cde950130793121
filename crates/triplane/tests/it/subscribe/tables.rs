//! The table kinds of a target are the user's choice. Every choice delivers the same messages, entries are counted by
//! kind, and files that were generated with different choices do not match.

use itch_feed::{Mix, Spec, Workload};

use crate::subscribe::{FORMAT, feed, through_a_switch};
use crate::support::{Directory, run, triplane};

/// All choices of table kinds.
pub const TABLES: [&[&str]; 6] = [
    &["--ranges", "range"],
    &["--ranges", "range", "--exact-tables"],
    &["--ranges", "ternary"],
    &["--ranges", "ternary", "--exact-tables"],
    &["--ranges", "lpm"],
    &["--ranges", "lpm", "--exact-tables"],
];

#[test]
fn whatever_tables_take_subscribers_get_the_same() {
    let payloads = feed(Spec { share: 0.2, others: 9, mix: Mix::BOOK, ..Workload::Synthetic.spec(7) }, 100);
    let tried = [0, 1, 2, 5].map(|at| TABLES[at]);
    let got = tried.map(|tables| through_a_switch(&payloads, tables));
    assert!(got[0].values().all(|got| got.len() > 5), "everyone gets something");
    for (tables, other) in tried.iter().zip(&got) {
        assert!(*other == got[0], "{tables:?}");
    }
}

#[test]
fn entries_are_counted_by_table_and_kind_and_are_refused_by_programs_of_other_kinds() {
    let directory = Directory::new();
    let text: String = (0..500).map(|price| format!("price == {} : fwd(2)\n", 2 * price + 1)).collect();
    let rules = directory.write("rules.sub", text + "price > 100_000 : fwd(3)\n");
    let entries = directory.path("entries.json");
    let program = |at: usize| directory.path(&format!("program{at}.p4"));
    for (at, tables) in TABLES.iter().enumerate() {
        run(&mut triplane(&[&["subscribe", "program", FORMAT, "-o", &program(at)], *tables].concat())).ok();
    }
    for (at, tables) in TABLES.iter().enumerate() {
        let compile = ["subscribe", "compile", FORMAT, &rules, "-o", &entries, "--stats"];
        let said = run(&mut triplane(&[&compile[..], tables].concat())).ok().stderr;
        let is_exact = at % 2 == 1;
        let lines = |part: &str| -> Vec<Vec<String>> {
            let lines = said.lines().filter(|line| line.contains(part));
            lines.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
        };
        // The table of the prices: the last word is its number of entries.
        let count = |kind: &str| {
            lines(&format!("price_{kind}_")).first().map_or(0, |words| words[2].replace(',', "").parse().unwrap())
        };
        let wide = ["range", "ternary", "lpm"][at / 2];
        assert_eq!(count("exact"), if is_exact { 500 } else { 0 }, "{said}");
        let most_wide = if is_exact { 40 } else { 2000 };
        assert!((1..most_wide).contains(&count(wide)) && (is_exact || count(wide) >= 500), "{said}");
        // All choices are compared, and the current one is marked.
        assert_eq!(lines("--ranges").len(), TABLES.len(), "{said}");
        let marked = lines("* --ranges");
        assert!(marked.len() == 1 && marked[0][1..=tables.len()].iter().eq(*tables), "{marked:?}");
        for other in 0..TABLES.len() {
            let done = run(&mut triplane(&["check", &program(other), "--entries", &entries]));
            // A program may have exact tables that these entries do not use.
            if other == at || other / 2 == at / 2 && !is_exact {
                done.ok();
                continue;
            }
            for part in [
                "generated for different kinds of tables: the program has `Subscriptions.",
                "same `--ranges`",
                "1 error found",
            ] {
                assert!(done.code == Some(1) && done.stderr.contains(part), "{at} {other} `{part}`: {}", done.stderr);
            }
        }
    }
}
