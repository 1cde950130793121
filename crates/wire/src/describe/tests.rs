use std::net::Ipv6Addr;

use super::*;
use crate::ethernet::Address;

fn frame(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let (source, destination) = (Address([8, 0, 0, 0, 1, 1]), Address([8, 0, 0, 0, 2, 2]));
    ethernet::Repr { destination, source, ethertype }.packet(payload)
}

fn ip(protocol: u8) -> ipv4::Repr {
    ipv4::Repr::new([10, 0, 1, 1].into(), [10, 0, 2, 2].into(), protocol)
}

fn over_ip(protocol: u8, payload: &[u8]) -> Vec<u8> {
    frame(ethernet::IPV4, &ip(protocol).packet(payload))
}

fn check(frame: &[u8], expected: &str) {
    assert_eq!(describe(frame), expected);
}

#[test]
fn icmp() {
    let line = |repr: icmpv4::Repr| describe(&over_ip(ipv4::ICMP, &repr.packet(b"data")));
    let text = "10.0.1.1 > 10.0.2.2 ICMP echo request id 7 seq 1, ttl 64";
    assert_eq!(line(icmpv4::Repr::EchoRequest { identifier: 7, sequence: 1 }), text);
    assert!(line(icmpv4::Repr::EchoReply { identifier: 7, sequence: 1 }).contains("echo reply id 7 seq 1"));
    assert!(line(icmpv4::Repr::Unreachable { code: 3, next_mtu: 0 }).contains("port unreachable"));
    assert!(line(icmpv4::Repr::TimeExceeded { code: 0 }).contains("time to live exceeded"));
    assert!(line(icmpv4::Repr::Other { kind: 5, code: 1, rest: [0; 4] }).contains("type 5 code 1"));
}

#[test]
fn tcp_and_udp_name_their_ports() {
    let addresses = ip(0).addresses();
    let mut repr = tcp::Repr {
        source_port: 4000,
        destination_port: 80,
        sequence: 1,
        acknowledgement: 9,
        flags: tcp::Flags::SYN,
        window: 64240,
    };
    check(
        &over_ip(ipv4::TCP, &repr.packet(addresses, b"")),
        "10.0.1.1:4000 > 10.0.2.2:80 TCP SYN seq 1 win 64240, ttl 64",
    );
    repr.flags = tcp::Flags::PSH | tcp::Flags::ACK;
    let mut bytes = over_ip(ipv4::TCP, &repr.packet(addresses, b"hello"));
    check(&bytes, "10.0.1.1:4000 > 10.0.2.2:80 TCP PSH,ACK seq 1 ack 9 win 64240, 5 bytes, ttl 64");
    *bytes.last_mut().unwrap() ^= 1;
    assert!(describe(&bytes).ends_with("5 bytes, bad TCP checksum, ttl 64"), "{}", describe(&bytes));
    let udp = udp::Repr { source_port: 5000, destination_port: 53 };
    let bytes = over_ip(ipv4::UDP, &udp.packet(addresses, b"question"));
    check(&bytes, "10.0.1.1:5000 > 10.0.2.2:53 UDP 8 bytes, ttl 64");
    check(&bytes[..45], "10.0.1.1:5000 > 10.0.2.2:53 UDP 8 bytes, ttl 64, cut short");
}

#[test]
fn tags_and_ipv6() {
    let addresses: [Ipv6Addr; 2] = ["fd00::1".parse().unwrap(), "fd00::2".parse().unwrap()];
    let ip = ipv6::Repr::new(addresses[0], addresses[1], ipv4::UDP);
    let udp = udp::Repr { source_port: 1, destination_port: 2 }.packet(ip.addresses(), b"x");
    let tag = vlan::Repr { priority: 3, drop_eligible: false, identifier: 5, ethertype: ethernet::IPV6 };
    let inner = tag.packet(&ip.packet(&udp));
    check(&frame(ethernet::VLAN, &inner), "vlan 5 priority 3: [fd00::1]:1 > [fd00::2]:2 UDP 1 bytes, hop limit 64");
    let icmp = ipv6::Repr { next_header: ipv6::ICMP, hop_limit: 255, ..ip };
    let line = describe(&frame(ethernet::IPV6, &icmp.packet(&[133, 0, 0, 0])));
    assert_eq!(line, "fd00::1 > fd00::2 ICMPv6 router solicitation, bad ICMPv6 checksum, hop limit 255");
}

