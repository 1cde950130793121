use super::*;
use crate::{ethernet, ipv4, ipv6, tcp, udp};

/// The example of the specification, section 6.1: two hops have added number and queue occupancy; six may follow.
const EXAMPLE: [u8; 36] = [
    0x10, 8, 0x00, 0x14, // INT-MD, next protocol type 0, 8 words, DSCP 5
    0x20, 0x00, 0x02, 6, // version 2, no flags, two words a hop, six hops
    0x90, 0x00, 0x00, 0x00, // bits 0 and 3
    0x00, 0x00, 0x00, 0x00, // no domain instructions
    0, 0, 0, 2, 0x03, 0x00, 0x01, 0x02, // node 2, queue 3 with 258 packets
    0, 0, 0, 1, 0x00, 0x00, 0x00, 0x05, // node 1, queue 0 with 5 packets
    0xff, 0xff, 0xff, 0xff, // payload
];

fn example() -> Repr {
    Repr { remaining_hops: 6, ..Repr::new(NextProtocol::Payload { dscp: 5 }, 0x9000, 8) }
}

#[test]
fn the_layout_is_that_of_the_specification() {
    // Header and two hops of two words are seven words; an eighth lies.
    assert_eq!(Packet::new_checked(&EXAMPLE).unwrap_err().to_string(), "INT: length of the stack cannot be 20");
    let mut bytes = EXAMPLE;
    bytes[1] = 7;
    let packet = Packet::new_checked(&bytes).unwrap();
    assert_eq!((packet.length(), packet.hop_len(), packet.stack()), (32, 8, &bytes[16..32]));
    assert_eq!(Repr::parse(&packet), example());
    assert_eq!(example().packet(&bytes[16..32]), bytes[..32]);
}

#[test]
fn every_flag_and_field_has_its_bits() {
    let repr = Repr {
        next: NextProtocol::UdpPayload { port: 0x1234 },
        is_discarded: true,
        is_hops_exceeded: true,
        is_mtu_exceeded: true,
        hop_words: 31,
        remaining_hops: 255,
        instructions: 0x5678,
        domain: 0x9abc,
        ds_instructions: 0xdef0,
        ds_flags: 0x1357,
    };
    let expected = [0x14, 3, 0x12, 0x34, 0x2e, 0, 31, 255, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x13, 0x57];
    assert_eq!(repr.packet(&[]), expected);
    assert_eq!(Repr::parse(&Packet::new_checked(&expected).unwrap()), repr);
    let only = |repr: Repr| {
        let bytes = repr.packet(&[]);
        assert_eq!(Repr::parse(&Packet::new_checked(&bytes).unwrap()), repr);
        bytes[4]
    };
    let none = Repr::new(NextProtocol::Transport { protocol: 6 }, 0x8000, 1);
    assert_eq!(only(Repr { is_discarded: true, ..none }), 0x28);
    assert_eq!(only(Repr { is_hops_exceeded: true, ..none }), 0x24);
    assert_eq!(only(Repr { is_mtu_exceeded: true, ..none }), 0x22);
    assert_eq!(none.packet(&[])[..4], [0x18, 3, 0, 6]);
}

#[test]
fn lengths_that_lie_are_refused() {
    let whole = example().packet(&[0; 16]);
    let refused = |at: usize, value: u8, why: &str| {
        let mut bytes = whole.clone();
        bytes[at] = value;
        let error = Packet::new_checked(&bytes).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    refused(0, 0x20, "type cannot be 2");
    refused(0, 0x30, "type cannot be 3");
    refused(0, 0x1c, "next protocol type cannot be 3");
    refused(1, 2, "length cannot be 2");
    refused(1, 9, "40 bytes are needed and 32 are there");
    refused(4, 0x10, "version cannot be 1");
    refused(6, 1, "length of a hop cannot be 4");
    refused(6, 0, "length of a hop cannot be 0");
    refused(6, 3, "length of the stack cannot be 16");
    for len in 0..whole.len() {
        assert!(Packet::new_checked(&whole[..len]).is_err(), "{len}");
    }
    // A source may add more for its domain.
    let mut bytes = whole.clone();
    (bytes[6], bytes[12]) = (3, 0x80);
    assert!(Packet::new_checked(&bytes).is_ok());
}

#[test]
fn each_instruction_requests_its_words() {
    let lens: Vec<_> = (0..16).map(|bit| metadata_len(0x8000 >> bit)).collect();
    assert_eq!(lens, [4, 4, 4, 4, 8, 8, 8, 4, 4, 4, 4, 4, 4, 4, 4, 4]);
    assert_eq!((metadata_len(u16::MAX), metadata_len(0)), (76, 0));
}

#[test]
fn markers_have_texts() {
    for text in ["udp:18772", "dscp:0", "dscp:63"] {
        assert_eq!(text.parse::<Marker>().unwrap().to_string(), text);
    }
    assert_eq!(Marker::default().to_string(), "udp:18772");
    for text in ["udp:0", "udp:65536", "dscp:64", "tcp:1", "udp", "udp:", "dscp:-1", ""] {
        assert_eq!(text.parse::<Marker>(), Err(NotAMarker), "{text}");
    }
}

fn v4(dscp: u8, protocol: u8, segment: &[u8]) -> Vec<u8> {
    let ip = ipv4::Repr::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), protocol);
    framed(ethernet::IPV4, &ipv4::Repr { traffic_class: dscp << 2 | 1, ..ip }.packet(segment))
}

fn framed(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let [destination, source] = [2, 1].map(|last| ethernet::Address([8, 0, 0, 0, 0, last]));
    ethernet::Repr { destination, source, ethertype }.packet(packet)
}

