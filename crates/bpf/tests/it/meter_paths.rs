//! Meters on unusual paths: in actions and in egress, of packets whose headers change or have no room, with results of
//! all widths, inside `@atomic` sections, in large numbers, and in a region that others have overwritten.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use bits::Bits;
use bpf::HandOverReason;
use engine::{MeterConfig, Objects, TableEntry};
use ir::{KeyValue, Program};
use rng::SplitMix64;

use crate::kernel::InKernel;
use crate::meters::is_free;
use crate::region;
use crate::rig::{self, Rig, Way};

/// The first byte of a packet chooses its way: 1 to 3 add headers, for which 2 has no room, 3 in egress, 4 removes one,
/// 5 ends ingress in an action, 6 is dropped by egress, and 7 leaves egress early. The second byte is an index.
const SOURCE: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> way; bit<8> index; bit<1> one; bit<7> seven; bit<64> word; bit<24> odd; bit<16> last; }
header tail_t { bit<64> all; }
header large_t { bit<1600> all; }
struct headers { large_t front; large_t more; h_t h; tail_t tail; }
struct metadata { bit<8> unread; bit<64> count; }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.h); packet.extract(hdr.tail); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<64>>(4) cells;
    meter(8, MeterType.bytes) in_action;
    meter(8, MeterType.packets) of_width;
    meter(8, MeterType.bytes) unread;
    direct_meter<bit<1>>(MeterType.bytes) of_entry;
    action send() { of_entry.read(hdr.h.one); }
    action metered(bit<8> index) {
        in_action.execute_meter((bit<32>) index, hdr.h.seven);
        of_entry.read(hdr.h.one);
        if (hdr.h.way == 5) { exit; }
    }
    table flows {
        key = { hdr.h.index: ternary; }
        actions = { send; metered; }
        default_action = send();
        meters = of_entry;
        size = 16;
    }
    apply {
        std.egress_spec = 1;
        unread.execute_meter((bit<32>) hdr.h.index, meta.unread);
        if (hdr.h.way == 1 || hdr.h.way == 2) { hdr.front.setValid(); hdr.front.all = 5; }
        if (hdr.h.way == 2) { hdr.more.setValid(); hdr.more.all = 6; }
        if (hdr.h.way == 4) { hdr.tail.setInvalid(); }
        @atomic {
            cells.read(meta.count, 1);
            flows.apply();
            cells.write(1, meta.count + 1);
        }
        of_width.execute_meter((bit<32>) hdr.h.index, hdr.h.odd);
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    meter(8, MeterType.bytes) in_egress;
    meter(8, MeterType.bytes) behind_exit;
    apply {
        if (hdr.h.way == 3) { hdr.front.setValid(); hdr.front.all = 7; }
        in_egress.execute_meter((bit<32>) hdr.h.index, hdr.h.word);
        if (hdr.h.way == 7) { exit; }
        behind_exit.execute_meter((bit<32>) hdr.h.index, hdr.h.last);
        if (hdr.h.way == 6) { mark_to_drop(std); }
    }
}
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

fn key(index: u8) -> Vec<KeyValue> {
    vec![KeyValue::Ternary(Bits::new(index.into(), 8), Bits::new(255, 8))]
}

/// Adds an entry for each index but 7. Every second one meters in its action.
fn add_flows(program: &Program, objects: &mut Objects) {
    let table = program.table_named("I.flows").expect("a table");
    for index in 0..7 {
        let action = program.tables[table].actions[usize::from(index % 2)].action;
        let args = if index % 2 == 0 { Vec::new() } else { vec![Bits::new((index / 2).into(), 8)] };
        objects.insert(table, TableEntry::new(key(index), 1, action, args)).expect("there is room");
    }
}

/// Sets all meters with an index.
fn configure(program: &Program, objects: &mut Objects, index: u8, config: MeterConfig) {
    for (id, _) in program.meters.iter().filter(|(_, meter)| meter.size.is_some()) {
        objects.configure_meter(id, index.into(), Some(config)).expect("an element");
    }
    let table = program.table_named("I.flows").expect("a table");
    let _ = objects.configure_entry_meter(table, &key(index), 1, Some(config));
}

/// Returns rates in packets or in some hundred bytes, so that packets have all colours.
fn random_config(rng: &mut SplitMix64) -> MeterConfig {
    let scale = if rng.percent(50) { 1 } else { 300 };
    let mut number = |below: u64| rng.below(below) * scale;
    let (cir, cbs) = (number(3), number(3));
    MeterConfig { cir, cbs, pir: cir + number(3), pbs: cbs + number(3) }
}

