//! Tests what tiny packet programs read of the entries that their packet matched, and of versions.

use std::sync::Arc;

use bits::Bits;
use compiler::Source;
use engine::{ActionCall, ActionSpec, TableEntry};
use ir::{KeyValue, TableId};
use switch::{PortId, Time};
use v1model::{Config, Switch, TinySettings, V1Model};
use wire::tpp::{Packet, Status, find};

use crate::rows::{WAYS, Way, step, step_at};
use crate::tiny::{frame, packet, transparent, words};

/// The last byte of the address is looked up in ingress, and in egress if it is at least 100.
const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header ethernet_h { bit<48> destination; bit<48> source; bit<16> kind; }
header ipv4_h { bit<64> begin; bit<8> ttl; bit<24> more; bit<32> source; bit<24> net; bit<8> host; }
struct headers_t { ethernet_h ethernet; ipv4_h ipv4; }
struct metadata_t { }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.ethernet); packet.extract(hdr.ipv4); transition accept; }
}
control Nothing(inout headers_t hdr, inout metadata_t meta) { apply {} }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) hits;
    action send(bit<9> port) { hits.count(); standard.egress_spec = port; }
    table hosts {
        key = { hdr.ipv4.host: exact; }
        actions = { send; NoAction; }
        counters = hits;
    }
    apply { standard.egress_spec = 3; hosts.apply(); }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action age(bit<8> by) { hdr.ipv4.ttl = hdr.ipv4.ttl - by; }
    table ages {
        key = { hdr.ipv4.host: ternary; }
        actions = { age; NoAction; }
    }
    apply { if (hdr.ipv4.host >= 100) { ages.apply(); } }
}
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); packet.emit(hdr.ipv4); } }
V1Switch(P(), Nothing(), I(), E(), Nothing(), D()) main;
"#;

/// Reads the entry of the first table.
const ENTRY: &str = ".hops 1\nPUSH [FlowEntry0:ID]\nPUSH [FlowEntry0:Generation]\nPUSH [FlowEntry0:Match-Packets]\n\
                     PUSH [FlowEntry0:Match-Bytes]\nPUSH [FlowEntry0:InsertClock]\n";

fn switch(way: Way) -> Switch {
    let program = Arc::new(compiler::expect_program(&Source::new("entries.p4", PROGRAM), &V1Model).ir);
    let config = Config { executor: way.executor, ..Config::with_ports(4) };
    let mut switch = Switch::new(program, config).expect("the program fits the switch");
    switch.set_tiny_programs(Some(TinySettings::new(1, false)));
    for host in [7, 8, 107] {
        insert(&mut switch, host, 2);
    }
    switch
}

fn call(switch: &Switch, action: &str, arg: Bits) -> ActionSpec {
    let number = switch.program().actions.iter().find(|(_, it)| it.name == action).expect("the action").0;
    ActionSpec::Direct(ActionCall { action: number, args: vec![arg] })
}

fn entry(switch: &Switch, host: u8, port: u128) -> TableEntry {
    let keys = vec![KeyValue::Exact(Bits::new(host.into(), 8))];
    let action = call(switch, "I.send", Bits::new(port, 9));
    TableEntry { keys, priority: 0, action, metadata: Vec::new(), idle_timeout_ns: 0 }
}

fn hosts() -> TableId {
    TableId::from_u32(0)
}

fn insert(switch: &mut Switch, host: u8, port: u128) {
    let entry = entry(switch, host, port);
    switch.objects_mut().insert(hosts(), entry).expect("there is no such entry");
}

fn delete(switch: &mut Switch, host: u8) {
    let keys = [KeyValue::Exact(Bits::new(host.into(), 8))];
    switch.objects_mut().delete(hosts(), &keys, 0).expect("there is an entry");
}

#[test]
fn programs_read_the_entry_that_forwarded_their_packet() {
    for way in WAYS {
        let mut switch = switch(way);
        let plain = || frame(wire::ethernet::IPV4, &packet(8, (4000, 53), b"payload"));
        // Packets without programs before and behind it, which machine code runs.
        let bytes = plain().data.len() as u32;
        let left = step(&mut switch, way, [plain(), plain(), transparent(ENTRY, 8), plain()]);
        assert_eq!(left.len(), 4, "{way:?}");
        assert!(left.iter().all(|frame| frame.port == PortId(2)), "{way:?}");
        assert_eq!(words(&left[2]), (vec![1, 1, 3, 3 * bytes, 0], Status::NONE), "{way:?}");
        let counted = switch.objects().get(hosts(), &entry(&switch, 8, 2).keys, 0).expect("the entry").counter;
        assert_eq!((counted.packets, counted.bytes), (4, u64::from(4 * bytes)), "{way:?}");
    }
}

#[test]
fn entries_are_absent_after_a_miss() {
    for way in WAYS {
        let mut switch = switch(way);
        let left = step(&mut switch, way, [transparent(ENTRY, 9)]);
        assert_eq!((left[0].port, words(&left[0])), (PortId(3), (vec![0; 5], Status::ABSENT)), "{way:?}");
        let last = ".hops 1\nPUSH [PacketMetadata:MatchedEntryID]\nPUSH [PacketMetadata:MatchedStage]\n";
        let left = step(&mut switch, way, [transparent(last, 9), transparent(last, 8)]);
        assert_eq!(words(&left[0]), (vec![0; 2], Status::ABSENT), "{way:?}");
        assert_eq!(words(&left[1]), (vec![1, 0], Status::NONE), "{way:?}");
    }
}

