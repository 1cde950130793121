//! Tests tiny packet programs with a P4 program that does not know them, in every mode of execution.

use std::sync::Arc;

use compiler::Source;
use switch::{Device, Frame, MirrorSession, MulticastGroup, PortId, Registry, Replica, Time};
use tpp::map::MemoryMap;
use tpp::{AccessRights, TinyProgram};
use v1model::{Config, Switch, TinySettings, V1Model};
use wire::tpp::{Packet, Status, UDP_PORT, find};
use wire::{ethernet, ipv4, udp};

use crate::rows::{WAYS, Way, step};

/// A minimal router: the last byte of the address selects the action.
const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header ethernet_h { bit<48> destination; bit<48> source; bit<16> kind; }
header ipv4_h { bit<64> begin; bit<8> ttl; bit<24> more; bit<32> source; bit<24> net; bit<8> host; }
header label_h { bit<16> label; bit<16> kind; }
struct headers_t { ethernet_h ethernet; label_h label; ipv4_h ipv4; }
struct metadata_t { }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 { packet.extract(hdr.ipv4); transition accept; }
}
control Nothing(inout headers_t hdr, inout metadata_t meta) { apply {} }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    table known {
        key = { hdr.ipv4.host: exact; }
        actions = { NoAction; }
        const entries = { 200: NoAction(); 201: NoAction(); }
    }
    apply {
        known.apply();
        if (!hdr.ipv4.isValid() || hdr.ipv4.host == 9) { mark_to_drop(standard); return; }
        standard.egress_spec = 2;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        if (hdr.ipv4.host == 3) { standard.mcast_grp = 1; }
        if (hdr.ipv4.host == 4) { clone(CloneType.I2E, 1); }
        if (hdr.ipv4.host == 5) { standard.egress_spec = 5; }
        if (hdr.ipv4.host == 10) {
            hdr.ethernet.source = hdr.ethernet.destination;
            hdr.ethernet.destination = 0x060000000003;
        }
        if (hdr.ipv4.host == 6 && standard.instance_type == 0) { resubmit_preserving_field_list(0); }
        if (hdr.ipv4.host == 7) {
            hdr.label.setValid();
            hdr.label.label = 77;
            hdr.label.kind = hdr.ethernet.kind;
            hdr.ethernet.kind = 0x9999;
        }
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { if (hdr.ipv4.host == 8 && hdr.ipv4.ttl > 60) { hdr.ipv4.ttl = 60; recirculate_preserving_field_list(0); } }
}
control D(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.ethernet); packet.emit(hdr.label); packet.emit(hdr.ipv4); }
}
V1Switch(P(), Nothing(), I(), E(), Nothing(), D()) main;
"#;

const ADDRESS: [u8; 4] = [10, 0, 1, 1];

pub fn switch(way: Way, settings: Option<TinySettings>) -> Switch {
    let program = Arc::new(compiler::expect_program(&Source::new("tiny.p4", PROGRAM), &V1Model).ir);
    let config = Config { executor: way.executor, cpu_port: Some(PortId(5)), ..Config::with_ports(5) };
    let mut switch = Switch::new(program, config).expect("the program fits the switch");
    let replicas = [(2, 1), (3, 2), (5, 3)].map(|(port, rid)| Replica::new(port, rid));
    switch.set_multicast_group(1, Some(MulticastGroup { replicas: replicas.to_vec() }));
    switch.set_mirror_session(1, Some(MirrorSession::to_port(4)));
    switch.set_tiny_programs(settings);
    switch
}

fn settings(rights: AccessRights) -> Option<TinySettings> {
    Some(TinySettings { rights, ..TinySettings::new(77, false) })
}

pub fn packet(host: u8, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let udp = udp::Repr { source_port: ports.0, destination_port: ports.1 };
    let ip = ipv4::Repr::new(ADDRESS.into(), [10, 0, 2, host].into(), ipv4::UDP);
    ip.packet(&udp.packet(ip.addresses(), payload))
}

pub fn frame(ethertype: u16, payload: &[u8]) -> Frame {
    let [destination, source] = [2, 1].map(|last| ethernet::Address([8, 0, 0, 0, last, last]));
    Frame { port: PortId(1), data: ethernet::Repr { destination, source, ethertype }.packet(payload) }
}

