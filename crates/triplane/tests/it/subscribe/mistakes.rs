//! Mistakes of people who begin: each is answered with what to write instead.

use super::FORMAT;
use crate::support::{Directory, Done, root, run, triplane};

/// Checks rules for a format, and returns what is printed about them.
#[track_caller]
fn refused(format: &str, rules: &str) -> String {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", rules);
    let done = run(&mut triplane(&["subscribe", "check", format, &rules]));
    assert_eq!(done.code, Some(1), "{done:?}");
    done.stderr
}

#[test]
fn what_rules_lack_is_named() {
    for (rules, help) in [
        ("hdr.trade.price > 5 : fwd(1)", "did you mean `trade.price`?"),
        ("length == 5 : fwd(1)", "the format has this field without an annotation: write `@query_field(\"length\")`"),
        ("price > 5 : hits += 1", "there is no counter `hits`"),
        ("price > 5 : hits += 1", "write `@query_counter(hits)` before the headers struct"),
        ("avg(price) > 5 : fwd(1)", "or `@query_aggregate(\"any\")` for any aggregate"),
        ("price > 5 : fwd(1) fwd(2)", "separate actions with `;`"),
        ("mean(price) > 5 : fwd(1)", "did you mean `avg`?"),
        ("count > 5 : fwd(1)", "write `count()`"),
        ("avg > 5 : fwd(1)", "write `avg(FIELD)`"),
    ] {
        let printed = refused(FORMAT, rules);
        assert!(printed.contains(help), "{rules}\n{printed}");
    }
}

#[test]
fn files_in_the_place_of_others_are_named() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "price > 5 : fwd(1)\n");
    let swapped = run(&mut triplane(&["subscribe", "check", &rules, FORMAT]));
    assert!(
        swapped.code == Some(1) && swapped.stderr.contains("write the format first, then the rules"),
        "{swapped:?}"
    );
    let program = run(&mut triplane(&["subscribe", "diff", FORMAT, &rules, "examples/market-data/switch.p4"]));
    assert!(program.code == Some(2) && program.stderr.contains("switch.p4 is P4, not rules"), "{program:?}");
    let whole = run(&mut triplane(&["subscribe", "check", "examples/router/router.p4", &rules]));
    assert!(whole.stderr.contains("this is a whole program, not a format"), "{whole:?}");
    let generated = run(&mut triplane(&["subscribe", "check", "examples/market-data/switch.p4", &rules]));
    assert!(generated.stderr.contains("give the format from which it was generated"), "{generated:?}");
    let format = run(&mut triplane(&["check", FORMAT])).ok();
    assert!(format.stdout.contains("triplane subscribe compile"), "{format:?}");
    let text = std::fs::read_to_string(root().join(FORMAT)).unwrap();
    let [before, after] = ["@query_messages[", "message_t[12] messages;"].map(|part| text.find(part).unwrap());
    let unmarked = directory.write("stack.p4", [&text[..before], &text[after..]].concat());
    let unmarked = run(&mut triplane(&["subscribe", "check", &unmarked, &rules]));
    assert!(unmarked.stderr.contains("rules do not test `messages`, a stack"), "{unmarked:?}");
    let by_name = run(&mut triplane(&["subscribe", "remove", "dear"]));
    assert!(by_name.stderr.contains("`triplane subscribe list` shows those of all rules"), "{by_name:?}");
    // A field may have the name of a keyword.
    let text = std::fs::read_to_string(root().join("examples/market-data/orders.p4")).unwrap();
    let text = text.replacen("@query_field(\"shares\")", "@query_field(\"control\")", 3);
    let format = directory.write("control.p4", text);
    let rules = directory.write("control.sub", "control in {1, 2} : fwd(1)\ncontrol == 3 : fwd(2)\n");
    let checked = run(&mut triplane(&["subscribe", "check", &format, &rules]));
    assert!(checked.code == Some(0), "{checked:?}");
    let empty = directory.write("empty.sub", "# nothing\n");
    let empty = run(&mut triplane(&["subscribe", "check", FORMAT, &empty])).ok();
    assert!(empty.stderr.contains("there are no rules in"), "{empty:?}");
}

