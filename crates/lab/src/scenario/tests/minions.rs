//! Tiny packet programs of hosts in scenarios.

use super::*;
use crate::scenario::MinionResult;
use tpp::{AccessRights, MemoryMap, SparseMemory, Tcpu};

/// A hub that executes programs; its number is 7.
struct TinyHub(Hub);

impl Device for TinyHub {
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        self.0.step(now, input, output);
        for frame in output {
            let Some(place) = wire::tpp::find(&frame.data) else { continue };
            let mut memory = SparseMemory::new();
            memory.fixed(MemoryMap::new().find("Switch:ID").expect("it is in the map").address, 7);
            Tcpu::execute(&mut frame.data[place.start..place.end], &mut memory, &AccessRights::all());
        }
    }

    fn next_event(&self) -> Option<Time> {
        None
    }
}

impl Element for TinyHub {
    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

/// Runs traffic whose programs push the number of the switch.
fn run(traffic: &str) -> Results {
    let (scenario, findings) = read(&format!("duration = \"2s\"\n[[traffic]]\nname = \"t\"\n{traffic}"));
    let scenario = scenario.unwrap_or_else(|| panic!("{findings}"));
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let program = tpp::assemble(&mut sources, "id.tpp", "PUSH [Switch:ID]", &MemoryMap::new(), &mut diagnostics);
    let programs = BTreeMap::from([("id.tpp".to_owned(), program.expect("it has no mistakes"))]);
    let files = ScenarioFiles { programs, ..ScenarioFiles::default() };
    let make: MakeElement = Arc::new(|_| Box::new(TinyHub(Hub(vec![1, 2, 3, 4]))));
    let (topology, _) = star();
    let mut run = prepare(&topology, &scenario, 1, &files, make);
    run.run(1, &mut |_| {});
    run.results(&topology, &scenario)
}

fn minion(results: &Results) -> &MinionResult {
    results.traffic[0].minion.as_ref().expect("it has programs")
}

const UDP: &str = "kind = \"udp\"\nfrom = \"h1\"\nto = \"h2\"\nrate = \"1Mbps\"\n";

#[test]
fn each_packet_tells_what_the_switch_wrote_and_arrives_as_it_was() {
    let plain = run(&format!("{UDP}size = 125\n"));
    let results = run(&format!("{UDP}size = 125\nminion = \"id.tpp\"\n"));
    let (flow, minion) = (&results.traffic[0], minion(&results));
    assert_eq!(flow.measured.received, plain.traffic[0].measured.received);
    assert_eq!(flow.measured.bytes, plain.traffic[0].measured.bytes);
    assert_eq!((minion.inserted, minion.arrived, minion.too_long), (flow.measured.sent, flow.measured.received, 0));
    assert_eq!((minion.file.as_str(), &minion.words[..]), ("id.tpp", &["Switch:ID".to_owned()][..]));
    assert!(minion.arrived > 1990 && minion.packets.len() as u64 == minion.arrived, "{}", minion.arrived);
    for packet in &minion.packets {
        assert_eq!((&packet.hops[..], packet.from, packet.to), (&[vec![7]][..], Some(0), Some(1)));
    }
    assert!(plain.traffic[0].minion.is_none());
}

#[test]
fn a_share_of_the_packets_is_sampled() {
    let results = run(&format!("{UDP}size = 125\nminion = {{ file = \"id.tpp\", one_in = 10 }}\n"));
    let minion = minion(&results);
    assert!((160..240).contains(&minion.inserted), "{} of 2000", minion.inserted);
    assert!(results.traffic[0].measured.received > 1990);
}

#[test]
fn full_segments_have_room_and_full_datagrams_are_counted() {
    let bulk = run("kind = \"tcp\"\nfrom = \"h1\"\nto = \"h2\"\nbytes = 300000\nminion = \"id.tpp\"\n");
    let (flow, programs) = (&bulk.traffic[0], minion(&bulk));
    assert_eq!((flow.measured.received, flow.measured.bytes, programs.too_long), (1, 300_000, 0));
    assert!(programs.inserted > 200, "{}", programs.inserted);
    let full = run(&format!("{UDP}size = 1514\nminion = \"id.tpp\"\n"));
    let (flow, programs) = (&full.traffic[0], minion(&full));
    assert!(flow.measured.received > 100, "{}", flow.measured.received);
    assert_eq!((programs.inserted, programs.too_long, programs.arrived), (0, flow.measured.sent, 0));
}

#[test]
fn programs_as_datagrams_are_executed_on_the_way_there_only() {
    let kind =
        "kind = \"tpp\"\nfrom = \"h1\"\nto = [\"h2\", \"h3\"]\nfile = \"id.tpp\"\ncount = 20\ninterval = \"5ms\"\n";
    let results = run(kind);
    let (flow, programs) = (&results.traffic[0], minion(&results));
    assert_eq!((flow.measured.sent, flow.measured.received, flow.unit), (40, 40, "echoes"));
    assert_eq!((programs.inserted, programs.arrived), (40, 40));
    assert!(programs.packets.iter().all(|packet| packet.hops == [vec![7]]));
    assert_eq!(programs.packets.iter().filter(|packet| packet.to == Some(2)).count(), 20);
    assert!(flow.measured.latency.min() > 200_000, "two links of 50 us there and back");
}

const RCP: &str = "kind = \"rcp\"\nfrom = \"h1\"\nto = \"h2\"\n";

#[test]
fn policies_of_paths_are_checked_packet_by_packet() {
    let traffic = format!("{UDP}size = 125\nminion = \"id.tpp\"\n[[expect]]\ntraffic = \"t\"\n");
    // The hub has the number 7, and the topology's s1 has the number 1.
    assert!(run(&format!("{traffic}avoids = \"s1\"\n")).unmet.is_empty());
    let results = run(&format!("{traffic}passes = \"s1\"\nafter = \"1s\"\n"));
    let message = &results.unmet[0].message;
    assert!(message.starts_with("the number of packets on other paths of `t` (first at 1.000"), "{message}");
    assert!(message.contains("by 7) is 100") && message.ends_with("expected at most 0"), "{message}");
}

#[test]
fn wrong_minions_are_refused() {
    let findings = |traffic: &str| read(&format!("[[traffic]]\n{traffic}")).1;
    for (traffic, part) in [
        ("kind = \"ping\"\nfrom = \"h1\"\nto = \"h2\"\nminion = \"a.tpp\"\n", "traffic of kind `ping` has no `minion`"),
        (&format!("{UDP}minion = 7\n"), "`minion` must be a file"),
        (&format!("{UDP}minion = {{ one_in = 2 }}\n"), "a minion needs a file"),
        (&format!("{UDP}minion = {{ file = \"a.tpp\", one_in = 0 }}\n"), "`one_in` must be an integer from 1"),
        (&format!("{UDP}minion = {{ file = \"a.tpp\", every = 2 }}\n"), "every"),
        ("kind = \"tpp\"\nfrom = \"h1\"\nto = \"h2\"\n", "tiny packet programs need a file"),
        (&format!("{UDP}[[expect]]\ntraffic = \"traffic 1\"\navoids = \"s1\"\n"), "record no paths: add minion"),
        (
            &format!("{UDP}minion = \"a.tpp\"\n[[expect]]\ntraffic = \"traffic 1\"\npasses = \"h3\"\n"),
            "is a host: paths",
        ),
        (&format!("{RCP}fairness = 0\n"), "`fairness` must be a number from 0.01 to 100"),
        (&format!("{RCP}fairness = \"equal\"\n"), "`fairness` must be one of max-min, proportional"),
    ] {
        assert!(findings(traffic).contains(part), "{traffic}: {}", findings(traffic));
    }
}
