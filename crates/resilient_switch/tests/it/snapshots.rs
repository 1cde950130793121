//! Tests rows with snapshots: packets do not wait, and another switch continues with a state that is not too old.

use switch::{SwitchControl, Time};
use v1model::Executor;

use crate::rig::{DELAY_NS, Rig, RigFaults, request};

const SNAPSHOTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/snapshots.p4");
const WHOLE: u8 = 0;
const PARTS: u8 = 1;
const BOTH: u8 = 2;
const RUNS: u8 = 3;
/// Adds to two pages of one row, and answers with the second count.
const MIRRORED: u8 = 4;

/// A bound of the program, in microseconds.
const BOUND_US: u64 = 300;

/// The time at which a test begins.
const BEGIN_US: u64 = 20_000;

/// Returns a chain of two stores, and two switches that start with this network, and have their leases: the stores know
/// an earlier start of them, and repeat their challenges after a while.
fn rig(faults: RigFaults) -> Rig {
    let mut rig = Rig::with_program(SNAPSHOTS, 2);
    rig.faults = faults;
    [1, 2].into_iter().for_each(|number| rig.start(number, 8));
    rig.run_until(Time::from_us(BEGIN_US));
    rig
}

/// Runs a test with both executors, and with frames copied or in place.
fn each_way(test: impl Fn(&mut Rig)) {
    for (executor, in_place) in [(Executor::Interpreter, false), (Executor::Jit, false), (Executor::Jit, true)] {
        let faults = RigFaults { executor, in_place, ..RigFaults::default() };
        test(&mut rig(faults));
    }
}

/// Adds 1 to a count every 10 us until a time, and returns the last answer.
fn add_until(rig: &mut Rig, switch: u32, (op, row): (u8, u8), end_us: u64) -> Option<u32> {
    while rig.now < Time::from_us(end_us) {
        rig.send(switch, vec![request(op, row, 1)]);
        rig.run_until(rig.now.after_ns(10_000));
    }
    rig.answers().last().map(|(_, _, (value, _))| *value)
}

#[test]
fn packets_wait_for_the_row_and_not_for_the_stores() {
    each_way(|rig| {
        rig.send(1, vec![request(WHOLE, 0, 5), request(WHOLE, 200, 6)]);
        rig.run_until(Time::from_us(BEGIN_US + 100));
        let came = BEGIN_US + 3 * DELAY_NS / 1000;
        assert_eq!(rig.answers(), [(came, 1, (5, 0)), (came, 1, (6, 0))]);
        rig.send(1, vec![request(WHOLE, 0, 1), request(WHOLE, 0, 1)]);
        let now = BEGIN_US + 100;
        assert_eq!(rig.answers(), [(now, 1, (6, 0)), (now, 1, (7, 0))]);
        assert_eq!(rig.switches[&1].held(), 0);
    });
}

#[test]
fn another_switch_goes_on_with_a_state_that_is_at_most_as_old_as_the_bound() {
    each_way(|rig| {
        for (op, life) in [(WHOLE, 9), (PARTS, 10)] {
            rig.start(1, life);
            rig.run_until(rig.now.after_ns(20_000_000));
            let end_us = rig.now.as_us() + 2_500;
            let last = add_until(rig, 1, (op, 200), end_us).unwrap();
            assert!(last > 200, "{last}");
            rig.switches.remove(&1);
            rig.send(2, vec![request(op, 200, 0), request(op, 7, 0)]);
            rig.run_until(rig.now.after_ns(5_000_000));
            let answers: Vec<_> = rig.answers().into_iter().map(|(_, switch, (value, _))| (switch, value)).collect();
            let ([(2, 0), (2, restored)] | [(2, restored), (2, 0)]) = answers[..] else { panic!("{answers:?}") };
            // A snapshot each 100 us, of 10 packets, and those of a round trip or three.
            assert!(restored < last && restored + 25 >= last, "{restored} of {last}");
        }
    });
}

#[test]
fn a_row_that_moves_loses_nothing() {
    each_way(|rig| {
        let mut sum = 0;
        for turn in 0..6 {
            let switch = 1 + turn % 2;
            for row in [0, 70, 140, 210] {
                rig.send(switch, vec![request(BOTH, row, 1), request(BOTH, row, 1)]);
            }
            // The next switch asks while a snapshot is under way, or long after it.
            let wait_us = [40, 90, 700][turn as usize / 2];
            rig.run_until(rig.now.after_ns(wait_us * 1_000 + 300_000));
            sum += 2;
            let answers = rig.answers();
            assert_eq!(answers.len(), 8, "{answers:?}");
            assert!(
                answers.iter().all(|(_, by, (value, _))| *by == switch && [sum - 1, sum].contains(value)),
                "{answers:?}"
            );
        }
    });
}