#[test]
fn arp_and_the_unknown() {
    let mut repr = arp::Repr {
        operation: arp::Operation::Request,
        sender: Address([8, 0, 0, 0, 1, 1]),
        sender_ip: [10, 0, 0, 1].into(),
        target: Address([0; 6]),
        target_ip: [10, 0, 0, 2].into(),
    };
    check(&frame(ethernet::ARP, &repr.message()), "ARP who has 10.0.0.2, tell 10.0.0.1");
    repr.operation = arp::Operation::Reply;
    check(&frame(ethernet::ARP, &repr.message()), "ARP 10.0.0.1 is at 08:00:00:00:01:01");
    check(&frame(0x88b5, &[0; 46]), "08:00:00:00:01:01 > 08:00:00:00:02:02 type 0x88b5, 60 bytes");
    check(&frame(38, &[0; 46]), "08:00:00:00:01:01 > 08:00:00:00:02:02 802.3 length 38, 60 bytes");
    check(&over_ip(253, b"abc"), "10.0.1.1 > 10.0.2.2 protocol 253 3 bytes, ttl 64");
}

#[test]
fn malformed_and_damaged_packets_are_described() {
    check(&[1, 2, 3], "malformed Ethernet: 14 bytes are needed and 3 are there");
    check(&over_ip(ipv4::TCP, b"abc"), "10.0.1.1 > 10.0.2.2 malformed TCP: 20 bytes are needed and 3 are there");
    let mut bytes = over_ip(253, b"abc");
    bytes[22] = 1;
    check(&bytes, "10.0.1.1 > 10.0.2.2 protocol 253 3 bytes, ttl 1, bad IP checksum");
    bytes[20..22].copy_from_slice(&[0x20, 185]);
    assert!(describe(&bytes).contains("3 bytes, fragment at 1480"), "{}", describe(&bytes));
}

/// Noise, and valid frames with damaged bytes, of every length.
#[test]
fn no_frame_makes_it_panic() {
    let mut rng = rng::SplitMix64::new(1);
    let mut random = move || rng.next_u64();
    let tag = vlan::Repr { priority: 0, drop_eligible: false, identifier: 5, ethertype: ethernet::IPV6 };
    let ip6 = ipv6::Repr::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, 44);
    let good = [
        over_ip(ipv4::TCP, &[0x50; 40]),
        over_ip(ipv4::UDP, &[0; 20]),
        over_ip(ipv4::UDP, &[&[0, 1, 0x12, 0xb7, 0, 60, 0, 0][..], &[0; 52]].concat()),
        over_ip(ipv4::ICMP, &[8; 20]),
        frame(ethernet::VLAN, &tag.packet(&ip6.packet(&[0; 60]))),
        frame(ethernet::ARP, &[0; 46]),
    ];
    for round in 0..50_000usize {
        let mut bytes = good[round % good.len()].clone();
        for _ in 0..random() % 6 {
            let at = 12 + random() as usize % (bytes.len() - 12);
            bytes[at] = random() as u8;
        }
        bytes.truncate(random() as usize % (bytes.len() + 1));
        assert!(!describe(&bytes).is_empty());
        let cut = [crate::offload::SegmentKind::Tcp, crate::offload::SegmentKind::Udp][round % 2];
        let mut len = 0;
        let done = crate::offload::segment(&bytes, cut, None, 1 + random() as usize % 20, |piece| len += piece.len());
        assert!(done.is_err() || len >= bytes.len());
    }
}

