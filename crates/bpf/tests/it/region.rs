//! States of the region: ports, processors, runs that meet, and memory that another process has written to.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use bits::Bits;
use bpf::asm::MapRef;
use bpf::machine::RunOutcome;
use bpf::{CountSink, PortState, RegionCounts};
use engine::{CounterValue, Objects, TableEntry};
use ir::{KeyValue, Program};
use rng::SplitMix64;

use crate::moved;
use crate::rig::{self, CPU, CPUS, Rig, Way};
use crate::router;

/// A router with one route, for all addresses, to port 3.
fn one_route(program: &Program, objects: &mut Objects) {
    let forward =
        program.actions.iter().find(|(_, action)| action.name == "RouterIngress.forward").expect("an action").0;
    let lpm = program.table_named("RouterIngress.ipv4_lpm").expect("a table");
    let keys = vec![KeyValue::Lpm(Bits::new(0, 32), 0)];
    objects.insert(lpm, TableEntry::new(keys, 0, forward, vec![Bits::new(7, 48), Bits::new(3, 9)])).expect("fits");
}

/// Returns the router with one route, and a packet that it sends.
fn router_and_packet() -> (Rig, Vec<u8>) {
    let mut rig = Rig::new(&rig::program("examples/router/router.p4"), one_route);
    let mut rng = SplitMix64::new(5);
    loop {
        let data = router::packet(&mut rng);
        if let Way::Sent { port: 3, .. } = rig.packet(0, &data) {
            return (rig, data);
        }
    }
}

fn is_handed_over(outcome: RunOutcome) -> bool {
    matches!(outcome.redirect, Some((MapRef::Sockets, _)))
}

#[test]
fn packets_to_slow_ports_and_longer_than_a_port_takes_are_handed_over() {
    let (mut rig, data) = router_and_packet();
    let length = data.len() as u32;
    let states = [
        (PortState::Slow, false),
        (PortState::Fast { device: 13, max_frame: length }, true),
        (PortState::Fast { device: 13, max_frame: length - 1 }, false),
    ];
    for (state, is_fast) in states {
        bpf::set_port(&rig.compiled.layout, &rig.region, 3, state, true);
        assert_eq!(rig.packet(0, &data) != Way::HandedOver, is_fast, "{state:?}");
    }
    rig.compare_counts();
    // A port that the region does not have is always slow.
    bpf::set_port(&rig.compiled.layout, &rig.region, 99, PortState::Fast { device: 1, max_frame: 9000 }, true);
}

#[test]
fn a_run_that_meets_another_one_hands_over_and_leaves_it_alone() {
    let (rig, data) = router_and_packet();
    let page = rig.compiled.layout.processor_bytes() / CPUS / 8;
    let busy = &rig.region[(CPU * page) as usize];
    assert_eq!(busy.load(Ordering::Relaxed) % 2, 0, "every run ends");
    busy.fetch_add(1, Ordering::Relaxed);
    let all = || rig.region.iter().map(|word| word.load(Ordering::Relaxed)).collect::<Vec<_>>();
    let (before, mut packet) = (all(), data.clone());
    assert!(is_handed_over(rig.machine(0, &mut packet).expect("no fault")));
    assert_eq!((all(), packet), (before, data));
}

/// Counts of ports by their number: of received and of sent packets.
#[derive(Debug, Default, PartialEq, Eq)]
struct PortCounts([BTreeMap<u32, [u64; 2]>; 2]);

impl CountSink for PortCounts {
    fn received(&mut self, port: u32, count: CounterValue) {
        self.0[0].insert(port, [count.packets, count.bytes]);
    }

    fn sent(&mut self, port: u32, count: CounterValue) {
        self.0[1].insert(port, [count.packets, count.bytes]);
    }
}

