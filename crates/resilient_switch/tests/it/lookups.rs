//! Tests entries of tables that stores create and switches take over.

use switch::{Frame, SwitchControl, Time};

use crate::rig::{Rig, TABLES};

const FORWARD: u8 = 0;
const REVERSE: u8 = 1;
const INSIDE: u8 = 2;
const OUTSIDE: u8 = 3;
const NONE: u16 = 0xffff;

fn request(operation: u8, key: u8, value: u16) -> Frame {
    let [high, low] = value.to_be_bytes();
    Frame::new(1, [&[operation, key, high, low][..], &[0; 12]].concat())
}

/// Removes and returns the answers that left: microseconds, switch, key and value.
fn answers(rig: &mut Rig) -> Vec<(u64, u32, u8, u16)> {
    let value = |frame: &Frame| u16::from_be_bytes([frame.data[2], frame.data[3]]);
    rig.left.drain(..).map(|(at, switch, frame)| (at.as_us(), switch, frame.data[1], value(&frame))).collect()
}

#[test]
fn a_new_row_costs_one_round_trip_and_an_owned_one_nothing() {
    for stores in 1..=3 {
        let mut rig = Rig::with_program(TABLES, stores);
        let trip = 10 * (u64::from(stores) + 1);
        rig.send(1, vec![request(FORWARD, 7, 0), request(INSIDE, 7, 0), request(FORWARD, 7, 0)]);
        rig.run_until(Time::from_us(400));
        let all = answers(&mut rig);
        assert!(all.iter().all(|(at, switch, ..)| (*at, *switch) == (200 + trip, 1)), "{all:?}");
        let number = all[0].3;
        assert!((100..164).contains(&number));
        let mut values: Vec<u16> = all.iter().map(|(.., value)| *value).collect();
        values.sort_unstable();
        assert_eq!(values, [1, number, number]);
        rig.send(1, vec![request(FORWARD, 7, 0), request(OUTSIDE, 7, 0)]);
        assert_eq!(answers(&mut rig), [(400, 1, 7, number), (400, 1, 7, 1)]);
    }
}

#[test]
fn another_switch_finds_the_row_by_its_number_and_needs_no_lease_to_end() {
    let mut rig = Rig::with_program(TABLES, 2);
    rig.send(1, vec![request(FORWARD, 7, 0)]);
    rig.run_until(Time::from_us(400));
    let number = answers(&mut rig)[0].3;
    // No switch has the row of the number yet.
    rig.send(2, vec![request(REVERSE, 0, number)]);
    rig.run_until(Time::from_us(500));
    assert_eq!(answers(&mut rig), [(430, 2, 0, u16::from_be_bytes([!7, 7]))]);
    rig.switches.remove(&1);
    rig.send(2, vec![request(FORWARD, 7, 0)]);
    rig.run_until(Time::from_ms(5));
    let all = answers(&mut rig);
    assert_eq!(all.iter().map(|(.., value)| *value).collect::<Vec<_>>(), [number]);
    assert_eq!(all[0].0, 530, "the dead switch only read it: one round trip");
}

#[test]
fn a_row_that_does_not_exist_is_a_miss_only_for_packets_that_waited_when_the_switch_asked() {
    let mut rig = Rig::with_program(TABLES, 1);
    rig.send(1, vec![request(OUTSIDE, 9, 0), request(REVERSE, 9, 120)]);
    rig.run_until(Time::from_us(215));
    assert_eq!(answers(&mut rig), []);
    // It arrives too late for the first ask.
    rig.send(1, vec![request(OUTSIDE, 9, 0)]);
    rig.run_until(Time::from_us(300));
    assert_eq!(answers(&mut rig), [(220, 1, 9, NONE), (220, 1, 9, NONE), (240, 1, 9, NONE)]);
    // No switch owns the row, and no trace of it is left.
    assert_eq!(rig.switches[&1].objects().row_with_key(2, &[9]), None);
    // The second packet creates the row for which the first one waits.
    rig.send(1, vec![request(OUTSIDE, 9, 0), request(INSIDE, 9, 0)]);
    rig.run_until(Time::from_us(400));
    assert_eq!(answers(&mut rig), [(320, 1, 9, 1), (320, 1, 9, 1)]);
}

