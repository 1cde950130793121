//! `examples/ila`.

use std::net::Ipv6Addr;

use super::{Example, frames};
use wire::{ethernet, ipv4, ipv6, udp};

const EXAMPLE: Example = Example { name: "ila", format: "ila.p4", rules: "rules.sub" };

const SWITCH: [u8; 6] = [2, 0, 0, 0, 0, 0xfe];
const TASK: [u8; 6] = [2, 0, 0, 0, 0, 0x31];

/// A datagram, as a frame from and to these Ethernet addresses.
fn datagram(from: &str, to: &str, macs: [[u8; 6]; 2]) -> Vec<u8> {
    let address = |text: &str| text.parse::<Ipv6Addr>().unwrap();
    let ip = ipv6::Repr::new(address(from), address(to), ipv4::UDP);
    let udp = udp::Repr { source_port: 4_000, destination_port: 4_001 };
    let [source, destination] = macs.map(ethernet::Address);
    let ethernet = ethernet::Repr { destination, source, ethertype: ethernet::IPV6 };
    ethernet.packet(&ip.packet(&udp.packet(ip.addresses(), b"hello")))
}

/// The frame after the switch: for the next hop, and with another high half of the destination if there is one.
fn sent_on(mut frame: Vec<u8>, next: u8, prefix: Option<u64>) -> Vec<u8> {
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, next]);
    frame[6..12].copy_from_slice(&SWITCH);
    frame[14 + 7] -= 1;
    if let Some(prefix) = prefix {
        frame[14 + 24..14 + 32].copy_from_slice(&prefix.to_be_bytes());
    }
    frame
}

#[test]
fn identifiers_become_locators_and_back_and_other_addresses_are_routed() {
    const SOURCE: &str = "2001:db8:1:1::31";
    let from_host = |to| datagram(SOURCE, to, [TASK, SWITCH]);
    let [away, near, nobody, outside] =
        ["2001:db8:1:1::21", "2001:db8:1:1::32", "2001:db8:1:1::99", "2001:db8:b:1::1"].map(from_host);
    EXAMPLE.has_capture("host.pcap", 0, &[away.clone(), near.clone(), nobody, outside.clone()]);
    // The checksum is that of the address that the sender used.
    let original = datagram("2001:db8:1:1::21", SOURCE, [[2, 0, 0, 0, 0, 0xa], SWITCH]);
    let mut arriving = original.clone();
    arriving[14 + 24..14 + 32].copy_from_slice(&0x2001_0db8_000c_0001_u64.to_be_bytes());
    EXAMPLE.has_capture("network.pcap", 50, &[arriving]);
    let (directory, _) = EXAMPLE.run_readme();
    let at = |name: &str| frames(&directory.path(name));
    assert_eq!(at("to-a.pcap"), [sent_on(away, 0xa, Some(0x2001_0db8_000a_0007))]);
    assert_eq!(at("to-b.pcap"), [sent_on(outside, 0xb, None)]);
    assert_eq!(at("to-31.pcap"), [sent_on(original, 0x31, None)]);
    assert_eq!(at("to-32.pcap"), [sent_on(near, 0x32, None)]);
}

#[test]
fn packets_at_their_last_hop_are_dropped_whatever_rules_say() {
    let mut last = datagram("2001:db8:1:1::31", "2001:db8:1:1::21", [TASK, SWITCH]);
    last[14 + 7] = 1;
    assert_eq!(EXAMPLE.send(&[(3, &[last])], 4), vec![Vec::<Vec<u8>>::new(); 4]);
}
