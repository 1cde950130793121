//! `triplane bench`: its counts, its reports of mistakes, and the sum of its parts. No test here asserts how long
//! anything takes.

use std::process::Command;

use crate::support::network::Network;
use crate::support::{self, Directory, Done, drop_line, run, triplane};
use serde_json::Value;
use testing::lock::LIVE_TRAFFIC;
use wire::pcap::Writer;

const ROUTER: &[&str] = &["bench", "examples/router/router.p4", "--entries", "examples/router/entries.json"];

fn command(arguments: &[&str]) -> Done {
    run(&mut triplane(arguments))
}

/// Benchmarks the router with these additional arguments.
#[track_caller]
fn router(arguments: &[&str]) -> Value {
    command(&[ROUTER, arguments, &["--packets", "7000", "--json"]].concat()).ok().json()
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("{name}: {value:#}"))
}

/// Checks that every packet was forwarded or dropped, and that the measurements are consistent.
#[track_caller]
fn adds_up(result: &Value) {
    let [sent, forwarded, dropped] = ["sent", "forwarded", "dropped"].map(|name| number(result, name));
    assert_eq!(sent, forwarded + dropped, "{result:#}");
    assert!(sent >= 7000 && sent.is_multiple_of(32), "{result:#}");
    let sites = result["drops"].as_array().expect("a list");
    assert_eq!(sites.iter().map(|site| number(site, "packets")).sum::<u64>(), dropped, "{result:#}");
    let speed = &result["speed"];
    assert_eq!((number(speed, "packets"), number(speed, "samples")), (sent, sent / 32));
    let [median, p99] = ["median_ns", "p99_ns"].map(|name| speed[name].as_f64().expect("a number"));
    assert!(0.0 < median && median <= p99, "{result:#}");
    let parts = result["breakdown"]["parts"].as_array().expect("a list");
    let sum: f64 = parts.iter().map(|part| part["ns"].as_f64().expect("a number")).sum();
    assert!((sum - median).abs() < 1e-6 * median, "parts add up to {sum}, all is {median}");
    let named = |name: &str| parts.iter().filter(|part| part["part"] == name).count();
    for name in ["parser", "ingress", "egress", "checksums", "deparser", "switch"] {
        assert_eq!(named(name), 1, "{name}: {result:#}");
    }
}

/// The tables that packets reached, each with its number of lookups per packet in machine code.
fn tables(result: &Value) -> Vec<(&str, Option<f64>)> {
    let parts = result["breakdown"]["parts"].as_array().expect("a list");
    let tables = parts.iter().filter(|part| part["part"] == "table");
    tables.map(|part| (part["table"].as_str().expect("a name"), part["packets"].as_f64())).collect()
}

#[test]
fn traffic_follows_the_entries_and_all_of_it_is_routed() {
    let result = router(&[]);
    adds_up(&result);
    assert_eq!((number(&result, "dropped"), &result["executor"]), (0, &Value::from("jit")));
    let traffic = result["traffic"].as_str().expect("text");
    assert!(
        traffic.contains("1024 flows") && traffic.ends_with("the 2 entries of RouterIngress.ipv4_lpm"),
        "{traffic}"
    );
    assert_eq!(tables(&result), [("RouterIngress.ipv4_lpm", Some(1.0)), ("RouterEgress.port_mac", Some(1.0))]);
    assert_eq!(result["breakdown"]["unused_tables"], Value::from(vec!["RouterIngress.gateway"]));
    assert_eq!((&result["interpreter"], &result["ratio"]), (&Value::Null, &Value::Null));
}

#[test]
fn the_path_of_the_packets_is_reported() {
    let result = router(&[]);
    let sent = number(&result, "sent");
    assert_eq!(
        result["paths"],
        serde_json::json!([
            { "path": "batched", "packets": sent, "reason": null, "remedy": null }
        ])
    );
    let wire = std::fs::read_to_string(support::root().join("examples/wire/wire.p4")).expect("the example can be read");
    let directory = Directory::new();
    let egress = "inout standard_metadata_t sm) { apply {";
    let (before, after) = wire.split_once(&format!("{egress}}}")).expect("egress is empty");
    let split = directory.write("split.p4", format!("{before}{egress} clone(CloneType.E2E, 1); }}{after}"));
    let text = command(&["bench", &split, "--packets", "700", "--traffic", "udp"]).ok().stdout;
    assert!(text.contains("100.0 %  one at a time, in place\n"), "{text}");
    assert!(text.contains("because the program called clone:\n"), "{text}");
}

