//! Programs whose packets read and write registers, with indices from hashes, and read the time.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bits::Bits;
use bpf::asm::MapRef;
use bpf::machine::{self, Environment};
use bpf::{HandOverReason, KernelOptions, PortState, RegionError};
use engine::{Objects, TableEntry};
use ir::{KeyValue, Program};
use rng::SplitMix64;
use switch::{Device, Frame, PortId, Time};
use v1model::{Config, Executor, Switch};

use crate::kernel::{self, InKernel};
use crate::rig::{self, CPUS, PORTS, Rig, links, wait_for_packet};

/// Hashes of every algorithm over values of odd widths; registers that are read after writes of the same packet, by
/// actions of two tables, beyond their end, and by egress.
const SOURCE: &str = r#"
#include <core.p4>
#include <v1model.p4>
header first_t { bit<8> a; bit<8> b; bit<16> c; bit<3> d; bit<13> e; bit<64> f; bit<48> g; }
struct headers { first_t h; }
struct metadata { bit<32> at; }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {} }
control C(inout headers hdr, inout metadata meta) { apply {} }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<64>>(7) sums;
    register<bit<13>>(300) marks;
    register<int<8>>(3) levels;
    action add(bit<32> more) {
        bit<64> sum;
        sums.read(sum, meta.at);
        sums.write(meta.at, sum + (bit<64>) more);
    }
    action clear() { sums.write((bit<32>) hdr.h.d, 0); }
    table one { key = { hdr.h.a: exact; } actions = { add; clear; NoAction; } }
    table two { key = { hdr.h.b: exact; } actions = { add; clear; NoAction; } }
    apply {
        std.egress_spec = (bit<9>) hdr.h.a[2:0];
        bit<16> short;
        bit<32> long;
        bit<64> all;
        hash(short, HashAlgorithm.crc16, (bit<16>) 0, { hdr.h.d, hdr.h.f, hdr.h.a, hdr.h.e }, (bit<32>) 0x10000);
        hash(long, HashAlgorithm.crc32, (bit<32>) 5, { hdr.h.e, hdr.h.g, hdr.h.c, hdr.h.f[62:0], hdr.h.d }, (bit<32>) 1000);
        hash(all, HashAlgorithm.identity, (bit<64>) 1, { hdr.h.f, hdr.h.e, hdr.h.d, hdr.h.c }, (bit<64>) 0xffffffffff);
        hdr.h.c = short;
        hash(short, HashAlgorithm.xor16, (bit<16>) 0, { hdr.h.e, hdr.h.f, hdr.h.g, hdr.h.d }, (bit<32>) 0x10000);
        meta.at = (bit<32>) hdr.h.d;
        one.apply();
        two.apply();
        bit<64> sum;
        sums.read(sum, meta.at);
        bit<13> mark;
        marks.read(mark, long);
        marks.write(long, mark + 1);
        marks.write(long + 1, (bit<13>) sum);
        marks.read(mark, long + (bit<32>) hdr.h.b);
        if (hdr.h.b == 3) { marks.write(long, mark); }
        if (mark > 8000) { mark_to_drop(std); }
        int<8> level;
        levels.read(level, (bit<32>) hdr.h.d);
        levels.write((bit<32>) hdr.h.d, level - 3);
        if (level < -100) { mark_to_drop(std); }
        hash(hdr.h.e, HashAlgorithm.csum16, (bit<13>) 0, { mark, short, all, hdr.h.b }, (bit<32>) 8191);
        hdr.h.f = sum ^ all;
        hdr.h.g = (bit<48>) long;
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<8>>(PORTS) last;
    apply {
        bit<8> before;
        last.read(before, (bit<32>) std.egress_port);
        last.write((bit<32>) std.egress_port, hdr.h.b);
        if (before == 4 && hdr.h.b == 4) { mark_to_drop(std); }
    }
}
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

fn program() -> Arc<Program> {
    rig::compile_text(&SOURCE.replace("PORTS", "5"), None).expect("a valid program")
}

