//! Tables and their entries, and who may change them.

use std::process::Stdio;

use crate::ctl::{ROUTER, Router};
use crate::support::plain::plain;
use crate::support::{Running, run, triplane};
use testing::port::reserved_address;

const ROUTE: &str = "dst=10.0.0.0/8 -> forward(mac=02:00:00:00:00:01, port=2)";
const SHOWN: &str = "hdr.ipv4.dst=10.0.0.0/8 -> RouterIngress.forward(mac=02:00:00:00:00:01, port=2)";

#[test]
fn entries_come_change_and_go() {
    let router = Router::start(ROUTER);
    let tables = router.ctl(&["tables"]).ok().stdout;
    assert!(
        tables.contains("RouterIngress.ipv4_lpm  0 of 1024 entries\n  key     hdr.ipv4.dst: lpm, 32 bits wide\n"),
        "{tables}"
    );
    assert!(tables.contains("  action  RouterIngress.forward(mac, port)\n"), "{tables}");

    let done = router.ctl(&["insert", "ipv4_lpm", ROUTE]).ok();
    assert_eq!(done.stdout, format!("inserted: RouterIngress.ipv4_lpm {SHOWN}\n"));
    let entries = router.ctl(&["entries", "ipv4_lpm"]).ok().stdout;
    assert_eq!(entries, format!("RouterIngress.ipv4_lpm\n  {SHOWN}\n  default -> RouterIngress.no_route()\n"));
    let json = router.ctl(&["entries", "--json", "ipv4_lpm"]).ok().json();
    assert_eq!(json[0]["match"]["hdr.ipv4.dst"], "10.0.0.0/8");
    assert_eq!(json[0]["parameters"]["port"], "2");
    assert_eq!(json[1]["default"], true);

    // An entry is accepted in the form in which it is printed.
    router.ctl(&["modify", "ipv4_lpm", &SHOWN.replace("port=2", "port=1")]).ok();
    assert!(router.ctl(&["entries"]).ok().stdout.contains("port=1)\n"));
    router.ctl(&["modify", "RouterIngress.gateway", "default", "->", "arp_reply(2)"]).ok();
    assert!(router.ctl(&["entries", "gateway"]).ok().stdout.contains("default -> RouterIngress.arp_reply(mac=00:"));
    router.ctl(&["delete", "ipv4_lpm", "dst=10.0.0.0/8"]).ok();
    assert!(!router.ctl(&["entries"]).ok().stdout.contains("10.0.0.0/8"));
    // Its key alone selects the entry to delete: the action is ignored.
    router.ctl(&["insert", "ipv4_lpm", ROUTE]).ok();
    router.ctl(&["delete", "ipv4_lpm", &SHOWN.replace("port=2", "port=3")]).ok();
    assert!(!router.ctl(&["entries"]).ok().stdout.contains("10.0.0.0/8"));
}

#[test]
fn options_may_stand_behind_an_entry() {
    let router = Router::start(ROUTER);
    let address = router.address().to_string();
    let ctl = |words: &[&str]| run(&mut triplane(words));
    let route: Vec<&str> = ROUTE.split(' ').collect();
    let insert = [&["ctl", "insert", "ipv4_lpm"], &route[..], &["--addr", &address, "--json"]].concat();
    assert_eq!(ctl(&insert).ok().json()["done"], "inserted");
    ctl(&["ctl", "delete", "ipv4_lpm", "dst=10.0.0.0/8", &format!("--addr={address}")]).ok();
    let done = ctl(&["ctl", "insert", "ipv4_lpm", ROUTE, "--adr", &address]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains("'--addr'"), "{done:?}");
    let help = ctl(&["ctl", "insert", "ipv4_lpm", ROUTE, "--help"]).ok().stdout;
    assert!(help.contains("Usage: triplane ctl insert"), "{help}");
}

#[test]
fn a_server_that_begins_to_answer_late_is_written_to() {
    let router = Router::start(ROUTER);
    let address = plain(router.address()).to_string();
    let ctl = |words: &[&str]| run(&mut triplane(&[&["ctl", "--addr", &address], words].concat())).ok();
    ctl(&["insert", "ipv4_lpm", ROUTE]);
    ctl(&["--election-id", "7", "delete", "ipv4_lpm", "dst=10.0.0.0/8"]);
    assert!(!router.says(&["entries"]).contains("10.0.0.0/8"));
}