#[test]
fn a_snapshot_that_is_too_old_drops_packets_or_sets_a_flag() {
    each_way(|rig| {
        rig.send(1, vec![request(WHOLE, 0, 1), request(PARTS, 0, 1), request(PARTS, 70, 1)]);
        rig.run_until(Time::from_us(BEGIN_US + 300));
        assert_eq!(rig.answers().len(), 3);
        rig.cut_off(1);
        // The row has not changed, so the snapshot is not stale.
        let cut_off = BEGIN_US + 400;
        rig.run_until(Time::from_us(cut_off));
        rig.send(1, vec![request(WHOLE, 0, 1), request(PARTS, 0, 1)]);
        assert_eq!(rig.answers(), [(cut_off, 1, (2, 0)), (cut_off, 1, (2, 0))]);
        rig.run_until(Time::from_us(cut_off + BOUND_US));
        rig.send(1, vec![request(WHOLE, 0, 1), request(PARTS, 0, 1)]);
        assert_eq!(rig.answers().len(), 2, "the age is the bound, and not more");
        let stale = cut_off + BOUND_US + 1;
        rig.run_until(Time::from_us(stale));
        rig.send(1, vec![request(WHOLE, 0, 1), request(PARTS, 0, 1), request(PARTS, 70, 1)]);
        assert_eq!(rig.answers(), [(stale, 1, (4, 1)), (stale, 1, (2, 0))], "row 1 is not stale");
        assert_eq!(rig.switches[&1].registry().get("drop.resilient.bound"), Some(1));
        let reports = rig.switches[&1].snapshot_reports(rig.now);
        let mut stale: Vec<_> = reports.iter().map(|it| (it.group.as_str(), it.row, it.status.is_stale)).collect();
        stale.sort_unstable();
        assert_eq!(stale, [("parts", 0, true), ("parts", 1, false), ("whole", 0, true)]);
        assert_eq!(rig.switches[&1].snapshot_counts().stale, 2);

        // Once the stores can be reached again, the next snapshot ends the staleness.
        rig.open();
        rig.run_until(rig.now.after_ns(600_000));
        let fresh = rig.now.as_us();
        rig.send(1, vec![request(WHOLE, 0, 1), request(PARTS, 0, 1)]);
        assert_eq!(rig.answers(), [(fresh, 1, (4, 0)), (fresh, 1, (5, 0))]);
        assert_eq!(rig.switches[&1].stale_rows(rig.now), 0);
    });
}

#[test]
fn a_packet_that_waits_for_two_rows_runs_once() {
    each_way(|rig| {
        for switch in [1, 2, 1, 2] {
            rig.send(switch, vec![request(BOTH, 0, 1), request(BOTH, 70, 1)]);
        }
        rig.run_until(Time::from_ms(80));
        let mut values: Vec<_> = rig.answers().into_iter().map(|(_, _, (value, _))| value).collect();
        values.sort_unstable();
        assert_eq!(values, [1, 1, 2, 2, 3, 3, 4, 4], "each packet has changed both rows once");
        [1, 2].into_iter().for_each(|switch| rig.send(switch, vec![request(RUNS, 0, 0)]));
        let runs: Vec<_> = rig.answers().into_iter().map(|(_, _, (value, _))| value).collect();
        assert_eq!(runs, [5, 5], "what a packet did before it waited is undone");
    });
}

#[test]
fn what_is_restored_over_a_bad_network_is_a_state_between_two_packets() {
    for seed in 0..20 {
        let random = rng::SplitMix64::new(seed);
        let faults = RigFaults { random, loss: 3, duplication: 10, jitter_ns: 20_000, ..RigFaults::default() };
        let mut rig = rig(faults);
        let rows = [0, 70, 140, 210];
        // Leases are lost, and the switch continues with its own snapshots.
        for turn in 0..3_000 {
            rig.send(1, vec![request(MIRRORED, rows[turn % 4], 1)]);
            rig.run_until(rig.now.after_ns(50_000));
        }
        let counts = rig.switches[&1].snapshot_counts();
        assert!(counts.snapshots >= 5 && counts.damaged == 0, "seed {seed}: {counts:?}");
        rig.answers();
        rig.switches.remove(&1);
        rig.send(2, rows.iter().flat_map(|row| [request(WHOLE, *row, 0), request(MIRRORED, *row, 0)]).collect());
        rig.run_until(rig.now.after_ns(200_000_000));
        let values: Vec<_> = rig.answers().into_iter().map(|(_, _, (value, _))| value).collect();
        assert!(values.len() == 8 && values.chunks(2).all(|pair| pair[0] == pair[1]), "seed {seed}: {values:?}");
        assert!(values.iter().all(|value| *value > 0), "seed {seed}: {values:?}");
    }
}

#[test]
fn a_row_of_many_pages_is_copied_over_many_steps_and_restored_as_a_whole() {
    let text = std::fs::read_to_string(SNAPSHOTS).expect("the program can be read");
    let text = text.replace("register<bit<32>>(1024) whole", "register<bit<32>>(262144) whole");
    let text =
        text.replace("row << 2", "row << 10").replace("bound = \"300us\"] register", "bound = \"100ms\"] register");
    let mut rig = Rig::with_program(SNAPSHOTS, 1);
    rig.set_program(&text);
    [1, 2].into_iter().for_each(|number| rig.start(number, 8));
    rig.run_until(Time::from_us(BEGIN_US));
    rig.send(1, (0..=255).map(|row| request(WHOLE, row, 1)).collect());
    rig.run_until(Time::from_us(BEGIN_US + 3_000));
    assert_eq!(rig.answers().len(), 256);
    let counts = rig.switches[&1].snapshot_counts();
    assert_eq!((counts.snapshots, counts.pages, counts.bytes), (1, 256, 256 * 1024));
    rig.send(2, (0..=255).map(|row| request(WHOLE, row, 1)).collect());
    rig.run_until(Time::from_us(BEGIN_US + 20_000));
    let answers = rig.answers();
    assert!(answers.len() == 256 && answers.iter().all(|(_, by, (value, _))| (*by, *value) == (2, 2)), "{answers:?}");
}
