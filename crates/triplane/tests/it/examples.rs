//! The labs of `examples/`: the expectations of their scenarios are met.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::support::network::Network;
use crate::support::{self, Directory, Done, TEST_TIMEOUT, run, triplane, unique};
use serde_json::Value;
use wire::{ethernet, ipv4, pcap};

/// Returns the path of a file of the example.
fn file(example: &str, name: &str) -> String {
    format!("examples/{example}/{name}")
}

/// Simulates a scenario of an example with additional arguments.
fn simulate(example: &str, scenario: &str, more: &[&str]) -> Done {
    let (lab, scenario) = (file(example, "lab.toml"), file(example, scenario));
    run(&mut triplane(&[&["lab", "sim", &lab, "--scenario", &scenario], more].concat()))
}

/// Simulates a scenario of an example, which must meet its expectations, and returns the results.
fn results(example: &str, scenario: &str) -> Value {
    simulate(example, scenario, &["--json"]).ok().json()
}

#[test]
fn stores_that_crash_in_turn_lose_no_request() {
    let (lab, scenario) = (file("key-value", "operated.toml"), file("key-value", "stores-fail.toml"));
    let simulate = |more: &[&str]| {
        run(&mut triplane(&[&["lab", "sim", &lab, "--scenario", &scenario, "--json"], more].concat())).ok().json()
    };
    let results = simulate(&[]);
    assert_eq!(traffic(&results, "adds")["received"], 2890, "{results:#}");
    assert_eq!(results, simulate(&[]), "an operator is as deterministic as anything else");
}

/// Simulates the scenario of an example with the interpreter and another seed; it must meet its expectations.
fn interpreted(example: &str) -> Value {
    simulate(example, "scenario.toml", &["--json", "--interpret", "--seed", "2"]).ok().json()
}

/// Returns the results of the traffic with this name.
fn traffic<'a>(results: &'a Value, name: &str) -> &'a Value {
    let all = results["traffic"].as_array().expect("a list");
    all.iter().find(|traffic| traffic["traffic"] == name).unwrap_or_else(|| panic!("{name} is not in {results:#}"))
}

/// Returns the values of a probe, in the order of their arrival.
fn values(traffic: &Value, name: &str) -> Vec<(f64, u64)> {
    let points = traffic["values"][name].as_array().expect("a list");
    points
        .iter()
        .map(|point| (point[0].as_f64().expect("a time"), point[1].as_f64().expect("a number") as u64))
        .collect()
}

/// Returns the results of the link whose sending end is `from`.
fn link<'a>(results: &'a Value, from: &str) -> &'a Value {
    let all = results["links"].as_array().expect("a list");
    all.iter().find(|link| link["from"] == from).unwrap_or_else(|| panic!("{from} is not in {results:#}"))
}

/// Checks that a changed example misses its expectations: without the changed lines its program does not do its work.
#[track_caller]
fn misses(example: &str, changes: &[(&str, &str, &str)], scenario: &str, expected: &[&str]) {
    let directory = Directory::new();
    let copy = |from: &str, to: String| {
        std::fs::create_dir_all(directory.path(&to)).expect("a directory can be made");
        for entry in std::fs::read_dir(support::root().join(from)).expect("the example is there") {
            let entry = entry.expect("it can be read");
            let name = entry.file_name().into_string().expect("names are ASCII");
            let mut text = std::fs::read_to_string(entry.path()).expect("it is text");
            for (_, before, after) in changes.iter().filter(|(file, ..)| *file == name) {
                assert!(text.contains(before), "`{before}` is not in {name}");
                text = text.replace(before, after);
            }
            std::fs::write(directory.path(&format!("{to}/{name}")), text).expect("it can be written");
        }
    };
    copy(&format!("examples/{example}"), example.to_owned());
    copy("examples/common", "common".to_owned());
    let path = |name: &str| directory.path(&format!("{example}/{name}"));
    let done = run(&mut triplane(&["lab", "sim", &path("lab.toml"), "--scenario", &path(scenario)]));
    assert_eq!(done.code, Some(1), "{done:?}");
    for expected in expected {
        assert!(done.stderr.contains(expected), "`{expected}` is not told\n{done:?}");
    }
}

