//! Objects other than tables: action profiles, sessions, counters, meters, registers and value sets.

use crate::ctl::{EVERY, Router};
use crate::support::hex;

/// A packet of the program, with the fields a, b, c, d and e.
const PACKET: &str = "0001 0002 00000003 04 05";

#[test]
fn members_and_groups_come_change_and_go() {
    let router = Router::start(EVERY);
    let done = router.says(&["insert", "selector", "member 1 -> forward(port=2)"]);
    assert_eq!(done, "inserted: I.selector member 1 -> I.forward(port=2)\n");
    router.says(&["insert", "selector", "member 2 -> drop()"]);
    let done = router.says(&["insert", "selector", "group 7 -> 1 weight 3, 2 watch 4, max_size=8"]);
    assert_eq!(done, "inserted: I.selector group 7 -> 1 weight 3, 2 watch 4, max_size=8\n");
    router.says(&["modify", "selector", "member", "1", "->", "forward(3)"]);
    let listed = router.says(&["profiles"]);
    assert!(
        listed.contains(
            "I.selector\n  member 1 -> I.forward(port=3)\n  member 2 -> I.drop()\n  \
             group 7 -> 1 weight 3, 2 watch 4, max_size=8\n"
        ),
        "{listed}"
    );
    assert!(listed.contains("I.profile\n"), "{listed}");
    let json = router.ctl(&["profiles", "--json", "selector"]).ok().json();
    assert_eq!(json[2]["members"][0]["weight"], 3, "{json:#}");

    // Entries refer to the group.
    router.says(&["insert", "group_t", "a=1 -> group(7)"]);
    let entries = router.says(&["entries", "group_t"]);
    assert!(entries.contains("hdr.data.a=1 -> group(7)\n"), "{entries}");
    router.refused(&["delete", "selector", "group 7"], &["FAILED_PRECONDITION"]);
    router.says(&["delete", "group_t", "a=1"]);
    assert_eq!(router.says(&["delete", "selector", "group 7"]), "deleted: I.selector group 7\n");
    router.refused(&["insert", "profile", "group 1 -> 1"], &["`I.profile` has no selector and therefore no groups"]);
    router.refused(&["insert", "selector", "member 3"], &["the member has no action"]);
    router.refused(&["insert", "selector", "member 3 -> learn()"], &["no action `learn` in `I.group_t`"]);
    router.refused(
        &["insert", "selector", "thing 3"],
        &["expected `member` or `group` here", "not a valid member or group of `I.selector`"],
    );
    router.refused(&["insert", "selector", "group 3 -> 1 weight x"], &["`x` is not a valid number"]);
    router.refused(&["insert", "exact_t", "a=1 -> drop() | forward(1)"], &["has no action selector"]);
}

#[test]
fn entries_choose_among_actions_of_their_own() {
    let router = Router::start(EVERY);
    router.says(&["insert", "group_t", "a=2 -> forward(1) weight 2 | drop() watch 3"]);
    router.refused(&["insert", "member_t", "a=2 -> forward(1)"], &["take members of its action profile", "member(ID)"]);
    let entries = router.says(&["entries"]);
    let several = "hdr.data.a=2 -> I.forward(port=1) weight 2 | I.drop() weight 1 watch 3";
    assert!(entries.contains(several), "{entries}");
    router.says(&["modify", "group_t", several]);
    assert!(router.says(&["entries", "group_t"]).contains(several));
    router.refused(&["insert", "group_t", "a=3 -> drop() weight much"], &["`weight` takes a number"]);
    router.refused(&["insert", "group_t", "a=3 -> drop() |"], &["expected an action here"]);
    router.refused(&["insert", "exact_t", "a=1 -> drop() | forward(1)"], &["has no action selector"]);
}

#[test]
fn sessions_and_groups_of_ports_are_written_as_they_are_printed() {
    let router = Router::start(EVERY);
    for line in ["multicast 1 -> 1, 2 instance 7, 3 backup 4", "clone 5 -> 3, class=1, truncate=128"] {
        let (what, rest) = line.split_once(' ').unwrap();
        assert_eq!(router.says(&["insert", what, rest]), format!("inserted: {line}\n"));
    }
    assert_eq!(
        router.says(&["sessions"]),
        "clone 5 -> 3, class=1, truncate=128\nmulticast 1 -> 1, 2 instance 7, 3 backup 4\n"
    );
    router.says(&["modify", "multicast", "1 -> 2, 4"]);
    assert!(router.says(&["sessions"]).contains("multicast 1 -> 2, 4\n"));
    let json = router.ctl(&["sessions", "--json"]).ok().json();
    assert_eq!(json[1]["replicas"][1]["port"], "4", "{json:#}");
    router.refused(&["insert", "multicast", "1 -> 1"], &["ALREADY_EXISTS"]);
    router.refused(&["insert", "multicast", "2 -> 77"], &["INVALID_ARGUMENT", "77"]);
    router.refused(&["insert", "multicast", "2 -> x"], &["`x` is not a valid port", "not a valid multicast group"]);
    router.refused(&["insert", "multicast", "2 -> 1, class=3"], &["a multicast group has no `class`"]);
    router.refused(&["insert", "clone", "2"], &["the session has no port"]);
    assert_eq!(router.says(&["delete", "clone", "5"]), "deleted: clone 5\n");
    router.says(&["delete", "multicast", "1"]);
    assert!(router.ctl(&["sessions"]).ok().stderr.contains("no clone sessions"));
}

