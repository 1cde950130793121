//! `@atomic` sections: one packet at a time is in a section, in the kernel and in the switch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bits::Bits;
use bpf::asm::MapRef;
use bpf::{HandOverReason, RegionCounts};
use ir::{Program, RegisterId};
use rng::SplitMix64;
use switch::{Device, Frame, Time};
use v1model::{Config, Executor, Switch};

use crate::kernel::InKernel;
use crate::order;
use crate::rig::{self, PORTS, Rig, Way};

/// The first byte of a packet chooses its way: 0 to 2 through sections, 3 around them, 4 is dropped in a section, 5
/// leaves one by `exit`, and 6 needs the switch after a section.
const SOURCE: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> way; bit<8> cell; bit<112> rest; }
struct headers { h_t h; }
struct metadata { }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<64>>(16) cells;
    action add(bit<32> cell) {
        @atomic {
            bit<64> count;
            cells.read(count, cell);
            cells.write(cell, count + 1);
        }
    }
    table adders {
        key = { hdr.h.cell: exact; }
        actions = { add; NoAction; }
        default_action = NoAction;
        const entries = { 1: add(1); 2: add(2); 3: add(1); 4: add(4); 5: add(5); 6: add(6); 7: add(7); 8: add(8); 9: add(9); }
    }
    apply {
        std.egress_spec = 1;
        if (hdr.h.way != 3) {
            @atomic {
                bit<64> count;
                cells.read(count, 0);
                adders.apply();
                if (hdr.h.way == 4) { mark_to_drop(std); }
                cells.write(0, count + 1);
                if (hdr.h.way == 5) { exit; }
            }
            if (hdr.h.way == 2) { add(2); }
            if (hdr.h.way == 6) { resubmit_preserving_field_list(0); }
        }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply { if (std.instance_type != 0) { mark_to_drop(std); } }
}
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

fn program(source: &str) -> Arc<Program> {
    rig::compile_text(source, None).expect("a valid program")
}

/// The program without what leaves the kernel in the end.
fn plain() -> Arc<Program> {
    program(&SOURCE.replace("if (hdr.h.way == 6) { resubmit_preserving_field_list(0); }", ""))
}

fn packet(way: u8, cell: u8) -> Vec<u8> {
    let mut packet = vec![7; 16];
    packet[..2].copy_from_slice(&[way, cell]);
    packet
}

fn lock(rig: &Rig) -> &AtomicU64 {
    &rig.region[rig.compiled.layout.atomic_lock().expect("the program has sections")]
}

fn cell(rig: &Rig, number: usize) -> u64 {
    let (_, first) = rig.compiled.layout.registers().next().expect("a register");
    rig.region[first + number].load(Ordering::Relaxed)
}

#[test]
fn sections_mean_the_same_in_the_kernel_and_end_with_their_packet() {
    let (mut rig, mut rng) = (Rig::new(&plain(), |_, _| ()), SplitMix64::new(1));
    assert_eq!(rig.compiled.hand_overs.iter().map(|one| one.reason).collect::<Vec<_>>(), [HandOverReason::Atomic; 2]);
    for number in 0..500 {
        let way = rig.packet(0, &packet(rng.below(6) as u8, rng.below(12) as u8));
        assert_ne!(way, Way::HandedOver, "packet {number}");
        assert_eq!(lock(&rig).load(Ordering::Relaxed), 0, "packet {number}");
    }
    rig.compare_counts();
    assert!(cell(&rig, 0) > 300 && cell(&rig, 2) > 20);
}

#[test]
fn a_packet_that_is_handed_over_after_a_section_leaves_nothing_behind() {
    let mut rig = Rig::new(&program(SOURCE), |_, _| ());
    for way in [0, 6, 6, 1, 6, 0] {
        assert_eq!(rig.packet(0, &packet(way, 1)) == Way::HandedOver, way == 6);
        assert_eq!(lock(&rig).load(Ordering::Relaxed), 0);
    }
    rig.compare_counts();
}