/// A program that forwards the packets that its rules match and drops the rest.
const GUARD: &str = r#"
#include <v1model.p4>
header ethernet_t { bit<48> a; bit<48> b; bit<16> type; }
header tag_t { bit<3> priority; bit<1> dei; bit<12> id; bit<16> type; }
header six_t {
    bit<4> version; bit<8> class; bit<20> label; bit<16> length; bit<8> next; bit<8> hops; bit<128> from; bit<128> to;
}
header tcp_t {
    bit<16> from; bit<16> to; bit<32> seq; bit<32> ack; bit<16> flags; bit<16> window; bit<16> sum; bit<16> urgent;
}
struct headers { ethernet_t ethernet; tag_t tag; six_t six; tcp_t tcp; }
struct none {}
parser P(packet_in packet, out headers h, inout none m, inout standard_metadata_t sm) {
    state start { packet.extract(h.ethernet); transition select(h.ethernet.type) { 0x8100: tagged; default: accept; } }
    state tagged { packet.extract(h.tag); transition select(h.tag.type) { 0x86dd: six; default: accept; } }
    state six { packet.extract(h.six); transition select(h.six.next) { 6: tcp; default: accept; } }
    state tcp { packet.extract(h.tcp); transition accept; }
}
control Unchecked(inout headers h, inout none m) { apply {} }
control Guard(inout headers h, inout none m, inout standard_metadata_t sm) {
    action pass() { sm.egress_spec = 7; }
    action drop() { mark_to_drop(sm); }
    table rules {
        key = { h.six.to: ternary; h.tcp.to: range; h.tag.id: optional; }
        actions = { pass; drop; }
        const default_action = drop();
        const entries = {
            (0x20010db8000000000000000000000000 &&& 0xffffffff000000000000000000000000, 80, 5): pass();
            (_, 1000..2000, 6): pass();
        }
    }
    table known { key = { h.ethernet.b: exact; } actions = { NoAction; drop; } const default_action = drop();
        const entries = { 0x020000000009: NoAction(); } }
    apply {
        if (h.tcp.isValid()) { rules.apply(); known.apply(); } else { drop(); }
    }
}
control Out(inout headers h, inout none m, inout standard_metadata_t sm) { apply {} }
control D(packet_out packet, in headers h) { apply { packet.emit(h); } }
V1Switch(P(), Unchecked(), Guard(), Out(), Unchecked(), D()) main;
"#;

#[test]
fn derived_traffic_matches_the_keys_of_every_table() {
    let directory = Directory::new();
    let guard = directory.write("guard.p4", GUARD);
    let result = command(&["bench", &guard, "--packets", "7000", "--json"]).ok().json();
    adds_up(&result);
    assert_eq!(number(&result, "dropped"), 0, "{result:#}");
    let traffic = result["traffic"].as_str().expect("text");
    let expected = "78-byte frames of TCP over IPv6 over VLAN, 1024 flows, on ingress port 1, to match the 2 entries \
                    of Guard.rules and the 1 entry of Guard.known";
    assert_eq!(traffic, expected);
}

#[test]
fn drops_are_reported_with_their_line() {
    let result = router(&["--traffic", "udp,flows=64,dst=10.0.2.0-10.0.3.255"]);
    adds_up(&result);
    assert!(number(&result, "dropped") > 0 && number(&result, "forwarded") > 0, "{result:#}");
    let site = &result["drops"][0];
    let line = format!("router.p4:{}:9", drop_line("no_route"));
    assert!(site["place"].as_str().expect("a place").ends_with(&line), "{site:#}");
    assert_eq!(site["body"], "RouterIngress.no_route");
    // Half of the packets reach egress.
    let (name, part) = tables(&result)[1];
    assert!(name == "RouterEgress.port_mac" && (0.3..0.7).contains(&part.expect("machine code")), "{result:#}");

    let text = command(&[ROUTER, &["--traffic", "udp,dst=10.9.0.0/16", "--packets", "500"]].concat()).ok().stdout;
    assert!(text.contains("Nothing was forwarded: this is the speed of dropping"), "{text}");
    assert!(text.contains(&format!("router.p4:{} (RouterIngress.no_route)", &line["router.p4:".len()..])), "{text}");
}

