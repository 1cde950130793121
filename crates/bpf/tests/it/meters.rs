//! Meters: the kernel and the switch execute the same ones, each packet once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bits::Bits;
use bpf::asm::MapRef;
use bpf::{HandOverReason, PortState, RegionCounts};
use engine::{MeterConfig, Objects, TableEntry};
use ir::{CounterId, KeyValue, Program, TableId};
use rng::SplitMix64;
use switch::{Device, Frame, Time};
use v1model::{Config, Executor, Switch};

use crate::kernel::InKernel;
use crate::order;
use crate::rig::{self, PORTS, Rig, Way};

/// The first byte of a packet chooses its way: 0 executes a meter of each kind, 1 two of one array, 2 the same one
/// twice, 3 needs the switch after all, 4 is dropped, 5 executes none, 6 misses in the table after it has hit. The
/// second and the third are indices.
const SOURCE: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> way; bit<8> first; bit<8> second; bit<4> tag; bit<4> other; bit<32> more; bit<64> rest; }
struct headers { h_t h; }
struct metadata { bit<2> colour; }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    meter(8, MeterType.bytes) by_bytes;
    meter(8, MeterType.packets) by_packets;
    direct_meter<bit<2>>(MeterType.bytes) of_entry;
    counter(4, CounterType.packets) colours;
    action send(bit<9> port) { std.egress_spec = port; of_entry.read(meta.colour); }
    action drop() { mark_to_drop(std); }
    table flows {
        key = { hdr.h.first: exact; }
        actions = { send; drop; }
        default_action = send(1);
        meters = of_entry;
        size = 16;
    }
    apply {
        if (hdr.h.way == 5) { std.egress_spec = 1; exit; }
        if (hdr.h.way != 1) {
            bit<4> tag;
            by_packets.execute_meter((bit<32>) hdr.h.first, tag);
            hdr.h.tag = tag;
        }
        by_bytes.execute_meter((bit<32>) hdr.h.second, hdr.h.more);
        if (hdr.h.way == 1 || hdr.h.way == 2) {
            bit<4> other;
            by_bytes.execute_meter((bit<32>) hdr.h.first, other);
            hdr.h.other = other;
        }
        if (hdr.h.way == 0) { colours.count((bit<32>) hdr.h.tag); }
        flows.apply();
        if (hdr.h.way == 6) { hdr.h.first = 255; flows.apply(); }
        hdr.h.rest[1:0] = meta.colour;
        if (hdr.h.way == 4) { mark_to_drop(std); }
        if (hdr.h.way == 3) { resubmit_preserving_field_list(0); }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply { if (std.instance_type != 0) { mark_to_drop(std); } }
}
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

fn program() -> Arc<Program> {
    rig::compile_text(SOURCE, None).expect("a valid program")
}

fn packet(way: u8, first: u8, second: u8, bytes: usize) -> Vec<u8> {
    let mut packet = vec![0; bytes];
    packet[..3].copy_from_slice(&[way, first, second]);
    packet
}

fn flows(program: &Program) -> TableId {
    program.tables.iter().find(|(_, table)| table.name.ends_with("flows")).expect("the table").0
}

/// Returns the key of a flow.
fn key(first: u8) -> Vec<KeyValue> {
    vec![KeyValue::Exact(Bits::new(first.into(), 8))]
}

fn add_flow(program: &Program, objects: &mut Objects, first: u8) {
    let table = flows(program);
    let action = program.tables[table].actions[0].action;
    let entry = TableEntry::new(key(first), 0, action, vec![Bits::new(u128::from(first % 4), 9)]);
    objects.insert(table, entry).expect("there is room");
}

fn add_flows(program: &Program, objects: &mut Objects) {
    (0..12).for_each(|first| add_flow(program, objects, first));
}

/// Sets the meters with an index, of all kinds.
fn configure(program: &Program, objects: &mut Objects, index: u8, config: Option<MeterConfig>) {
    for (id, meter) in &program.meters {
        if meter.size.is_some() {
            objects.configure_meter(id, index.into(), config).expect("an element");
        }
    }
    // An entry may have been removed.
    let _ = objects.configure_entry_meter(flows(program), &key(index), 0, config);
}

