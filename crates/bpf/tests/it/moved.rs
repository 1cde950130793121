//! Headers that are added, removed and moved: encapsulation, fields that nothing reads, and packets for which there is
//! no room.

use bits::Bits;
use bpf::PortState;
use engine::{Objects, TableEntry};
use ir::{KeyValue, Program};
use rng::SplitMix64;
use v1model::Executor;

use crate::kernel::InKernel;
use crate::rig::{self, PORTS, Rig, Way};

/// The first byte of a packet chooses the headers behind it, and the second what becomes of them.
const SOURCE: &str = r#"
#include <core.p4>
#include <v1model.p4>
header choice_t { bit<8> present; bit<8> change; }
header mixed_t { bit<48> x; bit<3> y; bit<13> z; bit<128> wide; bit<8> length; bit<5> u; bit<11> v; }
header pair_t { bit<4> p; bit<60> q; bit<16> r; bit<24> s; }
header large_t { bit<1600> all; bit<8> n; }
struct headers { choice_t choice; mixed_t a; pair_t b; pair_t c; mixed_t d; large_t large; large_t more; }
struct metadata { bit<8> change; }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.choice);
        meta.change = hdr.choice.change;
        transition select(hdr.choice.present[0:0]) { 1: a; default: no_a; }
    }
    state a { packet.extract(hdr.a); transition no_a; }
    state no_a { transition select(hdr.choice.present[1:1]) { 1: b; default: no_b; } }
    state b { packet.extract(hdr.b); transition no_b; }
    state no_b { transition select(hdr.choice.present[3:2]) { 1: d; 2: skip; default: accept; } }
    state d { packet.extract(hdr.d); transition accept; }
    state skip { packet.advance(24); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {} }
control C(inout headers hdr, inout metadata meta) { apply {} }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) hits;
    counter(16, CounterType.packets_and_bytes) lengths;
    action nothing() { hits.count(); }
    action add_b(bit<4> p) { hdr.b.setValid(); hdr.b.p = p; hits.count(); }
    action remove_a() { hdr.a.setInvalid(); hits.count(); }
    action remove_all() {
        hdr.a.setInvalid(); hdr.b.setInvalid(); hdr.d.setInvalid(); hdr.choice.setInvalid(); hits.count();
    }
    action copy_b() { hdr.c = hdr.b; hdr.b.q = hdr.b.q + 1; hits.count(); }
    action again() { hdr.a.setInvalid(); hdr.a.setValid(); hdr.a.z = hdr.a.z - 1; hits.count(); }
    action add_d() { hdr.d.setValid(); hits.count(); }
    action add_large() { hdr.large.setValid(); hdr.large.n = 9; hits.count(); }
    action add_more() { hdr.large.setValid(); hdr.more.setValid(); hits.count(); }
    table changes {
        key = { meta.change: exact; }
        actions = {
            nothing; add_b; remove_a; remove_all; copy_b; again; add_d; add_large; add_more;
        }
        counters = hits;
        default_action = nothing();
        size = 16;
    }
    apply {
        std.egress_spec = 3;
        lengths.count((bit<32>) meta.change);
        changes.apply();
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        if (meta.change == 15) { mark_to_drop(std); }
        hdr.a.length = (bit<8>) std.packet_length;
    }
}
control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.large);
        packet.emit(hdr.more);
        if (hdr.choice.change == 9) { packet.emit(hdr.b); packet.emit(hdr.a); packet.emit(hdr.choice); }
        else { packet.emit(hdr.choice); packet.emit(hdr.a); packet.emit(hdr.b); }
        packet.emit(hdr.c);
        packet.emit(hdr.d);
        if (hdr.choice.change == 10) { packet.emit(hdr.a); }
    }
}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

const ACTIONS: [&str; 8] = ["add_b", "remove_a", "remove_all", "copy_b", "again", "add_d", "add_large", "add_more"];
/// The change for which there is no room.
const ADD_MORE: u8 = 8;