/// The table of egress has no direct counter, so the counts of its entries are absent.
#[test]
fn each_table_has_its_own_entry_and_the_last_match_is_known() {
    for way in WAYS {
        let mut switch = switch(way);
        let action = call(&switch, "E.age", Bits::new(5, 8));
        let keys = vec![KeyValue::Ternary(Bits::new(0x60, 8), Bits::new(0x60, 8))];
        let ages = TableEntry { keys, priority: 1, action, metadata: Vec::new(), idle_timeout_ns: 0 };
        switch.objects_mut().insert(TableId::from_u32(1), ages).expect("there is no such entry");
        let program = ".hops 1\nPUSH [FlowEntry0:ID]\nPUSH [FlowEntry1:ID]\nPUSH [PacketMetadata:MatchedEntryID]\n\
                       PUSH [PacketMetadata:MatchedStage]\nPUSH [FlowEntry1:Match-Packets]\n";
        let left = step(&mut switch, way, [transparent(program, 107), transparent(program, 8)]);
        assert_eq!(words(&left[0]), (vec![2, 0, 0, 1, 0], Status::ABSENT), "{way:?}");
        assert_eq!(words(&left[1]), (vec![1, 0, 1, 0, 0], Status::ABSENT), "{way:?}");
    }
}

#[test]
fn a_handle_that_is_used_again_has_another_generation() {
    for way in WAYS {
        let mut switch = switch(way);
        delete(&mut switch, 7);
        insert(&mut switch, 9, 3);
        let program = ".hops 1\nPUSH [FlowEntry0:ID]\nPUSH [FlowEntry0:Generation]\n";
        let left = step(&mut switch, way, [transparent(program, 9), transparent(program, 8)]);
        assert_eq!(words(&left[0]), (vec![0, 2], Status::NONE), "{way:?}");
        assert_eq!(words(&left[1]), (vec![1, 1], Status::NONE), "{way:?}");
    }
}

/// The packet still says which entry forwarded it, and nothing of the one that has its number by then.
#[test]
fn an_entry_may_be_removed_while_its_packet_waits() {
    for way in WAYS {
        let mut switch = switch(way);
        switch.set_queue_rate(PortId(2), None, Some(1_000));
        let frames = [transparent(ENTRY, 8), transparent(ENTRY, 8)];
        assert_eq!(step(&mut switch, way, frames).len(), 1, "the other one waits");
        delete(&mut switch, 8);
        insert(&mut switch, 9, 2);
        let left = step_at(&mut switch, way, Time::from_us(2_000), []);
        assert_eq!(left.len(), 1, "{way:?}");
        assert_eq!(words(&left[0]), (vec![1, 1, 0, 0, 0], Status::ABSENT), "{way:?}");
    }
}

#[test]
fn indirect_addresses_reach_entries() {
    let program = ".hops 1\n.memory 0, 0x2000\nLOAD [[Packet:hop[1]]], [Packet:hop[0]]\n";
    for way in WAYS {
        let left = step(&mut switch(way), way, [transparent(program, 8)]);
        let place = find(&left[0].data).expect("a program");
        let packet = Packet::new_checked(&left[0].data[place.start..]).expect("a correct program");
        assert_eq!((packet.memory(), packet.status()), (&[0, 0, 0, 1, 0, 0, 0x20, 0][..], Status::NONE), "{way:?}");
    }
}

/// Packets that are dropped take no execution, but each that is interpreted counts.
#[test]
fn a_flood_of_programs_that_read_entries_is_not_interpreted() {
    for way in WAYS {
        let mut switch = switch(way);
        switch.set_tiny_programs(Some(TinySettings { executions_per_second: 1, ..TinySettings::new(1, false) }));
        insert(&mut switch, 9, 99);
        assert_eq!(step(&mut switch, way, [transparent(ENTRY, 9)]).len(), 0, "there is no port 99");
        let left = step(&mut switch, way, [transparent(ENTRY, 8)]);
        assert_eq!(words(&left[0]), (vec![0; 5], Status::ABSENT), "{way:?}");
    }
}

#[test]
fn the_version_of_the_switch_counts_changes() {
    let version = |switch: &mut Switch| {
        let left = step(switch, WAYS[1], [transparent(".hops 1\nPUSH [Switch:Version]\nPUSH [Stage0:Version]\n", 8)]);
        words(&left[0])
    };
    let mut switch = switch(WAYS[1]);
    assert_eq!(version(&mut switch), (vec![3, 3], Status::NONE));
    insert(&mut switch, 9, 2);
    assert_eq!(version(&mut switch).0, [4, 4]);
    let entry = entry(&switch, 9, 3);
    switch.objects_mut().modify(hosts(), entry).expect("there is an entry");
    assert_eq!(version(&mut switch).0, [5, 5]);
    delete(&mut switch, 9);
    assert_eq!(version(&mut switch).0, [6, 6]);
}