/// Returns rates and bursts of all sizes. Some need more than 64 bits.
fn random_config(rng: &mut SplitMix64) -> Option<MeterConfig> {
    let mut number = |bits: u64| rng.next_u64() >> (64 - rng.below(bits) - 1);
    let (cir, more, cbs, pbs) = (number(34), number(34), number(34), number(34));
    (!rng.percent(10)).then_some(MeterConfig { cir, cbs, pir: cir + more, pbs })
}

/// Whether no packet has the lock of any meter.
pub fn is_free(rig: &Rig) -> bool {
    let layout = &rig.compiled.layout;
    let arrays = layout.meters().map(|(id, first)| (first, rig.program.meters[id].size.expect("an array") as usize));
    let direct = layout.direct_meters().map(|(_, first, count)| (first, count));
    arrays.chain(direct).all(|(first, count)| {
        let cells = (0..count).map(|cell| first + cell * engine::meter_word::COUNT);
        cells.into_iter().all(|cell| rig.region[cell + engine::meter_word::LOCK].load(Ordering::Relaxed) == 0)
    })
}

#[test]
fn every_packet_has_the_colour_that_the_switch_gives_it() {
    let mut colours = [[0u32; 3]; 3];
    let mut is_fast = [[0u32; 2]; 7];
    for seed in 0..20 {
        let (mut rng, program) = (SplitMix64::new(seed), program());
        let mut rig = Rig::new(&program, add_flows);
        for _ in 0..400 {
            rig.time_ns += if rng.percent(30) { 0 } else { rng.next_u64() >> (64 - 1 - rng.below(36)) };
            if rng.percent(5) {
                let (index, config) = (rng.below(8) as u8, random_config(&mut rng));
                rig.change(|program, objects| configure(program, objects, index, config)).expect("it fits");
            }
            if rng.percent(1) {
                let config = random_config(&mut rng);
                let fill = |program: &Program, objects: &mut Objects| {
                    let arrays = program.meters.iter().filter(|(_, meter)| meter.size.is_some());
                    arrays.for_each(|(id, _)| objects.configure_meters(id, config).expect("an array"));
                };
                rig.change(fill).expect("it fits");
            }
            if rng.percent(2) {
                // The entry that comes back has no meter, and the number of the other one.
                let first = rng.below(12) as u8;
                let replace = |program: &Program, objects: &mut Objects| {
                    objects.delete(flows(program), &key(first), 0).expect("it is there");
                    add_flow(program, objects, first);
                };
                rig.change(replace).expect("it fits");
            }
            let way = rng.below(7) as u8;
            let [first, second] = [(); 2].map(|()| rng.below(10) as u8);
            let way_out = rig.packet(0, &packet(way, first, second, 16 + rng.below(1400) as usize));
            is_fast[usize::from(way)][usize::from(way_out != Way::HandedOver)] += 1;
            if let Way::Sent { data, .. } = way_out
                && way == 0
            {
                let seen = [data[3] >> 4, data[7], data[15] & 3];
                seen.iter().zip(&mut colours).for_each(|(colour, counts)| counts[usize::from(*colour)] += 1);
            }
            assert!(is_free(&rig));
        }
        rig.compare_counts();
    }
    assert!(colours.as_flattened().iter().all(|count| *count > 20), "{colours:?}");
    let share = |way: usize| f64::from(is_fast[way][1]) / f64::from(is_fast[way][0] + is_fast[way][1]);
    // Bursts of 2^63 tokens and more are rare, and two indices are equal in a tenth of all cases.
    assert!([0, 1, 2, 4, 6].into_iter().all(|way| share(way) > 0.7) && share(5) == 1.0, "{is_fast:?}");
    assert_eq!(is_fast[3][1], 0, "they are resubmitted");
}