fn write(program: &Program, objects: &mut Objects) {
    let table = program.table_named("I.changes").expect("a table");
    for (name, change) in ACTIONS.iter().zip(1u8..) {
        let action =
            program.actions.iter().find(|(_, action)| action.name == format!("I.{name}")).expect("an action").0;
        let keys = vec![KeyValue::Exact(Bits::new(change.into(), 8))];
        let args = if *name == "add_b" { vec![Bits::new(6, 4)] } else { Vec::new() };
        objects.insert(table, TableEntry::new(keys, 0, action, args)).expect("a new key");
    }
}

fn program() -> std::sync::Arc<Program> {
    rig::compile_text(SOURCE, None).expect("a valid program")
}

/// Returns a packet of this length with random headers.
fn packet(rng: &mut SplitMix64, present: u8, change: u8, length: usize) -> Vec<u8> {
    let mut data: Vec<u8> = (0..length.max(2)).map(|_| rng.next_u64() as u8).collect();
    data[..2].copy_from_slice(&[present, change]);
    data.truncate(length);
    data
}

#[test]
fn every_change_of_headers_is_made_in_the_kernel() {
    let (program, mut rng) = (program(), SplitMix64::new(21));
    let (mut rig, before) = (Rig::new(&program, write), Rig::new(&program, write));
    let kernel = InKernel::load(&before, PORTS);
    for present in 0..16 {
        for change in 0..16 {
            for length in [90, 120, 77, 43, 30, 14, 1 + rng.below(80) as usize, 1 + rng.below(80) as usize] {
                let data = packet(&mut rng, present, change, length);
                let way = rig.packet(u32::from(present % 8), &data);
                let is_fast = way != Way::HandedOver;
                assert!(is_fast || change == ADD_MORE || length < 83, "{present} {change} {length}");
                if let (Ok(kernel), true) = (&kernel, length >= 14) {
                    kernel.compare(&before, u32::from(present % 8), &data);
                }
            }
        }
    }
    rig.compare_counts();
    let ways = rig.ways;
    assert!(ways.fast() * 100 > ways.all() * 85 && ways.handed_over > 50, "{ways:?}");
    match kernel {
        Ok(kernel) => {
            kernel.compare_regions(&before);
            eprintln!("{} instructions processed", kernel.verified_instructions());
            assert!(kernel.verified_instructions() < 10_000);
        }
        Err(error) => testing::skip(&format!("needs root: {error}")),
    }
}

#[test]
fn every_cut_of_a_packet_leaves_as_from_the_switch() {
    let (program, mut rng) = (program(), SplitMix64::new(22));
    let mut rig = Rig::new(&program, write);
    for change in 0..12 {
        for present in [1, 3, 7, 9] {
            let data = packet(&mut rng, present, change, 80);
            (1..=data.len()).for_each(|length| _ = rig.packet(0, &data[..length]));
        }
    }
    rig.compare_counts();
}

/// The maximum frame of a port concerns the outgoing packet, and so does what it counts as sent.
#[test]
fn the_outgoing_length_decides_and_is_counted() {
    let (program, mut rng) = (program(), SplitMix64::new(23));
    let mut rig = Rig::new(&program, write);
    let (grows, shrinks) = (packet(&mut rng, 0, 1, 100), packet(&mut rng, 1, 2, 100));
    for (data, sent) in [(&grows, 113), (&shrinks, 73)] {
        for (max_frame, is_fast) in [(sent, true), (sent - 1, false)] {
            let state = PortState::Fast { device: 13, max_frame };
            bpf::set_port(&rig.compiled.layout, &rig.region, 3, state, true);
            let way = rig.packet(0, data);
            assert_eq!(way != Way::HandedOver, is_fast, "{max_frame}");
            if let Way::Sent { data, .. } = way {
                assert_eq!(data.len(), sent as usize);
            }
        }
    }
    rig.compare_counts();
    let counts = bpf::RegionCounts::new(&rig.compiled.layout, &rig.region);
    assert_eq!((counts.received(0).bytes, counts.sent(3).bytes), (200, 186));
}

