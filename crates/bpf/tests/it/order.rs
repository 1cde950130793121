//! Packets of a flow do not overtake those that were handed over before.

use std::sync::atomic::{AtomicU64, Ordering};

use bpf::asm::MapRef;
use bpf::{CountSink, HAND_OVER_MARK, MAX_FOLLOWED, MAX_WAITING, PortState};
use engine::{CounterValue, Objects};
use ir::Program;

use crate::rig::{self, Rig};
use crate::router;

/// A router whose packets to 10.1.0.0/16 are handed over, as port 4 has no device.
fn rig() -> Rig {
    let rig = Rig::new(&rig::program("examples/router/router.p4"), |program: &Program, objects: &mut Objects| {
        router::add_route(program, objects, [10, 0, 0, 0], 8, 3);
        router::add_route(program, objects, [10, 1, 0, 0], 16, 4);
    });
    bpf::set_port(&rig.compiled.layout, &rig.region, 4, PortState::Slow, true);
    rig
}

/// Runs a packet to an address, and returns the number of its hand-over, if it is one.
fn number(rig: &Rig, port: u32, to: [u8; 4]) -> Option<u64> {
    let outcome = rig.machine(port, &mut router::packet_to(to)).expect("no fault");
    outcome.meta.inspect(|meta| assert_eq!(meta & HAND_OVER_MARK, HAND_OVER_MARK)).map(|meta| meta & !HAND_OVER_MARK)
}

#[test]
fn a_flow_follows_its_packets_to_the_switch_until_that_is_done() {
    let rig = rig();
    let [slow, fast] = [[10, 1, 0, 9], [10, 2, 0, 9]];
    assert_eq!(number(&rig, 0, fast), None);
    assert_eq!(number(&rig, 0, slow), Some(1));
    assert_eq!(number(&rig, 0, fast), None, "it is another flow");
    // The route of the flow changes: now it could be forwarded in the kernel.
    bpf::set_port(&rig.compiled.layout, &rig.region, 4, PortState::Fast { device: 14, max_frame: 1514 }, true);
    assert_eq!(number(&rig, 0, slow), Some(2));
    let [handed, done] = rig.compiled.layout.order_words(0, 0).expect("a port");
    assert_eq!(rig.region[handed].load(Ordering::Relaxed), 2);
    rig.region[done].store(1, Ordering::Relaxed);
    assert_eq!(number(&rig, 0, slow), Some(3), "the second one is still on its way");
    rig.region[done].store(3, Ordering::Relaxed);
    assert_eq!(number(&rig, 0, slow), None);
}

#[test]
fn ports_are_numbered_apart() {
    let rig = rig();
    assert_eq!([number(&rig, 0, [10, 1, 0, 1]), number(&rig, 2, [10, 1, 0, 1])], [Some(1), Some(1)]);
    assert_eq!(number(&rig, 2, [10, 1, 0, 2]), Some(2));
    bpf::set_port(&rig.compiled.layout, &rig.region, 4, PortState::Fast { device: 14, max_frame: 1514 }, true);
    // The bucket has the stamp of port 2; a flow comes by one port.
    assert_eq!(number(&rig, 0, [10, 1, 0, 1]), None);
    assert_eq!(number(&rig, 2, [10, 1, 0, 1]), Some(3));
    bpf::finish_hand_overs(&rig.compiled.layout, &rig.region);
    assert_eq!(number(&rig, 2, [10, 1, 0, 1]), None);
}

/// Runs a packet until its flow is crowded: the switch has as many packets of it as others may follow, and is done with
/// none. The next one is dropped.
pub fn crowd(rig: &Rig, data: &[u8]) {
    let state = PortState::Fast { device: 10, max_frame: 1514 };
    // The first one is handed over, as its port does not receive in the kernel.
    bpf::set_port(&rig.compiled.layout, &rig.region, 0, state, false);
    for number in 1..=u64::from(MAX_FOLLOWED) {
        let outcome = rig.machine(0, &mut data.to_vec()).expect("no fault");
        assert_eq!(outcome.meta, Some(HAND_OVER_MARK | number));
        bpf::set_port(&rig.compiled.layout, &rig.region, 0, state, true);
    }
}

/// Returns the words that count the packets which were handed over from port 0, and those that the switch has done.
fn handed_and_done(rig: &Rig) -> [&AtomicU64; 2] {
    rig.compiled.layout.order_words(0, 0).expect("a port").map(|word| &rig.region[word])
}

