//! Entry changes during a simulation, and changes that are refused before it starts.

use crate::support::{Directory, Done, run, triplane};
use serde_json::Value;

const LAB: &str = r#"
[hosts.h1]
ip = "10.0.0.1/24"
[hosts.h2]
ip = "10.0.0.2/24"
[switches.s1]
program = "port.p4"
entries = "to-h2.json"
[[links]]
ends = ["h1", "s1:1"]
[[links]]
ends = ["h2", "s1:2"]
"#;

/// A program that sends each packet to the port that the entry of its ingress port gives.
const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
struct headers {}
struct metadata {}
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    state start { transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {} }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    action drop() { mark_to_drop(standard); }
    action send(bit<9> port) { standard.egress_spec = port; }
    table ports {
        key = { standard.ingress_port: exact; }
        actions = { send; drop; }
        default_action = drop();
    }
    apply { ports.apply(); }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) { apply {} }
control C(inout headers hdr, inout metadata meta) { apply {} }
control D(packet_out packet, in headers hdr) { apply {} }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

const TRAFFIC: &str = r#"
duration = "3s"
[[traffic]]
kind = "udp"
from = "h1"
to = "h2"
rate = "800kbps"
size = 100
"#;

/// Entries that map each first port to the second, and back.
fn entries(ports: &[(u32, u32)]) -> String {
    let entry = |(from, to): &(u32, u32)| {
        format!(
            r#"{{ "table": "I.ports", "match": {{ "standard.ingress_port": {from} }},
                "action_name": "I.send", "action_params": {{ "port": {to} }} }}"#
        )
    };
    let all: Vec<String> = ports.iter().map(entry).collect();
    format!(r#"{{ "table_entries": [ {} ] }}"#, all.join(", "))
}

/// Simulates the lab, in a directory of its own, with a scenario that has these entry changes.
fn simulate(writes: &str) -> Done {
    let directory = Directory::new();
    let write = |name: &str, text: &str| std::fs::write(directory.path(name), text).expect("the file can be written");
    write("lab.toml", LAB);
    write("port.p4", PROGRAM);
    write("to-h2.json", &entries(&[(1, 2), (2, 1)]));
    write("out.json", &entries(&[(1, 2)]));
    write("scenario.toml", &format!("{TRAFFIC}{writes}"));
    let (lab, scenario) = (directory.path("lab.toml"), directory.path("scenario.toml"));
    run(&mut triplane(&["lab", "sim", &lab, "--scenario", &scenario, "--json"]))
}

fn received(results: &Value) -> u64 {
    results["traffic"][0]["received"].as_u64().expect("a number")
}

const AWAY: &str = "[[writes]]\nat = \"1s\"\nswitch = \"s1\"\ndelete = \"out.json\"\n";
const BACK: &str = "[[writes]]\nat = \"2s\"\nswitch = \"s1\"\nentries = \"out.json\"\n";

#[test]
fn entries_change_at_the_time_that_the_scenario_says() {
    // The traffic is one datagram per millisecond.
    let all = simulate("").ok().json();
    assert!((2_990..=3_000).contains(&received(&all)), "{}", received(&all));
    let first = simulate(AWAY).ok().json();
    assert!((990..=1_000).contains(&received(&first)), "{}", received(&first));
    let both = simulate(&format!("{AWAY}{BACK}")).ok().json();
    assert!((1_990..=2_000).contains(&received(&both)), "{}", received(&both));
    assert_eq!(both["run"], simulate(&format!("{AWAY}{BACK}")).ok().json()["run"]);
}

#[test]
fn impossible_writes_are_reported_before_anything_runs() {
    let twice = simulate(BACK);
    assert!(
        twice.code != Some(0)
            && twice.stderr.contains("`I.ports` rejected this entry")
            && twice.stderr.contains("1 error found")
    );
    let gone = simulate(&format!("{AWAY}{AWAY}"));
    assert!(gone.code != Some(0) && gone.stderr.contains("cannot delete an entry of `I.ports`"), "{}", gone.stderr);
    let wrong = simulate("[[writes]]\nswitch = \"h1\"\nentries = \"out.json\"\n");
    assert!(wrong.stderr.contains("`h1` is a host and has no entries"), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("a write needs a time and a switch: at = \"1s\""), "{}", wrong.stderr);
    let wrong = simulate("[[writes]]\nat = \"1s\"\nswitch = \"s1\"\nadd = \"h1\"\nentries = \"out.json\"\n");
    assert!(wrong.stderr.contains("`h1` is not a memory server at a link of this switch"), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("a write changes entries, or adds or removes one memory server"), "{}", wrong.stderr);
    let wrong = simulate("[[writes]]\nat = \"1s\"\nswitch = \"s1\"\nadd = \"s1\"\n");
    assert!(wrong.stderr.contains("`s1` is a switch, and not a memory server"), "{}", wrong.stderr);
    let wrong = simulate("[[writes]]\nat = \"1s\"\nswitch = \"s1\"\n");
    assert!(wrong.stderr.contains("add = \"m3\", remove = \"m1\""), "{}", wrong.stderr);
}

/// A switch that is down, or that lost its entries, does not have the state that the scenario assumes.
#[test]
fn writes_refused_during_the_run_are_reported() {
    let crash = "[[faults]]\nat = \"500ms\"\ncrash = \"s1\"\n[[faults]]\nat = \"1500ms\"\nrestart = \"s1\"\n";
    let results = simulate(&format!("{AWAY}{crash}{BACK}")).ok().json();
    let refused = results["refused_writes"].as_array().expect("a list");
    let why = |at: usize| refused[at]["why"].as_str().expect("a text").to_owned();
    assert_eq!(refused.len(), 2);
    assert_eq!((refused[0]["at_ns"].as_u64(), why(0).as_str()), (Some(1_000_000_000), "the switch is down"));
    assert!(why(1).contains("`I.ports` rejected this entry"), "{}", why(1));
}

#[test]
fn pipes_are_no_topologies_and_no_captures() {
    let done = run(&mut triplane(&["lab", "check", "/dev/zero"]));
    assert!(done.code != Some(0) && done.stderr.contains("/dev/zero is not a regular file"), "{}", done.stderr);
    // No process writes to this pipe: opening it for reading blocks forever.
    let directory = Directory::new();
    run(std::process::Command::new("mkfifo").arg(directory.path("pipe.pcap"))).ok();
    let lab = run(&mut triplane(&["lab", "new", "star", "--hosts", "2"])).ok().stdout;
    let lab = directory.write("lab.toml", lab);
    let replay = "[[traffic]]\nkind = \"replay\"\nfrom = \"h1\"\nfile = \"pipe.pcap\"\n";
    let scenario = directory.write("scenario.toml", replay);
    let done = run(&mut triplane(&["lab", "sim", &lab, "--scenario", &scenario]));
    assert!(done.code != Some(0) && done.stderr.contains("pipe.pcap is not a regular file"), "{}", done.stderr);
}