#[test]
fn counts_of_a_port_are_those_of_all_processors_and_are_collected_once() {
    let (mut rig, data) = router_and_packet();
    let collected = |rig: &mut Rig| {
        let mut counts = PortCounts::default();
        rig.writer.collect_counts(&rig.region, &mut counts);
        counts.0
    };
    collected(&mut rig);
    let bytes = data.len() as u64;
    for (runs, packets) in [(vec![(0, 0), (1, 0), (3, 0), (3, 2)], [3, 1]), (vec![(3, 0), (2, 0)], [2, 0])] {
        for (cpu, port) in runs {
            assert!(rig.machine_on(cpu, port, &mut data.clone()).is_ok_and(|outcome| !is_handed_over(outcome)));
        }
        let [received, sent] = collected(&mut rig);
        let expected = [(0, packets[0]), (2, packets[1])].into_iter().filter(|(_, packets)| *packets > 0);
        assert_eq!(received, expected.map(|(port, packets)| (port, [packets, packets * bytes])).collect());
        let all = packets[0] + packets[1];
        assert_eq!(sent.into_values().collect::<Vec<_>>(), [[all, all * bytes]]);
        assert_eq!(collected(&mut rig), <[BTreeMap<u32, [u64; 2]>; 2]>::default(), "counts are taken once");
    }
}

#[test]
fn no_count_of_a_port_is_lost_while_several_processors_count() {
    const PACKETS: u64 = 20_000;
    let (mut rig, data) = router_and_packet();
    rig.writer.collect_counts(&rig.region, &mut PortCounts::default());
    let other = rig::run_while(&rig, &data, rig.time_ns, || {
        for _ in 0..PACKETS {
            assert!(rig.machine(0, &mut data.clone()).is_ok_and(|outcome| !is_handed_over(outcome)));
        }
    });
    assert!(other > 1000, "{other} packets beside others");
    let counts = RegionCounts::new(&rig.compiled.layout, &rig.region);
    let all = [PACKETS + other, (PACKETS + other) * data.len() as u64];
    assert_eq!([counts.received(0), counts.sent(3)].map(|count| [count.packets, count.bytes]), [all; 2]);
}

#[test]
fn processors_have_scratch_memory_of_their_own_or_hand_over() {
    let (rig, data) = router_and_packet();
    for cpu in [0, CPUS - 1, CPUS, CPUS + 1, u32::MAX] {
        let outcome = rig.machine_on(cpu, 0, &mut data.clone()).expect("no fault");
        assert_eq!(is_handed_over(outcome), cpu >= CPUS, "processor {cpu}");
    }
}

#[test]
fn a_corrupted_region_misroutes_but_never_faults_or_hangs() {
    let program = rig::program("examples/router/router.p4");
    corrupt(&Rig::new(&program, |program, objects| router::write(2, 200, program, objects)), router::packet);
    let program = rig::program("examples/tunnel/tunnel.p4");
    corrupt(&Rig::new(&program, moved::write_tunnel), |rng| moved::tunnel_packets()[rng.below(3) as usize].clone());
}

/// Runs packets on random regions.
pub fn corrupt(rig: &Rig, packet: impl Fn(&mut SplitMix64) -> Vec<u8>) {
    let mut rng = SplitMix64::new(8);
    for round in 0..40 {
        for word in rig.region.iter() {
            let value = match rng.below(4) {
                0 => word.load(Ordering::Relaxed),
                // Small numbers, and names of groups.
                1 => rng.below(40) | rng.below(2) << 29,
                2 => u64::MAX >> rng.below(64),
                _ => rng.next_u64(),
            };
            word.store(value, Ordering::Relaxed);
        }
        let page = rig.compiled.layout.processor_bytes() / CPUS / 8;
        for _ in 0..50 {
            rig.region[(CPU * page) as usize].store(0, Ordering::Relaxed);
            let gate = rig.compiled.layout.private_bytes() / 8;
            rig.region[gate as usize].fetch_or(1, Ordering::Relaxed);
            let outcome = rig.machine(0, &mut packet(&mut rng));
            assert!(outcome.is_ok_and(|outcome| outcome.steps < 3000), "round {round}: {outcome:?}");
        }
    }
}
