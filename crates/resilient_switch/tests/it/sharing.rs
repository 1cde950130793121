//! Tests two switches that read the same rows at the same time.

use resilient::RowProgress;
use resilient_switch::{ListedRow, RowQuery};
use switch::{Frame, Time};
use v1model::Executor;

use crate::rig::{ADD, DELAY_NS, READ, Rig, RigFaults, SET, TABLES, request};

const FORWARD: u8 = 0;
const REVERSE: u8 = 1;

/// Returns a request of the program with tables.
fn lookup(operation: u8, key: u8, value: u16) -> Frame {
    let [high, low] = value.to_be_bytes();
    Frame::new(1, [&[operation, key, high, low][..], &[0; 12]].concat())
}

fn value(frame: &Frame) -> u16 {
    u16::from_be_bytes([frame.data[2], frame.data[3]])
}

/// Runs a test with all executors.
fn with_executors(test: impl Fn(&mut dyn FnMut(&str) -> Rig)) {
    for (executor, in_place) in [(Executor::Interpreter, false), (Executor::Jit, false), (Executor::Jit, true)] {
        test(&mut |program: &str| {
            let mut rig = Rig::with_program(program, 2);
            rig.faults = RigFaults { executor, in_place, ..RigFaults::default() };
            (1..=2).for_each(|switch| rig.start(switch, 8));
            // The hellos of both stores, and a renewal after them.
            rig.run_until(Time::from_ms(30));
            rig
        });
    }
}

const VALUES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/values.p4");

fn wait(rig: &mut Rig, us: u64) {
    rig.run_until(rig.now.after_ns(us * 1000));
}

/// Returns the asks, writes and releases of both switches.
fn requests(rig: &Rig) -> [(u64, u64, u64); 2] {
    [1, 2].map(|switch| {
        let requests = rig.switches[&switch].counts(rig.now).requests;
        (requests.asks, requests.writes, requests.releases)
    })
}

fn rows(rig: &Rig, switch: u32) -> Vec<ListedRow> {
    rig.switches[&switch].list_rows(rig.now, &RowQuery { most: 10, ..RowQuery::default() }).rows
}

#[test]
fn both_directions_of_a_mapping_use_two_switches_without_a_recall() {
    with_executors(|new| {
        let mut rig = new(TABLES);
        rig.send(1, vec![lookup(FORWARD, 7, 0)]);
        wait(&mut rig, 100);
        let number = value(&rig.left.pop().expect("it is answered").2);
        // Each direction at the other switch, and at both.
        for (switch, packet) in
            [(2, lookup(REVERSE, 0, number)), (2, lookup(FORWARD, 7, 0)), (1, lookup(REVERSE, 0, number))]
        {
            rig.left.clear();
            let start = rig.now;
            rig.send(switch, vec![packet]);
            wait(&mut rig, 100);
            let trip = start.after_ns(3 * DELAY_NS);
            assert_eq!(rig.left.iter().map(|(at, ..)| *at).collect::<Vec<_>>(), [trip], "one round trip");
        }
        let before = requests(&rig);
        assert_eq!(before, [(2, 0, 0); 2], "each switch asks once for each row, and gives none back");
        rig.left.clear();
        for _ in 0..50 {
            for switch in [1, 2] {
                let start = (rig.now, rig.left.len());
                rig.send(switch, vec![lookup(FORWARD, 7, 0), lookup(REVERSE, 0, number)]);
                let new: Vec<(Time, u16)> = rig.left[start.1..].iter().map(|(at, _, it)| (*at, value(it))).collect();
                assert_eq!(new, [(start.0, number), (start.0, u16::from_be_bytes([!7, 7]))]);
            }
            wait(&mut rig, 100);
        }
        assert_eq!(requests(&rig), before);
        assert!(rows(&rig, 1).iter().chain(&rows(&rig, 2)).all(|row| row.progress == RowProgress::Shared));
    });
}

#[test]
fn two_switches_read_a_row_of_arrays_and_a_write_is_seen_by_both() {
    with_executors(|new| {
        let mut rig = new(VALUES);
        rig.send(1, vec![request(SET, 3, 5)]);
        wait(&mut rig, 200);
        // The second reader takes the row from its owner; then both share it.
        for switch in [2, 1] {
            rig.send(switch, vec![request(READ, 3, 0)]);
            wait(&mut rig, 200);
        }
        rig.answers();
        let before = requests(&rig);
        for switch in [1, 2, 2, 1] {
            rig.send(switch, vec![request(READ, 3, 0); 2]);
        }
        let answers = rig.answers();
        assert!(answers.len() == 8 && answers.iter().all(|(.., value)| *value == (5, 1)), "{answers:?}");
        assert_eq!(requests(&rig), before);
        assert_eq!([1, 2].map(|switch| rows(&rig, switch)[0].progress), [RowProgress::Shared; 2]);
        // A packet that writes waits for the row; later ones wait, too, and see its write.
        rig.send(1, vec![request(READ, 3, 0), request(ADD, 3, 1), request(READ, 3, 0)]);
        let at_once: Vec<_> = rig.answers().into_iter().map(|(.., value)| value).collect();
        assert_eq!(at_once, [(5, 1)]);
        wait(&mut rig, 200);
        assert_eq!(rig.answers().into_iter().map(|(.., value)| value).collect::<Vec<_>>(), [(6, 2), (6, 2)]);
        assert_eq!(rows(&rig, 1)[0].progress, RowProgress::Owned);
        rig.send(2, vec![request(READ, 3, 0)]);
        wait(&mut rig, 200);
        assert_eq!(rig.answers().into_iter().map(|(.., value)| value).collect::<Vec<_>>(), [(6, 2)]);
    });
}

#[test]
fn switches_that_always_write_soon_ask_for_writing_at_once() {
    with_executors(|new| {
        let mut rig = new(VALUES);
        let mut asks = Vec::new();
        for turn in 0..10 {
            let before = requests(&rig).map(|(asks, ..)| asks);
            rig.send(1 + turn % 2, vec![request(ADD, 3, 1)]);
            wait(&mut rig, 300);
            let after = requests(&rig).map(|(asks, ..)| asks);
            asks.push(after[0] + after[1] - before[0] - before[1]);
        }
        let values: Vec<u32> = rig.answers().into_iter().map(|(.., (value, _))| value).collect();
        assert_eq!(values, (1..=10).collect::<Vec<u32>>());
        assert!(asks[1..].contains(&2) && asks[6..] == [1; 4], "{asks:?}");
    });
}

#[test]
fn a_group_that_packets_use_in_two_passes_is_not_shared() {
    let text = std::fs::read_to_string(VALUES).expect("the program can be read");
    let again = "if (hdr.request.op == 77) { recirculate_preserving_field_list(0); }";
    let (before, after) = text.rsplit_once("apply {}").expect("egress is empty");
    let mut rig = Rig::new(1);
    rig.set_program(&format!("{before}apply {{ {again} }}{after}"));
    (1..=2).for_each(|switch| rig.start(switch, 8));
    rig.run_until(Time::from_us(1300));
    for switch in [1, 2, 1] {
        rig.send(switch, vec![request(READ, 3, 0)]);
        wait(&mut rig, 200);
        assert_eq!(rows(&rig, switch)[0].progress, RowProgress::Owned);
    }
    assert_eq!((rig.answers().len(), rows(&rig, 2).len()), (3, 0));
}