fn packet(rng: &mut SplitMix64) -> Vec<u8> {
    let mut packet = vec![0; 30 + rng.below(400) as usize];
    packet[..2].copy_from_slice(&[rng.below(8) as u8, rng.below(9) as u8]);
    packet
}

#[test]
fn packets_have_the_same_colours_on_every_path() {
    let program = rig::compile_text(SOURCE, None).expect("a valid program");
    let mut colours = [[0u32; 3]; 5];
    for seed in 0..10 {
        let (mut rng, mut rig) = (SplitMix64::new(seed), Rig::new(&program, add_flows));
        for number in 0..400 {
            rig.time_ns += rng.below(500_000_000);
            if rng.percent(20) {
                let (index, config) = (rng.below(8) as u8, random_config(&mut rng));
                rig.change(|program, objects| configure(program, objects, index, config)).expect("it fits");
            }
            let data = packet(&mut rng);
            let way_out = rig.packet(0, &data);
            assert_eq!(way_out == Way::HandedOver, data[0] == 2, "packet {number}: {way_out:?}");
            assert!(is_free(&rig), "packet {number}");
            let lock = rig.compiled.layout.atomic_lock().expect("a section");
            assert_eq!(rig.region[lock].load(Ordering::Relaxed), 0, "packet {number}");
            if let Way::Sent { data: sent, .. } = way_out
                && ![1, 3].contains(&data[0])
            {
                let seen = [sent[2] >> 7, sent[2] & 127, sent[10], sent[13], sent[15]];
                seen.iter().zip(&mut colours).for_each(|(colour, counts)| counts[usize::from(*colour)] += 1);
            }
        }
        rig.compare_counts();
    }
    // The direct meter's result has one bit: red is 0 there.
    colours[0][2] = u32::MAX;
    assert!(colours.as_flattened().iter().all(|count| *count > 20), "{colours:?}");
}

#[test]
fn a_corrupted_region_miscolours_but_never_faults_or_hangs() {
    let program = rig::compile_text(SOURCE, None).expect("a valid program");
    let rig = Rig::new(&program, |program, objects| {
        add_flows(program, objects);
        let mut rng = SplitMix64::new(4);
        (0..8).for_each(|index| configure(program, objects, index, random_config(&mut rng)));
    });
    region::corrupt(&rig, packet);
}

#[test]
fn a_packet_that_is_given_up_releases_its_meters() {
    let program = rig::compile_text(SOURCE, None).expect("a valid program");
    let rig = Rig::new(&program, |program, objects| {
        add_flows(program, objects);
        let config = MeterConfig { cir: 1, cbs: 1 << 20, pir: 1, pbs: 1 << 20 };
        (0..8).for_each(|index| configure(program, objects, index, config));
    });
    let (_, first, count) = rig.compiled.layout.direct_meters().last().expect("a direct meter");
    let tables = &rig.region[first + count * engine::meter_word::COUNT..];
    let intact: Vec<u64> = tables.iter().map(|word| word.load(Ordering::Relaxed)).collect();
    let (mut rng, mut given_up) = (SplitMix64::new(9), 0);
    for _ in 0..3000 {
        // Some words of the tables are wrong, so that packets find records with other actions.
        for (word, value) in tables.iter().zip(&intact) {
            word.store(if *value != 0 && rng.percent(10) { rng.below(8) } else { *value }, Ordering::Relaxed);
        }
        let outcome = rig.machine(0, &mut packet(&mut rng)).expect("no fault");
        bpf::finish_hand_overs(&rig.compiled.layout, &rig.region);
        assert!(is_free(&rig), "{outcome:?}");
        given_up += u32::from(outcome.verdict == bpf::uapi::XDP_ABORTED as u32);
    }
    assert!(given_up > 50, "{given_up} packets");
}

#[test]
fn meters_on_every_path_load() {
    let program = rig::compile_text(SOURCE, None).expect("a valid program");
    let rig = Rig::new(&program, add_flows);
    match InKernel::load(&rig, 1) {
        Ok(kernel) => {
            kernel.set_clock_origin(&rig, 1);
            let mut rng = SplitMix64::new(3);
            (0..500).for_each(|_| _ = kernel.run(0, &packet(&mut rng)));
            eprintln!("{} instructions processed", kernel.verified_instructions());
        }
        Err(error) => testing::skip(&format!("needs root: {error}")),
    }
}