pub fn assembled(text: &str) -> TinyProgram {
    assembled_for(&MemoryMap::new(), text)
}

/// Assembles a program for switches with this map.
fn assembled_for(map: &MemoryMap, text: &str) -> TinyProgram {
    let (mut sources, mut diagnostics) = (Default::default(), diagnostics::Diagnostics::new());
    let program = tpp::assemble(&mut sources, "test.tpp", text, map, &mut diagnostics);
    program.unwrap_or_else(|| panic!("{}", diagnostics.render(&sources, false)))
}

/// A transparent program before a packet to a host.
pub fn transparent(text: &str, host: u8) -> Frame {
    transparent_for(&MemoryMap::new(), text, host)
}

/// The same for switches with this map.
pub fn transparent_for(map: &MemoryMap, text: &str, host: u8) -> Frame {
    let mut program = assembled_for(map, text);
    program.repr.encapsulated = ethernet::IPV4;
    frame(wire::tpp::ETHERTYPE, &program.packet(&packet(host, (4000, 53), b"payload")))
}

/// The words that the first hop wrote, and the status.
pub fn words(frame: &Frame) -> (Vec<u32>, Status) {
    let place = find(&frame.data).or_else(|| wire::tpp::find_echo(&frame.data)).expect("a program");
    let packet = Packet::new_checked(&frame.data[place.start..place.end]).expect("a correct program");
    assert!(packet.is_checksum_right());
    let program = TinyProgram::decode(&packet);
    let named = |program: &TinyProgram| program.words_by_hop(&MemoryMap::new()).remove(0);
    let words = program.unnamed_words();
    let words = words.unwrap_or_else(|| named(&program).into_iter().map(|(_, value)| value).collect());
    (words, packet.status())
}

pub const PATH: &str = "PUSH [Switch:ID]\nPUSH [PacketMetadata:InputPort]\nPUSH [PacketMetadata:OutputPort]\n\
                    PUSH [Link:TX-Packets]\nPUSH [Link:TX-Bytes]\n";

#[test]
fn programs_see_what_forwarded_their_packet_and_the_p4_program_does_not_see_them() {
    for way in WAYS {
        let mut switch = switch(way, settings(AccessRights::all()));
        let frames = [transparent(PATH, 2), transparent(PATH, 2)];
        let length = frames[0].data.len();
        let left = step(&mut switch, way, frames);
        assert_eq!(left.len(), 2, "{:?}", switch.registry().render());
        for (number, frame) in left.iter().enumerate() {
            // The first packet counts itself as the first one sent, in a batch, too.
            let sent = number as u32 + 1;
            assert_eq!(words(frame), (vec![77, 1, 2, sent, sent * length as u32], Status::NONE));
            assert_eq!((frame.port, frame.data.len()), (PortId(2), length), "no frame grows");
            let inner = &frame.data[length - 35..];
            let inner = ipv4::Packet::new_checked(inner).expect("the packet behind");
            assert_eq!(inner.ttl(), 63, "the P4 program has processed the packet");
        }
    }
}

/// Without the setting, or for frames without a program, a switch is unchanged.
#[test]
fn other_frames_and_other_switches_are_not_concerned() {
    for way in WAYS {
        let plain = |host| frame(ethernet::IPV4, &packet(host, (4000, 53), b"payload"));
        let hosts = [2u8, 3, 4, 5, 6, 7, 8, 9];
        let left = |settings| -> Vec<Frame> {
            let mut switch = switch(way, settings);
            hosts.iter().flat_map(|host| step(&mut switch, way, [plain(*host)])).collect()
        };
        assert_eq!(left(None), left(settings(AccessRights::all())));
        // The P4 program drops unknown packets.
        assert_eq!(step(&mut switch(way, None), way, [transparent(PATH, 2)]), []);
    }
}