#[test]
fn the_interpreter_counts_the_same_and_can_be_compared_with() {
    let traffic = ["--traffic", "udp,flows=64,dst=10.0.2.0-10.0.3.255"];
    let (fast, slow) = (router(&traffic), router(&[&traffic[..], &["--interpret"]].concat()));
    adds_up(&slow);
    assert_eq!(slow["executor"], "interpreter");
    for name in ["sent", "forwarded", "dropped", "drops"] {
        assert_eq!(fast[name], slow[name]);
    }
    let names = |result: &Value| tables(result).into_iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&fast), names(&slow));

    let compared = router(&["--against", "interpreter"]);
    let ns = |result: &Value| result["median_ns"].as_f64().expect("a number");
    let ratio = ns(&compared["interpreter"]) / ns(&compared["speed"]);
    assert!((compared["ratio"].as_f64().expect("a number") - ratio).abs() < 1e-9 * ratio);
}

#[test]
fn captures_are_replayed() {
    let directory = Directory::new();
    let mut writer = Writer::new(Vec::new()).expect("memory takes a header");
    for byte in 0..3 {
        writer.write(0, &[byte; 60]).expect("memory takes a frame");
    }
    let path = directory.write("in.pcap", writer.into_inner());
    for traffic in [path.clone(), format!("pcap={path},ports=2")] {
        let wire = ["bench", "examples/wire/wire.p4", "--traffic", &traffic, "--packets", "7000", "--json"];
        let result = command(&wire).ok().json();
        adds_up(&result);
        assert_eq!(number(&result, "dropped"), 0);
        assert!(result["traffic"].as_str().expect("text").starts_with("3 frames of "), "{result:#}");
    }
    // The length on the wire, in the record header of the first frame.
    let mut cut = std::fs::read(&path).expect("it was written");
    cut[24 + 12..][..4].copy_from_slice(&600u32.to_ne_bytes());
    let cut = directory.write("cut.pcap", cut);
    let done = command(&["bench", "examples/wire/wire.p4", "--traffic", &cut, "--packets", "1000"]).ok();
    assert!(done.stderr.contains("1 of 3 frames were truncated"), "{done:?}");
    let empty = directory.write("empty.pcap", Writer::new(Vec::new()).expect("memory takes a header").into_inner());
    let done = command(&["bench", "examples/wire/wire.p4", "--traffic", &empty]);
    assert_eq!(done.code, Some(1));
    assert!(done.stderr.contains("contains no packets"), "{done:?}");
}

/// A namespace in which `gen0` is connected to `p1` and `sink0` to `p2`. Dropping this value deletes it.
struct Cables(String);

impl Cables {
    fn new() -> Option<Cables> {
        if let Some(reason) = Network::obstacle(&[]) {
            testing::skip(&reason);
            return None;
        }
        let cables = Cables(format!("triplane-{}", support::unique()));
        let ip = |arguments: &[&str]| run(Command::new("ip").args(arguments)).ok();
        ip(&["netns", "add", &cables.0]);
        for (end, other) in [("gen0", "p1"), ("sink0", "p2")] {
            ip(&["-n", &cables.0, "link", "add", end, "type", "veth", "peer", "name", other]);
            for link in [end, other] {
                // Without link-local addresses the kernel sends no IPv6 of its own, so that frames can be counted.
                ip(&["-n", &cables.0, "link", "set", link, "addrgenmode", "none", "up"]);
            }
        }
        Some(cables)
    }

    fn bench(&self, arguments: &[&str]) -> Done {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0, env!("CARGO_BIN_EXE_triplane")]).args(arguments);
        run(command.current_dir(support::root()))
    }
}

impl Drop for Cables {
    fn drop(&mut self) {
        let _ = run(Command::new("ip").args(["netns", "delete", &self.0]));
    }
}

