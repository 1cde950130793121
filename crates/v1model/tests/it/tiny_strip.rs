//! Tests the edge of the network of tiny packet programs: ports that take programs out of packets, and ports that
//! refuse them.

use switch::{Frame, PortId};
use tpp::AccessRights;
use v1model::{IntSettings, Switch, TinySettings};
use wire::ethernet;
use wire::int::{Marker, NextProtocol};
use wire::tpp::{ETHERTYPE, Status, UDP_PORT, find};

use crate::rows::{WAYS, Way, step};
use crate::tiny::{PATH, assembled, frame, packet, switch, transparent, words};

/// Writes a word, so that an execution shows although its program has gone.
const STORE: &str = ".memory 5\nSTORE [Switch:AppSpecific_0], [Packet:0]\n";
const READ: &str = "PUSH [Switch:AppSpecific_0]\nPUSH [Link:TX-Bytes]\n";

fn edge(way: Way, stripping: &[u32], refusing: &[u32]) -> Switch {
    let ports = |ports: &[u32]| ports.iter().copied().map(PortId).collect();
    let (stripping, refusing) = (ports(stripping), ports(refusing));
    let rights = AccessRights::words();
    switch(way, Some(TinySettings { rights, stripping, refusing, ..TinySettings::new(77, false) }))
}

fn count(switch: &Switch, name: &str) -> u64 {
    switch.registry().get(name).unwrap_or(0)
}

/// Returns the frames that a switch without programs sends for a packet without one.
fn plain(way: Way, host: u8) -> Vec<Frame> {
    step(&mut switch(way, None), way, [frame(ethernet::IPV4, &packet(host, (4000, 53), b"payload"))])
}

/// Returns a program before a program before a packet.
fn nested(outer: &str, inner: &str) -> Frame {
    let inner = transparent(inner, 2).data.split_off(14);
    let mut outer = assembled(outer);
    outer.repr.encapsulated = ETHERTYPE;
    frame(ETHERTYPE, &outer.packet(&inner))
}

#[test]
fn a_host_without_a_shim_gets_the_packet_of_an_executed_program_as_it_was() {
    for way in WAYS {
        for host in [2, 7, 10] {
            let mut switch = edge(way, &[2], &[]);
            let left = step(&mut switch, way, [transparent(STORE, host), transparent(STORE, host)]);
            let plain = plain(way, host);
            assert_eq!(left, [&plain[..], &plain].concat(), "host {host}");
            assert_eq!(["executed", "stripped"].map(|it| count(&switch, &format!("port.1.tpp.{it}"))), [2, 2]);
            assert_eq!(count(&switch, "port.2.tx.bytes"), 2 * plain[0].data.len() as u64, "what leaves is counted");
            // Only the program of the other packet reads the word, at a port that does not strip.
            let left = step(&mut switch, way, [transparent(READ, 4)]);
            let clone = left.iter().find(|frame| frame.port == PortId(4)).expect("a clone");
            assert_eq!(words(clone).0[0], 5, "{:?}", words(clone));
        }
    }
}

#[test]
fn each_copy_is_stripped_at_its_own_port_only() {
    for way in WAYS {
        let mut switch = edge(way, &[3], &[]);
        let mut left = step(&mut switch, way, [transparent(PATH, 3)]);
        left.sort_by_key(|frame| frame.port.0);
        let unstripped = words(&left[0]).0;
        assert_eq!((left.len(), left[0].port, &unstripped[..3]), (2, PortId(2), &[77, 1, 2][..]));
        let plain = plain(way, 3).into_iter().find(|frame| frame.port == PortId(3));
        assert_eq!(Some(&left[1]), plain.as_ref());
        assert_eq!(count(&switch, "port.1.tpp.stripped"), 1);
    }
}

#[test]
fn programs_for_the_host_itself_stay() {
    for way in WAYS {
        let program = assembled(PATH).packet(&[]);
        let [probe, echo] =
            [(4000, UDP_PORT), (UDP_PORT, 4000)].map(|ports| frame(ethernet::IPV4, &packet(2, ports, &program)));
        let run = |stripping: &[u32]| step(&mut edge(way, stripping, &[]), way, [probe.clone(), echo.clone()]);
        let (left, others) = (run(&[2]), run(&[]));
        assert_eq!(left, others);
        assert_eq!(words(&left[0]).0[0], 77, "it was executed");
    }
}

