//! A switch whose program also runs in the kernel: its writes reach the code, and the counts of the code reach it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bits::Bits;
use bpf::asm::MapRef;
use bpf::machine::{self, Environment};
use bpf::{KernelOptions, PortState, RegionError, RegionLayout};
use engine::{CounterValue, TableEntry};
use ir::{KeyValue, Program};
use switch::{Device, DropReason, Notification, PortId, SwitchControl, Time};
use v1model::{Config, Switch};

use crate::rig::{CPUS, links, wait_for_packet};

/// A switch of the router, and its code.
struct Beside {
    switch: Switch,
    region: Arc<Vec<AtomicU64>>,
    layout: RegionLayout,
    code: Vec<u64>,
}

/// The way of a packet: its port, `None` if it was dropped, or an error if it was handed over.
type Outcome = Result<Option<u32>, ()>;

impl Beside {
    fn new() -> Beside {
        Beside::of(&crate::rig::program("examples/router/router.p4"))
    }

    fn of(program: &Arc<Program>) -> Beside {
        Beside::attach(Switch::new(program.clone(), Config::with_ports(8)).expect("a switch"))
    }

    /// Compiles and attaches the code of a switch's program.
    fn attach(mut switch: Switch) -> Beside {
        let program = switch.program().clone();
        let pipeline = v1model::kernel_pipeline(&program).expect("a v1model program");
        let code = bpf::compile(&program, &pipeline, KernelOptions { cpus: CPUS, ports: 8 }).expect("it is small");
        let region: Vec<AtomicU64> = (0..code.layout.bytes() / 8).map(|_| AtomicU64::new(0)).collect();
        let region = Arc::new(region);
        switch.attach_kernel(&code, region.clone(), wait_for_packet).expect("the entries fit");
        for port in 0..8 {
            let device = PortState::Fast { device: port + 10, max_frame: 1514 };
            switch.set_kernel_device(PortId(port), device);
        }
        switch.publish();
        Beside { switch, region, layout: code.layout.clone(), code: code.encode(&links(0), true).expect("code") }
    }

    /// Runs a packet to 10.0.0.1 in the machine.
    fn packet(&self) -> Outcome {
        self.run(crate::router::packet_to([10, 0, 0, 1]), 0)
    }

    /// Runs a packet in the machine at a time of the kernel's clock.
    fn run(&self, mut packet: Vec<u8>, time_ns: u64) -> Outcome {
        let environment =
            Environment { links: links(0), region: &self.region, devices: 64, sockets: 1, cpu: 0, time_ns };
        let outcome = machine::run(&self.code, &mut packet, environment);
        match outcome.expect("no fault").redirect {
            None => Ok(None),
            Some((MapRef::Devices, device)) => Ok(Some(device - 10)),
            Some(_) => {
                bpf::finish_hand_overs(&self.layout, &self.region);
                Err(())
            }
        }
    }

    /// Writes or removes the route to a port.
    fn route(&mut self, length: u32, port: Option<u32>) {
        let program = self.switch.program().clone();
        let (_, lpm) = (&program, program.table_named("RouterIngress.ipv4_lpm").expect("a table"));
        let forward = program.actions.iter().find(|(_, action)| action.name == "RouterIngress.forward");
        let keys = vec![KeyValue::Lpm(Bits::new(0x0a00_0000 & (u128::MAX << (32 - length)), 32), length)];
        let objects = self.switch.objects_mut();
        match port {
            Some(port) => {
                let args = vec![Bits::new(7, 48), Bits::new(port.into(), 9)];
                let entry = TableEntry::new(keys, 0, forward.expect("an action").0, args);
                objects.insert(lpm, entry).expect("there is room");
            }
            None => objects.delete(lpm, &keys, 0).expect("it is there"),
        }
    }

    fn counted(&self, name: &str) -> u64 {
        self.switch.registry().get(name).unwrap_or(0)
    }
}

#[test]
fn packets_see_writes_once_they_are_published() {
    let mut beside = Beside::new();
    assert_eq!(beside.packet(), Ok(None), "there is no route");
    beside.route(8, Some(3));
    assert_eq!(beside.packet(), Ok(None), "it is not published");
    beside.switch.publish();
    assert_eq!(beside.packet(), Ok(Some(3)));
    beside.route(16, Some(4));
    beside.route(8, None);
    assert_eq!(beside.packet(), Ok(Some(3)));
    beside.switch.publish();
    assert_eq!(beside.packet(), Ok(Some(4)));
    beside.route(16, None);
    beside.switch.publish();
    assert_eq!(beside.packet(), Ok(None));
}