#[test]
fn the_pod_reaches_all_pairs_and_goes_around_a_spine_that_is_cut_off() {
    let lab = file("router-pod", "lab.toml");
    let all = run(&mut triplane(&["lab", "sim", &lab, "--json"])).ok().json();
    assert_eq!((all["traffic"][0]["sent"].as_u64(), all["traffic"][0]["received"].as_u64()), (Some(60), Some(60)));
    let results = results("router-pod", "scenario.toml");
    // Both spines carried packets, one of them only until its link went down.
    let carried = |from| link(&results, from)["carried"].as_u64().expect("a number");
    assert!(carried("leaf1:3") > 500 && carried("leaf1:4") > 2 * carried("leaf1:3"), "{results:#}");
    let alone = [("leaf1.json", ", \"watch_port\": 3", ""), ("leaf2.json", ", \"watch_port\": 3", "")];
    misses("router-pod", &alone, "scenario.toml", &["the share delivered of `ping`"]);
}

#[test]
fn packets_record_their_paths_and_policies_find_those_that_strayed() {
    let results = results("router-pod", "paths.toml");
    let paths = traffic(&results, "web")["minion"]["paths"].as_array().expect("a list");
    let mut cut_off = 0;
    for path in paths.iter().filter(|path| path["switches"].as_array().is_some_and(|switches| switches.len() == 3)) {
        let spine = path["switches"][1].as_str().expect("a name");
        assert!(["spine1", "spine2"].contains(&spine), "{path:#}");
        cut_off += path["packets"].as_u64().expect("a number") * u64::from(spine == "spine1");
    }
    assert!(cut_off > 500, "spine1 was used before and after: {paths:#?}");
    let local = traffic(&results, "local")["minion"]["paths"].as_array().expect("a list");
    assert_eq!((local.len(), &local[0]["switches"]), (1, &serde_json::json!(["leaf1"])));
    let always = [("paths.toml", "after = \"501ms\"", "after = \"0s\"")];
    let expected = "the number of packets on other paths of `web` (first at 0.0000";
    misses("router-pod", &always, "paths.toml", &[expected, "by leaf", ", spine1, leaf"]);
}

#[test]
fn the_core_sees_tunnels_only() {
    let directory = Directory::new();
    let out = directory.path("out");
    simulate("tunnel", "scenario.toml", &["--out", &out]).ok();
    let bytes = std::fs::read(format!("{out}/core.pcap")).expect("it was captured");
    let frames = pcap::Reader::new(bytes.as_slice()).expect("a capture");
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for frame in frames {
        let frame = frame.expect("a frame").data;
        let outer = ethernet::Packet::new_checked(&frame[..]).expect("a frame");
        let outer = ipv4::Packet::new_checked(outer.payload()).expect("a packet");
        assert_eq!(outer.protocol(), 4);
        let inner = ipv4::Packet::new_checked(outer.payload()).expect("a packet in a packet");
        let (from, to, inside) = (outer.source(), outer.destination(), inner.source());
        *seen.entry(format!("{from} > {to} of {inside}")).or_default() += 1;
    }
    let expected = [
        "203.0.113.1 > 203.0.113.2 of 192.168.1.10",
        "203.0.113.1 > 203.0.113.2 of 192.168.1.138",
        "203.0.113.2 > 203.0.113.1 of 192.168.2.10",
        "203.0.113.2 > 203.0.113.1 of 192.168.2.138",
    ];
    assert_eq!(seen.keys().collect::<Vec<_>>(), expected);
    assert!(seen.values().all(|count| *count > 300), "{seen:?}");
    // Full-size packets do not fit a core link whose MTU is as small as that of the other links.
    misses("tunnel", &[("lab.toml", "mtu = 1520", "mtu = 1500")], "scenario.toml", &["delivered of `files`"]);
    // Packets of a tunnel with an unknown endpoint are dropped.
    let stranger = [("edge1.json", "203.0.113.1\", \"to\"", "203.0.113.9\", \"to\"")];
    misses("tunnel", &stranger, "scenario.toml", &["delivered of `ping`", "delivered of `files`"]);
}

