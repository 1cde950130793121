//! `triplane stf`: verdicts, exit codes, traces and JSON.

use crate::support::{Directory, Done, run, triplane};

const PROGRAM: &str = "testdata/stf/drop.p4";
const TEST: &str = "testdata/stf/drop.stf";

fn command(arguments: &[&str]) -> Done {
    run(&mut triplane(arguments))
}

#[test]
fn a_passing_test_says_so_and_nothing_else() {
    let done = command(&["stf", PROGRAM, TEST]).ok();
    assert_eq!(done.stdout, format!("PASS {TEST}\n"));
}

#[test]
fn a_failing_test_shows_the_difference_and_exits_with_1() {
    let directory = Directory::new();
    let bad = directory.write("bad.stf", "packet 0 00 aa\nexpect 1 00 ab\npacket 0 04 aa\nexpect 1 04 aa\n");
    let done = command(&["stf", PROGRAM, TEST, &bad]);
    assert_eq!(done.code, Some(1), "{done:?}");
    for part in [
        &format!("PASS {TEST}\n"),
        &format!("FAIL {bad}\n"),
        "expected  00 ab\n",
        "got       00 aa\n",
        "                      ^\n",
        "was dropped in egress by the program at testdata/stf/drop.p4:",
    ] {
        assert!(done.stdout.contains(part), "{part:?} is missing in {done:?}");
    }
    assert!(done.stderr.contains("1 of 2 packet tests failed"), "{done:?}");
}

#[test]
fn a_trace_has_every_packet() {
    let done = command(&["stf", PROGRAM, TEST, "--trace"]).ok();
    for number in 1..=6 {
        assert!(done.stdout.contains(&format!("packet {number}, {TEST}:")), "{done:?}");
    }
    assert!(done.stdout.contains("parser MyParser") && done.stdout.contains("dropped in ingress"), "{done:?}");
    assert!(done.stdout.ends_with(&format!("PASS {TEST}\n")), "{done:?}");
}

#[test]
fn a_file_without_commands_passes_with_a_warning() {
    let directory = Directory::new();
    let empty = directory.write("empty.stf", "# nothing\n\n");
    let done = command(&["stf", PROGRAM, &empty]).ok();
    assert_eq!(done.stdout, format!("PASS {empty}\n"));
    assert!(done.stderr.contains("warning[no-tests]: the file has no commands, so it tests nothing"), "{done:?}");
    assert!(command(&["stf", PROGRAM, TEST]).ok().stderr.is_empty());
}

#[test]
fn json_is_one_object_a_test() {
    let json = command(&["stf", PROGRAM, TEST, "--json"]).ok().json();
    assert_eq!(json["passed"], true);
    assert_eq!(json["test"], TEST);
    assert_eq!(json["packets"][0]["left"][0]["port"], 1);
    assert_eq!(json["packets"].as_array().map(Vec::len), Some(6));
}

#[test]
fn a_script_that_cannot_be_read_shows_where() {
    let directory = Directory::new();
    let bad = directory.write("bad.stf", "packet 0 00\nexpekt 1 00\n");
    let done = command(&["stf", PROGRAM, &bad]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("bad.stf:2:1") && done.stderr.contains("did you mean `expect`?"), "{done:?}");
    assert_eq!(done.stdout, format!("FAIL {bad}\n"));
    let done = command(&["stf", PROGRAM, "no/such.stf"]);
    assert_eq!(done.code, Some(3), "{done:?}");
}
