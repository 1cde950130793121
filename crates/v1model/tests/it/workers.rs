//! Several workers and a control plane that writes meanwhile: whatever the number of workers, totals are exact,
//! notifications are the same, and no packet sees half of a batch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bits::Bits;
use compiler::Source;
use engine::{ActionCall, ActionSpec, CounterValue, MeterConfig, TableEntry};
use ir::{KeyValue, Program, TableId};
use switch::{Device, Frame, Notification, Time};
use v1model::{Config, Executor, Switch, V1Model};

const SOURCE: &str = r#"
#include <core.p4>
#include <v1model.p4>
header packet_t { bit<8> flow; bit<16> number; bit<16> first; bit<16> second; bit<8> colour; }
struct headers { packet_t h; }
struct metadata { bit<2> colour; }
struct learned_t { bit<8> flow; bit<16> number; }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {} }
control C(inout headers hdr, inout metadata meta) { apply {} }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<32>>(16) narrow;
    register<bit<96>>(16) wide;
    register<bit<32>>(1) last;
    counter(16, CounterType.packets_and_bytes) flows;
    direct_counter(CounterType.packets) hits;
    meter(1, MeterType.packets) rate;
    action first(bit<16> version) { hdr.h.first = version; }
    action second(bit<16> version) { hdr.h.second = version; }
    action known() { hits.count(); }
    table a { key = { hdr.h.flow : exact; } actions = { first; NoAction; } }
    table b { key = { hdr.h.flow : exact; } actions = { second; NoAction; } }
    table live {
        key = { hdr.h.flow : exact; }
        actions = { known; NoAction; }
        counters = hits;
        support_timeout = true;
    }
    apply {
        bit<32> index = (bit<32>) (hdr.h.flow & 15);
        bit<32> small;
        bit<96> large;
        a.apply();
        b.apply();
        live.apply();
        flows.count(index);
        @atomic {
            narrow.read(small, index);
            narrow.write(index, small + 1);
            wide.read(large, index);
            wide.write(index, large + (1 << 64) + 1);
        }
        // Another program order, so that blocks of different objects meet.
        @atomic {
            last.read(small, 0);
            last.write(0, small + (bit<32>) hdr.h.flow);
        }
        rate.execute_meter(0, meta.colour);
        hdr.h.colour = (bit<8>) meta.colour;
        if (hdr.h.number % 8 == 0) { digest<learned_t>(1, { hdr.h.flow, hdr.h.number }); }
        std.egress_spec = 1;
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply {} }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

const FLOWS: u8 = 32;
const PACKETS: u16 = 300;
/// Packets that the meter lets pass green, and then yellow, at one time.
const GREEN: u64 = 1_000;
const YELLOW: u64 = 500;
/// Number of batches of the control plane.
const VERSIONS: u16 = 200;
const WORKERS: [u32; 3] = [1, 2, 4];

fn program() -> Arc<Program> {
    Arc::new(compiler::expect_program(&Source::new("workers.p4", SOURCE), &V1Model).ir)
}

fn table(switch: &Switch, name: &str) -> TableId {
    switch.program().table_named(name).expect("the table is in the program")
}

fn entry(switch: &Switch, flow: u8, action: &str, version: Option<u16>) -> TableEntry {
    let (action, _) = switch.program().actions.iter().find(|(_, it)| it.name == action).expect("the action");
    let args = version.map(|version| Bits::new(version.into(), 16)).into_iter().collect();
    let action = ActionSpec::Direct(ActionCall { action, args });
    let keys = vec![KeyValue::Exact(Bits::new(flow.into(), 8))];
    TableEntry { keys, priority: 0, action, metadata: Vec::new(), idle_timeout_ns: 0 }
}

fn packet(flow: u8, number: u16) -> Frame {
    let [high, low] = number.to_be_bytes();
    Frame::new(0, vec![flow, high, low, 0, 0, 0, 0, 0])
}

/// Writes a version of both tables for all flows, as one batch.
fn write_version(owner: &mut Switch, version: u16, is_first: bool) {
    for (name, action) in [("I.a", "I.first"), ("I.b", "I.second")] {
        let table = table(owner, name);
        for flow in 0..FLOWS {
            let entry = entry(owner, flow, action, Some(version));
            let objects = owner.objects_mut();
            let written = if is_first { objects.insert(table, entry) } else { objects.modify(table, entry) };
            written.expect("the entry fits");
        }
    }
}