#[test]
fn counts_are_collected_once() {
    let mut beside = Beside::new();
    beside.packet().expect("it is dropped in the kernel");
    beside.route(8, Some(3));
    beside.switch.publish();
    for _ in 0..5 {
        beside.packet().expect("it is sent in the kernel");
    }
    assert_eq!(beside.counted("port.0.rx.packets"), 0);
    let bytes = crate::router::packet_to([10, 0, 0, 1]).len() as u64;
    for _ in 0..2 {
        beside.switch.collect_counts();
        assert_eq!((beside.counted("port.0.rx.packets"), beside.counted("port.0.rx.bytes")), (6, 6 * bytes));
        assert_eq!((beside.counted("port.3.tx.packets"), beside.counted("port.3.tx.bytes")), (5, 5 * bytes));
        let sites = beside.switch.drop_sites();
        assert_eq!((sites.len(), sites[0].reason, sites[0].packets), (1, DropReason::IngressProgram, 1));
        let place = sites[0].place.as_ref().expect("a place");
        assert_eq!(place.1, "RouterIngress.no_route");
        let sent = CounterValue { packets: 5, bytes: 5 * bytes };
        assert_eq!(beside.switch.kernel_count(PortId(3)).sent, sent);
    }
    beside.switch.count_lost_in_kernel(PortId(3), 2);
    assert_eq!((beside.counted("port.3.tx.packets"), beside.counted("port.3.tx.bytes")), (3, 3 * bytes));
    assert_eq!(beside.counted("drop.tx.device-full"), 2);
    beside.switch.count_lost_in_kernel(PortId(3), 99);
    assert_eq!(beside.counted("port.3.tx.packets"), 0, "no more are lost than were sent");
}

#[test]
fn ports_that_are_down_or_have_a_rate_are_those_of_the_switch() {
    let mut beside = Beside::new();
    beside.route(8, Some(3));
    beside.switch.publish();
    type Change = fn(&mut Switch);
    let changes: [(Change, Change); 4] = [
        (|switch| _ = switch.set_port_up(PortId(3), false), |switch| _ = switch.set_port_up(PortId(3), true)),
        (|switch| switch.set_port_rate(PortId(3), Some(10)), |switch| switch.set_port_rate(PortId(3), None)),
        (
            |switch| switch.set_queue_rate(PortId(3), Some(5), Some(10)),
            |switch| switch.set_queue_rate(PortId(3), Some(5), None),
        ),
        (
            |switch| switch.set_port_bandwidth(PortId(3), Some(1000)),
            |switch| switch.set_port_bandwidth(PortId(3), None),
        ),
    ];
    for (at, (set, reset)) in changes.into_iter().enumerate() {
        set(&mut beside.switch);
        beside.switch.publish();
        assert_eq!(beside.packet(), Err(()), "change {at}");
        reset(&mut beside.switch);
        beside.switch.publish();
        assert_eq!(beside.packet(), Ok(Some(3)), "change {at} was undone");
    }
    beside.switch.set_kernel_device(PortId(3), PortState::Slow);
    beside.switch.publish();
    assert_eq!(beside.packet(), Err(()));
}

#[test]
fn a_switch_that_is_replaced_leaves_the_kernel_with_all_counts() {
    let mut beside = Beside::new();
    beside.route(8, Some(3));
    beside.switch.publish();
    beside.packet().expect("it is sent in the kernel");
    assert!(beside.switch.is_in_kernel());
    SwitchControl::drain(&mut beside.switch, Time::ZERO, &mut Vec::new());
    assert!(!beside.switch.is_in_kernel());
    assert_eq!(beside.packet(), Err(()));
    assert_eq!(beside.counted("port.3.tx.packets"), 1);
    beside.route(9, Some(4));
    beside.switch.publish();
    assert_eq!(beside.packet(), Err(()), "a write does not open the gate again");
}

