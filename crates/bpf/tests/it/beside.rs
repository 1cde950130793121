//! A switch whose program also runs in the kernel: its writes reach the code, and the counts of the code reach it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bits::Bits;
use bpf::asm::MapRef;
use bpf::machine::{self, Environment};
use bpf::{KernelOptions, PortState, RegionError, RegionLayout};
use engine::{CounterValue, TableEntry};
use ir::KeyValue;
use switch::{DropReason, PortId, SwitchControl, Time};
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
        let program = crate::rig::program("examples/router/router.p4");
        let mut switch = Switch::new(program.clone(), Config::with_ports(8)).expect("a switch");
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
        let environment =
            Environment { links: links(0), region: &self.region, devices: 64, sockets: 1, cpu: 0, time_ns: 0 };
        let outcome = machine::run(&self.code, &mut crate::router::packet_to([10, 0, 0, 1]), environment);
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