fn write(program: &Program, objects: &mut Objects) {
    let action = |name: &str| program.actions.iter().find(|(_, action)| action.name == name).expect("an action").0;
    for (table, first) in [("I.one", 0), ("I.two", 2)] {
        let table = program.table_named(table).expect("a table");
        for at in 0..4 {
            let keys = vec![KeyValue::Exact(Bits::new(first + at, 8))];
            let entry = match at {
                3 => TableEntry::new(keys, 0, action("I.clear"), Vec::new()),
                _ => TableEntry::new(keys, 0, action("I.add"), vec![Bits::new(0xffff_fff0 + at, 32)]),
            };
            objects.insert(table, entry).expect("a new entry");
        }
    }
}

fn packet(rng: &mut SplitMix64) -> Vec<u8> {
    let mut data: Vec<u8> = (0..rng.pick(&[(6, 30), (2, 20), (1, 19)])).map(|_| rng.next_u64() as u8).collect();
    (data[0], data[1]) = (rng.below(6) as u8, rng.below(7) as u8);
    // Few flows, so that packets meet in registers.
    if rng.percent(70) {
        data[4..19].fill(rng.below(3) as u8);
        data[4] = (rng.below(8) as u8) << 5;
    }
    data
}

#[test]
fn packets_meet_in_registers() {
    let program = program();
    let mut rig = Rig::new(&program, write);
    let mut rng = SplitMix64::new(31);
    let packets: Vec<(u32, Vec<u8>)> = (0..4000).map(|_| (rng.below(PORTS.into()) as u32, packet(&mut rng))).collect();
    let in_kernel = InKernel::load(&rig, PORTS);
    for (at, (port, data)) in packets.iter().enumerate() {
        rig.packet(*port, data);
        if at % 100 == 0 {
            rig.compare_counts();
        }
    }
    rig.compare_counts();
    let ways = rig.ways;
    assert!(ways.sent > 2000 && ways.dropped > 100, "{ways:?}");
    assert_eq!(ways.handed_over, 0, "{:?}", rig.compiled.hand_overs);
    kernel::replay(in_kernel, &Rig::new(&program, write), &packets);
}

#[test]
fn registers_that_are_too_wide_or_too_large_are_handed_over() {
    let text = SOURCE.replace("PORTS", "5");
    let wide = text.replace("register<bit<13>>", "register<bit<65>>").replace("bit<13> mark;", "bit<65> mark;");
    for text in [wide.replace("(bit<13>) sum", "(bit<65>) sum"), text.replace("(300)", "(0x1000000)")] {
        let mut rig = Rig::new(&rig::compile_text(&text, None).expect("a valid program"), write);
        assert!(rig.compiled.hand_overs.iter().any(|one| one.reason == HandOverReason::Register));
        let mut rng = SplitMix64::new(32);
        for _ in 0..200 {
            rig.packet(0, &packet(&mut rng));
        }
        rig.compare_counts();
        assert!(rig.ways.handed_over > 100, "{:?}", rig.ways);
    }
}

#[test]
fn hashes_that_are_too_long_or_may_change_are_handed_over() {
    let base = SOURCE.replace("PORTS", "5");
    let nine = ["hdr.h.f"; 9].join(", ");
    let payload = "update_checksum_with_payload(true, { hdr.h.a, hdr.h.b }, hdr.h.c, HashAlgorithm.csum16);";
    let texts = [
        base.replace("HashAlgorithm.crc32,", "HashAlgorithm.crc32_custom,"),
        base.replace("HashAlgorithm.crc16,", "HashAlgorithm.crc16_custom,"),
        base.replace("{ hdr.h.e, hdr.h.g, hdr.h.c, hdr.h.f[62:0], hdr.h.d }", &format!("{{ {nine} }}")),
        base.replace(
            "control C(inout headers hdr, inout metadata meta) { apply {} }",
            &format!("control C(inout headers hdr, inout metadata meta) {{ apply {{ {payload} }} }}"),
        ),
    ];
    for text in texts {
        assert_ne!(text, base);
        let mut rig = Rig::new(&rig::compile_text(&text, None).expect("a valid program"), write);
        assert!(rig.compiled.hand_overs.iter().any(|one| one.reason == HandOverReason::Hash), "{text}");
        let mut rng = SplitMix64::new(34);
        (0..100).for_each(|_| _ = rig.packet(0, &packet(&mut rng)));
        assert!(rig.ways.handed_over > 50, "{:?}", rig.ways);
    }
}