#[test]
fn a_packet_that_is_dropped_behind_its_flow_leaves_its_section() {
    for way in [0, 1, 2, 4, 5] {
        let mut rig = Rig::new(&plain(), |_, _| ());
        let data = packet(way, 1);
        order::crowd(&rig, &data);
        assert!(order::is_dropped_without_effects(&rig, &data), "way {way}");
        assert_eq!(lock(&rig).load(Ordering::Relaxed), 0, "way {way}");
        assert_eq!([0, 1, 2].map(|number| cell(&rig, number)), [0; 3], "way {way}");
        assert_ne!(rig.packet(0, &packet(way, 3)), Way::HandedOver, "another flow");
        rig.compare_counts();
        // A packet that the program drops anyway does not close its flow.
        let [_, done] = rig.compiled.layout.order_words(0, 0).expect("a port");
        rig.region[done].store(1, Ordering::Relaxed);
        let outcome = rig.machine(0, &mut data.clone()).expect("no fault");
        assert_eq!(outcome.meta.is_some(), way == 4, "way {way}");
    }
}

#[test]
fn packets_are_handed_over_while_another_is_in_a_section_for_long() {
    let mut rig = Rig::new(&plain(), |_, _| ());
    lock(&rig).store(1, Ordering::Relaxed);
    let before = rig.shared_words();
    for (way, is_fast) in [(0, false), (3, true), (4, false), (5, false)] {
        let mut data = packet(way, 2);
        let outcome = rig.machine(0, &mut data).expect("no fault");
        assert_eq!(matches!(outcome.redirect, Some((MapRef::Devices, _))), is_fast, "way {way}");
        assert_eq!(lock(&rig).load(Ordering::Relaxed), 1, "the other one has it still");
        if !is_fast {
            assert_eq!(data, packet(way, 2));
        }
    }
    assert_eq!((cell(&rig, 0), before.len()), (0, rig.shared_words().len()));
    bpf::finish_hand_overs(&rig.compiled.layout, &rig.region);
    lock(&rig).store(0, Ordering::Relaxed);
    assert_ne!(rig.packet(0, &packet(0, 2)), Way::HandedOver);
    assert_eq!((cell(&rig, 0), cell(&rig, 2)), (1, 1));
}

/// A switch whose registers and lock lie in a region.
fn switch(program: &Arc<Program>, layout: &bpf::RegionLayout, region: &Arc<Vec<AtomicU64>>) -> Switch {
    let config = Config { executor: Executor::Interpreter, cpu_port: None, ..Config::with_ports(PORTS) };
    let mut switch = Switch::new(program.clone(), config).expect("a switch");
    for (register, first) in layout.registers() {
        assert!(switch.objects_mut().share_register(register, Arc::<Vec<AtomicU64>>::clone(region), first));
    }
    let at = layout.atomic_lock().expect("the program has sections");
    assert!(switch.objects_mut().share_atomic_lock(Arc::<Vec<AtomicU64>>::clone(region), at));
    assert!(!switch.objects_mut().share_atomic_lock(Arc::<Vec<AtomicU64>>::clone(region), at), "it lies there now");
    switch
}

#[test]
fn no_count_of_several_processors_and_the_switch_is_lost() {
    let program = plain();
    let rig = Rig::new(&program, |_, _| ());
    let (region, layout) = (&rig.region, &rig.compiled.layout);
    let mut switch = switch(&program, layout, region);
    let slow = 20_000;
    let fast = rig::run_while(&rig, &packet(0, 2), 0, || {
        for _ in 0..slow {
            switch.step(Time::from_us(1), &mut vec![Frame::new(0, packet(0, 2))], &mut Vec::new());
        }
    });
    assert!(fast > 1000, "{fast} packets beside those of the switch");
    assert_eq!([cell(&rig, 0), cell(&rig, 2)], [fast + slow; 2]);
    let registers: Vec<RegisterId> = program.registers.keys().collect();
    let seen = switch.objects().register(registers[0], 0).expect("an element");
    assert_eq!(seen, Bits::new((fast + slow).into(), 64), "the switch reads the same");
}

#[test]
fn no_count_of_several_processors_in_the_kernel_is_lost() {
    const ROUNDS: u32 = 200;
    let rig = Rig::new(&plain(), |_, _| ());
    let kernel = match InKernel::load(&rig, 2) {
        Ok(kernel) => kernel,
        Err(error) => return testing::skip(&format!("needs root: {error}")),
    };
    let layout = &rig.compiled.layout;
    kernel.run_on_two_ports(&rig, &packet(0, 2), ROUNDS);
    let counts = RegionCounts::new(layout, kernel.region());
    let fast = counts.sent(1).packets;
    let (_, first) = layout.registers().next().expect("a register");
    assert_eq!([0, 2].map(|cell| kernel.region()[first + cell].load(Ordering::Relaxed)), [fast; 2]);
    assert!(fast > u64::from(ROUNDS), "{fast} packets");
    eprintln!("{fast} packets, {} instructions processed", kernel.verified_instructions());
}