#[test]
fn only_what_the_kernel_cannot_meter_is_handed_over() {
    let mut rig = Rig::new(&program(), add_flows);
    let config = |cbs| Some(MeterConfig { cir: 1, cbs, pir: 1, pbs: 1 });
    let reasons: Vec<HandOverReason> = rig.compiled.hand_overs.iter().map(|one| one.reason).collect();
    assert!(reasons.contains(&HandOverReason::Meter) && reasons.contains(&HandOverReason::Request), "{reasons:?}");
    assert_ne!(rig.packet(0, &packet(0, 1, 2, 64)), Way::HandedOver, "no meter is configured");
    rig.change(|program, objects| configure(program, objects, 1, config(9_223_372_036))).expect("it fits");
    assert_ne!(rig.packet(0, &packet(0, 1, 2, 64)), Way::HandedOver, "2^63 tokens are more");
    rig.change(|program, objects| configure(program, objects, 1, config(9_223_372_037))).expect("it fits");
    assert_eq!(rig.packet(0, &packet(0, 1, 2, 64)), Way::HandedOver);
    assert_ne!(rig.packet(0, &packet(0, 2, 2, 64)), Way::HandedOver);
    assert_ne!(rig.packet(0, &packet(1, 3, 2, 64)), Way::HandedOver);
    rig.change(|program, objects| configure(program, objects, 2, config(1))).expect("it fits");
    assert_eq!(rig.packet(0, &packet(1, 2, 2, 64)), Way::HandedOver, "the same meter twice");
    assert_ne!(rig.packet(0, &packet(1, 200, 201, 64)), Way::HandedOver, "beyond the end");
}

#[test]
fn a_meter_that_another_packet_has_for_long_hands_over() {
    let mut rig = Rig::new(&program(), add_flows);
    let config = Some(MeterConfig { cir: 1, cbs: 1, pir: 1, pbs: 1 });
    rig.change(|program, objects| configure(program, objects, 3, config)).expect("it fits");
    let (_, first) = rig.compiled.layout.meters().next().expect("a meter");
    let lock = first + 3 * engine::meter_word::COUNT;
    rig.region[lock].store(1, Ordering::Relaxed);
    let mut data = packet(1, 4, 3, 64);
    let outcome = rig.machine(0, &mut data).expect("no fault");
    assert!(matches!(outcome.redirect, Some((MapRef::Sockets, _))));
    assert_eq!(rig.region[lock].load(Ordering::Relaxed), 1, "the other one has it still");
    bpf::finish_hand_overs(&rig.compiled.layout, &rig.region);
    rig.region[lock].store(0, Ordering::Relaxed);
    assert_ne!(rig.packet(0, &packet(1, 4, 3, 64)), Way::HandedOver);
    // A packet that comes to no meter releases none.
    rig.region[lock].store(1, Ordering::Relaxed);
    bpf::set_port(&rig.compiled.layout, &rig.region, 0, PortState::Slow, false);
    rig.machine(0, &mut packet(1, 4, 3, 64)).expect("no fault");
    assert_eq!(rig.region[lock].load(Ordering::Relaxed), 1, "the other one has it still");
}

#[test]
fn a_packet_that_is_dropped_behind_its_flow_takes_no_tokens() {
    let mut rig = Rig::new(&program(), add_flows);
    let config = Some(MeterConfig { cir: 1, cbs: 100, pir: 1, pbs: 200 });
    (1..5)
        .for_each(|index| rig.change(|program, objects| configure(program, objects, index, config)).expect("it fits"));
    let data = packet(1, 4, 3, 64);
    assert_ne!(rig.packet(0, &data), Way::HandedOver);
    order::crowd(&rig, &data);
    assert!(order::is_dropped_without_effects(&rig, &data));
    assert!(is_free(&rig));
    assert_ne!(rig.packet(0, &packet(1, 5, 3, 64)), Way::HandedOver, "another flow has the tokens");
}