#[test]
fn entries_for_bitmaps_of_another_width_are_refused_with_the_options() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"A\" : fwd(2)\nprice > 5 : fwd(3); to_controller\n");
    let [entries, groups, program] = ["entries.json", "groups.json", "program.p4"].map(|name| directory.path(name));
    run(&mut triplane(&["subscribe", "compile", FORMAT, &rules, "-o", &entries])).ok();
    run(&mut triplane(&["subscribe", "compile", FORMAT, &rules, "-o", &groups, "--groups"])).ok();
    run(&mut triplane(&["subscribe", "program", FORMAT, &rules, "-o", &program, "--bitmaps", "100"])).ok();
    let loaded = |entries: &str| -> Done { run(&mut triplane(&["check", &program, "--entries", entries])) };
    for (entries, which) in [(&entries, "bitmaps of 64 ports"), (&groups, "multicast groups")] {
        let printed = loaded(entries);
        let message = format!("the entries deliver by {which}, and the program by bitmaps of 128 ports");
        assert!(printed.code == Some(1) && printed.stderr.contains(&message), "{printed:?}");
        assert_eq!(printed.stderr.matches("error[").count(), 1, "{printed:?}");
    }
}

#[test]
fn a_message_that_diff_shows_can_be_explained() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "valid(executed) : fwd(2)\n");
    let message = "kind=E, order=3, shares=1, executed, locate=1";
    let done = run(&mut triplane(&["subscribe", "explain", FORMAT, &rules, "--message", message])).ok();
    assert!(done.stdout.starts_with("fwd(2)"), "{done:?}");
    let state = run(&mut triplane(&["subscribe", "explain", FORMAT, &rules, "--message", "kind=E, avg(price)=3"]));
    assert!(state.stderr.contains("write `--state 'avg(price)=3'`"), "{state:?}");
}

/// A set with the smallest and the largest value was once written as all the values between them.
#[test]
fn a_set_of_both_ends_is_explained_as_a_set() {
    let directory = Directory::new();
    for (rule, shown) in [
        ("order in {0, 0xffffffffffffffff}", "order in {0, 18446744073709551615}"),
        ("locate not in {0, 0xffff}", "locate not in {0, 65535}"),
        ("locate in {0, 1, 2, 0xffff}", "locate in {0, 1, 2, 65535}"),
    ] {
        let rules = directory.write("rules.sub", format!("{rule} : fwd(2)\n"));
        let message = "kind=D,order=7,locate=0";
        let done = run(&mut triplane(&["subscribe", "explain", FORMAT, &rules, "--message", message])).ok();
        assert!(done.stdout.contains(shown) && done.stdout.len() < 1_000, "{done:?}");
    }
}

/// The first block of the guide's first section works as it is, without root.
#[test]
fn the_first_commands_of_the_guide_can_be_pasted() {
    let guide = std::fs::read_to_string(root().join("docs/subscriptions.md")).unwrap();
    let section = guide.split_once("## From nothing to filtered messages").expect("the guide has this section").1;
    let block = section.split("```").nth(1).expect("it has a block");
    assert!(block.lines().count() <= 12, "ten commands, not more:\n{block}");
    let directory = Directory::new();
    std::os::unix::fs::symlink(root().join("examples"), directory.path("examples")).unwrap();
    let mut shell = std::process::Command::new("bash");
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_triplane"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let done = run(shell.args(["-ec", block]).current_dir(directory.path("")).env("PATH", path)).ok();
    assert!(done.stdout.contains("matched      1,139 messages"), "{done:?}");
    assert!(section.contains("port 2 receives the 1,139 that name GOOGL"));
}