#[test]
fn headers_larger_than_the_headroom_are_handed_over_with_the_frame_as_it_was() {
    let (program, mut rng) = (program(), SplitMix64::new(24));
    let mut rig = Rig::new(&program, write);
    // 201 bytes of 216 that are free, and 402.
    for (change, sent) in [(7, Some(301)), (ADD_MORE, None)] {
        let way = rig.packet(0, &packet(&mut rng, 3, change, 100));
        let length = if let Way::Sent { data, .. } = &way { Some(data.len()) } else { None };
        assert_eq!(length, sent, "{way:?}");
    }
    rig.compare_counts();
}

/// Headers that are too large for the kernel's code are handed over when they change, and only then.
#[test]
fn programs_with_very_large_headers_still_run_in_the_kernel() {
    let text = SOURCE.replace("bit<1600> all", "bit<16000> all");
    let program = rig::compile_text(&text, None).expect("a valid program");
    let (mut rig, mut rng) = (Rig::new(&program, write), SplitMix64::new(25));
    let mut is_fast = |change| rig.packet(0, &packet(&mut rng, 3, change, 100)) != Way::HandedOver;
    assert_eq!([0, 5, 1, 2, 7].map(&mut is_fast), [true, true, true, false, false]);
    rig.compare_counts();
}

/// So are those for which scratch memory has no room beside all else.
#[test]
fn programs_with_very_many_values_still_run_in_the_kernel() {
    let fields: String = (0..3_800).map(|number| format!("bit<8> m{number}; ")).collect();
    let sum: String = (0..3_800).map(|number| format!("meta.change = meta.change + meta.m{number};\n")).collect();
    let text = SOURCE.replace("bit<1600> all", "bit<8000> all");
    let text = text.replace("struct metadata {", &format!("struct metadata {{ {fields}"));
    let text = text.replace("std.egress_spec = 3;", &format!("std.egress_spec = 3; {sum}"));
    let program = rig::compile_text(&text, None).expect("a valid program");
    let mut rig = Rig::try_new(&program, &[Executor::Interpreter], write).expect("the program is not too large");
    let mut rng = SplitMix64::new(26);
    let mut is_fast = |change| rig.packet(0, &packet(&mut rng, 3, change, 100)) != Way::HandedOver;
    assert_eq!([0, 5, 1, 2].map(&mut is_fast), [true, true, true, false]);
    rig.compare_counts();
}

/// Writes the entries of a tunnel between 10.0.0.1, which is this end, and 10.0.0.2.
pub fn write_tunnel(program: &Program, objects: &mut Objects) {
    let ip = |last: u128| Bits::new(0x0a00_0000 + last, 32);
    let private = |third: u128| Bits::new(0xc0a8_0000 + (third << 8), 32);
    let mac = |last| Bits::new(0x0200_0000_0000 + last, 48);
    let mut insert = |table: &str, keys, action: &str, args| {
        let name = format!("TunnelIngress.{action}");
        let action = program.actions.iter().find(|(_, action)| action.name == name).expect("an action").0;
        let table = program.table_named(&format!("TunnelIngress.{table}")).expect("a table");
        objects.insert(table, TableEntry::new(keys, 0, action, args)).expect("a new key");
    };
    insert("ends", vec![KeyValue::Exact(ip(2)), KeyValue::Exact(ip(1))], "leave", Vec::new());
    insert("begins", vec![KeyValue::Lpm(private(2), 24)], "enter", vec![ip(1), ip(2), Bits::new(2, 8)]);
    for (network, length, port) in [(private(1), 24, 1), (ip(0), 24, 3)] {
        let args = vec![Bits::new(port, 9), mac(port), mac(port + 100)];
        insert("routes", vec![KeyValue::Lpm(network, length)], "forward", args);
    }
}

/// Returns an IPv4 header in front of a payload.
fn ipv4(protocol: u8, from: [u8; 4], to: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let mut header = vec![0x45, 3, 0, 20 + payload.len() as u8, 1, 2, 0x40, 0, 64, protocol, 0, 0];
    header.extend([from, to].concat());
    let sum = wire::checksum::checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    [&header, payload].concat()
}

