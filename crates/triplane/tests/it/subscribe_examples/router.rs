//! `examples/subscribe-router`.

use super::{Example, frames};
use crate::support::{Directory, run, triplane};
use wire::{ethernet, icmpv4, ipv4, udp};

const EXAMPLE: Example = Example { name: "subscribe-router", format: "router.p4", rules: "routes.sub" };

const OWN: [u8; 6] = [2, 0, 0, 0, 0, 0xfe];
const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// A ping or a datagram, with or without IPv4 options.
fn packet(macs: [[u8; 6]; 2], to: [u8; 4], protocol: u8, ttl: u8, options: &[u8]) -> Vec<u8> {
    let mut ip = ipv4::Repr::new([10, 9, 9, 9].into(), to.into(), protocol);
    ip.ttl = ttl;
    let payload = match protocol {
        ipv4::UDP => udp::Repr { source_port: 4_000, destination_port: 5_000 }.packet(ip.addresses(), b"something"),
        _ => icmpv4::Repr::EchoRequest { identifier: 1, sequence: 1 }.packet(b"whatever"),
    };
    let mut packet = ip.packet(&payload);
    if !options.is_empty() {
        packet[0] += (options.len() / 4) as u8;
        packet.splice(20..20, options.iter().copied());
        let length = packet.len() as u16;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet[10..12].fill(0);
        let checksum = wire::checksum::checksum(&packet[..20 + options.len()]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
    let [source, destination] = macs.map(ethernet::Address);
    ethernet::Repr { destination, source, ethertype: ethernet::IPV4 }.packet(&packet)
}

fn arrives(to: [u8; 4], protocol: u8) -> Vec<u8> {
    packet([HOST, OWN], to, protocol, 64, &[])
}

fn leaves(next: u8, to: [u8; 4], protocol: u8) -> Vec<u8> {
    packet([OWN, [2, 0, 0, 0, 0, next]], to, protocol, 63, &[])
}

#[test]
fn the_longest_prefix_wins_because_rules_say_so() {
    let all = [
        arrives([10, 1, 0, 7], ipv4::ICMP),
        arrives([10, 1, 1, 255], ipv4::UDP),
        arrives([10, 1, 2, 4], ipv4::ICMP),
        arrives([10, 1, 2, 3], ipv4::ICMP),
        arrives([10, 1, 3, 0], ipv4::ICMP),
        arrives([192, 0, 2, 1], ipv4::ICMP),
        arrives([198, 51, 100, 1], ipv4::UDP),
        arrives([10, 2, 0, 1], ipv4::ICMP),
        arrives([192, 168, 0, 1], ipv4::UDP),
    ];
    EXAMPLE.has_capture("packets.pcap", 0, &all);
    let (directory, _) = EXAMPLE.run_readme();
    let got = |port: &str| frames(&directory.path(&format!("{port}.pcap")));
    let office = [([10, 1, 0, 7], ipv4::ICMP), ([10, 1, 1, 255], ipv4::UDP), ([10, 1, 3, 0], ipv4::ICMP)];
    assert_eq!(got("office"), office.map(|(to, protocol)| leaves(0x11, to, protocol)));
    assert_eq!(got("lab"), [leaves(0x22, [10, 1, 2, 4], ipv4::ICMP)]);
    assert_eq!(got("printer"), [leaves(0x33, [10, 1, 2, 3], ipv4::ICMP)]);
    let copied = leaves(0x44, [198, 51, 100, 1], ipv4::UDP);
    assert_eq!(got("internet"), [leaves(0x44, [192, 0, 2, 1], ipv4::ICMP), copied.clone()]);
    assert_eq!(got("watch"), [copied]);
}

#[test]
fn packets_that_a_router_must_not_forward_are_dropped() {
    let to = [10, 1, 2, 4];
    let mut wrong = arrives(to, ipv4::ICMP);
    wrong[14 + 10] ^= 1;
    let mut version_6 = arrives(to, ipv4::ICMP);
    version_6[14] = 0x65;
    let mut cut = arrives(to, ipv4::ICMP);
    cut.truncate(14 + 19);
    let old = |ttl| packet([HOST, OWN], to, ipv4::ICMP, ttl, &[]);
    let for_another = packet([HOST, HOST], to, ipv4::ICMP, 64, &[]);
    let options = [7, 7, 4, 0, 0, 0, 0, 0];
    let mut wrong_option = packet([HOST, OWN], to, ipv4::ICMP, 64, &options);
    wrong_option[14 + 22] ^= 8;
    let dropped = [wrong, version_6, cut, old(0), old(1), for_another, wrong_option];
    let kept = [old(2), packet([HOST, OWN], to, ipv4::ICMP, 64, &options)];
    let got = EXAMPLE.send(&[(6, &[&dropped[..], &kept].concat())], 6);
    let next = [OWN, [2, 0, 0, 0, 0, 0x22]];
    let expected = [packet(next, to, ipv4::ICMP, 1, &[]), packet(next, to, ipv4::ICMP, 63, &options)];
    assert_eq!(got[1], expected);
    assert_eq!(got.iter().map(Vec::len).sum::<usize>(), 2);
}

#[test]
fn two_routes_for_one_packet_are_refused_by_name() {
    let directory = Directory::new();
    let rules = directory.write(
        "overlap.sub",
        "rule wide: dst in 10.1.0.0/16 : hop(02:00:00:00:00:11); fwd(1)\n\
         rule narrow: dst in 10.1.2.0/24 : hop(02:00:00:00:00:22); fwd(2)\n",
    );
    let done = run(&mut triplane(&["subscribe", "check", &EXAMPLE.path(EXAMPLE.format), &rules]));
    assert_eq!(done.code, Some(1), "{done:?}");
    for said in ["conflict", "`hop`", "overlap.sub:1:", "2 | rule narrow", "and this rule"] {
        assert!(done.stderr.contains(said), "`{said}` is missing:\n{}", done.stderr);
    }
}