#[test]
fn a_program_in_front_of_another_is_executed_and_both_are_taken_out() {
    for way in WAYS {
        let mut switch = edge(way, &[2], &[]);
        // The P4 program of the test drops what is not IPv4, so a program behind a program would not leave.
        let program = nested(STORE, STORE);
        assert_eq!(step(&mut switch, way, [program.clone()]), []);
        let mut switch = passing(way, &[2]);
        let left = step(&mut switch, way, [program]);
        let original = frame(ethernet::IPV4, &packet(2, (4000, 53), b"payload"));
        assert_eq!(left, [Frame { port: PortId(2), ..original }]);
        assert_eq!(["executed", "stripped"].map(|it| count(&switch, &format!("port.1.tpp.{it}"))), [1, 2]);
    }
}

/// Returns a switch that sends all that arrives to port 2, whatever it is.
fn passing(way: Way, stripping: &[u32]) -> Switch {
    const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
struct none {}
parser P(packet_in packet, out none hdr, inout none meta, inout standard_metadata_t standard) {
    state start { transition accept; }
}
control Nothing(inout none hdr, inout none meta) { apply {} }
control I(inout none hdr, inout none meta, inout standard_metadata_t standard) { apply { standard.egress_spec = 2; } }
control E(inout none hdr, inout none meta, inout standard_metadata_t standard) { apply {} }
control D(packet_out packet, in none hdr) { apply {} }
V1Switch(P(), Nothing(), I(), E(), Nothing(), D()) main;
"#;
    let source = compiler::Source::new("passing.p4", PROGRAM);
    let program = std::sync::Arc::new(compiler::expect_program(&source, &v1model::V1Model).ir);
    let config = v1model::Config { executor: way.executor, ..v1model::Config::with_ports(5) };
    let mut switch = Switch::new(program, config).expect("the program fits the switch");
    let stripping = stripping.iter().copied().map(PortId).collect();
    switch.set_tiny_programs(Some(TinySettings { stripping, ..TinySettings::new(77, true) }));
    switch
}

#[test]
fn what_cannot_be_taken_out_is_dropped_and_counted() {
    for way in WAYS {
        let mut switch = passing(way, &[2]);
        let right = transparent(STORE, 2);
        let (mut shorter, mut malformed, mut done) = (right.clone(), right.clone(), assembled(STORE));
        // Two bytes less of memory; more than the frame has.
        (shorter.data[16], shorter.data[17]) = (shorter.data[16] - 1, shorter.data[17] - 1);
        malformed.data[16] = 0xff;
        (done.repr.status, done.repr.encapsulated) = (Status::DONE, ethernet::IPV4);
        let payload = packet(2, (4000, 53), b"payload");
        let done = frame(ETHERTYPE, &done.packet(&payload));
        let empty = frame(ETHERTYPE, &assembled(STORE).packet(&[]));
        let frames = [shorter, malformed, done, empty];
        assert_eq!(step(&mut switch, way, frames.clone()), []);
        assert_eq!(count(&switch, "drop.tx.tpp-strip"), 4);
        assert_eq!(["executed", "stripped"].map(|it| count(&switch, &format!("port.1.tpp.{it}"))), [0, 0]);
        // A word is damaged, and the packet proves that it begins where it seems to.
        let mut damaged = right;
        damaged.data[30] ^= 1;
        let left = step(&mut switch, way, [damaged]);
        assert_eq!(left, [Frame { port: PortId(2), ..frame(ethernet::IPV4, &payload) }]);
        // Other ports are not concerned.
        assert_eq!(step(&mut passing(way, &[3]), way, frames).len(), 4);
    }
}

#[test]
fn programs_beyond_the_limit_are_taken_out_unexecuted() {
    for way in WAYS {
        let mut switch = edge(way, &[2], &[]);
        let settings =
            TinySettings { executions_per_second: 1, stripping: [PortId(2)].into(), ..TinySettings::new(77, true) };
        switch.set_tiny_programs(Some(settings));
        let left = step(&mut switch, way, [transparent(STORE, 2), transparent(STORE, 2)]);
        assert_eq!(left, [plain(way, 2), plain(way, 2)].concat());
        let counts = ["executed", "limited", "stripped"].map(|it| count(&switch, &format!("port.1.tpp.{it}")));
        assert_eq!(counts, [1, 1, 2]);
    }
}

