//! INT headers of hosts in scenarios.

use super::*;
use crate::scenario::IntResult;
use tpp::int::IntNode;
use tpp::{MemoryMap, SparseMemory};
use wire::int::Marker;

/// A hub that is the sink of all packets; its number is 7. Two nodes before it have latencies of 5 and 6 ns,
/// and no number.
struct IntHub(Hub, Vec<(Time, Vec<u8>)>);

impl Device for IntHub {
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        self.0.step(now, input, output);
        for frame in output {
            let node = IntNode::new(Marker::default());
            for latency in [5, 6] {
                let (map, mut memory) = (MemoryMap::new(), SparseMemory::new());
                memory.fixed(map.find("PacketMetadata:HopLatency").expect("it is in the map").address, latency);
                node.transit(&mut frame.data, 1_500, &mut memory);
            }
            let mut memory = SparseMemory::new();
            if let Ok(removal) = node.sink(&mut frame.data, 7, || 9, &mut memory) {
                self.1.push((now, removal.report));
            }
        }
    }

    fn next_event(&self) -> Option<Time> {
        None
    }
}

impl Element for IntHub {
    fn int_reports(&self) -> &[(Time, Vec<u8>)] {
        &self.1
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

fn run(traffic: &str) -> Results {
    let (scenario, findings) = read(&format!("duration = \"2s\"\n{traffic}"));
    let scenario = scenario.unwrap_or_else(|| panic!("{findings}"));
    let make: MakeElement = Arc::new(|_| Box::new(IntHub(Hub(vec![1, 2]), Vec::new())));
    let (topology, _) = star();
    let mut run = prepare(&topology, &scenario, 1, &ScenarioFiles::default(), make);
    run.run(1, &mut |_| {});
    run.results(&topology, &scenario)
}

fn int(results: &Results, traffic: usize) -> &IntResult {
    results.traffic[traffic].int.as_ref().expect("it has INT")
}

#[test]
fn each_traffic_has_its_own_reports_with_the_sink_last() {
    let flow = |name: &str, from: &str, more: &str| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nkind = \"udp\"\nfrom = \"{from}\"\nto = \"h2\"\nrate = \"1Mbps\"\nsize = 125\n{more}\n"
        )
    };
    let both = flow("a", "h1", "int = [\"node\", \"latency\"]") + &flow("b", "h1", "");
    let results = run(&both);
    let plain = run(&(flow("a", "h1", "") + &flow("b", "h1", "")));
    let (first, found) = (&results.traffic[0], int(&results, 0));
    assert!(results.traffic[1].int.is_none());
    assert_eq!(first.measured.received, plain.traffic[0].measured.received);
    assert_eq!(first.measured.bytes, plain.traffic[0].measured.bytes, "hosts get what was sent");
    assert_eq!(
        (found.inserted, found.too_long, &found.fields[..]),
        (first.measured.sent, 0, &["Node ID", "Hop latency"][..])
    );
    assert_eq!(found.packets.len() as u64, first.measured.sent);
    for packet in &found.packets {
        assert_eq!(packet.hops, [[None, Some(5)], [None, Some(6)], [Some(7), None]]);
        assert_eq!((packet.from, packet.to, packet.number, packet.is_incomplete), (Some(0), Some(1), 9, false));
    }
}

#[test]
fn datagrams_without_room_have_no_header() {
    let results = run(
        "[[traffic]]\nkind = \"udp\"\nfrom = \"h1\"\nto = \"h2\"\nrate = \"1Mbps\"\nsize = 1514\nint = [\"queue\"]\n",
    );
    let found = int(&results, 0);
    assert_eq!((found.inserted, found.too_long > 10), (0, true));
    assert_eq!(found.too_long, results.traffic[0].measured.received);
}

#[test]
fn instructions_are_names_in_a_list() {
    for wrong in ["[]", "\"node\"", "[\"nodes\"]", "[1]"] {
        let text = format!(
            "duration = \"1s\"\n[[traffic]]\nkind = \"udp\"\nfrom = \"h1\"\nto = \"h2\"\nrate = \"1Mbps\"\nint = {wrong}\n"
        );
        let (_, findings) = read(&text);
        assert!(findings.contains("`int` must be a list of \"node\", \"interfaces\","), "{findings}");
    }
    let (_, findings) =
        read("duration = \"1s\"\n[[traffic]]\nkind = \"ping\"\nfrom = \"h1\"\nto = \"h2\"\nint = [\"node\"]\n");
    assert!(findings.contains("traffic of kind `ping` has no `int`"), "{findings}");
}
