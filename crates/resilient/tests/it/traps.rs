//! One test for each trap that needs no random schedule.

use resilient::{RefusalReason, ReplicaConfig, ReplicaEvent, RowId, ShardId, StoreConfig};

use crate::rig::{LEASE_MS, ROW, StoreRig, ms, value};

fn refusals(rig: &StoreRig) -> Vec<RefusalReason> {
    let reason = |event: &ReplicaEvent| match event {
        ReplicaEvent::Refused { reason, .. } => Some(*reason),
        _ => None,
    };
    rig.events.iter().flatten().filter_map(reason).collect()
}

#[test]
fn the_lease_counts_from_the_first_send() {
    let mut rig = StoreRig::new(1);
    rig.replicas[0].acquire(ms(0), ROW);
    let renewal = rig.take(0).remove(0);
    let (_, renewed) = rig.deliver(ms(700), 0, renewal).remove(0);
    rig.replicas[0].receive(ms(900), resilient::NodeId(0), &renewed);
    assert_eq!(rig.replicas[0].lease_end(ms(900), ShardId(0)), Some(ms(LEASE_MS)));
}

#[test]
fn a_reply_after_a_lease_is_none() {
    let mut rig = StoreRig::new(1);
    rig.replicas[0].acquire(ms(0), ROW);
    let renewal = rig.take(0).remove(0);
    let (_, renewed) = rig.deliver(ms(1), 0, renewal).remove(0);
    rig.replicas[0].receive(ms(LEASE_MS), resilient::NodeId(0), &renewed);
    assert_eq!(rig.replicas[0].lease_end(ms(LEASE_MS), ShardId(0)), None);
}

#[test]
fn a_row_is_lost_with_the_lease_and_its_write_is_acknowledged_later() {
    let mut rig = StoreRig::new(1);
    rig.acquire(ms(0), 0, ROW);
    let seq = rig.replicas[0].write(ms(1), &ROW, value(7));
    let write = rig.take(0).remove(0);
    rig.replicas[0].tick(ms(LEASE_MS));
    rig.take(0);
    let lost = ReplicaEvent::Lost { row: ROW, last_acknowledged: 0, pending: Some(seq) };
    assert_eq!(rig.events[0].last(), Some(&lost));
    assert!(!rig.replicas[0].is_owned(ms(LEASE_MS), &ROW));
    let (_, acked) = rig.deliver(ms(5 * LEASE_MS), 0, write).remove(0);
    rig.replicas[0].receive(ms(5 * LEASE_MS), resilient::NodeId(0), &acked);
    rig.take(0);
    assert_eq!(rig.events[0].last(), Some(&ReplicaEvent::Acknowledged { row: ROW, seq }));
}

#[test]
fn the_write_of_a_dead_owner_is_abandoned_after_another_grant() {
    let mut rig = StoreRig::new(2);
    rig.acquire(ms(0), 0, ROW);
    let seq = rig.replicas[0].write(ms(1), &ROW, value(7));
    let write = rig.take(0).remove(0);
    rig.replicas[1].acquire(ms(2 * LEASE_MS), ROW);
    rig.run_until(ms(2 * LEASE_MS), ms(2 * LEASE_MS));
    assert!(rig.replicas[1].is_owned(ms(2 * LEASE_MS), &ROW));
    let (_, stale) = rig.deliver(ms(2 * LEASE_MS), 0, write).remove(0);
    rig.replicas[0].receive(ms(2 * LEASE_MS), resilient::NodeId(0), &stale);
    rig.take(0);
    assert_eq!(rig.events[0].last(), Some(&ReplicaEvent::Abandoned { row: ROW, seq }));
}

#[test]
fn equal_values_cost_no_message_and_depend_on_the_write_under_way() {
    let mut rig = StoreRig::new(1);
    rig.acquire(ms(0), 0, ROW);
    let first = rig.replicas[0].write(ms(1), &ROW, value(7));
    assert_eq!(rig.replicas[0].write(ms(1), &ROW, value(7)), first);
    assert_eq!(rig.replicas[0].pending_seq(&ROW), Some(first));
    rig.run(ms(1));
    let requests = rig.requests;
    assert_eq!(rig.replicas[0].write(ms(2), &ROW, value(7)), rig.replicas[0].acknowledged(&ROW));
    rig.run(ms(2));
    assert_eq!((rig.requests, rig.replicas[0].pending_seq(&ROW)), (requests, None));
}