#[test]
fn marks_keep_the_queue_short_and_the_link_full() {
    let with = results("ecn", "scenario.toml");
    let without = results("ecn", "without.toml");
    let queue = |results: &Value| link(results, "s1:3")["queue_full"].as_u64().expect("a number");
    assert_eq!(queue(&with), 0);
    assert!(queue(&without) > 10, "{without:#}");
    let marked = traffic(&with, "bulk")["ecn"]["marked"].as_u64().expect("a number");
    assert!(marked > 50, "{with:#}");
    let median = |results: &Value| traffic(results, "ping")["latency_ns"]["p50"].as_u64().expect("a number");
    assert!(median(&with) * 2 < median(&without), "{} and {}", median(&with), median(&without));
    let rate = |results: &Value| traffic(results, "bulk")["rate_bps"].as_f64().expect("a number");
    assert!(rate(&with) > 0.97 * rate(&without), "{} and {}", rate(&with), rate(&without));
    // Without marks no sender slows down.
    misses(
        "ecn",
        &[("s1.json", "\"threshold\": 20", "\"threshold\": 2000")],
        "scenario.toml",
        &["the share of marked packets of `bulk`"],
    );
}

#[test]
fn probes_measure_the_load_of_links() {
    let results = results("link-monitor", "scenario.toml");
    let monitor = traffic(&results, "monitor");
    let values = |name: &str| -> Vec<(f64, f64)> {
        let points = monitor["values"][name].as_array().expect("a list");
        points
            .iter()
            .map(|point| (point[0].as_f64().expect("a time") / 1e9, point[1].as_f64().expect("a number")))
            .collect()
    };
    let busy = values("s1 to s2");
    assert!(busy.len() >= 198, "{}", busy.len());
    let loaded = busy.iter().filter(|(at, _)| (0.52..1.5).contains(at));
    assert!(loaded.clone().count() > 90 && loaded.clone().all(|(_, bps)| (5.5e6..6.5e6).contains(bps)), "{busy:?}");
    assert!(values("s3 to s1").iter().skip(1).all(|(_, bps)| *bps < 1e5));
    let changes = [("monitor.p4", "bytes.write(port, 0);", "")];
    misses("link-monitor", &changes, "scenario.toml", &["the mean of `s1 to s2` of `monitor`"]);
}

#[test]
fn a_key_goes_on_counting_at_another_switch() {
    let results = results("key-value", "scenario.toml");
    let adds = values(traffic(&results, "adds"), "value");
    // The answers count every earlier one, across the failure; the requests of 10 ms are lost.
    assert!(adds.iter().map(|(_, value)| *value).eq(1..=880), "{adds:?}");
    // A program whose registers are its own begins again.
    let changes = [("store.p4", "@resilient[group = \"keys\"] ", "")];
    misses("key-value", &changes, "scenario.toml", &["the last value of `value` of `adds`"]);
}

/// Breaks the takeover of a scenario in which the switch `s1` dies: a store has died before, so the chain stops.
const STOPPED_CHAIN: (&str, &str, &str) =
    ("scenario.toml", "crash = \"s1\"", "crash = \"s1\"\n\n[[faults]]\nat = \"450ms\"\ncrash = \"b\"");

#[test]
fn translations_stay_at_another_switch() {
    for results in [results("nat", "scenario.toml"), interpreted("nat")] {
        let scan = traffic(&results, "scan");
        assert!(scan["sent"].as_u64() > Some(2_000) && scan["received"] == 0, "{scan:#}");
        // Both switches translated.
        let carried = |from| link(&results, from)["carried"].as_u64().expect("a number");
        assert!(carried("nat1:2") > 1_000 && carried("nat2:2") > 1_000, "{results:#}");
    }
    // Without annotations the tables have no entries.
    let changes = [
        ("nat.p4", "@resilient[pool = \"1024-65535\", idle = \"300s\"]", ""),
        ("nat.p4", "@resilient[reverse = \"outbound\"]", ""),
    ];
    misses("nat", &changes, "scenario.toml", &["delivered of `download`", "delivered of `visits`"]);
    let stopped = "crash = \"nat1\"\n\n[[faults]]\nat = \"450ms\"\ncrash = \"b\"";
    let changes = [("scenario.toml", "crash = \"nat1\"", stopped)];
    misses("nat", &changes, "scenario.toml", &["delivered of `download`", "delivered of `visits`"]);
}

