//! Tests frames that travel with the writes of their packets: when they leave, are lost, and are held.

use resilient::HoldMode;
use resilient::wire_form::MAX_PAYLOAD;
use resilient_switch::PiggybackCounts;
use rng::SplitMix64;
use switch::{Frame, SwitchControl, Time};
use v1model::Executor;

use crate::rig::{ADD, READ, Rig, RigFaults, SET, answer, request};

/// Creates two switches whose frames travel with writes, and a chain. The time is then 400 us.
fn rig(stores: u32) -> Rig {
    let mut rig = Rig::piggybacking(stores);
    rig.run_until(Time::from_us(400));
    rig
}

fn counts(rig: &Rig) -> PiggybackCounts {
    rig.switches[&1].counts(rig.now).piggyback
}

/// Returns a request that is this number of bytes longer.
fn long_request(op: u8, row: u8, value: u32, bytes: usize) -> Frame {
    let mut frame = request(op, row, value);
    frame.data.resize(frame.data.len() + bytes, 0xa5);
    frame
}

/// Lets the first switch own row 3, with the value 5.
fn owned(stores: u32) -> Rig {
    let mut rig = rig(stores);
    rig.send(1, vec![request(SET, 3, 5)]);
    rig.run_until(Time::from_us(600));
    assert_eq!(rig.answers().len(), 1);
    rig
}

#[test]
fn a_frame_leaves_when_the_whole_chain_has_its_write_and_the_switch_keeps_none() {
    for stores in 1..=3 {
        let trip = 10 * (u64::from(stores) + 1);
        let mut rig = rig(stores);
        // The row, and the write.
        rig.send(1, vec![request(SET, 3, 5)]);
        rig.run_until(Time::from_us(500));
        assert_eq!(rig.answers(), [(400 + 2 * trip, 1, (5, 1))]);
        rig.send(1, vec![long_request(ADD, 3, 1, 900)]);
        assert_eq!((rig.switches[&1].held(), rig.left.len()), (0, 0));
        rig.run_until(Time::from_us(500 + trip - 1));
        assert_eq!(rig.left, []);
        rig.run_until(Time::from_us(600));
        let (at, switch, frame) = rig.left.pop().expect("it has left");
        assert_eq!((at, switch, frame.port.0, answer(&frame)), (Time::from_us(500 + trip), 1, 2, (6, 2)));
        assert_eq!((frame.data.len(), &frame.data[16..]), (916, &[0xa5; 900][..]));
        assert_eq!(counts(&rig), PiggybackCounts { sent: 2, returned: 2, lost: 0 });
    }
}

#[test]
fn a_lost_request_or_acknowledgement_loses_the_frame_and_not_the_write() {
    // The request arrives after 10 us, the acknowledgement after 20.
    for (lost_at, name) in [(0, "request"), (15, "acknowledgement")] {
        let mut rig = owned(1);
        rig.send(1, vec![request(ADD, 3, 1)]);
        rig.send(1, vec![request(READ, 3, 0)]);
        assert_eq!(rig.switches[&1].held(), 1, "the read waits in the switch");
        rig.run_until(Time::from_us(600 + lost_at));
        rig.cut_off(1);
        rig.open();
        rig.run_until(Time::from_ms(20));
        let answers: Vec<_> = rig.answers().into_iter().map(|(_, switch, values)| (switch, values)).collect();
        assert_eq!(answers, [(1, (6, 2))], "{name}: only the read leaves, and it has seen the write");
        assert_eq!(counts(&rig), PiggybackCounts { sent: 2, returned: 1, lost: 1 }, "{name}");
        let registry = rig.switches[&1].registry();
        assert_eq!(registry.get("drop.resilient.output-lost"), Some(1), "{name}");
        // The other switch finds the write.
        rig.send(2, vec![request(READ, 3, 0)]);
        rig.run_until(Time::from_ms(40));
        assert_eq!(rig.answers().last().map(|(_, switch, values)| (*switch, *values)), Some((2, (6, 2))), "{name}");
    }
}

#[test]
fn a_frame_of_a_write_that_is_not_applied_is_lost() {
    let mut rig = owned(1);
    rig.send(1, vec![request(ADD, 3, 1)]);
    rig.cut_off(1);
    rig.send(2, vec![request(READ, 3, 0)]);
    rig.run_until(Time::from_ms(12));
    rig.open();
    rig.run_until(Time::from_ms(60));
    let answers: Vec<_> = rig.answers().into_iter().map(|(_, switch, values)| (switch, values)).collect();
    assert_eq!(answers, [(2, (5, 1))]);
    assert_eq!(counts(&rig), PiggybackCounts { sent: 2, returned: 1, lost: 1 });
    assert_eq!(rig.switches[&1].registry().get("drop.resilient.unavailable"), Some(1));
}

#[test]
fn frames_under_way_are_dropped_with_the_switch() {
    let mut rig = owned(1);
    rig.send(1, vec![request(ADD, 3, 1)]);
    let inner = rig.switches.remove(&1).expect("it runs").into_inner();
    assert_eq!(inner.registry().get("drop.resilient.stopped"), Some(1));
}

