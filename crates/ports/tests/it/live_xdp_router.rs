//! The baselines at XDP: what they forward is what a router or a cable forwards.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use wire::{ethernet, ipv4};

use crate::live::xdp::at_host;
use crate::live::{Hosts, Place, Suite, TEST_TIMEOUT, noise};
use ports::load::{HandWrittenRouter, Ipv4Route, NextHop, RedirectOnly};
use ports::namespace::{Namespace, Offload};
use ports::{AfPacketPort, Port, PortError, Received, wait};

pub const SUITE: Suite = Suite {
    name: "live_xdp_router",
    place: Place::NetworkNamespace,
    tests: &[
        ("a redirecting program forwards every frame unchanged", redirected),
        ("a router rewrites what it forwards", routed),
        ("a router drops what has no route or expires", dropped),
        ("a router leaves other frames to the stack", passed),
        ("the longest of 256 and of 65,536 prefixes counts", many_prefixes),
        ("programs leave with their values, and one at a time is attached", detached),
        ("interfaces that cannot be used are named", refused),
    ],
};

const SOURCE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const ROUTER_MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 1, 0xfe], [2, 0, 0, 0, 2, 0xfe]];
const HOST_MACS: [[u8; 6]; 2] = [[8, 0, 0, 0, 0, 1], [8, 0, 0, 0, 0, 2]];
/// A protocol number for experiments (RFC 3692), which the hosts' stacks do not send.
const EXPERIMENT: u8 = 253;

/// Both hosts, with interfaces that accept frames without socket buffers.
fn hosts(router: &Namespace) -> Hosts {
    let hosts = Hosts::new(router);
    for host in [&hosts.h1, &hosts.h2] {
        host.turn_on("eth0", Offload::Receive).unwrap();
    }
    hosts
}

/// Next hop 0 is h1, and 1 is h2.
fn next_hops() -> [NextHop<'static>; 2] {
    [("r1", 0), ("r2", 1)].map(|(interface, at)| NextHop {
        interface,
        source: ROUTER_MACS[at],
        destination: HOST_MACS[at],
    })
}

fn route(address: [u8; 4], length: u8, next_hop: u32) -> Ipv4Route {
    Ipv4Route { address: address.into(), length, next_hop }
}

fn packet(to: [u8; 4], ttl: u8, len: usize) -> Vec<u8> {
    let repr = ipv4::Repr { ttl, ..ipv4::Repr::new(SOURCE, to.into(), EXPERIMENT) };
    let destination = ethernet::Address(ROUTER_MACS[0]);
    let source = ethernet::Address(HOST_MACS[0]);
    ethernet::Repr { destination, source, ethertype: ethernet::IPV4 }.packet(&repr.packet(&noise(len, u64::from(ttl))))
}

/// Returns the frame as the router should forward it, with a checksum computed anew.
fn forwarded(frame: &[u8], next_hop: usize) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[..6].copy_from_slice(&HOST_MACS[next_hop]);
    frame[6..12].copy_from_slice(&ROUTER_MACS[next_hop]);
    frame[22] -= 1;
    frame[24..26].fill(0);
    let checksum = wire::checksum::checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame
}

fn send(port: &mut AfPacketPort, frames: &[Vec<u8>]) {
    // A veth's ring has room for 256 frames.
    for batch in frames.chunks(64) {
        for frame in batch {
            port.send(frame).unwrap();
        }
        port.flush().unwrap();
    }
}

/// Receives frames for which `is_ours`, until `count` of them are there or nothing came for `timeout`.
fn receive(port: &mut AfPacketPort, count: usize, timeout: Duration, is_ours: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
    let (mut frames, mut batch) = (Vec::new(), Vec::<Received>::new());
    let mut deadline = Instant::now() + timeout;
    while frames.len() < count && Instant::now() < deadline {
        if port.receive(&mut batch, 64).unwrap() == 0 {
            wait(&[port.poll_fd().unwrap()], Duration::from_millis(10)).unwrap();
        }
        for received in batch.drain(..).filter(|received| is_ours(&received.data)) {
            frames.push(received.data);
            deadline = Instant::now() + timeout;
        }
    }
    frames
}

/// Whether a frame is one of the packets of these tests.
fn is_experiment(frame: &[u8]) -> bool {
    frame.len() >= 34 && frame[12..14] == [8, 0] && frame[23] == EXPERIMENT
}