#[test]
fn rdma_packets_are_described_with_their_integrity() {
    use crate::roce::{self, Aeth, Extension, NakCode, Opcode, Position, Psn, Reth, Syndrome};
    let line = |repr: roce::Repr, payload: &[u8], version: u8| {
        let udp = udp::Repr { source_port: 49152, destination_port: roce::PORT };
        let datagram = repr.packet(payload);
        let (ethertype, mut packet) = if version == 4 {
            (ethernet::IPV4, ip(ipv4::UDP).packet(&udp.packet(ip(0).addresses(), &datagram)))
        } else {
            let ip = ipv6::Repr::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, ipv4::UDP);
            (ethernet::IPV6, ip.packet(&udp.packet(ip.addresses(), &datagram)))
        };
        let bad = describe(&frame(ethertype, &packet));
        assert!(bad.contains(", bad ICRC"), "{bad}");
        assert!(roce::icrc::seal(&mut packet));
        packet.extend([0; 6]);
        describe(&frame(ethertype, &packet))
    };
    let reth = Extension::Reth(Reth { address: 0x1000, key: 5, len: 256 });
    let text = line(roce::Repr::new(Opcode::ReadRequest, 0x11, Psn::new(7), reth), b"", 4);
    // The checksum of UDP was computed before the integrity check was filled in.
    let start = "10.0.1.1:49152 > 10.0.2.2:4791 RoCE READ qp 0x11 psn 7, 256 bytes at 0x1000 key 0x5, bad UDP checksum";
    assert_eq!(text, format!("{start}, ttl 64"));
    let aeth = Aeth { syndrome: Syndrome::Nak(NakCode::SequenceError), message_number: 1 };
    let text = line(roce::Repr::new(Opcode::Acknowledge, 0x11, Psn::new(8), Extension::Aeth(aeth)), b"", 6);
    assert!(text.starts_with("[::1]:49152 > [::1]:4791 RoCE ACK qp 0x11 psn 8, NAK sequence error"), "{text}");
    let text = line(roce::Repr::new(Opcode::Write(Position::Last), 1, Psn::new(0), Extension::None), b"abcde", 4);
    assert!(text.contains("RoCE WRITE last qp 0x1 psn 0, payload 5 bytes, bad UDP"), "{text}");
    let cut = over_ip(ipv4::UDP, &udp::Repr { source_port: 1, destination_port: 4791 }.packet(ip(0).addresses(), b"x"));
    check(&cut, "10.0.1.1:1 > 10.0.2.2:4791 malformed RoCE: 16 bytes are needed and 1 are there");
}

#[test]
fn tiny_packet_programs_are_described() {
    use crate::tpp::{Addressing, Instruction, Operation, Repr, Status, WordSize};
    let mut repr = Repr::new(WordSize::Bits16, Addressing::Stack { pointer: 12 }, 7);
    let push = [Instruction::new(Operation::Push, 0, 0, 0)];
    check(&frame(tpp::ETHERTYPE, &repr.packet(&push, &[0; 30], &[])), "TPP app 7, 1 instruction, hop 0, SP 12 of 30");
    let inner = Repr { addressing: Addressing::Hop { len: 4 }, hop: -1, status: Status::DONE, ..repr };
    repr.encapsulated = tpp::ETHERTYPE;
    let mut nested = frame(tpp::ETHERTYPE, &repr.packet(&push, &[0; 30], &inner.packet(&push, &[0; 8], &[])));
    let text = "TPP app 7, 1 instruction, hop 0, SP 12 of 30: \
                TPP app 7, 1 instruction, hop -1, 4 of 8 bytes a hop, done";
    check(&nested, text);
    nested[40] ^= 1;
    check(&nested, &text.replace("30:", "30, bad TPP checksum:"));
}