#[test]
fn diverted_ports_stay_diverted_when_the_program_changes() {
    let next = || Beside::new().switch;
    // One port is diverted before there is code, and one while there is.
    let mut switch = Switch::new(crate::rig::program("examples/router/router.p4"), Config::with_ports(8)).expect("one");
    switch.divert_kernel_port(PortId(3), true);
    let mut beside = Beside::attach(switch);
    for port in [3, 4, 5] {
        beside.route(8 + port, Some(port));
    }
    beside.switch.publish();
    beside.route(13, None);
    beside.switch.publish();
    assert_eq!(beside.packet(), Ok(Some(4)), "only port 3 is diverted");
    beside.switch.divert_kernel_port(PortId(4), true);
    beside.switch.publish();
    assert_eq!(beside.packet(), Err(()));
    let Beside { mut switch, .. } = beside;
    SwitchControl::drain(&mut switch, Time::ZERO, &mut Vec::new());
    SwitchControl::swap_with(&mut switch, &mut next());
    let mut beside = Beside::attach(switch);
    for (port, expected) in [(3, Err(())), (4, Err(())), (5, Ok(Some(5)))] {
        beside.route(8 + port, Some(port));
        beside.switch.publish();
        assert_eq!(beside.packet(), expected, "port {port}");
    }
    beside.switch.divert_kernel_port(PortId(5), true);
    beside.switch.divert_kernel_port(PortId(4), false);
    beside.switch.publish();
    assert_eq!(beside.packet(), Err(()));
    beside.route(13, None);
    beside.switch.publish();
    assert_eq!(beside.packet(), Ok(Some(4)));
}

#[test]
fn a_packet_that_does_not_finish_closes_the_gate_until_the_next_look() {
    let mut beside = Beside::new();
    let epoch = |beside: &Beside| beside.region[0].fetch_add(1, Ordering::Relaxed);
    epoch(&beside);
    beside.route(8, Some(3));
    beside.switch.publish();
    beside.route(16, Some(4));
    beside.switch.publish();
    assert_eq!(beside.switch.kernel_failure(), Some(&RegionError::Stuck));
    epoch(&beside);
    assert_eq!(beside.packet(), Err(()), "the gate is closed");
    let device = PortState::Fast { device: 14, max_frame: 1514 };
    beside.switch.set_kernel_device(PortId(4), device);
    beside.switch.publish();
    assert_eq!((beside.packet(), beside.switch.kernel_failure()), (Ok(Some(4)), None));
}

/// A learning switch: entries age.
const AGING: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> cell; bit<120> rest; }
struct headers { h_t h; }
struct metadata { }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action send() { std.egress_spec = 1; }
    action drop() { mark_to_drop(std); }
    table cells {
        key = { hdr.h.cell: exact; }
        actions = { send; drop; }
        default_action = drop();
        support_timeout = true;
    }
    apply { cells.apply(); }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

#[test]
fn a_hit_in_the_kernel_keeps_an_entry_alive() {
    const ORIGIN_NS: u64 = 5_000_000_000;
    let program = crate::rig::compile_text(AGING, None).expect("a valid program");
    let mut beside = Beside::of(&program);
    beside.switch.set_kernel_clock(ORIGIN_NS);
    let table = program.table_named("I.cells").expect("a table");
    let key = |cell: u8| vec![KeyValue::Exact(Bits::new(cell.into(), 8))];
    let send = program.tables[table].actions[0].action;
    for cell in 0..3 {
        let entry = TableEntry { idle_timeout_ns: 2_000_000_000, ..TableEntry::new(key(cell), 0, send, Vec::new()) };
        beside.switch.objects_mut().insert(table, entry).expect("there is room");
    }
    beside.switch.publish();
    let mut reported = Vec::new();
    for second in 0..9 {
        let packet = |cell: u8| [[cell; 1].as_slice(), &[0; 60]].concat();
        let time_ns = ORIGIN_NS + second * 1_000_000_000;
        assert_eq!(beside.run(packet(7), time_ns), Ok(None), "a miss");
        assert_eq!(beside.run(packet(1), time_ns), Ok(Some(1)));
        if second <= 4 {
            assert_eq!(beside.run(packet(2), time_ns), Ok(Some(1)));
        }
        beside.switch.step(Time::from_ms(second * 1_000 + 1), &mut Vec::new(), &mut Vec::new());
        for notification in beside.switch.take_notifications() {
            let Notification::IdleTimeout { entry, .. } = notification else { panic!("{notification:?}") };
            let KeyValue::Exact(cell) = &entry.keys[0] else { panic!("{entry:?}") };
            reported.push((second, cell.low_u64()));
        }
        if second == 5 {
            // The entry comes back without a hit: those before do not count for it.
            beside.switch.objects_mut().delete(table, &key(2), 0).expect("it is there");
            let entry = TableEntry { idle_timeout_ns: 3_000_000_000, ..TableEntry::new(key(2), 0, send, Vec::new()) };
            beside.switch.objects_mut().insert(table, entry).expect("there is room");
            beside.switch.publish();
        }
    }
    assert_eq!(reported, [(2, 0), (4, 0), (6, 0), (8, 0), (8, 2)]);
    let last_hit = |cell: u8| beside.switch.objects().get(table, &key(cell), 0).expect("it is there").last_hit_ns;
    assert_eq!(last_hit(1), 8_000_000_000);
}
