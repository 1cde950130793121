//! Several workers have the same results as one.

use ::switch::{Device, Egress, Frame, HeadroomBuf, MulticastGroup, PortId, Registry, Time};
use bits::Bits;
use engine::{ActionCall, ActionSpec, TableEntry};
use ir::KeyValue;

use super::in_place::{any_copy, kinds_of_copies};
use super::probe::{Do, frame};
use super::story::probe;
use super::traced::{packet, router};
use crate::Switch;

/// Returns all counters by name.
fn counted(registry: &Registry) -> Vec<(String, u64)> {
    registry.iter().filter(|(_, value)| *value > 0).collect()
}

/// Returns the frame with this number of a flow.
pub fn of_flow(flow: u8, number: u16) -> Vec<u8> {
    let mut data = packet(flow);
    let end = data.len() - 2;
    data[end..].copy_from_slice(&number.to_be_bytes());
    data
}

/// Installs a prefix for each even flow and none for the odd ones.
pub fn routes(switch: &mut Switch, flows: u8) {
    let table = switch.program().table_named("MyIngress.ipv4_lpm").expect("the router has its table");
    let forward = switch.objects().default_action(table).clone();
    let sample = switch.objects().entries(table).next().map(|it| it.entry.action);
    let action = sample.unwrap_or(ActionSpec::Direct(forward));
    for flow in (0..flows).step_by(2) {
        let keys = vec![KeyValue::Lpm(Bits::new(0x0a00_0000 | u128::from(flow) << 8, 32), 24)];
        let entry =
            TableEntry { action: action.clone(), ..TableEntry::new(keys, 0, ir::ActionId::from_u32(0), vec![]) };
        _ = switch.objects_mut().insert(table, entry);
    }
}

