//! Tests simulated times of tables in the memory of servers, to the nanosecond: the cost of a READ and of a cached
//! entry compared with a table of the switch.

use serde_json::Value;

use crate::support::{Directory, root, run, triplane};

const DELAY_NS: u64 = 5_000;
/// Requests of a run, and their times.
const REQUESTS: usize = 20;
const START_NS: u64 = 100_000_000;
const INTERVAL_NS: u64 = 10_000_000;
/// Lookups after which a key is popular.
const POPULAR: usize = 8;
/// Maximum payload of a packet of RoCEv2.
const MTU: u64 = 1024;

/// Headers of a READ: Ethernet, IPv4, UDP, BTH, RETH, and the integrity check.
const READ: u64 = 14 + 20 + 8 + 12 + 16 + 4;
/// Headers of an answer in one packet, or of the first and the last of several: AETH in place of RETH.
const ANSWER: u64 = 14 + 20 + 8 + 12 + 4 + 4;
/// Headers of the other packets of an answer: no AETH.
const MIDDLE: u64 = ANSWER - 4;

/// Answers requests for the value of a key.
const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header request_t { bit<48> dst; bit<48> src; bit<16> type; bit<16> key; bit<32> value; bit<160> rest; }
struct headers_t { request_t request; }
struct metadata_t {}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.request); transition accept; }
}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set(bit<32> value, bit<160> rest) { hdr.request.value = value; hdr.request.rest = rest; }
    ANNOTATION table values {
        key = { hdr.request.key: exact; }
        actions = { set; @defaultonly NoAction; }
        default_action = NoAction();
        size = 100;
    }
    apply {
        if (hdr.request.type == 0x88b6 && values.apply().hit) {
            hdr.request.dst = hdr.request.src;
            standard.egress_spec = standard.ingress_port;
        } else {
            mark_to_drop(standard);
        }
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }
control C(inout headers_t hdr, inout metadata_t meta) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"#;

const ENTRIES: &str = r#"{"table_entries": [{"table": "I.values", "match": {"hdr.request.key": 7},
    "action_name": "I.set", "action_params": {"value": 9, "rest": 1}}]}"#;

/// Time on a link of 1 Gbit/s of frames that follow each other, until the last one has arrived.
fn link_ns(bytes: u64) -> u64 {
    8 * bytes + DELAY_NS
}

/// Simulates requests in frames of this length, with a memory server if the table has an annotation. Returns the times
/// from sending them to the arrival of their answers, and the bytes of a READ.
fn answered(annotation: &str, frame_bytes: u64) -> (Vec<u64>, u64) {
    let directory = Directory::new();
    let program = directory.write("values.p4", PROGRAM.replace("ANNOTATION", annotation));
    directory.write("entries.json", ENTRIES);
    let mut lab = format!(
        "[defaults]\nprogram = {program:?}\nentries = \"entries.json\"\nlink = {{ rate = \"1Gbps\", delay = \"5us\" }}\n\
         [hosts.client]\n[switches.s1]\n[[links]]\nends = [\"client\", \"s1:1\"]\n"
    );
    if !annotation.is_empty() {
        lab += "[hosts.m1]\nip = \"10.9.0.1/24\"\nmemory = \"1MiB\"\n[[links]]\nends = [\"m1\", \"s1:2\"]\n";
    }
    let lab = directory.write("lab.toml", lab);
    let padding = "00".repeat(frame_bytes as usize - 20);
    let scenario = directory.write(
        "scenario.toml",
        format!(
            "duration = \"400ms\"\n[[traffic]]\nname = \"client\"\nkind = \"probe\"\nfrom = \"client\"\nto = \"client\"\n\
             frame = \"02aa00000001 020000000001 88b6 0007 00000000 {padding}\"\nvalues = {{ value = {{ at = 16, bytes = \
             4 }} }}\nstart = \"100ms\"\ncount = {REQUESTS}\ninterval = \"10ms\"\n"
        ),
    );
    let done = run(&mut triplane(&["lab", "sim", &lab, "--scenario", &scenario, "--json"])).ok().json();
    let points = done["traffic"][0]["values"]["value"].as_array().expect("answers came").iter();
    let times = points.enumerate().map(|(number, point)| {
        assert_eq!(point[1], 9.0, "the value of the key");
        point[0].as_u64().expect("a time") - START_NS - number as u64 * INTERVAL_NS
    });
    let times = times.collect();
    // "a READ has 8 cells, 320 bytes;"
    let text = run(&mut triplane(&["check", &program])).ok().stdout.replace('\n', " ");
    let bytes =
        text.split_once("a READ has ").and_then(|(_, rest)| rest.split(' ').nth(2)?.replace(',', "").parse().ok());
    (times, bytes.unwrap_or(0))
}

/// Returns the bytes of the frames of an answer with this many bytes of cells.
fn answer_bytes(cells: u64) -> u64 {
    match cells.div_ceil(MTU) {
        1 => ANSWER + cells,
        packets => 2 * ANSWER + (packets - 2) * MIDDLE + cells,
    }
}