#[test]
fn a_read_after_very_many_writes_is_handed_over() {
    let writes = |count| "sums.write(meta.at, sum + 1);\n".repeat(count);
    for (count, is_fast) in [(60, true), (65, false)] {
        let text = SOURCE.replace("PORTS", "5").replace("bit<13> mark;", &format!("{}bit<13> mark;", writes(count)));
        let text = text.replace("int<8> level;", "sums.read(sum, meta.at);\nint<8> level;");
        let mut rig = Rig::new(&rig::compile_text(&text, None).expect("a valid program"), |_, _| ());
        let mut rng = SplitMix64::new(35);
        (0..100).for_each(|_| _ = rig.packet(0, &packet(&mut rng)));
        rig.compare_counts();
        assert_eq!(rig.ways.sent > 20, is_fast, "{:?}", rig.ways);
    }
}

/// A switch beside its code: packets of both, and the control plane, use the same registers.
#[test]
fn a_switch_and_its_code_have_one_set_of_registers() {
    let program = program();
    for executor in [Executor::Interpreter, Executor::Jit] {
        let config = Config { executor, cpu_port: None, ..Config::with_ports(PORTS) };
        let mut switch = Switch::new(program.clone(), config.clone()).expect("a switch");
        let mut alone = Switch::new(program.clone(), config).expect("a switch");
        let sums = program.registers.iter().find(|(_, register)| register.name == "I.sums").expect("a register").0;
        for switch in [&mut switch, &mut alone] {
            write(&program, switch.objects_mut());
            switch.objects_mut().set_register(sums, 2, Bits::new(77, 64)).expect("an element");
        }
        let pipeline = v1model::kernel_pipeline(&program).expect("a v1model program");
        let code = bpf::compile(&program, &pipeline, KernelOptions { cpus: CPUS, ports: PORTS }).expect("it is small");
        let region: Vec<AtomicU64> = (0..code.layout.bytes() / 8).map(|_| AtomicU64::new(0)).collect();
        let region = Arc::new(region);
        switch.attach_kernel(&code, region.clone(), wait_for_packet).expect("the entries fit");
        for port in 0..PORTS {
            switch.set_kernel_device(PortId(port), PortState::Fast { device: port + 10, max_frame: 1514 });
        }
        switch.publish();
        let words = code.encode(&links(0), true).expect("code");
        let mut rng = SplitMix64::new(33);
        for at in 0..1000 {
            let (data, mut sent, mut output) = (packet(&mut rng), Vec::new(), Vec::new());
            alone.step(Time::ZERO, &mut vec![Frame::new(0, data.clone())], &mut output);
            match rng.percent(50) {
                true => switch.step(Time::ZERO, &mut vec![Frame::new(0, data)], &mut sent),
                false => {
                    let mut frame = data;
                    let environment =
                        Environment { links: links(0), region: &region, devices: 64, sockets: 1, cpu: 0, time_ns: 0 };
                    match machine::run(&words, &mut frame, environment).expect("no fault").redirect {
                        Some((MapRef::Devices, device)) => sent.push(Frame::new(device - 10, frame)),
                        other => assert_eq!(other, None),
                    }
                }
            }
            assert_eq!(sent, output, "packet {at}");
            if rng.percent(5) {
                let (index, value) = (rng.below(7), Bits::new(rng.next_u64().into(), 64));
                for switch in [&mut switch, &mut alone] {
                    switch.objects_mut().set_register(sums, index, value.clone()).expect("an element");
                }
            }
        }
        for index in 0..7 {
            assert_eq!(switch.objects().register(sums, index), alone.objects().register(sums, index));
        }
        assert_ne!(switch.objects().register(sums, 0).map(|value| value.low_u64()), Ok(0), "packets wrote");
        // Code that is attached later would not see them.
        let second = Arc::new((0..code.layout.bytes() / 8).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
        assert_eq!(switch.attach_kernel(&code, second, wait_for_packet), Err(RegionError::Shared));
    }
}

/// A controller that sets a register and then publishes: packets in the kernel see neither before, and go on after it,
/// even if nothing has changed in the end.
#[test]
fn packets_wait_for_what_is_published_while_the_kernel_is_suspended() {
    let program = program();
    let mut switch =
        Switch::new(program.clone(), Config { cpu_port: None, ..Config::with_ports(PORTS) }).expect("a switch");
    write(&program, switch.objects_mut());
    let pipeline = v1model::kernel_pipeline(&program).expect("a v1model program");
    let code = bpf::compile(&program, &pipeline, KernelOptions { cpus: CPUS, ports: PORTS }).expect("it is small");
    let region: Vec<AtomicU64> = (0..code.layout.bytes() / 8).map(|_| AtomicU64::new(0)).collect();
    let region = Arc::new(region);
    switch.suspend_kernel();
    switch.attach_kernel(&code, region.clone(), wait_for_packet).expect("the entries fit");
    for port in 0..PORTS {
        switch.set_kernel_device(PortId(port), PortState::Fast { device: port + 10, max_frame: 1514 });
    }
    switch.publish();
    let words = code.encode(&links(0), true).expect("code");
    let is_fast = || {
        let environment = Environment { links: links(0), region: &region, devices: 64, sockets: 1, cpu: 0, time_ns: 0 };
        let mut frame = packet(&mut SplitMix64::new(33));
        let outcome = machine::run(&words, &mut frame, environment).expect("no fault");
        bpf::finish_hand_overs(&code.layout, &region);
        !matches!(outcome.redirect, Some((MapRef::Sockets, _)))
    };
    assert!(is_fast() && switch.is_in_kernel());
    for _ in 0..2 {
        switch.suspend_kernel();
        assert!(!is_fast() && !switch.is_in_kernel());
        switch.suspend_kernel();
        switch.publish();
        assert!(is_fast() && switch.is_in_kernel());
        assert_eq!(switch.kernel_failure(), None);
    }
    switch.leave_kernel();
    switch.suspend_kernel();
    switch.publish();
    assert!(!is_fast(), "it has left for good");
}

/// Writes the times of a packet into it, and drops one that comes within a second of the last one.
const TIMES: &str = r#"
#include <core.p4>
#include <v1model.p4>
header times_t { bit<48> arrival; bit<48> egress; bit<32> queued; bit<32> waited; bit<32> short; }
struct headers { times_t t; }
struct metadata { bit<48> before; }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.t); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {} }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<48>>(1) last;
    apply {
        last.read(meta.before, 0);
        last.write(0, std.ingress_global_timestamp);
        hdr.t.arrival = std.ingress_global_timestamp;
        hdr.t.short = (bit<32>) (std.ingress_global_timestamp >> 3);
        std.egress_spec = 2;
        if (std.ingress_global_timestamp - meta.before < 1000000 && hdr.t.waited == 1) { mark_to_drop(std); }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        hdr.t.egress = std.egress_global_timestamp;
        hdr.t.queued = std.enq_timestamp;
        hdr.t.waited = std.deq_timedelta;
    }
}
control C(inout headers hdr, inout metadata meta) { apply {} }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.t); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