#[test]
fn flows_are_admitted_by_another_firewall() {
    for results in [results("connection-firewall", "scenario.toml"), interpreted("connection-firewall")] {
        let visits = traffic(&results, "visits");
        assert!(visits["received"].as_u64() > Some(90), "{visits:#}");
        let scan = traffic(&results, "scan");
        assert!(scan["sent"].as_u64() > Some(2_000) && scan["received"] == 0, "{scan:#}");
    }
    misses("connection-firewall", &[STOPPED_CHAIN], "scenario.toml", &["of `download`", "delivered of `visits`"]);
    let changes = [("firewall.p4", "            outside.apply();", "")];
    let expected = ["delivered of `uninvited`", "delivered of `scan`"];
    misses("connection-firewall", &changes, "scenario.toml", &expected);
    // The other switch does not have the flows in registers of the first one.
    let registers = "action allow() {}
        register<bit<1>>(65536) seen;
        bit<16> at = 0;
        bit<1> is_seen = 0;";
    let add = "hash(at, HashAlgorithm.crc16, 16w0, meta.flow, 32w65536); seen.write((bit<32>) at, 1);";
    let find = "hash(at, HashAlgorithm.crc16, 16w0, meta.flow, 32w65536); seen.read(is_seen, (bit<32>) at);
        if (is_seen == 0) { drop(); }";
    let changes = [
        ("firewall.p4", "action allow() {}", registers),
        ("firewall.p4", "            inside.apply();", add),
        ("firewall.p4", "            outside.apply();", find),
    ];
    misses("connection-firewall", &changes, "scenario.toml", &["the share delivered of `download`"]);
}

#[test]
fn flows_keep_their_servers_at_another_balancer() {
    for results in [results("sticky-balancer", "scenario.toml"), interpreted("sticky-balancer")] {
        let uploads = traffic(&results, "uploads");
        assert!(uploads["sent"].as_u64() > Some(20), "{uploads:#}");
        assert_eq!(uploads["sent"], uploads["received"]);
    }
    misses("sticky-balancer", &[STOPPED_CHAIN], "scenario.toml", &["delivered of `uploads`", "of `calls`"]);
    // Flows whose servers are in a register of the first switch get another one from the second.
    let register = "register<bit<8>>(65536) chosen; bit<16> at = 0; action use(";
    let choose = "if (hdr.ports.isValid()) {
        hash(at, HashAlgorithm.crc16, 16w0, { hdr.ipv4.src, hdr.ports.src, hdr.ports.dst }, 32w65536);
        chosen.read(meta.server, (bit<32>) at);
        if (meta.server == 0) {
            random(meta.server, 8w1, 8w3);
            chosen.write((bit<32>) at, meta.server);
        }
        meta.server = meta.server - 1;";
    let changes = [
        ("balancer.p4", "action use(", register),
        ("balancer.p4", "if (hdr.ports.isValid()) {", choose),
        ("balancer.p4", "!flows.apply().hit || ", ""),
    ];
    misses("sticky-balancer", &changes, "scenario.toml", &["the share delivered of `uploads`"]);
}

#[test]
fn a_user_keeps_the_tunnel_at_another_gateway() {
    for results in [results("gateway", "scenario.toml"), interpreted("gateway")] {
        let answers = values(traffic(&results, "signalling"), "tunnel");
        assert!(answers.iter().map(|(_, tunnel)| *tunnel).eq(1..=52), "{answers:?}");
        // Data packets leave by the tunnel of the last answer before them.
        for (at, tunnel) in values(traffic(&results, "data"), "tunnel") {
            let last = answers.iter().rfind(|(answered, _)| *answered <= at);
            assert_eq!(last.map(|(_, tunnel)| *tunnel), Some(tunnel), "at {at}");
        }
    }
    let changes = [("gateway.p4", "@resilient[group = \"users\"] ", "")];
    let expected = ["the last value of `tunnel` of `signalling`", "the minimum of `tunnel` of `data`"];
    misses("gateway", &changes, "scenario.toml", &expected);
}

