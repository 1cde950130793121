//! Tests the aging of rows of tables: with both executors, and with frames copied or in place.

use switch::{Frame, SwitchControl};
use v1model::Executor;

use crate::rig::{LEASE_NS, Rig, RigFaults, TABLES};

const FORWARD: u8 = 0;
const REVERSE: u8 = 1;
const INSIDE: u8 = 2;
const OUTSIDE: u8 = 3;

const IDLE_MS: u64 = 5;

fn request(operation: u8, key: u8, value: u16) -> Frame {
    let [high, low] = value.to_be_bytes();
    Frame::new(1, [&[operation, key, high, low][..], &[0; 12]].concat())
}

/// Creates a rig with a pool of two numbers, whose rows age.
fn aging(executor: Executor, in_place: bool) -> Rig {
    let mut rig = Rig::with_program(TABLES, 2);
    let text = std::fs::read_to_string(TABLES).expect("the program can be read");
    let text = text.replace("pool = \"100-163\"", &format!("pool = \"100-101\", idle = \"{IDLE_MS}ms\""));
    rig.set_program(
        &text.replace("group = \"flows\", add", &format!("group = \"flows\", idle = \"{IDLE_MS}ms\", add")),
    );
    rig.faults = RigFaults { executor, in_place, ..RigFaults::default() };
    (1..=2).for_each(|switch| rig.start(switch, 8));
    // The first renewal may be lost, because the stores have to learn the new start numbers first.
    run_for(&mut rig, 12_000);
    rig
}

fn run_for(rig: &mut Rig, us: u64) {
    rig.run_until(rig.now.after_ns(us * 1_000));
}

/// Sends a request, and returns the value of its answer, if there is one.
fn ask(rig: &mut Rig, switch: u32, operation: u8, key: u8, value: u16) -> Option<u16> {
    rig.left.clear();
    rig.send(switch, vec![request(operation, key, value)]);
    run_for(rig, 500);
    rig.left.drain(..).next().map(|(_, _, frame)| u16::from_be_bytes([frame.data[2], frame.data[3]]))
}

fn for_all(test: impl Fn(Rig)) {
    for executor in [Executor::Interpreter, Executor::Jit] {
        [false, true].into_iter().for_each(|in_place| test(aging(executor, in_place)));
    }
}

#[test]
fn an_exhausted_pool_works_again_after_silence() {
    for_all(|mut rig| {
        let numbers = [1, 2].map(|key| ask(&mut rig, 1, FORWARD, key, 0).expect("a number is free"));
        assert!(numbers.iter().all(|number| [100, 101].contains(number)) && numbers[0] != numbers[1]);
        assert_eq!(ask(&mut rig, 1, FORWARD, 3, 0), None);
        assert_eq!(rig.switches[&1].registry().get("drop.resilient.pool-exhausted"), Some(1));
        run_for(&mut rig, 2 * IDLE_MS * 1_000);
        assert_eq!(rig.rows(), [0, 0], "no store has a row");
        for key in [3, 4] {
            assert!(ask(&mut rig, 2, FORWARD, key, 0).is_some_and(|number| [100, 101].contains(&number)));
        }
    });
}

#[test]
fn a_row_that_packets_use_stays_and_no_packet_waits_for_it() {
    for_all(|mut rig| {
        let number = ask(&mut rig, 1, FORWARD, 1, 0);
        ask(&mut rig, 1, FORWARD, 2, 0).unwrap();
        for _ in 0..20 {
            run_for(&mut rig, 1_000 * (IDLE_MS - 1) - 500);
            rig.left.clear();
            rig.send(1, vec![request(FORWARD, 1, 0)]);
            assert_eq!(rig.left.len(), 1, "a packet of an owned row does not wait");
            assert_eq!(ask(&mut rig, 1, FORWARD, 1, 0), number);
        }
        assert_eq!(rig.rows(), [2, 2], "the other row is gone");
    });
}

#[test]
fn packets_from_outside_keep_a_row_that_no_packet_from_inside_uses() {
    for_all(|mut rig| {
        let number = ask(&mut rig, 1, FORWARD, 1, 0).unwrap();
        for _ in 0..10 {
            run_for(&mut rig, 1_000 * (IDLE_MS - 1) - 500);
            assert_eq!(ask(&mut rig, 2, REVERSE, 0, number), Some(u16::from_be_bytes([!1, 1])));
        }
        assert_eq!(ask(&mut rig, 1, FORWARD, 1, 0), Some(number));
        run_for(&mut rig, 3 * IDLE_MS * 1_000);
        assert_eq!(rig.rows(), [0, 0]);
        assert_eq!(ask(&mut rig, 2, REVERSE, 0, number), Some(0xffff), "nobody has the number");
    });
}

#[test]
fn rows_of_a_dead_switch_are_taken_over_or_age() {
    for_all(|mut rig| {
        let number = ask(&mut rig, 1, FORWARD, 1, 0);
        ask(&mut rig, 1, FORWARD, 2, 0).unwrap();
        rig.switches.remove(&1);
        run_for(&mut rig, LEASE_NS / 1_000 + 500);
        assert_eq!(ask(&mut rig, 2, FORWARD, 1, 0), number, "the flow goes on");
        assert_eq!(ask(&mut rig, 2, FORWARD, 3, 0), None, "the other flow may go on, too");
        for _ in 0..8 {
            run_for(&mut rig, 2_000);
            assert_eq!(ask(&mut rig, 2, FORWARD, 1, 0), number);
        }
        assert!(ask(&mut rig, 2, FORWARD, 3, 0).is_some());
        assert_eq!(ask(&mut rig, 2, FORWARD, 1, 0), number);
    });
}

#[test]
fn tables_of_a_group_use_its_rows_together() {
    for_all(|mut rig| {
        assert_eq!(ask(&mut rig, 1, INSIDE, 7, 0), Some(1));
        for _ in 0..10 {
            run_for(&mut rig, 1_000 * (IDLE_MS - 1) - 500);
            assert_eq!(ask(&mut rig, 1, OUTSIDE, 7, 0), Some(1));
        }
        run_for(&mut rig, 2 * IDLE_MS * 1_000);
        assert_eq!(rig.rows(), [0, 0]);
        assert_eq!(ask(&mut rig, 1, OUTSIDE, 7, 0), Some(0xffff));
        assert_eq!(rig.switches[&1].objects().row_positions(2), 0, "the switch has forgotten the row");
    });
}

#[test]
fn a_switch_without_packets_does_not_wake_up_for_rows_that_are_gone() {
    let mut rig = aging(Executor::Jit, false);
    ask(&mut rig, 1, FORWARD, 1, 0).unwrap();
    run_for(&mut rig, 3 * IDLE_MS * 1_000);
    let before = rig.wakes;
    run_for(&mut rig, 100_000);
    // A lease of 1 ms is renewed after half of it, and each renewal passes two stores.
    assert!(rig.wakes - before < 2_000, "{} wakes in 100 ms", rig.wakes - before);
    assert_eq!(rig.rows(), [0, 0]);
}