/// A frame that would be too long with its program leaves without.
#[test]
fn the_length_that_leaves_is_the_one_that_counts() {
    for way in WAYS {
        let carrier = |payload: usize| {
            let mut program = assembled(PATH);
            program.repr.encapsulated = ethernet::IPV4;
            frame(ETHERTYPE, &program.packet(&packet(7, (4000, 53), &vec![7; payload])))
        };
        // The frame has the maximum length, and the P4 program pushes a label of four bytes.
        let room = v1model::Config::default().max_frame - carrier(0).data.len();
        assert_eq!(step(&mut edge(way, &[3], &[]), way, [carrier(room)]), []);
        let left = step(&mut edge(way, &[2], &[]), way, [carrier(room)]);
        assert_eq!((left.len(), find(&left[0].data)), (1, None));
    }
}

#[test]
fn no_program_is_sent_back_by_a_port_that_strips() {
    let text = format!(".reflect\n{PATH}");
    for way in WAYS {
        // Port 1 is that of the sender.
        let mut switch = edge(way, &[2], &[]);
        let other = step(&mut switch, way, [transparent(STORE, 2)])[0].data.len() as u64;
        let left = step(&mut switch, way, [transparent(&text, 2)]);
        assert_eq!((left[0].port, words(&left[0]).1), (PortId(1), Status::DONE));
        let sent = ["port.1.tx.bytes", "port.2.tx.bytes", "port.2.tx.packets"].map(|name| count(&switch, name));
        assert_eq!((sent, count(&switch, "port.1.tpp.stripped")), ([left[0].data.len() as u64, other, 1], 1));
        let mut switch = edge(way, &[1, 2], &[]);
        assert_eq!(step(&mut switch, way, [transparent(&text, 2)]), plain(way, 2));
        // What is payload for the sender is sent back.
        let probe = frame(ethernet::IPV4, &packet(2, (4000, UDP_PORT), &assembled(&text).packet(&[])));
        assert_eq!(step(&mut switch, way, [probe])[0].port, PortId(1));
    }
}

/// Only the first switch strips at the port of the sender. The second one executes the program as any other.
#[test]
fn a_program_that_may_not_be_sent_back_continues() {
    let text = format!(".reflect\n{PATH}");
    for way in WAYS {
        let left = step(&mut edge(way, &[1], &[]), way, [transparent(&text, 2)]);
        let read = vec![77, 1, 2, 1, left[0].data.len() as u32];
        assert_eq!((left.len(), left[0].port, words(&left[0])), (1, PortId(2), (read, Status::NONE)));
        let next = || Frame { port: PortId(3), ..left[0].clone() };
        let back = step(&mut edge(way, &[], &[]), way, [next()]);
        assert_eq!((back.len(), back[0].port, words(&back[0]).1), (1, PortId(3), Status::DONE));
        let mut last = edge(way, &[2, 3], &[]);
        let received = step(&mut last, way, [next()]);
        assert_eq!((received.len(), find(&received[0].data)), (1, None));
        assert_eq!(["executed", "stripped"].map(|it| count(&last, &format!("port.3.tpp.{it}"))), [1, 1]);
    }
}

/// Zeros behind a frame make it longer: a network card pads it.
#[test]
fn a_refused_program_does_not_pass_as_something_else() {
    for way in WAYS {
        let program = assembled(STORE).packet(&[]);
        let probe = frame(ethernet::IPV4, &packet(2, (4000, UDP_PORT), &program));
        let mut cut = probe.clone();
        cut.data.pop();
        let mut fragment = probe.clone();
        fragment.data[14 + 6] = 0x20;
        let mut longer = probe.clone();
        longer.data[14 + 20 + 4] = 1;
        let frames = [cut, fragment, longer];
        let mut switch = edge(way, &[], &[1]);
        assert_eq!(step(&mut switch, way, frames.clone()), []);
        assert_eq!(count(&switch, "drop.rx.tpp-refused"), 3);
        // They are ordinary packets at other ports.
        let others = frames.map(|frame| Frame { port: PortId(3), ..frame });
        assert_eq!(step(&mut switch, way, others).len(), 3);
        assert_eq!(count(&switch, "port.3.tpp.executed"), 0);
    }
}