/// Returns a packet that enters the tunnel, one that leaves it, and one that passes it.
pub fn tunnel_packets() -> [Vec<u8>; 3] {
    let [there, here] = [[192, 168, 2, 9], [192, 168, 1, 9]];
    let inner = ipv4(17, there, here, &[7; 40]);
    let datagrams = [ipv4(17, here, there, &[7; 40]), ipv4(4, [10, 0, 0, 2], [10, 0, 0, 1], &inner), inner.clone()];
    datagrams.map(|datagram| [&[2; 12][..], &[8, 0], &datagram].concat())
}

#[test]
fn tunnels_run_in_the_kernel() {
    let program = rig::program("examples/tunnel/tunnel.p4");
    let (mut rig, before) = (Rig::new(&program, write_tunnel), Rig::new(&program, write_tunnel));
    let kernel = InKernel::load(&before, 2);
    let packets = tunnel_packets();
    for (data, (to, growth)) in packets.iter().zip([(3, 20), (1, -20), (1, 0)]) {
        let Way::Sent { port, data: sent } = rig.packet(1, data) else { panic!("the packet is sent") };
        assert_eq!((port, sent.len() as i64 - data.len() as i64), (to, growth));
        assert_eq!(wire::checksum::checksum(&sent[14..34]), 0);
        for length in 1..=data.len() {
            assert_ne!(rig.packet(0, &data[..length]), Way::HandedOver);
            if let (Ok(kernel), true) = (&kernel, length >= 14) {
                kernel.compare(&before, 0, &data[..length]);
            }
        }
    }
    rig.compare_counts();
    match kernel {
        Ok(kernel) => {
            kernel.compare_regions(&before);
            assert!(kernel.verified_instructions() < 5_000, "{}", kernel.verified_instructions());
        }
        Err(error) => testing::skip(&format!("needs root: {error}")),
    }
}

/// A program of one header whose deparser and controls are given.
fn small(locals: &str, ingress: &str, egress: &str, deparser: &str) -> String {
    format!(
        r#"
#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> v; bit<8> w; }}
header note_t {{ bit<16> x; }}
struct headers {{ h_t a; note_t note; }}
struct metadata {{}}
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {{
    state start {{ packet.extract(hdr.a); transition accept; }}
}}
control V(inout headers hdr, inout metadata meta) {{ apply {{}} }}
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {{
    apply {{ std.egress_spec = 3; {ingress} }}
}}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {{ apply {{ {egress} }} }}
control C(inout headers hdr, inout metadata meta) {{ apply {{}} }}
control D(packet_out packet, in headers hdr) {{ {locals} apply {{ {deparser} }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#
    )
}

#[test]
fn egress_counts_valid_headers_that_are_not_emitted() {
    let drop = "if (std.packet_length > 20) { mark_to_drop(std); }";
    let text = small("", "if (hdr.a.v == 1) { hdr.note.setValid(); }", drop, "packet.emit(hdr.a);");
    let mut rig = Rig::new(&rig::compile_text(&text, None).expect("a valid program"), |_, _| ());
    let packet = |first: u8, length: usize| [&[first][..], &vec![0; length - 1]].concat();
    let ways = [(0, 20), (1, 20), (1, 18), (0, 21)].map(|(first, length)| rig.packet(0, &packet(first, length)));
    assert!(matches!(ways, [Way::Sent { .. }, Way::Dropped, Way::Sent { .. }, Way::Dropped]), "{ways:?}");
}

#[test]
fn headers_that_a_deparser_changes_after_it_emitted_them_are_those_of_the_switch() {
    let register = "register<bit<8>>(1) last; h_t t;";
    let table = "h_t t; action set() { t.v = 9; } table one { actions = { set; } default_action = set(); }";
    let deparsers = [
        (register, "t = hdr.a; packet.emit(t); last.read(t.v, 0); packet.emit(t);"),
        (table, "t = hdr.a; packet.emit(t); one.apply(); packet.emit(t);"),
    ];
    for (locals, deparser) in deparsers {
        let text = small(locals, "", "", deparser);
        let program = rig::compile_text(&text, None).expect("a valid program");
        let mut rig = Rig::new(&program, |_, _| ());
        assert_eq!(rig.packet(0, &[5; 30]), Way::HandedOver, "{deparser}");
    }
}