#[test]
fn without_free_numbers_new_rows_are_refused_and_old_ones_stay() {
    let mut rig = Rig::with_program(TABLES, 1);
    rig.send(1, (0..80).map(|key| request(FORWARD, key, 0)).collect());
    rig.run_until(Time::from_us(400));
    let mut numbers: Vec<u16> = answers(&mut rig).into_iter().map(|(.., number)| number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (100..164).collect::<Vec<u16>>());
    assert_eq!(rig.switches[&1].registry().get("drop.resilient.pool-exhausted"), Some(16));
    rig.send(1, (0..80).map(|key| request(FORWARD, key, 0)).collect());
    assert_eq!(answers(&mut rig).len(), 64);
    rig.run_until(Time::from_us(600));
    assert_eq!(rig.switches[&1].registry().get("drop.resilient.pool-exhausted"), Some(32));
}

fn text() -> String {
    std::fs::read_to_string(TABLES).expect("the program can be read")
}

/// Returns the numbers that are given twice: by `first` at switch 1, by `second` at switch 2.
fn given_twice(first: &str, second: &str) -> usize {
    let mut rig = Rig::with_program(TABLES, 1);
    rig.set_program(first);
    rig.start(1, 8);
    rig.run_until(Time::from_us(1300));
    rig.send(1, (0..32).map(|key| request(FORWARD, key, 0)).collect());
    rig.run_until(Time::from_us(1600));
    rig.set_program(second);
    rig.start(2, 9);
    rig.run_until(Time::from_us(2000));
    rig.send(2, (100..132).map(|key| request(FORWARD, key, 0)).collect());
    rig.run_until(Time::from_us(4000));
    let all = answers(&mut rig);
    let mine: std::collections::BTreeSet<u16> =
        all.iter().filter(|(_, switch, ..)| *switch == 1).map(|it| it.3).collect();
    let others: Vec<u16> = all.iter().filter(|(_, switch, ..)| *switch == 2).map(|it| it.3).collect();
    // Same group: switch 2 takes over rows of switch 1.
    rig.switches.remove(&1);
    rig.send(2, vec![request(FORWARD, 0, 0)]);
    rig.run_until(Time::from_us(9000));
    let taken = answers(&mut rig);
    assert_eq!(taken.len(), 1);
    others.iter().filter(|number| mine.contains(number)).count()
}

#[test]
fn versions_of_a_program_that_share_rows_share_the_numbers() {
    let renamed = text().replace("table reverse", "table back").replace("reverse.apply", "back.apply");
    assert_eq!(given_twice(&text(), &renamed), 0);
    let without_reverse = text().replace("@resilient[reverse = \"forward\"]", "");
    assert_eq!(given_twice(&without_reverse, &text()), 0);
}

/// Two switches with a packet each that looks up two rows, which exist.
#[test]
fn packets_with_two_rows_at_two_switches_do_not_wait_for_ever() {
    let mut rig = Rig::with_program(TABLES, 1);
    rig.start(1, 8);
    rig.start(2, 8);
    rig.run_until(Time::from_us(1300));
    rig.send(1, vec![request(INSIDE, 7, 0)]);
    rig.send(2, vec![request(INSIDE, 8, 0)]);
    rig.run_until(Time::from_us(2000));
    assert_eq!(answers(&mut rig).len(), 2);
    rig.send(1, vec![request(4, 7, 0)]);
    rig.send(2, vec![request(4, 7, 0)]);
    rig.run_until(Time::from_ms(2000));
    assert_eq!(answers(&mut rig).len(), 2, "two seconds later");
}