#[test]
fn cells_are_set() {
    let router = Router::start(EVERY);
    assert_eq!(router.says(&["set", "remembered", "2", "0x1f"]), "modified: I.remembered[2]  31\n");
    assert_eq!(router.says(&["registers", "remembered"]), "I.remembered[2]  31\n");
    let all = router.ctl(&["registers"]).ok();
    assert_eq!(all.stdout, "I.remembered[2]  31\n");
    assert!(all.stderr.contains("I.signed: "), "{}", all.stderr);
    router.says(&["set", "remembered", "all", "7"]);
    assert_eq!(router.says(&["registers", "remembered"]).lines().count(), 4);
    // Signed values are read and printed with their sign; others are never negative.
    assert_eq!(router.says(&["set", "signed", "1", "-5"]), "modified: I.signed[1]  -5\n");
    assert_eq!(router.says(&["registers", "signed", "1"]), "I.signed[1]  -5\n");
    assert_eq!(router.says(&["set", "signed", "1", "2047"]), "modified: I.signed[1]  2047\n");
    router.refused(&["set", "signed", "1", "-2049"], &["the minimum is -2048"]);
    router.refused(&["set", "remembered", "1", "-1"], &["-1 is negative", "the same bits are 0xffff"]);
    router.refused(&["insert", "exact_t", "a=-1 -> drop()"], &["-1 is negative", "the same bits are 0xffff"]);
    router.refused(&["set", "remembered", "1", "2 | 3"], &["expected a value here"]);
    router.refused(&["set", "remembered", "9", "1"], &["OUT_OF_RANGE"]);
    router.refused(&["set", "remembered", "1", "65536"], &["65536", "not a valid value of `I.remembered`"]);
    router.refused(&["set", "remembered", "1", "2", "3"], &["a cell has one value"]);
    let usage = router.ctl(&["set", "remembered", "x", "1"]);
    assert_eq!(usage.code, Some(2), "{usage:?}");

    router.receive(1, hex(PACKET));
    router.says(&["set", "counted", "3", "packets=9", "bytes=900"]);
    let counters = router.says(&["counters", "counted"]);
    assert!(counters.contains("I.counted[3]           9 packets           900 bytes\n"), "{counters}");
    router.says(&["set", "I.counted", "all", "packets=0"]);
    assert!(router.ctl(&["counters", "I.counted"]).ok().stderr.contains("all counters are 0"));

    assert_eq!(
        router.says(&["set", "metered", "1", "cir=1000 cburst=100 pir=2000 pburst=200"]),
        "modified: I.metered[1]  cir=1000 cburst=100 pir=2000 pburst=200\n"
    );
    assert_eq!(router.says(&["meters"]), "I.metered[1]  cir=1000 cburst=100 pir=2000 pburst=200\n");
    router.says(&["set", "metered", "1", "none"]);
    assert!(router.ctl(&["meters"]).ok().stderr.contains("no meter has rates"));
    router.refused(&["set", "metered", "1", "speed=3"], &["unexpected `speed`", "write cir=N"]);
    router.refused(&["set", "nosuch", "1", "2"], &["there is no register, counter, meter or value set `nosuch`"]);
}

#[test]
fn counters_and_meters_of_entries_are_set() {
    let router = Router::start(EVERY);
    router.says(&["insert", "counted_t", "a=1 -> count_hit()"]);
    router.says(&["insert", "metered_t", "a=1 -> meter_hit()"]);
    assert_eq!(
        router.says(&["set", "counted_t", "a=1", "packets=5", "bytes=50"]),
        "modified: I.counted_t[hdr.data.a=1]  packets=5 bytes=50\n"
    );
    assert!(router.says(&["counters", "counted_t"]).contains("I.direct_counted[hdr.data.a=1]           5 packets"));
    router.says(&["set", "metered_t", "a=1, cir=1, cburst=2, pir=3, pburst=4"]);
    assert_eq!(
        router.says(&["meters", "metered_t"]),
        "I.direct_metered[hdr.data.a=1]  cir=1 cburst=2 pir=3 pburst=4\n"
    );
    router.says(&["set", "metered_t", "a=1 none"]);
    router.refused(&["set", "counted_t", "a=2 packets=1"], &["NOT_FOUND"]);
    router.refused(&["set", "counted_t", "a=1"], &["the values to set are missing", "write packets=0"]);
    router.refused(&["set", "exact_t", "a=1 packets=1"], &["there is no register, counter, meter or value set"]);
}

#[test]
fn value_sets_are_replaced() {
    let router = Router::start(EVERY);
    assert_eq!(router.says(&["value-sets"]), "P.specials  none\n");
    router.says(&["set", "specials", "1 | 0x20"]);
    assert_eq!(router.says(&["value-sets", "specials"]), "P.specials  1 | 32\n");
    router.refused(&["set", "specials", "1 | 2 | 3"], &["RESOURCE_EXHAUSTED"]);
    router.refused(&["set", "specials", "1, 2"], &["too many values"]);
    router.refused(&["set", "specials", "70000"], &["16 bits wide"]);
    assert_eq!(router.says(&["set", "specials", "none"]), "modified: P.specials  none\n");
    assert_eq!(router.says(&["value-sets"]), "P.specials  none\n");
}

#[test]
fn a_default_action_is_given_back() {
    let router = Router::start(EVERY);
    router.says(&["modify", "exact_t", "default -> drop()"]);
    assert!(router.says(&["entries", "exact_t"]).contains("default -> I.drop()"));
    let given_back = router.says(&["modify", "exact_t", "default"]);
    assert_eq!(given_back, "modified: I.exact_t default action, reset to the program's\n");
    assert!(router.says(&["tables"]).contains("I.keyless_t  no key; default action only\n"));
    assert!(router.says(&["entries", "exact_t"]).contains("default -> NoAction()"));
    router.refused(&["modify", "const_default_t", "default -> forward(1)"], &["const"]);
}