#[test]
fn live_trials_count_what_arrives() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(cables) = Cables::new() else { return };
    let live = ["--live", "gen0:sink0", "--trial", "0.05", "--json"];
    let nobody = cables.bench(&[&["bench", "--traffic", "udp"], &live[..]].concat());
    assert_eq!(nobody.code, Some(3), "{nobody:?}");
    assert!(nobody.stderr.contains("frames sent on gen0 arrived at sink0; start the switch"), "{nobody:?}");

    let long = cables.bench(&[&["bench", "--traffic", "udp,size=1515"], &live[..]].concat());
    assert!(
        long.stderr.contains("up to 1501 bytes after the Ethernet header, but the MTU of gen0 is 1500"),
        "{long:?}"
    );
    let tagged = cables.bench(&[&["bench", "--traffic", "udp,vlan=5,size=1518"], &live[..]].concat());
    assert!(tagged.stderr.contains("start the switch"), "{tagged:?}");

    let ports = ["--port", "1=p1", "--port", "2=p2", "--traffic", "udp,flows=100,dst=10.0.2.0/24"];
    let result = cables.bench(&[ROUTER, &ports, &live].concat()).ok().json();
    let trials = result["trials"].as_array().expect("a list");
    for trial in trials {
        let [sent, received, lost] = ["sent", "received", "lost"].map(|name| number(trial, name));
        assert!(received <= sent && lost == sent - received, "{result:#}");
    }
    let best = trials.iter().filter(|trial| number(trial, "lost") == 0);
    let best = best.map(|trial| number(trial, "sent") as f64 / trial["seconds"].as_f64().expect("a number"));
    // JSON numbers are parsed to within one bit of their value.
    let (told, best) = (result["best_pps"].as_f64(), best.max_by(f64::total_cmp));
    let is_same = told.zip(best).map(|(told, best)| (told - best).abs() <= best * 4.0 * f64::EPSILON);
    assert!(is_same.unwrap_or(told == best), "{best:?}: {result:#}");
    let latency = &result["latency"];
    assert!(number(latency, "received") > 0 && number(latency, "received") <= number(latency, "sent"), "{result:#}");
    assert!(number(latency, "median_ns") <= number(latency, "p99_ns"), "{result:#}");
}

#[test]
fn an_interface_that_is_down_is_an_error() {
    let Some(cables) = Cables::new() else { return };
    for (down, told) in [("p2", "sink0 or its peer is down"), ("gen0", "gen0 or its peer is down")] {
        run(Command::new("ip").args(["-n", &cables.0, "link", "set", down, "down"])).ok();
        let done = cables.bench(&["bench", "--traffic", "udp", "--live", "gen0:sink0", "--trial", "0.05"]);
        assert_eq!(done.code, Some(3), "{done:?}");
        assert!(done.stderr.contains(told), "{done:?}");
    }
}

#[test]
fn wrong_arguments_are_reported() {
    let wire = "examples/wire/wire.p4";
    let cases: &[(&[&str], &str)] = &[
        (&["bench", wire, "--traffic", "upd"], "did you mean `udp`?"),
        (&["bench", wire, "--traffic", "udp,size=9"], "--traffic:1:10"),
        (&["bench", wire, "--traffic", "udp,size=20"], "write `size=42` or more"),
        (&["bench", wire], "specify the frames with --traffic"),
        (&["bench", wire, "--traffic", "udp", "--packets", "0"], "--packets must be at least 1"),
        (&["bench", wire, "--traffic", "udp", "--seconds=-1"], "--seconds -1 is not a valid duration"),
        (&["bench", wire, "--traffic", "udp", "--seconds", "nan"], "--seconds NaN is not a valid duration"),
        (&["bench", wire, "--traffic", "examples"], "examples is a directory; --traffic takes a capture file"),
        (&["bench"], "a program is required"),
        (&["bench", "--live", "here"], "expected A:B, such as gen0:sink0"),
        (&["bench", "--live", "a:b"], "specify the frames with --traffic"),
        (&["bench", "--live", "a:b", "--traffic", "udp", "--loss", "100"], "--loss 100 is out of range"),
    ];
    for (arguments, expected) in cases {
        let done = command(arguments);
        assert_eq!(done.code, Some(2), "{arguments:?}: {done:?}");
        assert!(done.stderr.contains(expected), "{arguments:?}: {done:?}");
    }
}
