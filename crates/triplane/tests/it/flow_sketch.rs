//! The example of sketches: estimates are those of the flows that were captured at the links themselves.

use std::collections::BTreeSet;

use crate::support::{self, Directory, run, triplane};
use serde_json::Value;
use tpp::shim::PacketFlow;
use tpp::sketch::{BitmapSketch, Cardinality, LinkPlace, SketchHash};
use wire::pcap;

const LAB: &str = "examples/flow-sketch/lab.toml";

/// Runs of the example: what is done with its scenario, and the folder of the results.
struct SketchRun {
    directory: Directory,
    arguments: Vec<String>,
}

impl SketchRun {
    /// Writes the scenario of the example with a change of its text and more text, and its program.
    fn new((from, to): (&str, &str), more: &str) -> SketchRun {
        let example = support::root().join("examples/flow-sketch");
        let read = |name: &str| std::fs::read_to_string(example.join(name)).expect("it is there");
        let text = read("scenario.toml");
        assert!(text.contains(from), "the scenario has {from}");
        let directory = Directory::new();
        directory.write("path.tpp", read("path.tpp"));
        directory.write("port.tpp", "PUSH [PacketMetadata:OutputPort]\n");
        let scenario = directory.write("scenario.toml", text.replace(from, to) + more);
        let out = directory.path("out");
        let arguments = ["lab", "sim", LAB, "--scenario", &scenario, "--out", &out, "--json"].map(str::to_owned);
        SketchRun { directory, arguments: arguments.to_vec() }
    }

    fn run(&self, more: &[&str]) -> support::Done {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).chain(more.iter().copied()).collect();
        run(&mut triplane(&arguments))
    }

    /// Returns the flows to the other leaf that a capture has, in both periods of ten seconds.
    fn captured(&self, file: &str, to_network: u8) -> [BTreeSet<PacketFlowKey>; 2] {
        let bytes = std::fs::read(format!("{}/{file}", self.directory.path("out"))).expect("it was captured");
        let mut flows = [BTreeSet::new(), BTreeSet::new()];
        for frame in pcap::Reader::new(bytes.as_slice()).expect("a capture") {
            let frame = frame.expect("a frame");
            let (outer, start) = wire::tpp::place_among_tags(&frame.data, 0).expect("a frame");
            if outer != wire::tpp::ETHERTYPE {
                continue;
            }
            let program = wire::tpp::Packet::new_checked(&frame.data[start..]).expect("a program");
            let packet = &frame.data[start + program.length()..];
            let flow = PacketFlow::parse(program.encapsulated(), packet).expect("an IP packet");
            let std::net::IpAddr::V4(to) = flow.destination else { panic!("{flow:?}") };
            if to.octets()[1] == to_network {
                flows[(frame.time_ns / 10_000_000_000) as usize].insert(key(&flow));
            }
        }
        flows
    }
}

/// Checks that a run failed with a message that has these parts.
#[track_caller]
fn assert_fails(done: &support::Done, parts: &[&str]) {
    assert_ne!(done.code, Some(0), "{done:?}");
    parts.iter().for_each(|part| assert!(done.stderr.contains(part), "{} lacks {part}", done.stderr));
}

/// The bytes of a flow: source, destination, protocol, ports.
type PacketFlowKey = Vec<u8>;

fn key(flow: &PacketFlow) -> PacketFlowKey {
    let (std::net::IpAddr::V4(source), std::net::IpAddr::V4(destination)) = (flow.source, flow.destination) else {
        panic!("{flow:?}")
    };
    let (from, to) = flow.ports.expect("it has ports");
    let ports = [from.to_be_bytes(), to.to_be_bytes()].concat();
    [source.octets().to_vec(), destination.octets().to_vec(), vec![flow.protocol], ports].concat()
}

/// Returns the counts of a link in a period.
fn counted<'a>(results: &'a Value, link: &str, period: u64) -> &'a Value {
    let links = results["traffic"][0]["minion"]["counts"]["links"].as_array().expect("a list");
    let found = links.iter().find(|one| one["link"] == link && one["period"] == period);
    found.unwrap_or_else(|| panic!("{link} is not in {links:#?}"))
}

#[test]
fn merged_bitmaps_are_those_of_all_flows_at_the_link() {
    // The ports of two spines to leaf 2 have the same number, and other flows.
    let captures = "\n[[captures]]\nat = \"spine1:2\"\nfile = \"spine1.pcap\"\n[[captures]]\nat = \"spine2:2\"\nfile = \
                    \"spine2.pcap\"\n";
    let sketch_run = SketchRun::new(("", ""), captures);
    let results = sketch_run.run(&[]).ok().json();
    let mut all = 0;
    for spine in [1, 2] {
        let flows = sketch_run.captured(&format!("spine{spine}.pcap"), 2);
        for (period, flows) in (1..).zip(&flows) {
            let found = counted(&results, &format!("spine{spine}:2"), period);
            assert_eq!(found["exact"].as_u64(), Some(flows.len() as u64));
            let mut central = BitmapSketch::new(SketchHash { bits: 1_024, seed: 1 });
            let link = LinkPlace { switch: 1, port: 1 };
            flows.iter().for_each(|flow| central.observe(link, flow));
            let Cardinality::About(expected) = central.estimate(link) else { panic!("it is full") };
            let estimate = found["estimate"].as_f64().expect("a number");
            assert!((estimate - expected).abs() < 1e-9, "{estimate} is not {expected}");
            assert!(found["sigma"].as_f64().is_some_and(|sigma| sigma <= 3.0), "{found}");
            all += flows.len();
        }
    }
    // Flows of both spines together, which one bitmap for both ports would count.
    assert!(all > 1_500, "{all}");
    for threads in ["2", "3"] {
        assert_eq!(sketch_run.run(&["--threads", threads]).ok().json(), results, "{threads} threads");
    }
}

#[test]
fn full_bitmaps_have_no_estimate_and_meet_no_expectation() {
    let done = SketchRun::new(("bits = 1024", "bits = 64"), "").run(&[]);
    let full = counted(&done.json(), "spine1:2", 1).clone();
    assert_eq!((full["estimate"].as_str(), full["sigma"].is_null()), (Some("full"), true), "{full}");
    assert_fails(
        &done,
        &["the largest error of an estimate in standard errors of `web` (at spine2:2, period 2) is inf"],
    );
}

#[test]
fn programs_that_do_not_tell_links_are_refused() {
    let done = SketchRun::new(("path.tpp", "port.tpp"), "").run(&[]);
    assert_fails(&done, &["port.tpp does not tell links", "PUSH [Switch:ID]"]);
    let done = SketchRun::new(("count = \"flows\", ", ""), "").run(&[]);
    assert_fails(&done, &["`bits`, `hash_seed` and `every` require `count`", "counts nothing on links"]);
}