/// Sends frames in turn and asserts that each arrives as expected, and nothing else of this kind.
fn check(from: &mut AfPacketPort, to: &mut AfPacketPort, sent: &[Vec<u8>], expected: &[Vec<u8>]) {
    for (sent, expected) in sent.chunks(64).zip(expected.chunks(64)) {
        send(from, sent);
        let arrived = receive(to, expected.len(), TEST_TIMEOUT, is_experiment);
        assert_eq!(arrived.len(), expected.len());
        for (arrived, expected) in arrived.iter().zip(expected) {
            assert!(arrived == expected, "{arrived:02x?} instead of {expected:02x?}");
        }
    }
}

fn redirected(router: &Namespace) {
    let hosts = hosts(router);
    let _program = RedirectOnly::attach("r1", "r2").unwrap();
    let (mut from, mut to) = (at_host(&hosts.h1), at_host(&hosts.h2));
    let mut sent: Vec<Vec<u8>> = [14, 15, 60, 1000, 1514].map(|len| noise(len, len as u64)).to_vec();
    for frame in &mut sent {
        frame[..6].fill(0xff);
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    }
    sent.push(packet([10, 1, 2, 3], 1, 30));
    send(&mut from, &sent);
    let is_ours = |frame: &[u8]| is_experiment(frame) || frame[12..14] == [0x88, 0xb5];
    assert!(receive(&mut to, sent.len(), TEST_TIMEOUT, is_ours) == sent);
}

fn routed(router: &Namespace) {
    let hosts = hosts(router);
    let routes = [route([10, 1, 0, 0], 16, 0), route([10, 2, 0, 0], 16, 1)];
    let _program = HandWrittenRouter::attach(&["r1", "r2"], &routes, &next_hops()).unwrap();
    let (mut one, mut two) = (at_host(&hosts.h1), at_host(&hosts.h2));
    // Every time to live, and enough destinations for every kind of carry in the checksum.
    let sent: Vec<Vec<u8>> =
        (0..2048u32).map(|n| packet([10, 2, (n >> 3) as u8, n as u8], (n % 254) as u8 + 2, 40)).collect();
    let expected: Vec<Vec<u8>> = sent.iter().map(|frame| forwarded(frame, 1)).collect();
    check(&mut one, &mut two, &sent, &expected);
    for frame in &expected {
        assert!(ipv4::Packet::new_checked(&frame[14..]).unwrap().is_checksum_right());
    }
    // Checksums around the carry: the identification sets them.
    let at_carry: Vec<Vec<u8>> = [0x0000, 0x0001, 0x00ff, 0xfdff, 0xfe00, 0xfefe, 0xfeff, 0xff00, 0xff01, 0xfffe]
        .map(|checksum| with_checksum(packet([10, 2, 0, 1], 64, 40), checksum))
        .to_vec();
    let expected: Vec<Vec<u8>> = at_carry.iter().map(|frame| forwarded(frame, 1)).collect();
    check(&mut one, &mut two, &at_carry, &expected);
    // Lengths, the other direction, and back by the interface that the packet came from.
    let sent = [0, 1, 1480].map(|len| packet([10, 1, 9, 9], 3, len)).to_vec();
    let expected: Vec<Vec<u8>> = sent.iter().map(|frame| forwarded(frame, 0)).collect();
    check(&mut two, &mut one, &sent, &expected);
    check(&mut one, &mut at_host(&hosts.h1), &sent, &expected);
}

/// Returns the frame with the identification for which this checksum is right.
fn with_checksum(mut frame: Vec<u8>, checksum: u16) -> Vec<u8> {
    frame[18..20].fill(0);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    let identification = wire::checksum::checksum(&frame[14..34]);
    frame[18..20].copy_from_slice(&identification.to_be_bytes());
    assert!(ipv4::Packet::new_checked(&frame[14..]).unwrap().is_checksum_right());
    frame
}

fn dropped(router: &Namespace) {
    let hosts = hosts(router);
    let routes = [route([10, 2, 0, 0], 16, 1), route([10, 3, 0, 1], 32, 1)];
    let _program = HandWrittenRouter::attach(&["r1"], &routes, &next_hops()).unwrap();
    let (mut one, mut two, mut stack) = (at_host(&hosts.h1), at_host(&hosts.h2), AfPacketPort::open("r1").unwrap());
    let (host, last) = (packet([10, 3, 0, 1], 2, 40), packet([10, 2, 9, 9], 9, 40));
    let sent = [
        packet([10, 1, 255, 255], 64, 40),
        packet([10, 3, 0, 0], 64, 40),
        host.clone(),
        packet([10, 2, 0, 1], 1, 40),
        packet([10, 2, 0, 1], 0, 40),
        packet([11, 2, 0, 1], 2, 40),
        last.clone(),
    ];
    // Order is kept, so when the last one is there, the others will not come.
    check(&mut one, &mut two, &sent, &[&host, &last].map(|frame| forwarded(frame, 1)));
    assert!(receive(&mut stack, 1, Duration::from_millis(50), is_experiment).is_empty());
}

