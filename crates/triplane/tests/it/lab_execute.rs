//! Hosts of simulated labs that execute tiny packet programs reliably.

use crate::support::{Directory, Done, run, triplane};

/// Three switches in a row, with a host at each; the links lose a share of the frames.
const LAB: &str = r#"
[defaults]
program = "builtin:router"
entries = "shortest-paths"
tpp = "write"
link = { rate = "1Gbps", delay = "50us", loss = LOSS }

[hosts.h1]
ip = "10.0.0.1/24"
mac = "02:00:00:00:00:01"
[hosts.h2]
ip = "10.0.0.2/24"
mac = "02:00:00:00:00:02"
[hosts.h3]
ip = "10.0.0.3/24"
mac = "02:00:00:00:00:03"

[switches.s1]
[switches.s2]
[switches.s3]

[[links]]
ends = ["h1", "s1:1"]
[[links]]
ends = ["h2", "s2:1"]
[[links]]
ends = ["h3", "s3:1"]
[[links]]
ends = ["s1:2", "s2:2"]
[[links]]
ends = ["s2:3", "s3:2"]
"#;

/// Simulates this traffic of `h1`, with these losses and this program.
fn simulate(loss: &str, traffic: &str, program: &str) -> Done {
    let directory = Directory::new();
    let lab = directory.write("lab.toml", LAB.replace("LOSS", loss));
    directory.write("p.tpp", program);
    let scenario = format!("duration = \"60s\"\n[[traffic]]\nname = \"t\"\nfrom = \"h1\"\n{traffic}");
    let scenario = directory.write("scenario.toml", scenario);
    run(&mut triplane(&["lab", "sim", &lab, "--scenario", &scenario, "--json"]))
}

/// Eight words of each switch: two packets.
const LARGE: &str = "\
PUSH [Switch:ID]
PUSH [PacketMetadata:InputPort]
PUSH [PacketMetadata:OutputPort]
PUSH [Switch:ID]
PUSH [Link:ID]
PUSH [PacketMetadata:InputPort]
PUSH [PacketMetadata:OutputPort]
PUSH [Switch:ID]
";

#[test]
fn programs_of_several_packets_are_executed_although_frames_are_lost() {
    let traffic = "kind = \"execute\"\nto = [\"h2\", \"h3\"]\nfile = \"p.tpp\"\ncount = 50\ntries = 16\n\
                   deadline = \"30s\"\ninterval = \"10ms\"\n";
    let results = simulate("0.1", traffic, LARGE).ok().json();
    let flow = &results["traffic"][0];
    assert_eq!((&flow["sent"], &flow["received"]), (&100.into(), &100.into()), "{flow:#}");
    let minion = &flow["minion"];
    assert_eq!(minion["arrived"], 100);
    // Two packets each, and retries.
    let sent = minion["inserted"].as_u64().expect("a number");
    assert!((250..2_000).contains(&sent), "{sent} packets");
    for packet in minion["packets"].as_array().expect("a list") {
        let switches: &[u64] = if packet["to"] == "h2" { &[1, 2] } else { &[1, 2, 3] };
        let hops = packet["hops"].as_array().expect("a list");
        assert_eq!(hops.len(), switches.len(), "{packet}");
        for (hop, switch) in hops.iter().zip(switches) {
            let words: Vec<u64> = (0..8).filter_map(|word| hop[word].as_u64()).collect();
            assert_eq!((words.len(), words[0], words[3], words[7]), (8, *switch, *switch, *switch), "{packet}");
            // The words of both packets are of the same ports.
            assert_eq!(words[1..3], words[5..7], "{packet}");
        }
    }
}

#[test]
fn a_program_for_some_switches_is_executed_by_each_of_them() {
    let traffic = "kind = \"execute\"\nto = \"h3\"\nfile = \"p.tpp\"\ncount = 1\nswitches = [\"s3\", \"s1\"]\n";
    let results = simulate("0", traffic, "PUSH [Switch:ID]\n").ok().json();
    let flow = &results["traffic"][0];
    assert_eq!((&flow["sent"], &flow["received"]), (&2.into(), &2.into()), "{flow:#}");
    let mut of: Vec<u64> =
        (0..2).filter_map(|packet| flow["minion"]["packets"][packet]["hops"][0][0].as_u64()).collect();
    of.sort_unstable();
    assert_eq!(of, [1, 3]);
}

#[test]
fn requests_without_an_echo_end_with_their_tries_or_their_deadline() {
    let few = "kind = \"execute\"\nto = \"h2\"\nfile = \"p.tpp\"\ncount = 3\ntries = 2\n";
    let flow = &simulate("1", few, "PUSH [Switch:ID]\n").json()["traffic"][0];
    assert_eq!((&flow["sent"], &flow["received"]), (&3.into(), &0.into()), "{flow:#}");
    let executions = &flow["minion"]["requests"];
    assert_eq!((&executions["unanswered"], &executions["too_late"]), (&3.into(), &0.into()), "{flow:#}");
    let late =
        "kind = \"execute\"\nto = \"h2\"\nfile = \"p.tpp\"\ncount = 3\ndeadline = \"30ms\"\ntimeout = \"20ms\"\n";
    let flow = &simulate("1", late, "PUSH [Switch:ID]\n").json()["traffic"][0];
    assert_eq!(
        (&flow["minion"]["requests"]["unanswered"], &flow["minion"]["requests"]["too_late"]),
        (&0.into(), &3.into()),
        "{flow:#}"
    );
}

#[test]
fn what_cannot_be_executed_is_refused_with_its_reason() {
    let refused = |traffic: &str, program: &str, parts: &[&str]| {
        let done = simulate("0", &format!("kind = \"execute\"\nto = \"h2\"\nfile = \"p.tpp\"\n{traffic}"), program);
        assert_eq!(done.code, Some(1), "{done:?}");
        for part in parts {
            assert!(done.stderr.contains(part), "{part}: {done:?}");
        }
    };
    let store = ".memory 5\nSTORE [Link:AppSpecific_1], [Packet:0]\n";
    refused("", store, &["error[execute]", "scenario.toml:2:1", "a retry would execute this `STORE` again"]);
    refused("", "PUSH [Nowhere:Word]\n", &["p.tpp:1:6", "p.tpp"]);
    refused("switches = \"h2\"\n", "PUSH [Switch:ID]\n", &["`h2` is a host, which executes no programs"]);
    refused("switches = [\"s1\", \"s1\"]\n", "PUSH [Switch:ID]\n", &["`s1` is listed twice"]);
    refused("tries = 17\n", "PUSH [Switch:ID]\n", &["tries", "16"]);
    refused("rate = \"1Mbps\"\n", "PUSH [Switch:ID]\n", &["traffic of kind `execute` has no `rate`"]);
}