#[test]
fn packets_are_numbered_once_across_the_failure() {
    for results in [results("flow-counter", "scenario.toml"), interpreted("flow-counter")] {
        for name in ["there", "back"] {
            let counts = values(traffic(&results, name), "count");
            assert!(counts.iter().map(|(_, count)| *count).eq(1..=8_800), "{name}");
        }
    }
    let changes = [("counter.p4", "@resilient register", "register")];
    let expected = ["the last value of `count` of `there`", "the last value of `count` of `back`"];
    misses("flow-counter", &changes, "scenario.toml", &expected);
}

#[test]
fn sketches_go_on_with_counts_that_lack_two_milliseconds_at_most() {
    for results in [results("heavy-hitters", "scenario.toml"), interpreted("heavy-hitters")] {
        let heavy = traffic(&results, "heavy");
        let counts: Vec<u64> = values(heavy, "packets").into_iter().map(|(_, count)| count).collect();
        let jumps: Vec<_> = counts.windows(2).filter(|pair| pair[1] != pair[0] + 1).collect();
        let [&[last, first]] = jumps[..] else { panic!("{jumps:?}") };
        // At 10 packets a millisecond.
        assert!(counts[0] == 1 && first <= last && first + 20 > last, "{jumps:?}");
        // VLAN 7, with priority 5 and then 1.
        let priorities = values(heavy, "priority");
        let marked = counts.iter().map(|count| if *count < 1_000 { 0xa0 } else { 0x20 });
        assert!(priorities.iter().map(|(_, priority)| *priority).eq(marked));
    }
    let annotation =
        "@resilient[group = \"sketch\", every = \"1ms\", bound = \"10ms\", row = \"64\", stale = \"is_stale\"] ";
    let expected = ["the last value of `packets` of `heavy`"];
    misses("heavy-hitters", &[("hitters.p4", annotation, "")], "scenario.toml", &expected);
}

#[test]
fn flows_spread_over_servers_and_stay_with_them() {
    let results = results("load-balancer", "scenario.toml");
    let pages = traffic(&results, "pages");
    assert!(pages["sent"].as_u64() > Some(700), "{pages:#}");
    assert_eq!(pages["sent"], pages["received"]);
    // Without the checksum update no connection is established.
    let changes = [("balancer.p4", "hdr.tcp.checksum = replaced(hdr.tcp.checksum, before, after);", "")];
    misses("load-balancer", &changes, "scenario.toml", &["delivered of `pages`"]);
    let changes = [("balancer.p4", "hdr.ports.src: selector;", "")];
    misses("load-balancer", &changes, "scenario.toml", &["the share of frames at s1:"]);
}

#[test]
fn only_what_was_asked_for_comes_in() {
    let results = results("firewall", "scenario.toml");
    let asked = traffic(&results, "asked from inside");
    assert!(asked["received"].as_u64() > Some(400), "{asked:#}");
    let scan = traffic(&results, "scan");
    assert!(scan["sent"].as_u64() > Some(20_000) && scan["received"] == 0, "{scan:#}");
    let changes = [("firewall.p4", "seen_first == 1 && seen_second == 1", "true")];
    let expected = ["delivered of `uninvited`", "delivered of `pings from outside`", "delivered of `scan`"];
    misses("firewall", &changes, "scenario.toml", &expected);
    let changes = [("firewall.p4", "first.write(one, 1);", "")];
    misses("firewall", &changes, "scenario.toml", &["delivered of `asked from inside`", "of `pings from inside`"]);
}

/// A live lab of an example. Dropping this takes it down.
struct Live(String);

impl Live {
    /// Starts the lab. Returns `None`, and skips the test, where network namespaces are not possible.
    fn up(example: &str, tools: &[&str]) -> Option<Live> {
        if let Some(reason) = Network::obstacle(tools) {
            testing::skip(&reason);
            return None;
        }
        let live = Live(format!("{example}-{}", unique()));
        run(&mut triplane(&["lab", "up", &file(example, "lab.toml"), "--name", &live.0])).ok();
        Some(live)
    }

    fn exec(&self, host: &str, command: &[&str]) -> Done {
        run(&mut triplane(&[&["lab", "exec", "--lab", &self.0, host], command].concat()))
    }