#[test]
fn packets_read_the_time_of_the_run() {
    let program = rig::compile_text(TIMES, None).expect("a valid program");
    let mut rig = Rig::new(&program, |_, _| {});
    for waited in [0, 0, 1, 0] {
        let mut data = vec![0; 24];
        data[19] = waited;
        rig.packet(0, &data);
    }
    assert_eq!((rig.ways.sent, rig.ways.dropped), (3, 1));
    rig.compare_counts();
    rig.set_has_time(false);
    rig.packet(0, &[0; 24]);
    assert_eq!(rig.ways.handed_over, 1);
    let kernel = match InKernel::load(&rig, 1) {
        Ok(kernel) => kernel,
        Err(error) => return testing::skip(&format!("needs root: {error}")),
    };
    let origin = ports::kernel_time_ns() - 5_000_000_000;
    kernel.set_clock_origin(&rig, origin);
    let mut last = 5_000_000;
    for _ in 0..3 {
        let (verdict, frame) = kernel.run(0, &[0; 24]);
        assert_eq!(verdict, bpf::uapi::XDP_REDIRECT as u32);
        let times = [0, 6].map(|at| frame[at..at + 6].iter().fold(0, |time, byte| time << 8 | u64::from(*byte)));
        assert!(times[0] >= last && times[0] == times[1], "{times:?} after {last}");
        last = times[0];
    }
    assert!(last <= (ports::kernel_time_ns() - origin) / 1000);
}