/// Returns a packet with INT in front of this datagram or payload.
fn with_int(next: NextProtocol, behind: &[u8]) -> Frame {
    let Marker::UdpPort(port) = Marker::default() else { panic!("a port") };
    let repr = wire::int::Repr::new(next, 0x8000, 8);
    frame(ethernet::IPV4, &packet(2, (4000, port), &[repr.packet(&[]), behind.to_vec()].concat()))
}

#[test]
fn int_brings_no_program_through_a_port_that_refuses_them() {
    let Marker::UdpPort(marked) = Marker::default() else { panic!("a port") };
    let inner = |port: u16, payload: &[u8]| packet(2, (4000, port), payload).split_off(20);
    for way in WAYS {
        let program = assembled(STORE).packet(&[]);
        let sink = || {
            let mut switch = edge(way, &[], &[1]);
            let sinks = [PortId(2)].into();
            switch.set_int(Some(IntSettings { sinks, ..IntSettings::new(77, Marker::default()) }));
            switch
        };
        let (udp, transport) = (|port| NextProtocol::UdpPayload { port }, NextProtocol::Transport { protocol: 17 });
        let programs = [with_int(udp(UDP_PORT), &program), with_int(transport, &inner(UDP_PORT, &program))];
        // INT in INT, INT that is cut, and INT that is malformed.
        let repeated = [with_int(udp(marked), &program), with_int(transport, &inner(marked, &program))];
        let [mut cut, mut malformed] = [0, 1].map(|_| with_int(udp(53), b"payload"));
        cut.data.pop();
        malformed.data[14 + 28] = 0xf0;
        let frames = [&programs[..], &repeated, &[cut, malformed]].concat();
        let mut switch = sink();
        assert_eq!(step(&mut switch, way, frames.clone()), []);
        assert_eq!(count(&switch, "drop.rx.tpp-refused"), 6);
        // The sink restores others, and executes those of the network.
        let harmless = [with_int(udp(53), b"payload"), with_int(transport, &inner(53, b"payload"))];
        let plain = frame(ethernet::IPV4, &packet(2, (4000, 53), b"payload"));
        let restored = step(&mut switch, way, harmless);
        let expected = step(&mut sink(), way, [plain]);
        assert_eq!((restored.len(), &restored[..1]), (2, &expected[..]));
        assert_eq!(count(&switch, "port.1.tpp.executed"), 0);
        let trusted = programs.map(|frame| Frame { port: PortId(3), ..frame });
        assert_eq!(step(&mut switch, way, trusted).len(), 2);
        assert_eq!(count(&switch, "port.3.tpp.executed"), 2);
    }
}

#[test]
fn a_port_of_an_untrusted_host_takes_no_programs() {
    for way in WAYS {
        let mut switch = edge(way, &[], &[1]);
        let program = assembled(STORE).packet(&[]);
        let [probe, echo, data] = [(4000, UDP_PORT), (UDP_PORT, 4000), (4000, 53)]
            .map(|ports| frame(ethernet::IPV4, &packet(2, ports, &program)));
        let mut malformed = transparent(STORE, 2);
        malformed.data[16] = 0xff;
        let frames = [transparent(STORE, 2), echo.clone(), probe, malformed, data.clone(), nested(STORE, STORE)];
        let left = step(&mut switch, way, frames.clone());
        let unconcerned = step(&mut edge(way, &[], &[]), way, [echo, data]);
        assert_eq!(left, unconcerned);
        assert_eq!((count(&switch, "drop.rx.tpp-refused"), count(&switch, "port.1.tpp.executed")), (4, 0));
        assert_eq!(count(&switch, "port.1.rx.packets"), 6);
        // The network's own programs arrive at other ports.
        let other = frames.map(|frame| Frame { port: PortId(3), ..frame });
        let left = step(&mut switch, way, other);
        assert_eq!((left.len(), count(&switch, "port.3.tpp.executed")), (4, 2));
        let word = words(&step(&mut switch, way, [Frame { port: PortId(3), ..transparent(READ, 2) }])[0]).0[0];
        assert_eq!(word, 5);
    }
}