/// Whether the next packet is dropped and changes only two counts: those of crowded packets and their bytes.
pub fn is_dropped_without_effects(rig: &Rig, data: &[u8]) -> bool {
    let changes = |before: &[u64]| rig.shared_words().iter().zip(before).filter(|(one, other)| one != other).count();
    let before = rig.shared_words();
    let outcome = rig.machine(0, &mut data.to_vec()).expect("no fault");
    (outcome.verdict, changes(&before)) == (bpf::uapi::XDP_DROP as u32, 2)
}

/// Packets that were dropped by closed buckets, by port.
#[derive(Debug, Default, PartialEq, Eq)]
struct Crowded(Vec<(u32, u64)>);

impl CountSink for Crowded {
    fn crowded(&mut self, port: u32, count: CounterValue) {
        self.0.push((port, count.packets));
    }
}

#[test]
fn a_flow_that_always_needs_the_switch_leaves_room_for_others() {
    let rig = rig();
    let [slow, fast, other_slow] = [[10, 1, 0, 9], [10, 2, 0, 9], [10, 1, 0, 10]];
    for expected in 1..=MAX_WAITING.into() {
        assert_eq!(number(&rig, 0, slow), Some(expected));
    }
    let packet = router::packet_to(slow);
    assert!(is_dropped_without_effects(&rig, &packet));
    let other = rig.machine(0, &mut router::packet_to(fast)).expect("no fault");
    assert!(matches!(other.redirect, Some((MapRef::Devices, _))), "another flow is not concerned");
    let next = u64::from(MAX_WAITING) + 1;
    assert_eq!(number(&rig, 0, other_slow), Some(next), "there is room for a flow that has no packet there");
    // The flow is not closed: each packet that the switch is done with makes room for another one.
    handed_and_done(&rig)[1].store(2, Ordering::Relaxed);
    assert_eq!(number(&rig, 0, slow), Some(next + 1));
    assert!(is_dropped_without_effects(&rig, &packet));
    // From here on, packets of the flow only follow, and close it.
    handed_and_done(&rig)[1].store(100, Ordering::Relaxed);
    bpf::set_port(&rig.compiled.layout, &rig.region, 4, PortState::Fast { device: 14, max_frame: 1514 }, true);
    assert!(is_dropped_without_effects(&rig, &packet));
    // A closed bucket drops all packets of its flow, as they would come to the switch before those that it lost.
    bpf::set_port(&rig.compiled.layout, &rig.region, 4, PortState::Slow, true);
    assert!(is_dropped_without_effects(&rig, &packet));
    bpf::finish_hand_overs(&rig.compiled.layout, &rig.region);
    assert_eq!(number(&rig, 0, slow), Some(next + 2));
}

#[test]
fn a_flow_that_is_faster_than_the_switch_returns_to_the_kernel() {
    let mut rig = rig();
    let [flow, other] = [[10, 1, 0, 9], [10, 2, 0, 9]];
    assert_eq!(number(&rig, 0, flow), Some(1));
    bpf::set_port(&rig.compiled.layout, &rig.region, 4, PortState::Fast { device: 14, max_frame: 1514 }, true);
    // Every packet follows the one before, and the switch does nothing.
    for expected in 2..=u64::from(MAX_FOLLOWED) {
        assert_eq!(number(&rig, 0, flow), Some(expected));
    }
    let is_dropped = |rig: &Rig| {
        let outcome = rig.machine(0, &mut router::packet_to(flow)).expect("no fault");
        (outcome.verdict, outcome.redirect) == (bpf::uapi::XDP_DROP as u32, None)
    };
    assert!(is_dropped_without_effects(&rig, &router::packet_to(flow)), "the route exists");
    let [_, done] = rig.compiled.layout.order_words(0, 0).expect("a port");
    // The bucket stays closed until the last packet that was handed over is done, however far the switch has come.
    rig.region[done].store(u64::from(MAX_FOLLOWED) - 1, Ordering::Relaxed);
    assert!(is_dropped(&rig));
    assert_eq!(number(&rig, 0, other), None, "another flow is not concerned");
    rig.region[done].store(MAX_FOLLOWED.into(), Ordering::Relaxed);
    assert!(!is_dropped(&rig));
    assert_eq!(number(&rig, 0, flow), None);
    let mut crowded = Crowded::default();
    rig.writer.collect_counts(&rig.region, &mut crowded);
    assert_eq!(crowded, Crowded(vec![(0, 2)]));
}