    /// Waits until a host answers the pings of another host.
    #[track_caller]
    fn reaches(&self, from: &str, address: &str) {
        let begin = Instant::now();
        while !self.answers(from, address) {
            assert!(begin.elapsed() < TEST_TIMEOUT, "{from} does not reach {address}");
        }
    }

    /// Whether a host answers the pings of another host. A busy machine may answer too late.
    fn answers(&self, from: &str, address: &str) -> bool {
        self.exec(from, &["ping", "-n", "-c", "2", "-i", "0.2", "-W", "1", address]).code == Some(0)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = run(&mut triplane(&["lab", "down", &self.0]));
    }
}

/// Connects to a host a number of times, with a timeout in seconds, and prints its answer, which is its name.
const CLIENT: &str = "
import socket, sys
for _ in range(int(sys.argv[2])):
    s = socket.create_connection((sys.argv[1], 8000), timeout=float(sys.argv[3]))
    print(s.recv(64).decode())
    s.close()
";

const SERVER: &str = "
import socket, sys
s = socket.create_server(('', 8000))
print('listening', flush=True)
while True:
    c, _ = s.accept()
    c.sendall(sys.argv[1].encode())
    c.close()
";

/// Starts a server on a host that answers with the host's name.
fn serve(live: &Live, host: &str) -> support::Running {
    let arguments = ["lab", "exec", "--lab", &live.0, host, "python3", "-c", SERVER, host];
    let mut server = support::Running::start(&mut triplane(&arguments));
    server.wait_for("listening");
    server
}

#[test]
fn real_hosts_reach_each_other_in_the_pod() {
    let Some(live) = Live::up("router-pod", &["ping"]) else { return };
    let hosts = [("h1", "10.1.1.10"), ("h2", "10.1.2.10"), ("h3", "10.2.1.10"), ("h4", "10.2.2.10")];
    for (from, _) in hosts {
        for (_, address) in hosts.into_iter().filter(|(to, _)| *to != from) {
            live.reaches(from, address);
        }
    }
}

#[test]
fn real_hosts_talk_through_the_tunnel() {
    let Some(live) = Live::up("tunnel", &["ping"]) else { return };
    // Packets of 1500 bytes that must not be fragmented: the core has room for 20 more bytes.
    for _ in 0..2 {
        let done = live.exec("a1", &["ping", "-n", "-c", "1", "-W", "20", "-M", "do", "-s", "1472", "192.168.2.10"]);
        assert!(done.stdout.contains("1 received"), "{done:?}");
    }
    live.reaches("b2", "192.168.1.138");
}

#[test]
fn real_connections_spread_over_servers() {
    let Some(live) = Live::up("load-balancer", &["python3"]) else { return };
    let _servers: Vec<_> = ["w1", "w2", "w3"].map(|host| serve(&live, host)).into_iter().collect();
    let done = live.exec("c1", &["python3", "-c", CLIENT, "10.0.0.100", "60", "60"]).ok();
    for server in ["w1", "w2", "w3"] {
        let count = done.stdout.lines().filter(|line| *line == server).count();
        assert!(count >= 5, "{server} was met {count} times\n{done:?}");
    }
}