#[test]
fn a_frame_that_makes_a_message_longer_than_a_datagram_is_held_whole() {
    let (mut longest, mut shortest) = (0, usize::MAX);
    for bytes in 1100..1300 {
        let mut rig = owned(3);
        rig.longest = 0;
        rig.send(1, vec![long_request(ADD, 3, 1, bytes)]);
        let is_held = rig.switches[&1].held() == 1;
        rig.run_until(Time::from_us(900));
        let (at, _, frame) = rig.left.pop().expect("it has left");
        assert_eq!((at, frame.data.len(), answer(&frame)), (Time::from_us(640), 16 + bytes, (6, 2)));
        if is_held {
            shortest = shortest.min(bytes);
        } else {
            assert!(rig.longest <= MAX_PAYLOAD, "{bytes}: {}", rig.longest);
            longest = longest.max(bytes);
        }
    }
    // A frame that is one byte longer is held; the longest one that fits travels.
    assert_eq!((longest + 1, longest > 1150), (shortest, true), "{longest}");
}

#[test]
fn frames_of_one_write_travel_together_and_the_rest_is_held_behind_them() {
    let mut rig = owned(1);
    // All packets of a step are one write.
    let sizes = [100, 200, 1000, 10, 300];
    let frames: Vec<Frame> = sizes.iter().map(|bytes| long_request(ADD, 3, 1, *bytes)).collect();
    rig.send(1, frames);
    assert_eq!((rig.switches[&1].held(), counts(&rig).sent), (3, 1 + 2));
    rig.run_until(Time::from_us(700));
    let left: Vec<_> = rig.left.iter().map(|(_, _, frame)| (frame.data.len() - 16, answer(frame).0)).collect();
    assert_eq!(left, [(100, 6), (200, 7), (1000, 8), (10, 9), (300, 10)]);
    assert!(rig.left.iter().all(|(at, ..)| *at == Time::from_us(620)));
}

#[test]
fn a_write_behind_one_under_way_is_held() {
    let mut rig = owned(1);
    rig.send(1, vec![request(ADD, 3, 1)]);
    rig.run_until(Time::from_us(605));
    rig.send(1, vec![request(ADD, 3, 1)]);
    assert_eq!((rig.switches[&1].held(), counts(&rig).sent), (1, 2));
    rig.run_until(Time::from_us(700));
    assert_eq!(rig.answers(), [(620, 1, (6, 2)), (640, 1, (7, 3))]);
}

#[test]
fn messages_that_arrive_twice_release_once() {
    let mut rig = owned(2);
    rig.faults.duplication = 100;
    for number in 0..20 {
        rig.send(1, vec![request(ADD, 3, 1)]);
        rig.run_until(Time::from_us(700 + 100 * number));
        assert_eq!(rig.answers().len(), 1, "{number}");
    }
    assert_eq!(counts(&rig).lost, 0);
}

/// Packets of three rows in random lengths, with faults: no output twice, and those of a row in the order of the
/// writes.
#[test]
fn outputs_of_a_row_leave_in_order_and_once_whatever_the_network_does() {
    let (mut sent, mut returned, mut lost) = (0, 0, 0);
    for seed in 0..60 {
        let mut rig = rig(1 + seed as u32 % 3);
        let mut random = SplitMix64::new(seed);
        rig.faults = RigFaults {
            random: SplitMix64::new(seed ^ 77),
            loss: random.pick(&[(1, 0), (1, 10)]),
            duplication: 20,
            jitter_ns: 30_000,
            executor: random.pick(&[(1, Executor::Interpreter), (2, Executor::Jit)]),
            in_place: random.percent(50),
            hold: HoldMode::Piggyback,
            ..RigFaults::default()
        };
        rig.start(1, 9);
        for _ in 0..400 {
            let mut frame = || {
                let bytes = random.pick(&[(3, 0), (2, 300), (1, 1400)]);
                long_request(random.pick(&[(1, READ), (3, ADD)]), random.below(3) as u8, 1, bytes)
            };
            let frames = (0..3).map(|_| frame()).collect();
            rig.send(1, frames);
            rig.run_until(rig.now.after_ns(random.below(60_000)));
        }
        rig.faults.loss = 0;
        rig.run_until(rig.now.after_ns(60_000_000));
        let counts = counts(&rig);
        (sent, returned, lost) = (sent + counts.sent, returned + counts.returned, lost + counts.lost);
        assert_eq!(counts.sent, counts.returned + counts.lost, "seed {seed}: none is under way any more");
        for row in 0..3 {
            let of_row = rig.left.iter().filter(|(_, _, frame)| frame.data[1] == row);
            // Only this switch changes the rows: each addition has its own count of changes, and a read has that of the
            // last addition before it.
            let mut last = 0;
            for (_, _, frame) in of_row {
                let (value, changes) = answer(frame);
                assert_eq!(value, u32::from(changes), "seed {seed}: {:?}", &frame.data[..8]);
                let is_next = if frame.data[0] == ADD { changes > last } else { changes >= last };
                assert!(is_next, "seed {seed}: {changes} after {last}");
                last = changes;
            }
        }
    }
    println!("{sent} frames travelled, {returned} came back, {lost} are lost");
    assert!(returned > 1500 && lost > 20, "{sent} {returned} {lost}");
}
