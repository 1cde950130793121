//! A session of a switch and a memory server: connections, limits, damaged and foreign frames.

use std::net::Ipv4Addr;

use rdma::setup::{ConnectRefusal, LEASE_NS, RENEW_NS, SETUP_PORT};
use rdma::{
    FrameList, MAX_READS, MemoryNode, MemoryNodeConfig, MemorySession, MemorySessionConfig, Receipt, RequesterConfig,
    SessionEvent,
};
use rng::SplitMix64;
use switch::Time;
use wire::ethernet::Address;
use wire::roce::Mtu;

const RETRY_NS: u64 = 1_000_000;

fn node(bytes: u64, connections: usize) -> MemoryNode {
    let (mac, address) = (Address([2, 0, 0, 0, 0, 9]), Ipv4Addr::new(10, 0, 0, 9));
    MemoryNode::new(MemoryNodeConfig { mac, address, bytes, connections })
}

fn session(last: u8, sizes: &[u64]) -> MemorySession {
    session_from(last, 0, sizes)
}

/// Returns a session whose first connection has this number at the server.
fn session_from(last: u8, first_slot: u32, sizes: &[u64]) -> MemorySession {
    MemorySession::new(session_config(last, first_slot), sizes)
}

fn session_config(last: u8, first_slot: u32) -> MemorySessionConfig {
    MemorySessionConfig {
        mac: Address([2, 0, 0, 0, 0, last]),
        address: Ipv4Addr::new(10, 0, 0, last),
        server: Ipv4Addr::new(10, 0, 0, 9),
        mtu: Mtu::Mtu1024,
        first_slot,
        retry_ns: RETRY_NS,
        requester: RequesterConfig { timeout_ns: 100_000, ..RequesterConfig::default() },
    }
}

/// Lets both exchange frames for a time, and returns the events.
fn exchange(session: &mut MemorySession, node: Option<&mut MemoryNode>, now: &mut Time, ns: u64) -> Vec<SessionEvent> {
    let (mut rng, end) = (SplitMix64::new(now.as_ns()), now.after_ns(ns));
    let (mut events, mut node) = (Vec::new(), node);
    while *now <= end {
        session.tick(*now, &mut rng);
        let (mut requests, mut answers) = (FrameList::default(), FrameList::default());
        session.transmit(*now, &mut requests);
        while let Some(frame) = requests.pop() {
            if let Some(node) = &mut node {
                node.on_frames(*now, &mut rng, &[&frame, &frame[..frame.len() - 1]], &mut answers);
            }
        }
        while let Some(frame) = answers.pop() {
            session.on_frame(*now, &frame);
        }
        while let Some(event) = session.next_event(*now) {
            events.push(event);
        }
        *now = now.after_ns(10_000);
    }
    events
}

#[test]
fn connections_open_fail_with_their_server_and_open_again() {
    let (mut session, mut now) = (session(1, &[4096, 100]), Time::ZERO);
    let mut first = node(1 << 20, 8);
    let events = exchange(&mut session, Some(&mut first), &mut now, RETRY_NS);
    assert_eq!(events, [SessionEvent::Up(0), SessionEvent::Up(1)]);
    assert_eq!((first.lent(), session.open_connections()), ((2, 4196), 2));
    session.write(0, 1, 100, vec![7; 3000]);
    session.read(0, 2, 3000, 200);
    let events = exchange(&mut session, Some(&mut first), &mut now, RETRY_NS);
    assert_eq!(events, [SessionEvent::Completed(0, 1), SessionEvent::Completed(0, 2)]);
    assert_eq!(session.answer(), [[7; 100], [0; 100]].concat());

    // Another server with the same address has forgotten everything: both connections fail, and open again.
    let mut second = node(1 << 20, 8);
    session.read(0, 3, 3000, 4);
    let events = exchange(&mut session, Some(&mut second), &mut now, 20 * RETRY_NS);
    assert_eq!(events[..2], [SessionEvent::Down(0), SessionEvent::Down(1)]);
    assert_eq!((session.open_connections(), second.lent()), (2, (2, 4196)));
    session.read(0, 4, 100, 4);
    let events = exchange(&mut session, Some(&mut second), &mut now, RETRY_NS);
    assert_eq!((&events[..], session.answer()), (&[SessionEvent::Completed(0, 4)][..], &[0; 4][..]));
    // Memory beyond the loan is refused, and the connection begins anew. The server lends no more than before.
    session.read(1, 5, 97, 4);
    let events = exchange(&mut session, Some(&mut second), &mut now, 5 * RETRY_NS);
    assert_eq!((&events[..], second.lent()), (&[SessionEvent::Down(1), SessionEvent::Up(1)][..], (2, 4196)));
}

