//! `triplane check --kernel`: which packets of a program the kernel can process.

use crate::support::{Done, root, run, triplane};

fn check(arguments: &[&str]) -> Done {
    run(&mut triplane(&[&["check", "--kernel"], arguments].concat()))
}

#[test]
fn the_router_and_the_firewall_run_in_the_kernel() {
    for program in ["examples/router/router.p4", "examples/firewall/firewall.p4"] {
        let done = check(&[program]).ok();
        assert!(done.stdout.contains("packets can be forwarded and dropped in the kernel"), "{}", done.stdout);
        assert!(!done.stdout.contains("to the switch"), "{}", done.stdout);
    }
}

#[test]
fn packets_with_several_copies_are_for_the_switch() {
    let done = check(&["examples/common/edge.p4"]).ok();
    testing::golden::assert_golden(root().join("crates/triplane/tests/golden/check_kernel.txt"), &done.stdout);
}

#[test]
fn places_that_need_the_switch_are_listed_with_their_lines() {
    let found = check(&["--json", "testdata/stf/clone_ingress.p4"]).ok().json();
    let kernel = &found["kernel"];
    assert_eq!((&kernel["forwards"], &kernel["drops"]), (&true.into(), &true.into()));
    let reasons = kernel["to_switch"].as_array().expect("a list");
    let request = reasons.iter().find(|one| one["reason"] == "request").expect("clones are for the switch");
    let places = request["places"].as_array().expect("places");
    assert_eq!(places.len(), 2);
    let text = std::fs::read_to_string(root().join("testdata/stf/clone_ingress.p4")).expect("the program");
    for place in places {
        let (file, at) = place.as_str().and_then(|place| place.split_once(".p4:")).expect("a place");
        let line: usize = at.split(':').next().and_then(|line| line.parse().ok()).expect("a line");
        let line = text.lines().nth(line - 1).expect("the line is in the program");
        assert!(file.ends_with("clone_ingress") && line.contains("clone"), "{line}");
    }
}

#[test]
fn state_outside_the_switch_does_not_run_in_the_kernel() {
    let done = check(&["examples/elastic-balancer/balancer.p4"]).ok();
    let expected = "kernel: the program cannot run in the kernel: its `@resilient` or `@elastic` state lies outside";
    assert!(done.stdout.contains(expected), "{}", done.stdout);
}

#[test]
fn the_report_is_only_made_on_request() {
    let found = run(&mut triplane(&["check", "--json", "examples/router/router.p4"])).ok().json();
    assert!(found.get("kernel").is_none());
    assert!(!run(&mut triplane(&["check", "examples/router/router.p4"])).ok().stdout.contains("kernel"));
}
