//! Ports to servers that go down, alone, together, and again and again.

use crate::rig::{Rig, RigSettings};
use crate::tables::in_all_ways;

const NONE: u16 = 0xffff;

/// Returns the numbers of open connections with the two servers. Each table has one.
fn connections(rig: &Rig) -> [usize; 2] {
    [0, 1].map(|server| rig.switch.server_counts()[server].connections)
}

/// Takes the port to a server down, and up again.
fn flap(rig: &mut Rig, server: usize) {
    rig.set_port_up(server, false);
    rig.run_ms(1);
    rig.set_port_up(server, true);
}

/// Sends a packet for each of these keys, and checks that entries wrote all of them, within a millisecond.
fn check_answers(rig: &mut Rig, keys: std::ops::Range<u16>) {
    keys.clone().for_each(|key| rig.send(key, key));
    rig.run_ms(1);
    let mut left = rig.take_left();
    left.sort_unstable();
    assert_eq!(left, keys.map(|key| (key, 100 + key, NONE)).collect::<Vec<_>>());
}

/// A switch whose two servers have the same ten entries.
fn settle(rig: &mut Rig) {
    (0..10).for_each(|key| rig.write("one", key, &[100 + key]));
    rig.run_ms(50);
    assert!(rig.switch.counts().iter().all(|counts| counts.is_settled), "{:?}", rig.switch.counts());
    assert_eq!(connections(rig), [2, 2]);
}

#[test]
fn the_only_copy_is_not_given_up_while_the_other_is_filled() {
    in_all_ways(RigSettings::default(), |mut rig| {
        settle(&mut rig);
        flap(&mut rig, 1);
        // Server 1 is empty now, although its port is up.
        rig.set_port_up(0, false);
        rig.run_until(rig.now.after_ns(1000));
        rig.set_port_up(0, true);
        assert_eq!(connections(&rig)[0], 2);
        check_answers(&mut rig, 0..10);
        assert_eq!(rig.dropped("table.no-server"), 0);
        rig.run_ms(50);
        assert_eq!(connections(&rig), [2, 2]);
    });
}

#[test]
fn a_copy_that_could_not_be_spared_is_given_up_once_the_other_is_filled() {
    in_all_ways(RigSettings::default(), |mut rig| {
        settle(&mut rig);
        flap(&mut rig, 1);
        rig.set_port_up(0, false);
        rig.run_ms(50);
        assert_eq!(connections(&rig), [0, 2]);
        check_answers(&mut rig, 0..10);
    });
}

#[test]
fn a_server_whose_port_flaps_is_held_down() {
    in_all_ways(RigSettings::default(), |mut rig| {
        settle(&mut rig);
        flap(&mut rig, 1);
        rig.run_ms(50);
        assert_eq!(connections(&rig), [2, 2], "the first time it is used at once");
        flap(&mut rig, 1);
        rig.run_ms(990);
        assert_eq!(connections(&rig), [2, 0]);
        check_answers(&mut rig, 0..10);
        rig.run_ms(50);
        assert_eq!(connections(&rig), [2, 2]);
        flap(&mut rig, 1);
        rig.run_ms(1990);
        assert_eq!(connections(&rig), [2, 0]);
        rig.run_ms(50);
        assert_eq!(connections(&rig), [2, 2]);
        assert_eq!(rig.dropped("table.no-server"), 0);
    });
}

#[test]
fn a_server_that_is_held_down_is_used_at_once_if_there_is_no_other() {
    in_all_ways(RigSettings::default(), |mut rig| {
        settle(&mut rig);
        for _ in 0..2 {
            flap(&mut rig, 1);
            rig.run_ms(50);
        }
        assert_eq!(connections(&rig), [2, 0]);
        rig.set_port_up(0, false);
        rig.run_ms(50);
        assert_eq!(connections(&rig)[1], 2);
        check_answers(&mut rig, 0..10);
    });
}

#[test]
fn ports_that_go_down_together_cost_no_copy() {
    in_all_ways(RigSettings::default(), |mut rig| {
        settle(&mut rig);
        (0..2).for_each(|server| rig.set_port_up(server, false));
        rig.run_until(rig.now.after_ns(1000));
        assert_eq!(connections(&rig), [2, 2]);
        (0..2).for_each(|server| rig.set_port_up(server, true));
        check_answers(&mut rig, 0..10);
    });
}

#[test]
fn a_port_that_goes_down_during_a_hold_down_begins_a_longer_one() {
    in_all_ways(RigSettings::default(), |mut rig| {
        settle(&mut rig);
        for _ in 0..3 {
            flap(&mut rig, 1);
            rig.run_ms(500);
        }
        rig.run_ms(1480);
        assert_eq!(connections(&rig), [2, 0]);
        rig.run_ms(50);
        assert_eq!(connections(&rig), [2, 2]);
    });
}