/// The results of a run that must not depend on the number of workers.
#[derive(Debug, PartialEq)]
struct Outcome {
    narrow: Vec<u64>,
    wide: Vec<Bits>,
    sum: u64,
    counters: Vec<CounterValue>,
    hits: Vec<u64>,
    colours: BTreeMap<u8, u64>,
    digests: BTreeMap<(u8, u16), u64>,
    registry: Vec<(String, u64)>,
}

/// Sends all packets of some flows, and returns the frames that leave and the digests.
fn send(
    switch: &mut Switch,
    flows: &[u8],
    mut between: impl FnMut(&mut Switch, u16),
) -> (Vec<Frame>, Vec<Notification>) {
    let (mut output, mut notifications) = (Vec::new(), Vec::new());
    for number in 0..PACKETS {
        let mut input = flows.iter().map(|flow| packet(*flow, number)).collect();
        switch.step(Time::from_us(1), &mut input, &mut output);
        notifications.extend(switch.take_notifications());
        between(switch, number);
    }
    (output, notifications)
}

/// Runs all packets with this number of workers, while the owner writes versions of two tables.
fn run(program: &Arc<Program>, executor: Executor, workers: u32) -> Outcome {
    let config = Config { executor, ..Config::with_ports(2) };
    let mut owner = Switch::new(program.clone(), config).expect("the switch runs the program");
    let (meter, _) = program.meters.iter().next().expect("the program has a meter");
    let config = MeterConfig { cir: 1, cbs: GREEN, pir: 1, pbs: GREEN + YELLOW };
    owner.objects_mut().configure_meter(meter, 0, Some(config)).expect("the rates are right");
    write_version(&mut owner, 1, true);
    let live = table(&owner, "I.live");
    for flow in 0..FLOWS / 2 {
        let entry = entry(&owner, flow, "I.known", None);
        owner.objects_mut().insert(live, entry).expect("it is new");
    }
    let all: Vec<u8> = (0..FLOWS).collect();
    let outputs = if workers == 1 {
        let mut version = 1;
        vec![send(&mut owner, &all, |owner, _| {
            version = version % VERSIONS + 1;
            write_version(owner, version, false);
        })]
    } else {
        let others = owner.workers(workers);
        let running = AtomicUsize::new(others.len());
        std::thread::scope(|scope| {
            let start = |(number, mut worker): (usize, Switch)| {
                let flows: Vec<u8> = all.iter().copied().skip(number).step_by(workers as usize).collect();
                let running = &running;
                scope.spawn(move || {
                    let result = send(&mut worker, &flows, |_, _| ());
                    running.fetch_sub(1, Ordering::SeqCst);
                    result
                })
            };
            let threads: Vec<_> = others.into_iter().enumerate().map(start).collect();
            let mut version = 1;
            while running.load(Ordering::SeqCst) > 0 {
                version = version % VERSIONS + 1;
                write_version(&mut owner, version, false);
                owner.publish();
            }
            threads.into_iter().map(|thread| thread.join().expect("a worker ends")).collect()
        })
    };
    outcome(&owner, outputs)
}

fn outcome(owner: &Switch, outputs: Vec<(Vec<Frame>, Vec<Notification>)>) -> Outcome {
    let (mut colours, mut digests) = (BTreeMap::new(), BTreeMap::new());
    let mut count = 0;
    for (frames, notifications) in outputs {
        for frame in frames {
            let [_, _, _, a, b, c, d, colour] = frame.data[..] else { panic!("another length: {frame:?}") };
            assert_eq!((a, b), (c, d), "a packet sees half of a batch");
            assert!((1..=VERSIONS).contains(&u16::from_be_bytes([a, b])));
            *colours.entry(colour).or_insert(0) += 1;
            count += 1;
        }
        for notification in notifications {
            let Notification::Digest { values, .. } = notification else { panic!("{notification:?}") };
            let key = (values[0].low_u64() as u8, values[1].low_u64() as u16);
            *digests.entry(key).or_insert(0) += 1;
        }
    }
    assert_eq!(count, u64::from(FLOWS) * u64::from(PACKETS), "no packet is lost");
    let objects = owner.objects();
    let program = owner.program();
    let register = |name: &str| program.registers.iter().find(|(_, it)| it.name == name).expect("the register").0;
    let cell = |name: &str, index: u64| objects.register(register(name), index).expect("it is in the array");
    let (flows, _) = program.counters.iter().find(|(_, it)| it.name == "I.flows").expect("the counter");
    let live = table(owner, "I.live");
    Outcome {
        narrow: (0..16).map(|index| cell("I.narrow", index).low_u64()).collect(),
        wide: (0..16).map(|index| cell("I.wide", index)).collect(),
        sum: cell("I.last", 0).low_u64(),
        counters: (0..16).map(|index| objects.counter(flows, index).expect("it is in the array")).collect(),
        hits: objects.entries(live).map(|installed| installed.counter.packets).collect(),
        colours,
        digests,
        registry: owner.registry().iter().filter(|(_, value)| *value > 0).collect(),
    }
}

