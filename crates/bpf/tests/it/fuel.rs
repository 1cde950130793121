//! Loops that end packets for running too long: the kernel hands these packets over before any effect, and interpreter
//! and machine code stop at the same block, with the same effects.

use bpf::HandOverReason;
use engine::FUEL_BLOCKS;

use crate::kernel::{self, InKernel};
use crate::rig::{self, Rig, Way};

/// A packet chooses the loop, and the number of its rounds: none, one of the parser that consumes nothing, or one of
/// ingress, whose rounds have effects. Another effect comes before it.
const SOURCE: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; bit<32> limit; bit<88> rest; }
struct headers { h_t h; }
struct metadata { bit<32> rounds; }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.kind) { 1: spin; default: accept; }
    }
    state spin {
        meta.rounds = meta.rounds + 1;
        transition select(meta.rounds == hdr.h.limit) { true: accept; default: spin; }
    }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<32>>(2) seen;
    counter(2, CounterType.packets) passed;
    apply {
        bit<32> count;
        seen.read(count, 0);
        seen.write(0, count + 1);
        passed.count(0);
        std.egress_spec = 3;
        if (hdr.h.kind == 2) {
            for (bit<32> i = 0; i < hdr.h.limit; i = i + 1) {
                seen.read(count, 1);
                seen.write(1, count + 1);
                passed.count(1);
            }
        }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

const PLAIN: u8 = 0;
const SPIN: u8 = 1;
const COUNT: u8 = 2;

fn packet(kind: u8, rounds: u32) -> Vec<u8> {
    [&[kind][..], &rounds.to_be_bytes(), &[7; 30]].concat()
}

/// Returns the packets that ran too long by the place at which they stopped, in the switch that had all packets.
fn limited(rig: &Rig) -> Vec<(String, u64)> {
    let sites = rig.reference().drop_sites();
    let limited = sites.into_iter().filter(|site| site.reason == switch::DropReason::OutOfFuel);
    limited.map(|site| (site.place.map_or_else(String::new, |(place, _)| place.to_string()), site.packets)).collect()
}

#[test]
fn a_packet_without_an_end_stops_at_the_same_block_in_every_executor() {
    let program = rig::compile_text(SOURCE, None).expect("a valid program");
    let mut rig = Rig::new(&program, |_, _| ());
    let reasons: Vec<_> = rig.compiled.hand_overs.iter().map(|one| one.reason).collect();
    assert_eq!(reasons, [HandOverReason::Loop; 2]);
    for kind in [SPIN, COUNT] {
        // The maximum number of rounds that end: all executors and the packet that was handed over agree on each.
        let (mut ends, mut limit) = (1, 3 * FUEL_BLOCKS);
        while limit - ends > 1 {
            let rounds = ends.midpoint(limit);
            match is_sent(&mut rig, kind, rounds) {
                true => ends = rounds,
                false => limit = rounds,
            }
            rig.compare_counts();
        }
        assert!(ends >= FUEL_BLOCKS / 10, "{ends} rounds of kind {kind}");
    }
    let line = |text: &str| SOURCE.lines().position(|line| line.contains(text)).expect("a line") + 1;
    // The shortest of the endless ones stops at the end of the parser, or of ingress, which has no line.
    for line in [line("rounds == hdr.h.limit"), line("for (bit<32>")] {
        let place = format!("program.p4:{line}:");
        let stopped = limited(&rig).into_iter().filter(|(site, _)| site.starts_with(&place));
        assert!(stopped.map(|(_, packets)| packets).sum::<u64>() > 2, "{place} {:?}", limited(&rig));
    }
}

/// Whether a packet is sent, which the kernel hands over.
fn is_sent(rig: &mut Rig, kind: u8, rounds: u32) -> bool {
    let before = limited(rig).iter().map(|(_, packets)| packets).sum::<u64>();
    assert_eq!(rig.packet(0, &packet(kind, rounds)), Way::HandedOver, "{rounds} rounds of kind {kind}");
    limited(rig).iter().map(|(_, packets)| packets).sum::<u64>() == before
}

#[test]
fn only_packets_that_enter_a_loop_are_handed_over() {
    let program = rig::compile_text(SOURCE, None).expect("a valid program");
    let mut rig = Rig::new(&program, |_, _| ());
    let kernel = InKernel::load(&rig, 1);
    let packets = [(PLAIN, 0), (SPIN, 3), (PLAIN, 9), (COUNT, 3), (COUNT, 0), (SPIN, 1), (SPIN, 0), (PLAIN, 1)];
    let packets: Vec<_> = packets.map(|(kind, rounds)| (0, packet(kind, rounds))).into();
    for (port, data) in &packets {
        let way = rig.packet(*port, data);
        // One round ends where it began, and none is a round of 2^32.
        let stays = data[0] == PLAIN || data[..5] == [SPIN, 0, 0, 0, 1] || data[..5] == [COUNT, 0, 0, 0, 0];
        assert_eq!(matches!(way, Way::Sent { .. }), stays, "{data:02x?}");
        rig.compare_counts();
    }
    kernel::replay(kernel, &Rig::new(&program, |_, _| ()), &packets);
}