#[test]
fn a_server_lends_no_more_than_its_limits() {
    let (mut first, mut second, mut now) = (session(1, &[600]), session(2, &[600]), Time::ZERO);
    let mut small = node(1000, 8);
    assert_eq!(exchange(&mut first, Some(&mut small), &mut now, RETRY_NS), [SessionEvent::Up(0)]);
    assert_eq!(exchange(&mut second, Some(&mut small), &mut now, 20 * RETRY_NS), []);
    assert_eq!((second.refusal(), small.lent()), (Some(ConnectRefusal::NoMemory), (1, 600)));
    assert!(small.refused() >= 2 && small.refused() < 10, "{} requests", small.refused());
    let mut few = node(1 << 20, 1);
    let mut several = session(3, &[600, 600]);
    assert_eq!(exchange(&mut several, Some(&mut few), &mut now, RETRY_NS), [SessionEvent::Up(0)]);
    assert_eq!((several.refusal(), few.lent()), (Some(ConnectRefusal::TooMany), (1, 600)));
    let mut huge = session(4, &[u64::MAX]);
    assert_eq!(exchange(&mut huge, Some(&mut node(u64::MAX, 8)), &mut now, RETRY_NS), []);
    assert_eq!(huge.refusal(), Some(ConnectRefusal::NoMemory));
    assert_ne!(SETUP_PORT, wire::roce::PORT);
}

#[test]
fn as_many_reads_are_outstanding_as_both_ends_allow() {
    for (wanted, expected) in [(16, 16), (200, 200), (1000, MAX_READS)] {
        let mut config = session_config(1, 0);
        config.requester.max_reads = wanted;
        let (mut session, mut server, mut now) = (MemorySession::new(config, &[4096]), node(4096, 8), Time::ZERO);
        assert_eq!(exchange(&mut session, Some(&mut server), &mut now, RETRY_NS), [SessionEvent::Up(0)]);
        (0..1000).for_each(|number| session.read(0, number, 4 * number, 4));
        let mut requests = FrameList::default();
        session.transmit(now, &mut requests);
        assert_eq!(requests.len(), usize::from(expected));
        // All of them are answered, and then the others.
        let (mut rng, mut answers) = (SplitMix64::new(7), FrameList::default());
        while let Some(request) = requests.pop() {
            server.on_frames(now, &mut rng, &[&request], &mut answers);
        }
        while let Some(answer) = answers.pop() {
            session.on_frame(now, &answer);
        }
        let mut numbers = std::iter::from_fn(|| session.next_event(now));
        assert!((0..u64::from(expected)).all(|number| numbers.next() == Some(SessionEvent::Completed(0, number))));
        assert_eq!(numbers.next(), None);
        session.transmit(now, &mut requests);
        assert_eq!(requests.len(), usize::from(expected).min(1000 - usize::from(expected)));
    }
}