/// Returns a program of tables with a direct meter each, whose four actions execute meters of one array.
fn many_meters(tables: u32) -> String {
    let (mut declarations, mut applications) = (String::new(), String::new());
    for table in 0..tables {
        let _ = write!(declarations, "direct_meter<bit<8>>(MeterType.bytes) of_entry{table};");
        for action in 0..4 {
            let _ = write!(
                declarations,
                "action a{table}_{action}(bit<32> x) {{
                    bit<8> c; shared.execute_meter(x, c); of_entry{table}.read(hdr.h.a); hdr.h.b = hdr.h.b + c;
                }}"
            );
        }
        let _ = write!(
            declarations,
            "table t{table} {{
                key = {{ hdr.h.a: exact; }} meters = of_entry{table}; size = 64;
                actions = {{ a{table}_0; a{table}_1; a{table}_2; a{table}_3; }} default_action = a{table}_0({table});
            }}"
        );
        let _ = write!(applications, "t{table}.apply();");
    }
    format!(
        "#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; bit<112> rest; }}
struct headers {{ h_t h; }}
struct metadata {{ }}
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {{
    state start {{ packet.extract(hdr.h); transition accept; }}
}}
control V(inout headers hdr, inout metadata meta) {{ apply {{ }} }}
control C(inout headers hdr, inout metadata meta) {{ apply {{ }} }}
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {{
    meter(1024, MeterType.bytes) shared;
    {declarations}
    apply {{ {applications} std.egress_spec = 1; }}
}}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {{ apply {{ }} }}
control D(packet_out packet, in headers hdr) {{ apply {{ packet.emit(hdr.h); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"
    )
}

#[test]
fn the_work_of_the_verifier_for_many_meters_is_bounded() {
    for tables in [10, 50] {
        let program = rig::compile_text(&many_meters(tables), None).expect("a valid program");
        let begin = std::time::Instant::now();
        let mut rig = Rig::new(&program, |program, objects| {
            let (id, _) = program.meters.iter().find(|(_, meter)| meter.size.is_some()).expect("an array");
            objects.configure_meters(id, Some(MeterConfig { cir: 1, cbs: 100, pir: 1, pbs: 200 })).expect("an array");
        });
        eprintln!("{tables} tables: {} instructions, {:?}", rig.code().lines().count(), begin.elapsed());
        assert_ne!(rig.packet(0, &[7; 60]), Way::HandedOver);
        match InKernel::load(&rig, 1) {
            Ok(kernel) => {
                let processed = kernel.verified_instructions();
                eprintln!("{tables} tables: {processed} instructions processed, {:?}", begin.elapsed());
                assert!(processed < 8_000 * u64::from(tables), "{processed} for {tables} tables");
            }
            Err(error) => testing::skip(&format!("needs root: {error}")),
        }
    }
}

#[test]
fn meters_without_room_say_so() {
    let source = |size: &str, profile: &str| {
        many_meters(1)
            .replace("meter(1024,", &format!("meter({size},"))
            .replace("meters = of_entry0;", &format!("meters = of_entry0; {profile}"))
    };
    let reasons = |source: &str| {
        let program = rig::compile_text(source, None).expect("a valid program");
        let pipeline = v1model::kernel_pipeline(&program).expect("a v1model program");
        let options = bpf::KernelOptions { cpus: rig::CPUS, ports: 8 };
        let code = bpf::compile(&program, &pipeline, options).expect("a part runs in the kernel");
        let mut reasons: Vec<HandOverReason> = code.hand_overs.iter().map(|one| one.reason).collect();
        reasons.dedup();
        (reasons, code.tables().map(|(_, entries)| entries).collect::<Vec<u32>>())
    };
    assert_eq!(reasons(&source("1024", "")), (vec![HandOverReason::Meter], vec![64]));
    // 112 bytes for each meter.
    assert_eq!(reasons(&source("2000000", "")).0, [HandOverReason::LargeMeter, HandOverReason::Meter]);
    let profile = source("1024", "implementation = action_profile(16);");
    assert_eq!(reasons(&profile).0, [HandOverReason::ProfileMeter]);
    // A table whose direct meters do not fit gets less room than it requests.
    let (found, tables) = reasons(&many_meters(1).replace("size = 64;", "size = 2000000;"));
    assert_eq!(found, [HandOverReason::Meter]);
    assert!((1 << 18..2_000_000).contains(&tables[0]), "{tables:?}");
}
