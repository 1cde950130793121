//! Packets of one batch that use the same rows: each output waits for the writes that its packet made or has seen, and
//! for no others.

use rng::SplitMix64;
use switch::{Frame, Time};
use v1model::Executor;

use crate::rig::{ADD, READ, Rig, RigFaults, SET, request};

/// The executors, and whether batches run in the driver's memory.
const WAYS: [(Executor, bool); 3] = [(Executor::Interpreter, false), (Executor::Jit, false), (Executor::Jit, true)];

/// Creates two switches. The first owns rows 3 and 4, with values 5 and 0.
fn owned((executor, in_place): (Executor, bool)) -> Rig {
    let mut rig = Rig::new(2);
    rig.faults = RigFaults { executor, in_place, ..RigFaults::default() };
    rig.start(1, 9);
    rig.run_until(Time::from_us(400));
    rig.send(1, vec![request(SET, 3, 5), request(SET, 4, 7), request(SET, 4, 0)]);
    rig.run_until(Time::from_us(600));
    assert_eq!(rig.answers().len(), 3);
    rig
}

/// Returns operation, row and value of what has left, sorted.
fn answered(rig: &mut Rig) -> Vec<(u8, u8, u32)> {
    let answer = |frame: &Frame| (frame.data[0], frame.data[1], crate::rig::answer(frame).0);
    let mut all: Vec<_> = rig.left.drain(..).map(|(_, _, frame)| answer(&frame)).collect();
    all.sort_unstable();
    all
}

/// A read before the write of its row, a write, a read after it, and packets of another row.
fn mixed() -> Vec<Frame> {
    vec![
        request(READ, 3, 0),
        request(ADD, 3, 1),
        request(READ, 4, 0),
        request(READ, 3, 0),
        request(SET, 4, 0),
        request(ADD, 3, 1),
    ]
}

#[test]
fn a_packet_waits_for_the_writes_of_its_row_earlier_in_the_batch() {
    for way in WAYS {
        let mut rig = owned(way);
        rig.send(1, mixed());
        assert_eq!(answered(&mut rig), [(READ, 3, 5), (READ, 4, 0)], "{way:?}");
        // 15 us later, the write has not passed both stores and come back.
        rig.run_until(Time::from_us(615));
        assert_eq!(answered(&mut rig), []);
        rig.run_until(Time::from_us(700));
        // Row 4 has got a count of changes with its value.
        assert_eq!(answered(&mut rig), [(READ, 3, 6), (SET, 4, 0), (ADD, 3, 6), (ADD, 3, 7)], "{way:?}");
        rig.send(1, vec![request(READ, 3, 0)]);
        assert_eq!(answered(&mut rig), [(READ, 3, 7)], "nothing is under way any more");
    }
}

#[test]
fn what_a_batch_wrote_never_leaves_without_its_acknowledgement() {
    for way in WAYS {
        let mut rig = owned(way);
        rig.cut_off(1);
        rig.send(1, mixed());
        rig.send(1, vec![request(READ, 3, 0), request(READ, 4, 0)]);
        rig.run_until(Time::from_us(5_000));
        assert_eq!(answered(&mut rig), [(READ, 3, 5), (READ, 4, 0)], "{way:?}");
        rig.open();
        rig.send(2, vec![request(READ, 3, 0), request(READ, 4, 0)]);
        rig.run_until(Time::from_us(9_000));
        assert_eq!(answered(&mut rig), [(READ, 3, 5), (READ, 4, 0)], "the stores know nothing of it");
    }
}

/// Runs random batches at two switches, and returns everything that left, at its time.
fn run(seed: u64, (executor, in_place): (Executor, bool)) -> Vec<(Time, u32, Vec<u8>)> {
    let mut rig = Rig::new(1 + seed as u32 % 2);
    rig.faults = RigFaults { executor, in_place, ..RigFaults::default() };
    (1..=2).for_each(|switch| rig.start(switch, 9));
    rig.run_until(Time::from_us(400));
    let mut random = SplitMix64::new(seed);
    for _ in 0..60 {
        let mut frame = || {
            let operation = random.pick(&[(3, READ), (2, ADD), (1, SET)]);
            request(operation, random.below(4) as u8, random.below(3) as u32)
        };
        let frames: Vec<Frame> = (0..32).map(|_| frame()).collect();
        // Mostly one switch, so that it has the rows.
        let switch = random.pick(&[(8, 1), (1, 2)]);
        rig.send(switch, frames);
        rig.run_until(rig.now.after_ns(random.below(60_000)));
    }
    rig.run_until(rig.now.after_ns(60_000_000));
    let mut left: Vec<_> = rig.left.drain(..).map(|(at, switch, frame)| (at, switch, frame.data)).collect();
    left.sort();
    left
}

#[test]
fn batches_answer_at_the_same_times_in_all_executors() {
    for seed in 0..8 {
        let [interpreted, _, in_place] = WAYS.map(|way| run(seed, way));
        assert!(interpreted.len() > 1_500, "seed {seed}: {} answers", interpreted.len());
        let difference = interpreted.iter().zip(&in_place).find(|(one, other)| one != other);
        assert_eq!(difference, None, "seed {seed}");
        assert_eq!(interpreted.len(), in_place.len(), "seed {seed}");
    }
}
