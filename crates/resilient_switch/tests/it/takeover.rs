//! Another switch continues where the first one stopped.

use resilient::StoreConfig;
use switch::{SwitchControl, Time};

use crate::rig::{ADD, LEASE_NS, NONE, READ, Rig, SET, request};

/// A round trip to a chain of `stores`, in microseconds: each node is 10 us away from the next, and from the switch.
fn round_trip_us(stores: u64) -> u64 {
    10 * (stores + 1)
}

#[test]
fn a_write_leaves_after_one_round_trip_and_a_read_of_an_owned_row_at_once() {
    for stores in 1..=3 {
        let trip = round_trip_us(u64::from(stores));
        let mut rig = Rig::new(stores);
        rig.send(1, vec![request(NONE, 0, 9)]);
        assert_eq!(rig.answers(), [(200, 1, (9, 0))], "a packet without state does not wait");
        // The row, and the write.
        rig.send(1, vec![request(SET, 3, 5)]);
        rig.run_until(Time::from_us(500));
        assert_eq!(rig.answers(), [(200 + 2 * trip, 1, (5, 1))]);
        rig.send(1, vec![request(READ, 3, 0), request(READ, 3, 0)]);
        assert_eq!(rig.answers(), [(500, 1, (5, 1)); 2]);
        // A read after a write waits with it; two writes share an acknowledgement.
        rig.send(1, vec![request(ADD, 3, 1), request(READ, 3, 0), request(ADD, 3, 1)]);
        rig.run_until(Time::from_us(900));
        let at = 500 + trip;
        assert_eq!(rig.answers(), [(at, 1, (6, 2)), (at, 1, (6, 2)), (at, 1, (7, 3))]);
    }
}

#[test]
fn a_switch_that_starts_needs_one_round_trip_more_for_the_hello() {
    let mut rig = Rig::new(1);
    rig.start(1, 8);
    rig.send(1, vec![request(SET, 3, 5)]);
    rig.run_until(Time::from_us(400));
    // Hello, lease, row, write.
    assert_eq!(rig.answers(), [(200 + 4 * round_trip_us(1), 1, (5, 1))]);
}

#[test]
fn another_switch_takes_over_when_the_lease_of_a_dead_one_has_ended() {
    let mut rig = Rig::new(2);
    rig.send(1, vec![request(SET, 3, 5)]);
    rig.run_until(Time::from_us(300));
    assert_eq!(rig.answers().len(), 1);
    rig.switches.remove(&1);
    rig.send(2, vec![request(ADD, 3, 1)]);
    rig.run_until(Time::from_ms(5));
    let answers = rig.answers();
    assert_eq!(answers.iter().map(|(_, switch, value)| (*switch, *value)).collect::<Vec<_>>(), [(2, (6, 2))]);
    let at = answers[0].0;
    assert!(at > LEASE_NS / 1000 && at < 2 * LEASE_NS / 1000 + 300, "not before the lease ends: {at} us");
}

#[test]
fn a_takeover_takes_at_most_the_detection_a_lease_and_a_round_trip() {
    // The wait of the store: both clocks may drift.
    let lease_us = resilient::expiry_ns(LEASE_NS, StoreConfig::default().drift_ppm).div_ceil(1000);
    for stores in 1..=3 {
        let trip = round_trip_us(u64::from(stores));
        for crash in (400..1500).step_by(87) {
            for detection in [0, 40, 3000] {
                let mut rig = Rig::new(stores);
                rig.send(1, vec![request(SET, 3, 5)]);
                rig.run_until(Time::from_us(crash));
                rig.answers();
                rig.switches.remove(&1);
                rig.run_until(Time::from_us(crash + detection));
                rig.send(2, vec![request(READ, 3, 0)]);
                rig.run_until(Time::from_ms(20));
                let [(at, 2, (5, 1))] = rig.answers()[..] else { panic!("no answer after a crash at {crash} us") };
                let latest = crash + detection.max(lease_us) + trip;
                assert!(at <= latest, "{stores} stores, crash at {crash}, {detection} later: {at} > {latest} us");
                // A lease is renewed after half of it, so at least half of it is left.
                let earliest = crash + detection.max(LEASE_NS / 2000 - trip);
                assert!(at >= earliest, "{stores} stores, crash at {crash}, {detection} later: {at} < {earliest} us");
            }
        }
    }
}

#[test]
fn a_row_moves_between_living_switches_in_two_round_trips() {
    let mut rig = Rig::new(1);
    rig.send(1, vec![request(SET, 3, 5)]);
    rig.send(2, vec![request(SET, 4, 8)]);
    rig.run_until(Time::from_us(300));
    rig.answers();
    rig.send(2, vec![request(READ, 3, 0)]);
    rig.run_until(Time::from_us(360));
    // Ask, recall, release, grant: four ways of 10 us.
    assert_eq!(rig.answers(), [(340, 2, (5, 1))]);
    // The first switch has lost it, and asks for it.
    rig.send(1, vec![request(ADD, 3, 2)]);
    rig.send(2, vec![request(ADD, 3, 2)]);
    rig.run_until(Time::from_ms(10));
    let mut values: Vec<_> = rig.answers().into_iter().map(|(_, _, value)| value).collect();
    values.sort_unstable();
    assert_eq!(values, [(7, 2), (9, 3)]);
}

#[test]
fn a_write_whose_acknowledgement_never_comes_lets_nothing_out() {
    let mut rig = Rig::new(1);
    rig.send(1, vec![request(SET, 3, 5)]);
    rig.run_until(Time::from_us(300));
    rig.answers();
    // The store is cut off from the first switch, which does not know it.
    rig.send(1, vec![request(ADD, 3, 1)]);
    rig.cut_off(1);
    rig.run_until(Time::from_ms(5));
    assert_eq!(rig.answers(), []);
    assert_eq!(rig.switches[&1].held(), 1);
    rig.send(1, vec![request(READ, 3, 0)]);
    rig.run_until(Time::from_ms(6));
    assert_eq!(rig.answers(), [], "without a lease it does not even read");
    rig.send(2, vec![request(READ, 3, 0)]);
    rig.run_until(Time::from_ms(12));
    assert_eq!(rig.answers(), [(6020, 2, (5, 1))]);
    // When the path works again, its write is stale, and the packet after it runs with the current row.
    rig.open();
    rig.run_until(Time::from_ms(40));
    let answers: Vec<_> = rig.answers().into_iter().map(|(_, switch, value)| (switch, value)).collect();
    assert_eq!(answers, [(1, (5, 1))]);
    let registry = rig.switches[&1].registry();
    assert_eq!((registry.get("drop.resilient.unavailable"), rig.switches[&1].held()), (Some(1), 0));
}