#[test]
fn totals_digests_colours_and_batches_do_not_depend_on_the_number_of_workers() {
    let program = program();
    for executor in [Executor::Jit, Executor::Interpreter] {
        let expected = run(&program, executor, 1);
        let each = u64::from(PACKETS);
        assert_eq!(expected.narrow, [2 * each; 16]);
        assert_eq!(expected.hits, [each; FLOWS as usize / 2]);
        assert_eq!(expected.counters[3], CounterValue { packets: 2 * each, bytes: 16 * each });
        assert_eq!(expected.digests.len() as u64, u64::from(FLOWS) * each.div_ceil(8));
        assert!(expected.digests.values().all(|count| *count == 1));
        let red = u64::from(FLOWS) * each - GREEN - YELLOW;
        assert_eq!(expected.colours, BTreeMap::from([(0, GREEN), (1, YELLOW), (2, red)]));
        for workers in WORKERS {
            assert_eq!(run(&program, executor, workers), expected, "{workers} workers, {executor:?}");
        }
    }
}

/// Entries of flows 0 to 3 time out after 2 s. Flow 0 is never hit; the others are hit every second by one worker
/// (flow 1), by all in turn (flow 2), or by the last one until 5 s (flow 3).
fn idle_entries(program: &Arc<Program>, executor: Executor, workers: u32) -> Vec<(u64, u64)> {
    let config = Config { executor, ..Config::with_ports(2) };
    let mut owner = Switch::new(program.clone(), config).expect("the switch runs the program");
    let live = table(&owner, "I.live");
    for flow in 0..4 {
        let entry = TableEntry { idle_timeout_ns: 2_000_000_000, ..entry(&owner, flow, "I.known", None) };
        owner.objects_mut().insert(live, entry).expect("it is new");
    }
    let mut others = if workers == 1 { Vec::new() } else { owner.workers(workers) };
    owner.publish();
    let mut reported = Vec::new();
    for second in 0..12 {
        let now = Time::from_ms(second * 1_000);
        let mut hit = |flow: u8, worker: u64| {
            let switch = match others.len() as u64 {
                0 => &mut owner,
                count => &mut others[(worker % count) as usize],
            };
            switch.step(now, &mut vec![packet(flow, 1)], &mut Vec::new());
        };
        hit(1, 0);
        hit(2, second);
        if second <= 5 {
            hit(3, u64::MAX);
        }
        // The owner's sweep, after the hits of this second.
        owner.step(Time::from_ms(second * 1_000 + 1), &mut Vec::new(), &mut Vec::new());
        assert!(others.iter_mut().all(|worker| worker.take_notifications().is_empty()), "workers report nothing");
        for notification in owner.take_notifications() {
            let Notification::IdleTimeout { entry, .. } = notification else { panic!("{notification:?}") };
            let KeyValue::Exact(flow) = &entry.keys[0] else { panic!("{entry:?}") };
            reported.push((second, flow.low_u64()));
        }
    }
    reported
}

#[test]
fn a_hit_by_any_worker_keeps_an_entry_alive_and_the_owner_reports_the_idle_ones() {
    let program = program();
    for executor in [Executor::Jit, Executor::Interpreter] {
        let expected = idle_entries(&program, executor, 1);
        assert!(expected.iter().any(|(_, flow)| *flow == 0), "{expected:?}");
        assert!(expected.iter().any(|(second, flow)| *flow == 3 && *second > 6), "{expected:?}");
        assert!(expected.iter().all(|(_, flow)| [0, 3].contains(flow)), "{expected:?}");
        for workers in WORKERS {
            assert_eq!(idle_entries(&program, executor, workers), expected, "{workers} workers, {executor:?}");
        }
    }
}