#[test]
fn wrong_entries_are_refused_with_a_diagnostic() {
    let router = Router::start(ROUTER);
    router.ctl(&["insert", "ipv4_lpm", ROUTE]).ok();
    // The command itself refuses these before it sends anything, and reports all mistakes at once with their places.
    router.refused(
        &["insert", "ipv4_lmp", ROUTE],
        &["there is no table, action profile or session kind `ipv4_lmp`", "`RouterIngress.ipv4_lpm`?"],
    );
    router.refused(
        &["insert", "ipv4_lpm", "dts=10.0.0.0/8 -> forward(mac=1, prot=2)"],
        &["no key field `dts`", "did you mean `hdr.ipv4.dst`", "no parameter `prot`", "nothing was written"],
    );
    // The server refuses these, for this one update.
    router.refused(&["insert", "ipv4_lpm", ROUTE], &["ALREADY_EXISTS", "the entry already exists; use MODIFY"]);
    router.refused(&["delete", "ipv4_lpm", "dst=11.0.0.0/8"], &["NOT_FOUND", "the entry does not exist"]);
    router.refused(&["insert", "ipv4_lpm", "dst=10.0.0.1/8 -> no_route()"], &["INVALID_ARGUMENT"]);
    router.refused(&["registers", "x"], &["there is no register `x`"]);
    let address = reserved_address().to_string();
    let nobody = run(&mut triplane(&["ctl", "--addr", &address, "tables"]));
    assert_eq!(nobody.code, Some(3), "{nobody:?}");
    assert!(nobody.stderr.contains(&format!("no P4Runtime server is listening on {address}")), "{nobody:?}");
    let portless = run(&mut triplane(&["ctl", "--addr", "switch.example", "tables"]));
    assert_eq!(portless.code, Some(2), "{portless:?}");
    assert!(
        portless.stderr.contains("--addr switch.example is not a valid address: expected ADDRESS:PORT"),
        "{portless:?}"
    );
}

#[test]
fn another_primary_is_respected_until_an_election_id_says_otherwise() {
    let router = Router::start(ROUTER);
    let address = router.address().to_string();
    let mut watch = Running::start(&mut triplane(&["ctl", "--addr", &address, "--election-id", "7", "watch"]));
    watch.wait_for("watching as the primary, with election id 7");
    router.refused(
        &["insert", "ipv4_lpm", ROUTE],
        &["another controller is primary, with election id 7; use --election-id 8"],
    );
    router.ctl(&["--election-id", "8", "insert", "ipv4_lpm", ROUTE]).ok();
    watch.wait_for("another controller is primary (election id 8)");
    watch.signal("INT");
    watch.wait().ok();
    // An earlier election id locks nobody out: the highest one so far is enough.
    router.ctl(&["delete", "ipv4_lpm", "dst=10.0.0.0/8"]).ok();
    router.ctl(&["--election-id", "8", "insert", "ipv4_lpm", ROUTE]).ok();
}

#[test]
fn counters_and_sessions_are_listed() {
    let router = Router::start(ROUTER);
    let counters = router.ctl(&["counters"]).ok();
    assert!(counters.stderr.contains("all counters are 0"), "{counters:?}");
    let json = router.ctl(&["counters", "--json", "routed"]).ok().json();
    assert_eq!(json.as_array().map(Vec::len), Some(512));
    assert_eq!(json[511]["of"], "511");
    assert!(router.ctl(&["sessions"]).ok().stderr.contains("no clone sessions"));
}

#[test]
fn several_that_write_at_once_take_turns() {
    const WRITERS: usize = 8;
    let router = Router::start(ROUTER);
    let address = router.address().to_string();
    let write = |number: usize| {
        let line = format!("hdr.ipv4.dst=10.0.{number}.0/24 -> no_route()");
        let words = ["ctl", "--addr", &address, "insert", "ipv4_lpm", &line];
        triplane(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
    };
    let all: Vec<_> = (0..WRITERS).map(|number| write(number).expect("it starts")).collect();
    for one in all {
        let done = one.wait_with_output().expect("it ends");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let entries = router.says(&["entries", "ipv4_lpm"]);
    assert_eq!(entries.matches("hdr.ipv4.dst=10.0.").count(), WRITERS, "{entries}");
}