#[test]
fn sessions_of_a_switch_share_a_server_and_release_their_memory_at_the_end() {
    let (mut first, mut second, mut now) = (session(1, &[600]), session_from(1, 1, &[300]), Time::ZERO);
    let mut shared = node(1000, 8);
    assert_eq!(exchange(&mut first, Some(&mut shared), &mut now, RETRY_NS), [SessionEvent::Up(0)]);
    assert_eq!(exchange(&mut second, Some(&mut shared), &mut now, RETRY_NS), [SessionEvent::Up(0)]);
    assert_eq!(shared.lent(), (2, 900));
    // A reply to the second one is left to it.
    let mut third = session_from(1, 2, &[50]);
    let (mut rng, mut requests, mut answers) = (SplitMix64::new(7), FrameList::default(), FrameList::default());
    third.tick(now, &mut rng);
    third.transmit(now, &mut requests);
    let request = requests.pop().expect("it asks for memory");
    shared.on_frames(now, &mut rng, &[&request], &mut answers);
    let reply = answers.pop().expect("a reply");
    assert_eq!(first.on_frame(now, &reply), Receipt::NotOurs);
    assert_eq!((third.on_frame(now, &reply), third.is_open(0)), (Receipt::Ours, true));
    // The first one ends. A copy of its last frame has no effect.
    let frames = first.end();
    for frame in frames.iter().chain(&frames) {
        shared.on_frames(now, &mut rng, &[frame], &mut answers);
        assert_eq!(shared.lent(), (2, 350));
    }
    // Neither does it reclaim the memory of others that were silent for long, or count as refused.
    shared.on_frames(now.after_ns(2 * LEASE_NS), &mut rng, &[&frames[0]], &mut answers);
    assert_eq!((shared.lent(), shared.refused()), ((2, 350), 0));
    second.read(0, 1, 0, 4);
    assert_eq!(exchange(&mut second, Some(&mut shared), &mut now, RETRY_NS), [SessionEvent::Completed(0, 1)]);
    assert_eq!(exchange(&mut session_from(1, 0, &[600]), Some(&mut shared), &mut now, RETRY_NS), [SessionEvent::Up(0)]);
}

#[test]
fn a_request_without_an_answer_is_repeated() {
    let (mut session, mut now) = (session(1, &[64]), Time::ZERO);
    assert_eq!(exchange(&mut session, None, &mut now, 3 * RETRY_NS), []);
    assert_eq!(exchange(&mut session, Some(&mut node(64, 1)), &mut now, RETRY_NS), [SessionEvent::Up(0)]);
}

#[test]
fn a_request_that_is_refused_leaves_the_connection_that_it_would_replace() {
    let (mut first, mut now, mut small) = (session(1, &[600]), Time::ZERO, node(1000, 8));
    assert_eq!(exchange(&mut first, Some(&mut small), &mut now, RETRY_NS), [SessionEvent::Up(0)]);
    for bytes in [1001, 0] {
        let mut greedy = session(1, &[bytes]);
        assert_eq!(exchange(&mut greedy, Some(&mut small), &mut now, RETRY_NS), []);
        assert_eq!((greedy.refusal(), small.lent()), (Some(ConnectRefusal::NoMemory), (1, 600)));
    }
    first.read(0, 1, 0, 4);
    assert_eq!(exchange(&mut first, Some(&mut small), &mut now, RETRY_NS), [SessionEvent::Completed(0, 1)]);
    // The memory of the connection itself is free for its successor.
    let mut next = session(1, &[1000]);
    assert_eq!(exchange(&mut next, Some(&mut small), &mut now, RETRY_NS), [SessionEvent::Up(0)]);
    assert_eq!(small.lent(), (1, 1000));
}

#[test]
fn a_late_copy_of_a_request_leaves_the_connection_that_followed_it() {
    let (mut first, mut now, mut node) = (session(1, &[64]), Time::ZERO, node(1 << 20, 8));
    let (mut rng, mut requests) = (SplitMix64::new(3), FrameList::default());
    first.tick(now, &mut rng);
    first.transmit(now, &mut requests);
    let late = requests.pop().expect("a request");
    assert_eq!(exchange(&mut first, Some(&mut node), &mut now, 2 * RETRY_NS), [SessionEvent::Up(0)]);
    // The switch restarts, and its new connection replaces the old one.
    let mut second = session(1, &[64]);
    assert_eq!(exchange(&mut second, Some(&mut node), &mut now, 2 * RETRY_NS), [SessionEvent::Up(0)]);
    second.write(0, 1, 0, vec![7; 4]);
    assert_eq!(exchange(&mut second, Some(&mut node), &mut now, RETRY_NS), [SessionEvent::Completed(0, 1)]);
    let mut replies = FrameList::default();
    node.on_frames(now, &mut rng, &[&late], &mut replies);
    second.on_frame(now, &replies.pop().expect("a reply"));
    second.read(0, 2, 0, 4);
    let events = exchange(&mut second, Some(&mut node), &mut now, 20 * RETRY_NS);
    assert_eq!((&events[..], second.answer()), (&[SessionEvent::Completed(0, 2)][..], &[7; 4][..]));
    assert_eq!((node.lent(), node.refused()), ((1, 64), 0));
}

