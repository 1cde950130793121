//! A program with what the router does not have: keys of several elements, direct counters, results of applications,
//! fields that are not bytes, signed numbers, shifts, drops by egress, and a table of constant ternary entries.

use bits::Bits;
use engine::{Objects, TableEntry};
use ir::{KeyValue, Program};
use rng::SplitMix64;

use crate::kernel::{self, InKernel};
use crate::rig::{self, PORTS, Rig};

const SOURCE: &str = r#"
#include <core.p4>
#include <v1model.p4>
header first_t { bit<8> a; bit<8> b; bit<16> c; bit<3> d; bit<13> e; bit<64> f; bit<48> g; }
header second_t { bit<4> kind; bit<4> low; bit<56> wide; }
struct headers { first_t h; second_t s; }
struct metadata { bit<16> x; bit<8> next; }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.a[1:0], hdr.h.b) {
            (0, 0 .. 2): accept;
            (1, 1 &&& 1): peek;
            (2, 4): reject;
            (3, _): second;
            default: accept;
        }
    }
    state peek { meta.next = packet.lookahead<bit<8>>(); transition select(meta.next) { 1: second; default: accept; } }
    state second { packet.extract(hdr.s); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {} }
control C(inout headers hdr, inout metadata meta) {
    apply { update_checksum(hdr.s.isValid(), { hdr.h.a, hdr.h.d, hdr.h.f, hdr.s.kind }, hdr.h.c, HashAlgorithm.csum16); }
}
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) hits;
    counter(8, CounterType.bytes) lengths;
    action send(bit<16> x, bit<9> port) { meta.x = x; std.egress_spec = port; hits.count(); }
    action deny() { mark_to_drop(std); hits.count(); }
    action add(bit<13> more) { hdr.h.e = hdr.h.e + more; }
    action leave() { exit; }
    action mark(bit<48> value) { hdr.h.g = value; }
    table two {
        key = { hdr.h.a: exact; hdr.h.c: exact; }
        actions = { send; deny; NoAction; }
        counters = hits;
        size = 64;
    }
    table prefixes { key = { hdr.h.c: lpm; } actions = { add; leave; NoAction; } }
    table classes {
        key = { hdr.h.a: ternary; hdr.h.b: range; }
        actions = { mark; NoAction; }
        const entries = {
            (0 &&& 1, 0 .. 1): mark(7);
            (1, _): mark(0x123456789abc);
            (_, 2): NoAction();
        }
    }
    apply {
        lengths.count((bit<32>) hdr.h.b);
        if (two.apply().hit) { hdr.h.f = hdr.h.f * 3 + (bit<64>) meta.x; } else { std.egress_spec = 1; }
        switch (prefixes.apply().action_run) {
            add: { hdr.h.d = hdr.h.d << hdr.h.b; }
            default: { hdr.h.f = hdr.h.f >> hdr.h.a; }
        }
        classes.apply();
        if ((int<8>) hdr.h.a < (int<8>) hdr.h.b && hdr.h.a != 4) {
            hdr.h.g = (bit<48>) (hdr.h.f ^ (bit<64>) (hdr.h.a ++ hdr.h.b));
        }
        if (hdr.s.isValid()) { hdr.s.wide = -hdr.s.wide; hdr.s.low = ~hdr.s.kind; }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply { if (hdr.h.d == 5) { mark_to_drop(std); } if (std.packet_length == 24) { hdr.h.b = (bit<8>) std.egress_port; } }
}
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.h); packet.emit(hdr.s); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

fn write(program: &Program, objects: &mut Objects) {
    let mut rng = SplitMix64::new(11);
    let action = |name: &str| program.actions.iter().find(|(_, action)| action.name == name).expect("an action").0;
    let (two, prefixes) = (program.table_named("I.two").expect("a table"), program.table_named("I.prefixes"));
    let prefixes = prefixes.expect("a table");
    for _ in 0..60 {
        let keys = [(rng.below(8), 8), (rng.below(4) << rng.below(3), 16)];
        let keys = keys.map(|(value, width)| KeyValue::Exact(Bits::new(value.into(), width))).to_vec();
        let entry = match rng.percent(80) {
            true => {
                let args = vec![Bits::new(rng.below(99).into(), 16), Bits::new(rng.below(PORTS.into()).into(), 9)];
                TableEntry::new(keys, 0, action("I.send"), args)
            }
            false => TableEntry::new(keys, 0, action("I.deny"), Vec::new()),
        };
        // A repeated key is refused.
        _ = objects.insert(two, entry);
    }
    for (length, value) in [(0, 0), (13, 0), (14, 4), (16, 2), (15, 8)] {
        let keys = vec![KeyValue::Lpm(Bits::new(value, 16), length)];
        let entry = match length {
            14 => TableEntry::new(keys, 0, action("I.leave"), Vec::new()),
            _ => TableEntry::new(keys, 0, action("I.add"), vec![Bits::new(u128::from(length) * 7, 13)]),
        };
        objects.insert(prefixes, entry).expect("a new prefix");
    }
}

fn packet(rng: &mut SplitMix64) -> Vec<u8> {
    let mut data: Vec<u8> =
        (0..rng.pick(&[(6, 30), (2, 24), (1, 31), (1, 20)])).map(|_| rng.next_u64() as u8).collect();
    (data[0], data[1]) = (rng.below(8) as u8, rng.below(5) as u8);
    (data[2], data[3]) = (0, rng.below(12) as u8);
    if let Some(next) = data.get_mut(20) {
        *next = rng.below(3) as u8;
    }
    data
}

#[test]
fn compiled_code_has_all_of_them() {
    let program = rig::compile_text(SOURCE, None).expect("a valid program");
    let mut rig = Rig::new(&program, write);
    let mut rng = SplitMix64::new(12);
    let packets: Vec<(u32, Vec<u8>)> = (0..4000).map(|_| (rng.below(PORTS.into()) as u32, packet(&mut rng))).collect();
    let in_kernel = InKernel::load(&rig, PORTS);
    for (port, data) in &packets {
        rig.packet(*port, data);
    }
    rig.compare_counts();
    let ways = rig.ways;
    assert!(ways.sent > 1000 && ways.dropped > 200, "{ways:?}");
    assert_eq!(ways.handed_over, 0, "{:?}", rig.compiled.hand_overs);
    kernel::replay(in_kernel, &Rig::new(&program, write), &packets);
}
