//! Several workers: the test and the update of state by a message are atomic, and no sequence number is used twice.

use std::sync::{Arc, Barrier};

use subscribe_p4::entries::Installer;
use switch::{Device, Frame, Time};
use v1model::Executor;

use crate::state::switch::{Made, TestSwitch};
use crate::state::{BOTH, PORTS, compiled};

const BATCH: &str = include_str!("../../../testdata/batch.p4");
/// Numbers of workers.
const WORKERS: [u32; 4] = [1, 2, 3, 4];
/// Number of frames per step.
const FRAMES: u64 = 32;

/// Creates a switch with the program and the tables of rules.
pub fn prepared(made: &Made, rules: &str, executor: Executor) -> TestSwitch {
    let all = compiled(made, rules);
    let mut switch = TestSwitch::new(made, executor);
    let mut installer = Installer::new(&made.format, &made.rules, all.layout(), &made.options, 510);
    installer.install(&all.tables()).expect("few groups").iter().for_each(|update| switch.apply(update));
    switch
}

/// Returns the format with several numbered messages per packet.
pub fn numbered(ports: u32, change: impl FnOnce(String) -> String) -> Made {
    let numbered = BATCH.replace("bit<8>  count;", "bit<8>  count;\n    bit<32> number;");
    Made::new(&numbered.replace("lengths =", "sequence = \"head.number\", lengths ="), ports, None, change)
}

/// Returns the outgoing packets while several workers step concurrently, where `frames` returns the input of one worker
/// at one step; also the switch and a worker.
fn together(
    made: &Made,
    rules: &str,
    (executor, count): (Executor, u32),
    steps: u64,
    frames: impl Fn(u32, u64) -> Vec<Frame> + Sync,
) -> (Vec<Frame>, TestSwitch, v1model::Switch) {
    let mut switch = prepared(made, rules, executor);
    let workers = switch.workers(count);
    let (begin, frames) = (Arc::new(Barrier::new(count as usize)), &frames);
    let run = |(at, mut worker): (u32, v1model::Switch)| {
        let begin = Arc::clone(&begin);
        move || {
            let mut out = Vec::new();
            begin.wait();
            (0..steps).for_each(|step| worker.step(Time::ZERO, &mut frames(at, step), &mut out));
            (out, worker)
        }
    };
    let done: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..).zip(workers).map(|worker| scope.spawn(run(worker))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it ran")).collect()
    });
    let (out, mut workers): (Vec<_>, Vec<_>) = done.into_iter().unzip();
    (out.concat(), switch, workers.pop().expect("there are several"))
}

/// Number of repetitions by executor: enough for the workers to interleave.
fn steps(executor: Executor) -> u64 {
    if executor == Executor::Jit { 3000 } else { 300 }
}

/// A duration within a window of one second; time does not advance here.
const MEMORY: &str = "
@query_counter(total)
@query_counter(few, \"1000000 packets\")
@query_aggregate(\"count() by key over 1s\", 2)
@query_aggregate(\"sum(value) over 1s\")
";

#[test]
fn each_message_of_several_workers_counts_once() {
    let from = BATCH.find("@query_counter").expect("the format has one");
    let to = BATCH.find("struct headers_t").expect("the format has one");
    let several = format!("{}{MEMORY}{}", &BATCH[..from], &BATCH[to..]);
    const LIMIT: usize = 1000;
    let rules = format!(
        "key in {{0, 1, 2}} : total += value\nkey == 1 and count() by key < {LIMIT} : fwd(1)\nkey == 2 and few < {LIMIT} : few += 1; fwd(2)\n\
         key == 0 and sum(value) < {LIMIT} : fwd(0)"
    );
    for per_pass in [None, Some(1)] {
        let made = Made::new(&several, PORTS, per_pass, |program| program);
        for (executor, workers) in BOTH.into_iter().flat_map(|executor| WORKERS.map(|count| (executor, count))) {
            let steps = steps(executor) / 8;
            let packet = [0, 9, 3, 1, 2, 2, 2, 0, 2];
            let frames = |at, _| (0..FRAMES).map(|_| Frame::new(at, packet.to_vec())).collect();
            let (out, switch, _) = together(&made, &rules, (executor, workers), steps, frames);
            let packets = u128::from(workers) * u128::from(steps * FRAMES);
            assert_eq!(switch.register("kept_total_value", 0), 6 * packets, "{executor:?}, {workers} workers");
            // Messages of one key, and messages that add 2 to a sum.
            let went = [LIMIT / 2, LIMIT, LIMIT];
            let got = [0, 1, 2].map(|port| out.iter().filter(|frame| frame.port.0 == port).count());
            assert_eq!(got, went, "{executor:?}, {workers} workers, {per_pass:?} a pass");
            assert_eq!(switch.register("slot_0_kept_count", 0), packets, "{executor:?}");
            assert_eq!(switch.register("slot_1_kept_amount", 0), 2 * packets, "{executor:?}");
        }
    }
}

#[test]
fn numbers_of_several_workers_are_given_once_and_show_what_was_lost() {
    let made = numbered(PORTS, |program| program);
    const TO: u32 = 3;
    for (executor, workers) in BOTH.into_iter().flat_map(|executor| WORKERS.map(|count| (executor, count))) {
        let steps = steps(executor) / 2;
        // Each worker has a port with separate sequence numbers; every fourth packet is lost.
        let number = |step: u64, frame: u64| (step * FRAMES + frame) * 4 + 1;
        let packet = |number: u64, count: u8| {
            let head = [&[0, 7 + 2 * count, count][..], &(number as u32).to_be_bytes()].concat();
            [head, vec![1; 2 * usize::from(count)]].concat()
        };
        let frames = |at, step| (0..FRAMES).map(|frame| Frame::new(at, packet(number(step, frame), 3))).collect();
        let (out, _, mut worker) =
            together(&made, &format!("key == 1 : fwd({TO})"), (executor, workers), steps, frames);
        let packets = u64::from(workers) * steps * FRAMES;
        let number = |frame: &Frame| u64::from(u32::from_be_bytes(frame.data[3..7].try_into().expect("four bytes")));
        let mut given: Vec<u64> = out.iter().map(number).collect();
        given.sort_unstable();
        assert_eq!(given.len() as u64, packets, "{executor:?}");
        let twice = given.windows(2).find(|two| two[1] - two[0] < 3);
        assert_eq!(twice, None, "{executor:?}: packets of three messages with these numbers");
        // A packet without messages carries the next sequence number.
        let mut end = Vec::new();
        worker.step(Time::ZERO, &mut vec![Frame::new(0u32, packet(number_after(steps), 0))], &mut end);
        let last = end.iter().find(|frame| frame.port.0 == TO).map(number);
        let lost = packets - u64::from(workers) + 1;
        assert_eq!(last, Some(3 * packets + lost + 1), "{executor:?}");
    }
}

/// Returns the next sequence number after a worker's second to last packet.
fn number_after(steps: u64) -> u64 {
    steps * FRAMES * 4 + 1
}