#[test]
fn a_bucket_is_full_after_any_time() {
    let mut rig = Rig::new(&program(), add_flows);
    let config = Some(MeterConfig { cir: 1 << 32, cbs: 64, pir: 1 << 33, pbs: 64 });
    rig.change(|program, objects| configure(program, objects, 3, config)).expect("it fits");
    // The tokens of the last two times are a multiple of 2^64.
    for (elapsed, colour) in [(0, 0), (1, 2), (1 << 32, 0), (0, 2), (1 << 31, 0), (1 << 40, 0), (1 << 63, 0)] {
        rig.time_ns += elapsed;
        let Way::Sent { data, .. } = rig.packet(0, &packet(0, 1, 3, 64)) else { panic!("it stays") };
        assert_eq!(data[7], colour, "after {elapsed} ns");
    }
}

/// Bursts that are never filled again, so that the colours do not depend on the time.
const GREEN: u64 = 20_000;
const YELLOW: u64 = 10_000;
const ONCE: MeterConfig = MeterConfig { cir: 0, cbs: GREEN, pir: 0, pbs: GREEN + YELLOW };

fn metered_once(program: &Program, objects: &mut Objects) {
    add_flows(program, objects);
    let (id, _) = program.meters.iter().find(|(_, meter)| meter.name.ends_with("by_packets")).expect("the meter");
    objects.configure_meter(id, 1, Some(ONCE)).expect("an element");
}

fn colours(program: &Program) -> CounterId {
    program.counters.keys().next().expect("a counter")
}

#[test]
fn tokens_are_spent_once_by_several_processors_and_the_switch() {
    let program = program();
    let rig = Rig::new(&program, metered_once);
    let (region, layout) = (&rig.region, &rig.compiled.layout);
    let config = Config { executor: Executor::Interpreter, cpu_port: None, ..Config::with_ports(PORTS) };
    let mut switch = Switch::new(program.clone(), config).expect("a switch");
    metered_once(&program, switch.objects_mut());
    for (meter, first) in layout.meters() {
        assert!(switch.objects_mut().share_meter(meter, Arc::<Vec<AtomicU64>>::clone(region), first));
        assert!(!switch.objects_mut().share_meter(meter, Arc::<Vec<AtomicU64>>::clone(region), first));
    }
    let fast = rig::run_while(&rig, &packet(0, 1, 2, 64), 1 << 40, || {
        for _ in 0..2 * (GREEN + YELLOW) {
            switch.step(Time::from_us(1), &mut vec![Frame::new(0, packet(0, 1, 2, 64))], &mut Vec::new());
        }
    });
    let counts = RegionCounts::new(layout, region);
    let [green, yellow, red] = [0, 1, 2].map(|colour| {
        let slow = switch.objects().counter(colours(&program), colour).expect("an element");
        slow.packets + counts.counter(colours(&program), colour as u32).expect("an element").packets
    });
    assert!(fast > 1000, "{fast} packets beside those of the switch");
    assert_eq!([green, yellow, green + yellow + red], [GREEN, YELLOW, fast + 2 * (GREEN + YELLOW)]);
}

#[test]
fn tokens_are_spent_once_in_the_kernel() {
    let rig = Rig::new(&program(), metered_once);
    let kernel = match InKernel::load(&rig, 2) {
        Ok(kernel) => kernel,
        Err(error) => return testing::skip(&format!("needs root: {error}")),
    };
    kernel.set_clock_origin(&rig, 1);
    let layout = &rig.compiled.layout;
    kernel.run_on_two_ports(&rig, &packet(0, 1, 2, 64), 100);
    let counts = RegionCounts::new(layout, kernel.region());
    let fast = counts.sent(1).packets;
    let seen = [0, 1, 2].map(|colour| counts.counter(colours(&rig.program), colour).expect("an element").packets);
    assert!(fast > GREEN + YELLOW, "{fast} packets");
    assert_eq!([seen[0], seen[1], seen.iter().sum()], [GREEN, YELLOW, fast]);
    eprintln!("{fast} packets, {} instructions processed", kernel.verified_instructions());
}