/// The request, the READ, its answer, and the reply follow each other; the switch and the server take no time.
fn expected(frame_bytes: u64, cells: u64) -> u64 {
    2 * link_ns(frame_bytes) + link_ns(READ) + link_ns(answer_bytes(cells))
}

#[test]
fn a_lookup_takes_exactly_one_read() {
    assert_eq!((READ, ANSWER), (74, 62));
    for frame_bytes in [64, 65, 128, 256, 512, 1024, 1280, 1500] {
        let (times, cells) = answered("@elastic[cache = \"0\"]", frame_bytes);
        assert!(cells > 0 && cells <= MTU, "{cells}");
        assert_eq!(times, [expected(frame_bytes, cells); REQUESTS], "{frame_bytes} bytes");
    }
}

#[test]
fn a_longer_read_costs_its_bytes_and_the_headers_of_its_packets() {
    let mut lengths = Vec::new();
    for window in [4, 8, 16, 32] {
        let annotation = format!("@elastic[window = \"{window}\", cache = \"0\"]");
        let (times, cells) = answered(&annotation, 64);
        assert_eq!(times, [expected(64, cells); REQUESTS], "{window} cells of {cells} bytes in all");
        lengths.push(cells);
    }
    assert!(lengths[2] < MTU && lengths[3] > MTU, "answers of one packet, and of two: {lengths:?}");
}

#[test]
fn a_cached_entry_takes_the_time_of_a_table_of_the_switch() {
    let local = answered("", 64).0;
    assert_eq!(local, [2 * link_ns(64); REQUESTS]);
    let (times, cells) = answered("@elastic", 64);
    // The key becomes popular with its eighth lookup.
    assert_eq!(times[..POPULAR], [expected(64, cells); POPULAR]);
    assert_eq!(times[POPULAR..], local[POPULAR..]);
}

/// Simulates the router with tables in memory, with these defaults and faults, and returns the results.
fn router_results(defaults: &str, faults: &str) -> Value {
    let directory = Directory::new();
    let mut scenario = "duration = \"1s\"\n".to_owned();
    for (name, from, to) in [("longest", "one", "w1"), ("default", "one", "w3"), ("other", "two", "w2")] {
        scenario += &format!(
            "[[traffic]]\nname = {name:?}\nkind = \"udp\"\nfrom = {from:?}\nto = {to:?}\nrate = \"1Mbps\"\n\
             size = 200\nstart = \"100ms\"\nstop = \"900ms\"\n"
        );
    }
    let scenario = directory.write("scenario.toml", scenario + faults);
    let example = root().join("examples/elastic-router");
    let mut lab = std::fs::read_to_string(example.join("lab.toml")).expect("it is an example");
    for name in ["prefixes.p4", "s1.json"] {
        lab = lab.replace(name, example.join(name).to_str().expect("the path is UTF-8"));
    }
    let lab = directory.write("lab.toml", lab.replacen("[defaults]", &format!("[defaults]\n{defaults}"), 1));
    run(&mut triplane(&["lab", "sim", &lab, "--scenario", &scenario, "--json"])).ok().json()
}

/// Returns the largest latency of each kind of traffic with these faults. Nothing is lost.
fn router_latencies(faults: &str) -> Vec<u64> {
    let results = router_results("", faults);
    let traffic = results["traffic"].as_array().expect("there are results");
    for one in traffic {
        assert!(one["sent"] == one["received"] && one["sent"].as_u64() > Some(300), "{one}");
    }
    traffic.iter().map(|one| one["latency_ns"]["max"].as_u64().expect("packets arrived")).collect()
}

#[test]
fn a_lab_limits_the_rate_of_reads() {
    // Packets need some 10 Mbit/s of answers.
    let results = router_results("memory_rate = \"500kbps\"", "");
    let sum = |field: &str| -> u64 {
        let traffic = results["traffic"].as_array().expect("there are results");
        traffic.iter().map(|one| one[field].as_u64().expect("a number")).sum()
    };
    let dropped = results["memory"]["tables"][0]["dropped"].as_u64().expect("a number");
    assert!(dropped > 100 && sum("sent") == sum("received") + dropped, "{results:#}");
    let enough = router_results("memory_rate = \"1Gbps\"", "");
    assert_eq!(enough["memory"]["tables"][0]["dropped"], 0, "{enough:#}");
}

#[test]
fn packets_do_not_wait_for_a_server_whose_link_is_down() {
    let faults = |all: &[(u32, &str, &str)]| {
        let one = |(at, key, server): &(u32, &str, &str)| {
            format!("[[faults]]\nat = \"{at}ms\"\n{key} = [\"s1\", \"{server}\"]\n")
        };
        all.iter().map(one).collect::<String>()
    };
    let changing = router_latencies(&faults(&[(300, "down", "m1"), (500, "up", "m1"), (600, "down", "m2")]));
    // The answers of one server follow each other on its link.
    assert_eq!(changing, router_latencies(&faults(&[(50, "down", "m2")])));
}