#[test]
fn each_copy_carries_its_own_program_and_drops_and_packet_ins_carry_none() {
    for way in WAYS {
        let outputs = |host| {
            let mut switch = switch(way, settings(AccessRights::all()));
            let mut left = step(&mut switch, way, [transparent(PATH, host)]);
            left.sort_by_key(|frame| frame.port.0);
            let ports: Vec<_> = left.iter().map(|frame| words(frame).0[2]).collect();
            for frame in &left {
                assert_eq!(words(frame).0[2], frame.port.0, "the memory is that of this copy");
            }
            (ports, switch.take_notifications())
        };
        assert_eq!(outputs(2).0, [2]);
        let (ports, notifications) = outputs(3);
        assert_eq!(ports, [2, 3]);
        assert_eq!(notifications.len(), 1, "the third replica goes to the controller");
        let switch::Notification::PacketIn { data, .. } = &notifications[0] else { panic!("a packet-in") };
        assert_eq!(data[12..14], [8, 0], "the controller gets the packet without its program");
        assert_eq!(outputs(4).0, [2, 4], "the clone has it, too");
        assert_eq!((outputs(5).0, outputs(5).1.len()), (vec![], 1));
        assert_eq!(outputs(6).0, [2], "once, although the packet is resubmitted");
        assert_eq!(outputs(8).0, [2], "once, although the packet is recirculated");
        assert_eq!(outputs(9).0, [0; 0]);
    }
}

#[test]
fn a_header_that_the_program_pushes_is_behind_the_tiny_program() {
    for way in WAYS {
        let mut switch = switch(way, settings(AccessRights::all()));
        let left = step(&mut switch, way, [transparent(PATH, 7)]);
        let place = find(&left[0].data).expect("the program is in front");
        let packet = Packet::new_checked(&left[0].data[place.start..]).unwrap();
        assert_eq!((packet.encapsulated(), packet.is_checksum_right()), (0x9999, true));
        assert_eq!(packet.payload()[..4], [0, 77, 8, 0]);
        assert_eq!(words(&left[0]).0[..3], [77, 1, 2]);
    }
}

#[test]
fn standalone_programs_keep_their_udp_checksum_and_echoes_are_not_executed() {
    for way in WAYS {
        let mut switch = switch(way, settings(AccessRights::all()));
        let program = assembled(PATH).packet(&[]);
        let left = step(&mut switch, way, [frame(ethernet::IPV4, &packet(2, (4000, UDP_PORT), &program))]);
        assert_eq!(words(&left[0]).0[..3], [77, 1, 2]);
        let inner = ipv4::Packet::new_checked(&left[0].data[14..]).unwrap();
        let addresses = wire::checksum::Addresses::V4(inner.source(), inner.destination());
        assert!(udp::Packet::new_checked(inner.payload()).unwrap().is_checksum_right(addresses));
        let left = step(&mut switch, way, [frame(ethernet::IPV4, &packet(2, (UDP_PORT, 4000), &program))]);
        assert_eq!(left[0].data[42..], program[..], "an echo stays as it is");
    }
}

#[test]
fn a_reflective_program_turns_around_once() {
    for way in WAYS {
        let mut switch = switch(way, settings(AccessRights::all()));
        let program = assembled(&format!(".reflect\n{PATH}")).packet(&[]);
        // A router rewrites the addresses of Ethernet, which are those of the sender again.
        let sent = frame(ethernet::IPV4, &packet(10, (4000, UDP_PORT), &program));
        let [destination, source] = [0, 6].map(|at| sent.data[at..at + 6].to_vec());
        let left = step(&mut switch, way, [sent]);
        assert_eq!((left.len(), left[0].port), (1, PortId(1)));
        assert_eq!((&left[0].data[..6], &left[0].data[6..12]), (&source[..], &destination[..]));
        assert_eq!(words(&left[0]).1, Status::DONE);
        assert_eq!(find(&left[0].data), None, "it is an echo now");
        let inner = ipv4::Packet::new_checked(&left[0].data[14..]).unwrap();
        assert_eq!(inner.destination().octets(), ADDRESS);
        let count = |name: &str| switch.registry().get(name);
        assert_eq!((count("port.1.tx.packets"), count("port.2.tx.packets")), (Some(1), Some(0)));
    }
}