fn passed(router: &Namespace) {
    let hosts = hosts(router);
    let _program = HandWrittenRouter::attach(&["r1"], &[route([0, 0, 0, 0], 0, 1)], &next_hops()).unwrap();
    let (mut one, mut two, mut stack) = (at_host(&hosts.h1), at_host(&hosts.h2), AfPacketPort::open("r1").unwrap());
    let whole = packet([10, 2, 0, 1], 64, 40);
    let changed = |at: usize, value: u8| {
        let mut frame = whole.clone();
        frame[at] = value;
        frame
    };
    // ARP, options, another version, and a frame that ends within the header.
    let sent = [changed(13, 6), changed(14, 0x46), changed(14, 0x65), whole[..33].to_vec()];
    send(&mut one, &sent);
    let is_ours = |frame: &[u8]| frame.len() > 20 && sent.iter().any(|sent| sent == frame);
    assert_eq!(receive(&mut stack, sent.len(), TEST_TIMEOUT, is_ours).len(), sent.len());
    check(&mut one, &mut two, std::slice::from_ref(&whole), &[forwarded(&whole, 1)]);
}

fn many_prefixes(router: &Namespace) {
    let hosts = hosts(router);
    let (mut one, mut two) = (at_host(&hosts.h1), at_host(&hosts.h2));
    // Prefixes of 24 bits lead to h2, and the one that covers them all back to h1.
    for count in [256u32, 65_536] {
        let mut routes: Vec<Ipv4Route> =
            (0..count).map(|net| route((0x0a00_0000 | net << 8).to_be_bytes(), 24, 1)).collect();
        routes.push(route([10, 0, 0, 0], 7, 0));
        let _program = HandWrittenRouter::attach(&["r1"], &routes, &next_hops()).unwrap();
        let nets = [0, 1, count / 2, count - 1];
        let sent = nets.map(|net| packet((0x0a00_0007 | net << 8).to_be_bytes(), 64, 40));
        check(&mut one, &mut two, &sent, &sent.each_ref().map(|frame| forwarded(frame, 1)));
        let sent = [packet((0x0a00_0007 + (count << 8)).to_be_bytes(), 64, 40)];
        check(&mut one, &mut at_host(&hosts.h1), &sent, &[forwarded(&sent[0], 0)]);
    }
}

fn detached(router: &Namespace) {
    let hosts = hosts(router);
    let (mut one, mut stack) = (at_host(&hosts.h1), AfPacketPort::open("r1").unwrap());
    let sent = [packet([10, 2, 0, 1], 64, 40)];
    let program = RedirectOnly::attach("r1", "r2").unwrap();
    let error = HandWrittenRouter::attach(&["r1"], &[], &next_hops()).err().unwrap();
    assert!(error.to_string().starts_with("attaching an XDP program on `r1` failed"), "{error}");
    drop(program);
    let program = HandWrittenRouter::attach(&["r2", "r1"], &[], &next_hops()).unwrap();
    send(&mut one, &sent);
    assert!(receive(&mut stack, 1, Duration::from_millis(50), is_experiment).is_empty());
    drop(program);
    send(&mut one, &sent);
    assert_eq!(receive(&mut stack, 1, TEST_TIMEOUT, is_experiment), sent);
}

fn refused(router: &Namespace) {
    let _hosts = hosts(router);
    let missing = |error: Option<PortError>| {
        let error = error.unwrap().to_string();
        assert!(error.contains("no network interface `nothere0`"), "{error}");
    };
    missing(RedirectOnly::attach("nothere0", "r2").err());
    missing(RedirectOnly::attach("r1", "nothere0").err());
    missing(HandWrittenRouter::attach(&["r1", "nothere0"], &[], &next_hops()).err());
    let elsewhere = [NextHop { interface: "nothere0", ..next_hops()[0] }];
    missing(HandWrittenRouter::attach(&["r1"], &[], &elsewhere).err());
}