#[test]
fn workers_forward_flows_in_order_and_count_what_one_would() {
    const FLOWS: u8 = 24;
    const FRAMES: u16 = 200;
    let run = |switch: &mut Switch, flows: &mut dyn Iterator<Item = u8>| -> Vec<Frame> {
        let flows: Vec<u8> = flows.collect();
        let mut output = Vec::new();
        for number in 0..FRAMES {
            let mut input = flows.iter().map(|flow| Frame::new(0, of_flow(*flow, number))).collect();
            switch.step(Time::from_us(number.into()), &mut input, &mut output);
        }
        output
    };
    let mut alone = router(|text| text);
    routes(&mut alone, FLOWS);
    let expected = run(&mut alone, &mut (0..FLOWS));
    assert!(!expected.is_empty() && expected.len() < FLOWS as usize * FRAMES as usize, "some are routed, some dropped");
    let of = |frames: &[Frame], flow: u8| -> Vec<Frame> {
        frames.iter().filter(|frame| frame.data[32] == flow).cloned().collect()
    };
    for count in [1, 2, 3] {
        let mut owner = router(|text| text);
        routes(&mut owner, FLOWS);
        let workers = owner.workers(count);
        let outputs: Vec<Vec<Frame>> = std::thread::scope(|scope| {
            let threads: Vec<_> = workers
                .into_iter()
                .enumerate()
                .map(|(number, mut worker)| {
                    scope.spawn(move || run(&mut worker, &mut (number as u8..FLOWS).step_by(count as usize)))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("the worker ends")).collect()
        });
        for flow in 0..FLOWS {
            assert_eq!(of(&outputs[flow as usize % count as usize], flow), of(&expected, flow), "flow {flow}");
        }
        assert_eq!(outputs.iter().map(Vec::len).sum::<usize>(), expected.len());
        assert_eq!(counted(owner.registry()), counted(alone.registry()));
        assert_eq!(owner.drop_sites(), alone.drop_sites());
        assert_eq!(owner.summary(), alone.summary());
    }
}

#[test]
fn copies_of_workers_are_those_of_one_switch() {
    for count in [1, 2] {
        for asks_in_egress in [true, false] {
            let make = || kinds_of_copies(asks_in_egress);
            let (mut owner, mut alone) = (make(), make());
            let mut workers = owner.workers(count);
            for time in 0..20 {
                for worker in &mut workers {
                    let frames: Vec<Vec<u8>> = (0..40).map(|number| any_copy(time * 40 + number)).collect();
                    let mut input = frames.iter().map(|data| Frame::new(1, data.clone())).collect();
                    let mut expected = Vec::new();
                    alone.step(Time::from_us(time.into()), &mut input, &mut expected);
                    let mut batch: Vec<HeadroomBuf> = frames.iter().map(|data| HeadroomBuf::new(data, 64)).collect();
                    let mut left = Vec::new();
                    worker.step_in_place(Time::from_us(time.into()), PortId(1), &mut batch, &mut left);
                    let left = left.into_iter().map(|egress| match egress {
                        Egress::Owned(frame) => frame,
                        Egress::InPlace { index, port } => Frame { port, data: batch[index].bytes().to_vec() },
                    });
                    assert_eq!(left.collect::<Vec<_>>(), expected);
                    assert_eq!(worker.take_notifications(), alone.take_notifications());
                }
            }
            assert_eq!(counted(owner.registry()), counted(alone.registry()));
        }
    }
}

fn ports(switch: &mut Switch, now_ms: u64, data: Vec<u8>) -> Vec<u32> {
    let mut output = Vec::new();
    switch.step(Time::from_ms(now_ms), &mut vec![Frame::new(0, data)], &mut output);
    output.iter().map(|frame| frame.port.0).collect()
}

#[test]
fn changes_of_the_owner_reach_workers_at_once_and_together() {
    let mut owner = probe();
    owner.set_multicast_group(1, Some(MulticastGroup::of_ports([1, 2])));
    let mut workers = owner.workers(2);
    let copies = frame(Do::Multicast, 0, 1, 20);
    let to_two = frame(Do::Unicast, 2, 0, 20);
    for worker in &mut workers {
        assert_eq!(ports(worker, 0, copies.clone()), [1, 2]);
        assert_eq!(ports(worker, 0, to_two.clone()), [2]);
    }
    owner.set_multicast_group(1, Some(MulticastGroup::of_ports([3])));
    assert!(owner.set_port_up(PortId(2), false));
    for worker in &mut workers {
        assert_eq!(ports(worker, 1, copies.clone()), [1, 2], "nothing is published yet");
        assert_eq!(ports(worker, 1, to_two.clone()), [2]);
    }
    owner.publish();
    for worker in &mut workers {
        assert_eq!(ports(worker, 2, copies.clone()), [3]);
        assert_eq!(ports(worker, 2, to_two.clone()), [0; 0]);
    }
    // Stepping the owner publishes as well, and the owner's counters include theirs.
    assert!(owner.set_port_up(PortId(2), true));
    owner.step(Time::from_ms(3), &mut Vec::new(), &mut Vec::new());
    assert_eq!(ports(&mut workers[1], 3, to_two), [2]);
    assert_eq!(owner.registry().get("drop.tx.port-down"), Some(2));
    assert_eq!(workers[0].registry().get("drop.tx.port-down"), Some(1));
}

#[test]
fn a_rate_holds_for_all_workers_together() {
    let mut owner = probe();
    owner.set_port_rate(PortId(1), Some(1000));
    let mut workers = owner.workers(2);
    let mut left = 0;
    for worker in &mut workers {
        (0..20).for_each(|_| left += ports(worker, 0, frame(Do::Unicast, 1, 0, 20)).len());
        for now_ms in 1..=10 {
            let mut output = Vec::new();
            worker.step(Time::from_ms(now_ms), &mut Vec::new(), &mut output);
            left += output.len();
        }
    }
    // One packet every two milliseconds each: at 0, 2, ... 10.
    assert_eq!(left, 12);
    owner.set_port_rate(PortId(1), None);
    owner.publish();
    assert!(ports(&mut workers[1], 11, frame(Do::Unicast, 1, 0, 20)).len() > 10);
}

#[test]
fn a_worker_is_another_thread_s() {
    fn is_send<T: Send>() {}
    is_send::<Switch>();
}

#[test]
#[should_panic(expected = "the control plane speaks to the owner")]
fn entries_cannot_be_written_at_a_worker() {
    let mut owner = router(|text| text);
    let mut worker = owner.workers(1).remove(0);
    worker.step(Time::ZERO, &mut Vec::new(), &mut Vec::new());
    let table = owner.program().table_named("MyIngress.ipv4_lpm").expect("the router has its table");
    let call: ActionCall = owner.objects().default_action(table).clone();
    _ = worker.objects_mut().set_default_action(table, call);
}