#[test]
fn a_program_is_reflected_only_to_a_port_that_can_send_it() {
    for way in WAYS {
        let mut switch = switch(way, settings(AccessRights::all()));
        let program = assembled(&format!(".reflect\n{PATH}")).packet(&[]);
        let mut from_controller = frame(ethernet::IPV4, &packet(2, (4000, UDP_PORT), &program));
        from_controller.port = PortId(5);
        let mut left = Vec::new();
        switch.step(Time::from_us(1), &mut vec![from_controller], &mut left);
        assert_eq!((left.len(), left[0].port), (1, PortId(2)), "it is forwarded");
        assert!(find(&left[0].data).is_some(), "and is no echo");
        assert_eq!(switch.registry().get("port.2.tx.packets"), Some(1));
    }
}

#[test]
fn words_of_applications_are_written_where_this_is_permitted() {
    for way in WAYS {
        let mut open = switch(way, settings(AccessRights::all()));
        let store = ".memory 5\nSTORE [Link:AppSpecific_3], [Packet:0]\nPUSH [Link:AppSpecific_3]\n";
        assert_eq!(words(&step(&mut open, way, [transparent(store, 2)])[0]), (vec![5], Status::NONE));
        let swap = "CSTORE [Link:AppSpecific_3], 5, 9\nPUSH [Link:AppSpecific_3]\n";
        assert_eq!(words(&step(&mut open, way, [transparent(swap, 2)])[0]).0, [9]);
        let again = step(&mut open, way, [transparent(swap, 2)]);
        let place = find(&again[0].data).expect("a program");
        let packet = Packet::new_checked(&again[0].data[place.start..]).expect("a correct program");
        assert_eq!(packet.memory()[..8], [0, 0, 0, 9, 0, 0, 0, 9], "the second one fails, and says what it found");
        assert_eq!(TinyProgram::decode(&packet).unnamed_words(), Some(Vec::new()), "and ends");
        let mut closed = switch(way, settings(AccessRights::read_only()));
        assert_eq!(words(&step(&mut closed, way, [transparent(store, 2)])[0]), (vec![0], Status::SUPPRESSED));
    }
}

/// Occupancy exists only for a queue with a rate: otherwise frames wait in the driver.
#[test]
fn queue_depths_are_those_that_the_packet_found() {
    let depth = ".hops 1\nPUSH [PacketMetadata:EnqueueDepth]\nPUSH [PacketMetadata:DequeueDepth]\nPUSH [PacketMetadata:QueueID]\n";
    for way in WAYS {
        let mut open = switch(way, settings(AccessRights::all()));
        assert_eq!(words(&step(&mut open, way, [transparent(depth, 2)])[0]), (vec![0; 3], Status::ABSENT));
        let mut slow = switch(way, settings(AccessRights::all()));
        slow.set_queue_rate(PortId(2), None, Some(1000));
        let mut left = step(&mut slow, way, (0..4).map(|_| transparent(depth, 2)));
        for ms in 1..10 {
            slow.step(Time::from_us(ms * 1000 + 10), &mut Vec::new(), &mut left);
        }
        let found: Vec<_> = left.iter().map(|frame| words(frame).0).collect();
        // One leaves at once; each of the others finds the earlier ones at its arrival, and leaves the later ones in
        // the queue.
        assert_eq!(found.len(), 4, "{found:?}");
        let enqueued: Vec<u32> = found.iter().map(|words| words[0]).collect();
        let dequeued: Vec<u32> = found.iter().map(|words| words[1]).collect();
        assert_eq!((enqueued.len(), dequeued.last()), (4, Some(&0)), "{found:?}");
        assert!(enqueued.windows(2).all(|pair| pair[0] <= pair[1]) && enqueued[3] >= 2, "{found:?}");
    }
}

#[test]
fn workers_share_words_and_leave_out_counts_that_are_not_all_theirs() {
    let way = WAYS[2];
    let mut owner = switch(way, settings(AccessRights::all()));
    let mut workers = owner.workers(2);
    let store = ".memory 5\nSTORE [Link:AppSpecific_3], [Packet:0]\nPUSH [Link:AppSpecific_3]\n";
    step(&mut workers[0], way, [transparent(store, 2)]);
    let load = "PUSH [Link:AppSpecific_3]\nPUSH [Link:TX-Packets]\n";
    let left = step(&mut workers[1], way, [transparent(load, 2)]);
    assert_eq!(words(&left[0]), (vec![5, 0], Status::ABSENT));
    let _: &Registry = owner.registry();
}