#[test]
fn connections_that_are_not_renewed_are_closed_when_others_need_their_place() {
    for small in [node(1000, 8), node(1 << 20, 2)] {
        let (mut small, mut now) = (small, Time::ZERO);
        let [mut gone, mut idle, mut next] = [1, 2, 3].map(|last| session(last, &[400]));
        for first in [&mut gone, &mut idle] {
            assert_eq!(exchange(first, Some(&mut small), &mut now, RETRY_NS), [SessionEvent::Up(0)]);
        }
        let end = now.after_ns(LEASE_NS);
        while now < end {
            assert_eq!(exchange(&mut next, Some(&mut small), &mut now, 9 * RETRY_NS), [], "{now:?}");
            assert_eq!(exchange(&mut idle, Some(&mut small), &mut now, RETRY_NS), []);
            now = now.after_ns(RENEW_NS);
        }
        assert_eq!(exchange(&mut next, Some(&mut small), &mut now, 9 * RETRY_NS), [SessionEvent::Up(0)]);
        assert_eq!(small.lent(), (2, 800));
        idle.read(0, 1, 0, 4);
        assert_eq!(exchange(&mut idle, Some(&mut small), &mut now, RETRY_NS), [SessionEvent::Completed(0, 1)]);
        // The switch that was away finds out, and is refused.
        assert_eq!(exchange(&mut gone, Some(&mut small), &mut now, RETRY_NS), [SessionEvent::Down(0)]);
    }
}

#[test]
fn an_idle_connection_opens_again_after_its_server_has_restarted() {
    let (mut session, mut now) = (session(1, &[64]), Time::ZERO);
    assert_eq!(exchange(&mut session, Some(&mut node(64, 1)), &mut now, RETRY_NS), [SessionEvent::Up(0)]);
    let mut second = node(64, 1);
    assert_eq!(exchange(&mut session, Some(&mut second), &mut now, RETRY_NS), []);
    now = now.after_ns(RENEW_NS);
    let events = exchange(&mut session, Some(&mut second), &mut now, 2 * RETRY_NS);
    assert_eq!((&events[..], second.lent()), (&[SessionEvent::Down(0), SessionEvent::Up(0)][..], (1, 64)));
}

#[test]
fn a_server_answers_single_switches_only() {
    let config = |mac: [u8; 6], address: [u8; 4]| MemorySessionConfig {
        mac: Address(mac),
        address: address.into(),
        server: Ipv4Addr::new(10, 0, 0, 9),
        mtu: Mtu::Mtu1024,
        first_slot: 0,
        retry_ns: RETRY_NS,
        requester: RequesterConfig::default(),
    };
    let good = ([2, 0, 0, 0, 0, 1], [10, 0, 0, 1]);
    let several = [
        ([0xff; 6], good.1),
        ([0; 6], good.1),
        ([0x01, 0, 0x5e, 0, 0, 1], good.1),
        ([2, 0, 0, 0, 0, 9], good.1),
        (good.0, [255; 4]),
        (good.0, [0; 4]),
        (good.0, [224, 0, 0, 1]),
        (good.0, [127, 0, 0, 1]),
        (good.0, [10, 0, 0, 9]),
    ];
    let (mut now, mut node) = (Time::ZERO, node(1 << 20, 8));
    for (mac, address) in several {
        let mut session = MemorySession::new(config(mac, address), &[64]);
        assert_eq!(exchange(&mut session, Some(&mut node), &mut now, RETRY_NS), [], "{mac:02x?} {address:?}");
        assert_eq!((session.refusal(), node.lent()), (None, (0, 0)));
    }
    let mut session = MemorySession::new(config(good.0, good.1), &[64]);
    assert_eq!(exchange(&mut session, Some(&mut node), &mut now, RETRY_NS), [SessionEvent::Up(0)]);
}