const ADDRESSES: crate::checksum::Addresses =
    crate::checksum::Addresses::V4(std::net::Ipv4Addr::new(10, 0, 0, 1), std::net::Ipv4Addr::new(10, 0, 0, 2));

#[test]
fn markers_select_packets_and_not_fragments() {
    let datagram = |port| udp::Repr { source_port: 9, destination_port: port }.packet(ADDRESSES, b"0123456789");
    let (port, dscp) = (Marker::UdpPort(700), Marker::Dscp(23));
    let place = find(&v4(0, ipv4::UDP, &datagram(700)), port).unwrap();
    assert_eq!((place.ip, place.transport, place.start, place.end, place.is_udp), (14, 34, 42, 52, true));
    assert_eq!(find(&v4(0, ipv4::UDP, &datagram(701)), port), None);
    assert_eq!(find(&v4(23, ipv4::UDP, &datagram(1)), dscp).map(|place| place.start), Some(42));
    assert_eq!(find(&v4(22, ipv4::UDP, &datagram(1)), dscp), None);
    assert_eq!(find(&v4(23, ipv4::ICMP, &datagram(1)), dscp), None);
    let segment = tcp::Repr {
        source_port: 1,
        destination_port: 700,
        sequence: 1,
        acknowledgement: 1,
        flags: tcp::Flags::ACK,
        window: 9,
    };
    let mut segment = segment.packet(ADDRESSES, b"optspayload");
    segment[12] = 6 << 4;
    let place = find(&v4(23, ipv4::TCP, &segment), dscp).unwrap();
    assert_eq!((place.start, place.end, place.is_udp), (58, 65, false));
    assert_eq!(find(&v4(23, ipv4::TCP, &segment), port), None, "only UDP has the port");
    for (at, value) in [(20, 0x20), (21, 1), (16, 5)] {
        let mut frame = v4(0, ipv4::UDP, &datagram(700));
        frame[at] = value;
        assert_eq!(find(&frame, port), None, "a fragment, or cut");
    }
    let frame = v4(0, ipv4::UDP, &datagram(700));
    for len in 0..frame.len() {
        assert_eq!(find(&frame[..len], port), None, "{len}");
    }
    let ip = ipv6::Repr::new([1; 16].into(), [2; 16].into(), ipv4::UDP);
    let frame = framed(ethernet::IPV6, &ip.packet(&datagram(700)));
    let place = find(&frame, port).unwrap();
    assert_eq!((place.start, place.end, place.is_ipv6, place.packet_len(&frame)), (62, 72, true, 58));
    let mut tagged = v4(0, ipv4::UDP, &datagram(700));
    tagged.splice(12..12, [0x81, 0, 0, 7]);
    assert_eq!(find(&tagged, port).map(|place| (place.start, place.packet_len(&tagged))), Some((46, 38)));
}

#[test]
fn the_next_protocol_type_fits_the_marker() {
    let with = |next, marker, dscp| {
        let payload = Repr::new(next, 0x8000, 3).packet(&[]);
        let datagram = udp::Repr { source_port: 9, destination_port: 700 }.packet(ADDRESSES, &payload);
        let frame = v4(dscp, ipv4::UDP, &datagram);
        find(&frame, marker).unwrap().packet(&frame).map(|packet| packet.remaining_hops())
    };
    let (port, dscp) = (Marker::UdpPort(700), Marker::Dscp(23));
    assert_eq!(with(NextProtocol::UdpPayload { port: 5 }, port, 0), Ok(3));
    assert_eq!(with(NextProtocol::Transport { protocol: 6 }, port, 0), Ok(3));
    assert_eq!(with(NextProtocol::Payload { dscp: 0 }, dscp, 23), Ok(3));
    assert!(with(NextProtocol::Payload { dscp: 0 }, port, 0).is_err());
    assert!(with(NextProtocol::UdpPayload { port: 5 }, dscp, 23).is_err());
}

#[test]
fn reports_have_the_layout_of_the_specification() {
    let packet: Vec<u8> = (0..42).collect();
    let repr = report::Repr {
        node: 0x01020304,
        sequence: 0x40_0007,
        metadata_bits: 0x1000,
        metadata: &[0, 0, 0, 9],
        is_ipv6: false,
        packet: &packet,
    };
    let mut expected = vec![
        0x20, 0x00, 0x00, 0x07, 1, 2, 3, 4, // version 2, hardware 0, number 7; the node
        0x14, 13, 1, 0x20, // INT, IPv4, 13 words, one of metadata; a flow
        0x10, 0x00, 0, 0, 0, 0, 0, 0, // bit 3, no domain
        0, 0, 0, 9, // its queue
    ];
    expected.extend(0..40);
    assert_eq!(repr.emit(), expected, "only whole words");
    let parsed = report::Packet::new_checked(&expected).unwrap();
    assert_eq!((parsed.node(), parsed.sequence(), parsed.metadata_bits()), (0x01020304, 7, 0x1000));
    assert_eq!((parsed.metadata(), parsed.packet(), parsed.is_ipv6()), (&[0, 0, 0, 9][..], &packet[..40], false));
    let long = report::Repr { packet: &[1; 5_000], is_ipv6: true, ..repr }.emit();
    let parsed = report::Packet::new_checked(&long).unwrap();
    assert_eq!((long.len(), parsed.packet().len(), parsed.is_ipv6()), (12 + 4 * 255, 4 * 252, true));
    for len in 0..expected.len() {
        assert!(report::Packet::new_checked(&expected[..len]).is_err(), "{len}");
    }
    for (at, value) in [(0, 0x10), (8, 0x24), (8, 0x13), (9, 2), (9, 14), (10, 12)] {
        let mut bytes = expected.clone();
        bytes[at] = value;
        assert!(report::Packet::new_checked(&bytes).is_err(), "{at} {value}");
    }
}