#[test]
fn writes_behind_one_under_way_are_one_request() {
    let mut rig = StoreRig::new(1);
    rig.acquire(ms(0), 0, ROW);
    let requests = rig.requests;
    for number in 0..100 {
        rig.replicas[0].write(ms(1), &ROW, value(number));
    }
    rig.run(ms(1));
    assert_eq!((rig.requests - requests, rig.replicas[0].acknowledged(&ROW)), (2, 100));
}

#[test]
fn renewals_do_not_depend_on_the_number_of_rows() {
    let mut rig = StoreRig::new(1);
    for index in 0..100_000 {
        rig.acquire(ms(0), 0, RowId::of_index(1, index));
    }
    let requests = rig.requests;
    rig.run_until(ms(0), ms(10 * LEASE_MS));
    // Two messages in a lease, which is a second.
    assert!((19..=20).contains(&(rig.requests - requests)), "{}", rig.requests - requests);
    assert!(rig.replicas[0].is_owned(ms(10 * LEASE_MS), &RowId::of_index(1, 99_999)));
}

#[test]
fn two_switches_that_always_want_a_row_get_it_in_turns() {
    let mut rig = StoreRig::new(2);
    let mut grants = [0, 0];
    for at in 1..200 {
        for switch in 0..2 {
            rig.replicas[switch].acquire(ms(at), ROW);
        }
        rig.run_until(ms(at), ms(at));
        for (switch, events) in rig.events.iter_mut().enumerate() {
            let granted = events.drain(..).filter(|event| matches!(event, ReplicaEvent::Granted { .. })).count();
            grants[switch] += granted;
            if granted > 0 {
                rig.replicas[switch].unpin(ms(at), &ROW);
            }
        }
        rig.replicas.iter_mut().for_each(|replica| replica.tick(ms(at)));
        rig.node.tick(ms(at));
    }
    assert!(grants.iter().all(|count| *count >= 5) && grants[0].abs_diff(grants[1]) <= 1, "{grants:?}");
}

#[test]
fn waiters_are_bounded_for_a_row_and_for_a_shard() {
    let store = StoreConfig { max_row_waiters: 2, max_waiters: 3, ..StoreConfig::default() };
    let mut rig = StoreRig::with(5, ReplicaConfig::default(), store);
    let other = RowId::of_index(1, 1);
    rig.replicas[0].acquire(ms(0), ROW);
    rig.replicas[0].acquire(ms(0), other);
    rig.run(ms(0));
    for switch in 1..4 {
        rig.replicas[switch].acquire(ms(0), ROW);
        rig.run(ms(0));
    }
    assert_eq!(refusals(&rig), [RefusalReason::RowContended]);
    for switch in 3..5 {
        rig.replicas[switch].acquire(ms(0), other);
        rig.run(ms(0));
    }
    assert_eq!(refusals(&rig), [RefusalReason::RowContended, RefusalReason::ShardContended]);
}

#[test]
fn a_replica_bounds_its_rows_and_asks() {
    let replica = ReplicaConfig { max_rows: 3, max_asks: 2, ..ReplicaConfig::default() };
    let mut rig = StoreRig::with(1, replica, StoreConfig { max_rows: 2, ..StoreConfig::default() });
    (0..3).for_each(|index| rig.replicas[0].acquire(ms(0), RowId::of_index(1, index)));
    rig.run(ms(0));
    assert_eq!(refusals(&rig), [RefusalReason::TooManyAsks]);
    rig.acquire(ms(0), 0, RowId::of_index(1, 3));
    assert_eq!(refusals(&rig), [RefusalReason::TooManyAsks, RefusalReason::StoreFull]);
}
