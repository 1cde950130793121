//! Tests the limit of executions of tiny packet programs.

use switch::{Frame, PortId, Time};
use tpp::AccessRights;
use v1model::{Switch, TinySettings};
use wire::ethernet;
use wire::tpp::{Packet, Status, UDP_PORT, find, find_echo};

use crate::rows::{WAYS, step_at};
use crate::tiny::{PATH, assembled, frame, packet, switch, transparent};

/// Returns settings with a limit.
fn limited(executions_per_second: u32) -> Option<TinySettings> {
    Some(TinySettings { rights: AccessRights::all(), executions_per_second, ..TinySettings::new(77, false) })
}

/// A standalone program that is sent back.
fn reflective(host: u8) -> Frame {
    let program = assembled(&format!(".reflect\n{PATH}")).packet(&[]);
    frame(ethernet::IPV4, &packet(host, (4000, UDP_PORT), &program))
}

/// Returns hop number and status of the program of a frame: 1 after an execution.
fn outcome(frame: &Frame) -> (i8, Status) {
    let place = find(&frame.data).or_else(|| find_echo(&frame.data)).expect("a program");
    let packet = Packet::new_checked(&frame.data[place.start..place.end]).expect("a correct program");
    assert!(packet.is_checksum_right());
    (packet.hop(), packet.status())
}

/// Returns the programs of packets from a port: executed, refused, beyond the limit.
fn counts(switch: &Switch, port: u32) -> [u64; 3] {
    let count = |result: &str| switch.registry().get(&format!("port.{port}.tpp.{result}"));
    ["executed", "refused", "limited"].map(|result| count(result).expect("it is registered"))
}

#[test]
fn programs_beyond_the_limit_of_their_port_pass_unexecuted_and_are_counted() {
    for way in WAYS {
        // Two may follow each other at once; another one follows every 50 ms.
        let mut switch = switch(way, limited(20));
        let mut hops = |port: u32, at_ms: u64, frames: usize| -> Vec<i8> {
            let frames = (0..frames).map(|_| Frame { port: PortId(port), ..transparent(PATH, 2) });
            let left = step_at(&mut switch, way, Time::from_ms(at_ms), frames);
            left.iter().map(|frame| outcome(frame).0).collect()
        };
        assert_eq!(hops(1, 0, 4), [1, 1, 0, 0]);
        assert_eq!(hops(3, 0, 1), [1], "another port has its own");
        assert_eq!(hops(1, 49, 1), [0]);
        assert_eq!(hops(1, 50, 2), [1, 0]);
        assert_eq!(hops(1, 1_000_000, 3), [1, 1, 0]);
        assert_eq!((counts(&switch, 1), counts(&switch, 3)), ([5, 0, 5], [1, 0, 0]));
        assert_eq!(switch.registry().get("port.2.tx.packets"), Some(11), "all are forwarded");
    }
}

#[test]
fn a_program_beyond_the_limit_leaves_as_it_came() {
    for way in WAYS {
        let mut switch = switch(way, limited(1));
        let sent = transparent(PATH, 2);
        let left = step_at(&mut switch, way, Time::ZERO, [sent.clone(), sent.clone()]);
        let place = find(&sent.data).expect("a program");
        let length = Packet::new_checked(&sent.data[place.start..]).expect("a correct program").length();
        let program = place.start..place.start + length;
        assert_ne!(left[0].data[program.clone()], sent.data[program.clone()]);
        assert_eq!(left[1].data[program.clone()], sent.data[program]);
    }
}

/// A program that is sent back takes part in the limit of its port, and beyond it goes on to its destination.
#[test]
fn reflected_programs_count() {
    for way in WAYS {
        let mut switch = switch(way, limited(20));
        let left = step_at(&mut switch, way, Time::ZERO, (0..3).map(|_| reflective(2)));
        assert_eq!(left.iter().map(|frame| frame.port.0).collect::<Vec<_>>(), [1, 1, 2]);
        let outcomes: Vec<_> = left.iter().map(outcome).collect();
        assert_eq!(outcomes, [(1, Status::DONE), (1, Status::DONE), (0, Status::NONE)]);
        assert_eq!(counts(&switch, 1), [2, 0, 1]);
    }
}

/// A multicast packet has a program for each copy. Each is executed, and each is sent back, as long as the limit
/// permits it; so the limit bounds the number of packets that one packet sends back.
#[test]
fn each_replica_is_reflected_within_the_limit() {
    for way in WAYS {
        let replicas = |limit: u32| {
            let mut switch = switch(way, limited(limit));
            let mut left = step_at(&mut switch, way, Time::ZERO, [reflective(3)]);
            left.sort_by_key(|frame| frame.port.0);
            let left: Vec<_> = left.iter().map(|frame| (frame.port.0, outcome(frame))).collect();
            let tx = [1, 2, 3].map(|port| switch.registry().get(&format!("port.{port}.tx.packets")).unwrap_or(0));
            (left, tx, counts(&switch, 1))
        };
        let (back, on) = ((1, Status::DONE), (0, Status::NONE));
        // The third replica goes to the controller, without its program.
        assert_eq!(replicas(20), (vec![(1, back), (1, back)], [2, 0, 0], [2, 0, 0]));
        assert_eq!(replicas(1), (vec![(1, back), (3, on)], [1, 0, 1], [1, 0, 1]));
    }
}

#[test]
fn damaged_programs_are_refused_and_programs_that_are_done_are_not_counted() {
    for way in WAYS {
        let mut switch = switch(way, limited(1_000));
        let damaged = |at: usize, bits: u8| {
            let mut frame = transparent(PATH, 2);
            frame.data[14 + at] ^= bits;
            frame
        };
        let mut done = assembled(PATH);
        (done.repr.encapsulated, done.repr.status) = (ethernet::IPV4, Status::DONE);
        let done = frame(wire::tpp::ETHERTYPE, &done.packet(&packet(2, (4000, 53), b"payload")));
        // An unknown operation is malformed: its packet is not taken out, and the P4 program drops it.
        let frames = [damaged(40, 1), damaged(12, 0xf0), done, transparent(PATH, 2)];
        let left = step_at(&mut switch, way, Time::ZERO, frames);
        assert_eq!(left.len(), 3, "{:?}", switch.registry().render());
        assert_eq!(counts(&switch, 1), [1, 1, 0]);
        let mut malformed = assembled(PATH).packet(&[]);
        malformed[12] |= 0xf0;
        let malformed = frame(ethernet::IPV4, &packet(2, (4000, UDP_PORT), &malformed));
        assert_eq!(step_at(&mut switch, way, Time::ZERO, [malformed]).len(), 1);
        assert_eq!(counts(&switch, 1), [1, 2, 0]);
    }
}

#[test]
fn workers_share_the_limit() {
    let way = WAYS[2];
    let mut owner = switch(way, limited(20));
    let mut workers = owner.workers(2);
    let mut hops = |worker: usize| -> Vec<i8> {
        let left = step_at(&mut workers[worker], way, Time::ZERO, [transparent(PATH, 2), transparent(PATH, 2)]);
        left.iter().map(|frame| outcome(frame).0).collect()
    };
    assert_eq!((hops(0), hops(1)), (vec![1, 1], vec![0, 0]));
    assert_eq!(counts(&owner, 1), [2, 0, 2], "the owner has the counts of all");
}
