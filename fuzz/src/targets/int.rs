//! Nodes of an INT domain, a part of the target for tiny packet programs: frames that lie stay as they are, and a sink
//! restores the same packet with and without the metadata of a transit.

use tpp::SparseMemory;
use tpp::int::{IntNode, IntVerdict, values};
use wire::int::{Marker, NextProtocol, Packet, Repr, report};
use wire::{ethernet, ipv4, udp};

use super::Reached;

/// Maximum length of an IP packet with INT, in bytes.
const MTU: usize = 1500;

/// Returns the nodes of two domains.
fn nodes() -> [IntNode; 2] {
    [Marker::default(), Marker::Dscp(23)].map(IntNode::new)
}

/// Returns a datagram with this payload to a port.
fn datagram(port: u16, payload: &[u8]) -> Vec<u8> {
    let ip = ipv4::Repr::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), ipv4::UDP);
    let packet = ip.packet(&udp::Repr { source_port: 4000, destination_port: port }.packet(ip.addresses(), payload));
    [&[2; 12][..], &ethernet::IPV4.to_be_bytes(), &packet].concat()
}

/// Returns payloads that begin with an INT header, and frames with one.
pub fn seeds() -> Vec<Vec<u8>> {
    let header = |next, instructions| Repr::new(next, instructions, 8);
    let mut seeds = vec![
        header(NextProtocol::UdpPayload { port: 53 }, 0xffff).packet(&[7; 76]),
        header(NextProtocol::Transport { protocol: 6 }, 0x9000).packet(&[7; 16]),
        header(NextProtocol::Payload { dscp: 5 }, 0x8001).packet(&[]),
    ];
    for node in nodes() {
        let mut frame = datagram(53, b"payload");
        node.source(&mut frame, header(NextProtocol::Payload { dscp: 0 }, 0xfd00), MTU);
        seeds.push(frame);
    }
    seeds
}

/// Runs an input as a frame, as the payload of a marked datagram, and as a report.
pub fn run(input: &[u8], reached: &mut Reached) {
    let payload = &input[..input.len().min(2_000)];
    let Marker::UdpPort(port) = Marker::default() else { unreachable!("the default is a port") };
    for node in nodes() {
        run_frame(&node, input, reached);
        run_frame(&node, &datagram(port, payload), reached);
    }
    if let Ok(packet) = Packet::new_checked(input) {
        let again = Repr::parse(&packet).packet(packet.stack());
        assert_eq!(Repr::parse(&Packet::new_checked(&again[..]).expect("it was checked")), Repr::parse(&packet));
        values(packet.instructions(), packet.stack());
    }
    if let Ok(report) = report::Packet::new_checked(input) {
        assert!(report.metadata().len() + report.packet().len() <= input.len());
        reached.add(("report", report.is_ipv6()));
    }
}

fn run_frame(node: &IntNode, frame: &[u8], reached: &mut Reached) {
    let restored = |frame: &[u8]| {
        let mut frame = frame.to_vec();
        let removal = node.sink(&mut frame, 1, || 2, &mut SparseMemory::new());
        if let Ok(removal) = &removal {
            report::Packet::new_checked(&removal.report[..]).expect("a sink's report");
        }
        removal.map(|_| frame)
    };
    let (mut passed, before) = (frame.to_vec(), restored(frame));
    let verdict = node.transit(&mut passed, MTU, &mut SparseMemory::new());
    match verdict {
        IntVerdict::Inserted => assert!(passed.len() > frame.len()),
        IntVerdict::HopsExceeded | IntVerdict::MtuExceeded => assert_eq!(passed.len(), frame.len()),
        _ => assert_eq!(passed, frame, "{verdict:?}"),
    }
    let name = match verdict {
        IntVerdict::Malformed(malformed) => malformed.to_string().split(' ').take(4).collect(),
        other => format!("{other:?}"),
    };
    reached.add(("int", name, before.is_ok()));
    assert_eq!(restored(&passed), before, "the sink restores the packet of the source");
}
