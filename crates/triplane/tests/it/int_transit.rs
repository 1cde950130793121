//! The example of INT: what packets report of switches is what captures of all ports show, packet for packet.

use std::collections::BTreeMap;

use crate::support::{self, Directory, run, triplane};
use wire::{ethernet, ipv4, pcap, udp};

/// The ports of a switch on the path from h1 to h3: number of the switch, input, output.
const PATH: [(u64, u16, u16); 3] = [(1, 1, 3), (2, 1, 2), (3, 3, 1)];

/// Returns the frames with datagrams to h3 and h4 that pass a port, and their times.
fn passing(out: &str, switch: u64, port: u16) -> Vec<(u64, Vec<u8>)> {
    let bytes = std::fs::read(format!("{out}/s{switch}-{port}.pcap")).expect("it was captured");
    let frames = pcap::Reader::new(bytes.as_slice()).expect("a capture").map(|frame| frame.expect("a frame"));
    let is_data =
        |frame: &pcap::Captured| frame.data[12..14] == ethernet::IPV4.to_be_bytes() && matches!(frame.data[33], 3 | 4);
    frames.filter(is_data).map(|frame| (frame.time_ns, frame.data)).collect()
}

fn is_measured(frame: &[u8]) -> bool {
    frame[33] == 3
}

/// Returns the true metadata of each measured packet at a switch, in order: latency, queue, times.
fn true_values(out: &str, (switch, _, output): (u64, u16, u16), inputs: &[u16], hosts: &[u8]) -> Vec<[u64; 4]> {
    let goes_there = |(_, frame): &(u64, Vec<u8>)| hosts.contains(&frame[33]);
    let mut entered: Vec<_> = inputs.iter().flat_map(|port| passing(out, switch, *port)).filter(goes_there).collect();
    entered.sort_by_key(|(time, _)| *time);
    let left = passing(out, switch, output);
    assert_eq!(entered.len(), left.len(), "s{switch}: nothing is lost");
    let mut values = Vec::new();
    for (number, ((came, frame), (went, gone))) in entered.iter().zip(&left).enumerate() {
        assert_eq!(frame[33], gone[33], "s{switch} sends packets in the order of their arrival");
        // A packet that leaves at the moment at which another arrives has left before.
        let arrived = entered.iter().filter(|(time, _)| time < went).count();
        let waiting = arrived.saturating_sub(number + 1) as u64;
        if is_measured(frame) {
            values.push([went - came, waiting, *came, *went]);
        }
    }
    values
}

#[test]
fn every_packet_reports_the_true_queue_and_latency_of_each_switch() {
    let directory = Directory::new();
    let example = support::root().join("examples/int-transit");
    let text = |name: &str| std::fs::read_to_string(example.join(name)).expect("the example has it");
    let lab = directory.write("lab.toml", text("lab.toml"));
    let ports = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 1), (3, 3)];
    let captures = ports
        .map(|(switch, port)| format!("[[captures]]\nat = \"s{switch}:{port}\"\nfile = \"s{switch}-{port}.pcap\"\n"));
    let scenario = directory.write("scenario.toml", text("scenario.toml") + &captures.concat());
    let out = directory.path("out");
    let arguments = ["lab", "sim", &lab, "--scenario", &scenario, "--out", &out, "--json"];
    let results = run(&mut triplane(&arguments)).ok().json();
    let (flow, int) = (&results["traffic"][0], &results["traffic"][0]["int"]);
    let fields: Vec<_> = int["fields"].as_array().expect("a list").iter().map(|name| name.as_str().unwrap()).collect();
    let expected = [
        "Node ID",
        "Ingress interface ID",
        "Egress interface ID",
        "Hop latency",
        "Queue ID",
        "Queue occupancy",
        "Ingress timestamp",
        "Egress timestamp",
    ];
    assert_eq!(fields, expected);
    let packets = int["packets"].as_array().expect("a list");
    assert_eq!((&int["inserted"], packets.len() as u64), (&flow["sent"], flow["received"].as_u64().unwrap()));
    assert_eq!(packets.len(), 2_257);
    let truth = [
        true_values(&out, PATH[0], &[1, 2], &[3, 4]),
        true_values(&out, PATH[1], &[1], &[3, 4]),
        true_values(&out, PATH[2], &[3], &[3]),
    ];
    let mut queues = BTreeMap::<u64, u64>::new();
    for (number, packet) in packets.iter().enumerate() {
        assert_eq!((&packet["from"], &packet["to"], &packet["number"]), (&"h1".into(), &"h3".into(), &number.into()));
        let hops = packet["hops"].as_array().expect("a list");
        assert_eq!((hops.len(), &packet["incomplete"]), (3, &false.into()));
        for (((switch, input, output), hop), truth) in PATH.iter().zip(hops).zip(&truth) {
            let [latency, queue, came, went] = truth[number];
            let expected = [*switch, (*input).into(), (*output).into(), latency, 0, queue, came, went];
            let reported: Vec<_> = hop.as_array().expect("a list").iter().map(|value| value.as_u64()).collect();
            assert_eq!(reported, expected.map(Some), "packet {number} at s{switch}");
            let most = queues.entry(*switch).or_default();
            *most = queue.max(*most);
        }
    }
    // The middle link is the bottleneck.
    assert_eq!((queues[&2], queues[&3]), (462, 0));
    for (_, frame) in passing(&out, 3, 1) {
        let ip = ipv4::Packet::new_checked(&frame[14..]).expect("a packet");
        let datagram = udp::Packet::new_checked(ip.payload()).expect("a datagram");
        let addresses = wire::checksum::Addresses::V4(ip.source(), ip.destination());
        assert!(ip.is_checksum_right() && datagram.checksum() != 0 && datagram.is_checksum_right(addresses));
        assert_eq!((frame.len(), datagram.destination_port()), (500, 5_000), "the host gets what h1 meant to send");
    }
}