#[test]
fn real_hosts_outside_reach_nobody_inside() {
    let Some(live) = Live::up("firewall", &["ping", "python3"]) else { return };
    let (_inside, _outside) = (serve(&live, "h1"), serve(&live, "h3"));
    live.reaches("h1", "10.0.3.1");
    assert!(!live.answers("h3", "10.0.2.1"));
    let met = live.exec("h1", &["python3", "-c", CLIENT, "10.0.3.1", "1", "60"]).ok();
    assert_eq!(met.stdout, "h3\n");
    let refused = live.exec("h3", &["python3", "-c", CLIENT, "10.0.1.1", "1", "2"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(refused.stderr.contains("timed out"), "{refused:?}");
}

/// Returns the numbers of the table and the memory servers of `elastic-balancer`.
fn memory(results: &Value) -> (&Value, &Value) {
    (&results["memory"]["tables"][0], &results["memory"]["servers"])
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("{name} is not in {value:#}"))
}

#[test]
fn clients_keep_their_servers_while_memory_servers_come_back_empty() {
    let (compiled, interpreted) = (results("elastic-balancer", "scenario.toml"), interpreted("elastic-balancer"));
    for results in [&compiled, &interpreted] {
        let (table, servers) = memory(results);
        let packets: u64 = ["one", "two", "new", "moved"].iter().map(|it| number(traffic(results, it), "sent")).sum();
        let (lookups, reads) = (number(table, "lookups"), number(table, "reads"));
        // Packets of a key that come while it is looked up share the READ.
        assert!(lookups <= packets && lookups > packets - packets / 50, "{table:#}, {packets} packets");
        assert_eq!(reads, lookups + number(table, "retries"), "{table:#}");
        assert_eq!(
            (number(table, "entries"), number(table, "dropped"), number(table, "local")),
            (2, 0, 0),
            "{table:#}"
        );
        assert_eq!(table["settled"], true, "{table:#}");
        // Both servers were filled again: 2,333 blocks of 64 cells.
        assert!(servers.as_array().expect("a list").iter().all(|it| number(it, "writes") > 2_300), "{servers:#}");
    }
    // Without a second server, packets are dropped while the first one is down, and none goes to a wrong server.
    let one_server = [
        ("lab.toml", "[hosts.m2]\nip = \"10.0.9.2/24\"\nmemory = \"16MiB\"\n", ""),
        ("lab.toml", "[[links]]\nends = [\"m2\", \"s1:6\"]\n", ""),
        ("scenario.toml", "[[faults]]\nat = \"1500ms\"\ncrash = \"m2\"\n", ""),
        ("scenario.toml", "[[faults]]\nat = \"2s\"\nrestart = \"m2\"\n", ""),
    ];
    misses("elastic-balancer", &one_server, "scenario.toml", &["delivered of `one`", "delivered of `new`"]);
    let no_entry = [("scenario.toml", "entries = \"moved.json\"\n", "")];
    misses("elastic-balancer", &no_entry, "scenario.toml", &["delivered of `moved`"]);
}

#[test]
fn a_memory_server_joins_and_replaces_another_one() {
    let results = results("elastic-balancer", "growth.toml");
    let (table, servers) = memory(&results);
    let of = |at: usize| {
        let server = &servers[at];
        (server["state"].as_str().expect("a text"), number(server, "entries"), number(server, "connections"))
    };
    assert_eq!((of(0), of(1)), (("unused", 0, 0), ("serving", 2, 1)), "{servers:#}");
    assert_eq!(number(table, "dropped"), 0, "{table:#}");
    assert_eq!(number(table, "reads"), number(table, "lookups") + number(table, "retries"), "{table:#}");
    assert_eq!(table["settled"], true, "{table:#}");
    // Nobody else has the entries when the first server dies as the second one has just begun to be filled.
    let early = [("growth.toml", "at = \"2s\"\ncrash", "at = \"510ms\"\ncrash")];
    misses("elastic-balancer", &early, "growth.toml", &["delivered of `one`"]);
}

#[test]
fn the_longest_route_wins_while_memory_servers_come_back_empty() {
    let (compiled, interpreted) = (results("elastic-router", "scenario.toml"), interpreted("elastic-router"));
    for results in [&compiled, &interpreted] {
        let (table, _) = memory(results);
        let packets: u64 =
            ["longest", "default", "other", "moved"].iter().map(|it| number(traffic(results, it), "sent")).sum();
        let (lookups, reads) = (number(table, "lookups"), number(table, "reads"));
        assert!(lookups <= packets && lookups > packets - packets / 50, "{table:#}, {packets} packets");
        assert_eq!(reads, 3 * lookups + number(table, "retries"), "a window of each length: {table:#}");
        let of = |name| number(table, name);
        // The default route stays in the switch.
        assert_eq!((of("entries"), of("kept"), of("dropped"), of("local")), (6, 1, 0, 0), "{table:#}");
        assert_eq!(table["settled"], true, "{table:#}");
    }
    // Without the longer prefix, the shorter one of the same customer leads elsewhere.
    let other = [("longer.json", "10.1.2.0/24", "10.1.3.0/24")];
    misses("elastic-router", &other, "scenario.toml", &["delivered of `moved`"]);
}
