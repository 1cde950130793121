//! Tests rows that age, at one store node.

use resilient::message::{IfMissing, NumberPool, Request, RequestBody};
use resilient::{OwnerId, RefusalReason, ReplicaEvent, RowAccess, RowId, ShardId, StoreMessage, SwitchId};
use switch::Time;

use crate::rig::{LEASE_MS, StoreRig, ms};

const IDLE_MS: u32 = 5000;
const IDLE: u64 = IDLE_MS as u64;

/// A time within which the store finds any idle row.
const LONG: u64 = 2 * IDLE + 2 * LEASE_MS;

fn pool(last: u64) -> IfMissing {
    IfMissing::Allocate(NumberPool { first: 1, last, bytes: 2, is_shared: false })
}

fn key(number: u32) -> RowId {
    RowId::of_index(2, number)
}

/// Returns the row of a number.
fn number(number: u16) -> RowId {
    RowId::new(RowId::partner_group(2), &number.to_be_bytes()).unwrap()
}

/// Asks for a row, and returns its values, if the switch gets it.
fn ask(rig: &mut StoreRig, now: Time, switch: usize, row: RowId, if_missing: IfMissing) -> Option<Vec<u8>> {
    rig.events[switch].clear();
    rig.replicas[switch].acquire_or(now, row, RowAccess::Write, if_missing, IDLE_MS);
    rig.run_until(now, now);
    rig.replicas[switch].unpin(now, &row);
    rig.run(now);
    rig.events[switch].iter().find_map(|event| match event {
        ReplicaEvent::Granted { values, .. } => Some(values.as_ref().map_or(Vec::new(), |it| it.bytes().to_vec())),
        _ => None,
    })
}

fn rows(rig: &StoreRig) -> usize {
    rig.node.rows(ShardId(0))
}

fn release_idle(rig: &mut StoreRig, now: Time, switch: usize, row: RowId) {
    rig.replicas[switch].release_idle(now, &row);
    rig.run(now);
}

#[test]
fn an_idle_row_is_removed_at_once_with_its_number() {
    let mut rig = StoreRig::new(2);
    let first = ask(&mut rig, ms(0), 0, key(1), pool(1)).unwrap();
    assert_eq!((first, rows(&rig)), (vec![0, 1], 2));
    assert_eq!(ask(&mut rig, ms(1), 1, key(2), pool(1)), None);
    assert!(
        rig.events[1]
            .iter()
            .any(|event| matches!(event, ReplicaEvent::Refused { reason: RefusalReason::PoolExhausted, .. }))
    );
    release_idle(&mut rig, ms(2), 0, key(1));
    assert_eq!(rows(&rig), 0);
    assert_eq!(ask(&mut rig, ms(3), 1, key(2), pool(1)), Some(vec![0, 1]));
}

#[test]
fn a_row_stays_while_its_number_is_owned_and_goes_with_it() {
    let mut rig = StoreRig::new(2);
    ask(&mut rig, ms(0), 0, key(1), pool(1)).unwrap();
    assert!(ask(&mut rig, ms(1), 1, number(1), IfMissing::Refuse).is_some());
    release_idle(&mut rig, ms(2), 0, key(1));
    rig.run_until(ms(2), ms(10 * LONG));
    assert_eq!(rows(&rig), 2, "the number is in use");
    release_idle(&mut rig, ms(10 * LONG), 1, number(1));
    assert_eq!(rows(&rig), 0);
}

#[test]
fn a_row_that_was_given_back_in_use_waits_for_its_idle_time() {
    let mut rig = StoreRig::new(1);
    ask(&mut rig, ms(0), 0, key(1), pool(1)).unwrap();
    rig.replicas[0].release(ms(1), &key(1));
    rig.run_until(ms(1), ms(IDLE));
    assert_eq!(rows(&rig), 2);
    rig.run_until(ms(IDLE), ms(LONG));
    assert_eq!(rows(&rig), 0);
}

#[test]
fn rows_of_a_dead_switch_go_after_their_idle_time_and_not_with_the_session() {
    let mut rig = StoreRig::new(2);
    rig.replicas[1].open_sessions(ms(0));
    for number in 0..3000 {
        ask(&mut rig, ms(0), 0, key(number), pool(4000)).unwrap();
    }
    // The switch sends nothing more.
    let mut now = ms(0);
    let mut most = 0;
    while now < ms(IDLE + LEASE_MS / 2) {
        now = rig.node.next_deadline().unwrap();
        let before = rows(&rig);
        rig.node.tick(now);
        rig.replies(now);
        most = most.max(before - rows(&rig));
        assert!(rows(&rig) == 6000 || now > ms(IDLE), "{now}");
    }
    while rows(&rig) > 0 && now < ms(LONG) {
        now = rig.node.next_deadline().unwrap();
        let before = rows(&rig);
        rig.node.tick(now);
        rig.replies(now);
        most = most.max(before - rows(&rig));
    }
    assert_eq!(rows(&rig), 0);
    assert!((1..=128).contains(&most), "{most} rows are removed in one tick");
    while let Some(next) = rig.node.next_deadline() {
        assert!(next < ms(2 * LONG), "without rows, there is nothing to visit");
        rig.node.tick(next);
        rig.replies(next);
    }
}

#[test]
fn a_row_that_its_switch_has_lost_is_found_by_a_probe() {
    let mut rig = StoreRig::new(1);
    ask(&mut rig, ms(0), 0, key(1), pool(1)).unwrap();
    // The lease ends at the switch but its session lasts: the switch has forgotten the row.
    rig.replicas[0].tick(ms(LEASE_MS));
    let renewal = RequestBody::Renew { shard: ShardId(0), nonce: u64::MAX };
    let owner = OwnerId { switch: SwitchId(0), incarnation: 0 };
    let message = StoreMessage::Request(Request { layout: 1, owner, body: renewal });
    rig.deliver(ms(LEASE_MS), 0, message);
    rig.run_until(ms(LEASE_MS), ms(3 * IDLE));
    assert_eq!(rows(&rig), 2);
    rig.run_until(ms(3 * IDLE), ms(7 * IDLE));
    assert_eq!(rows(&rig), 0);
}

#[test]
fn rows_without_an_idle_time_stay_for_ever() {
    let mut rig = StoreRig::new(1);
    rig.replicas[0].acquire_or(ms(0), key(1), RowAccess::Write, pool(1), 0);
    rig.run(ms(0));
    rig.replicas[0].unpin(ms(0), &key(1));
    release_idle(&mut rig, ms(1), 0, key(1));
    rig.run_until(ms(1), ms(100 * LONG));
    assert_eq!(rows(&rig), 2);
}

#[test]
fn a_late_message_of_a_removed_row_does_not_touch_a_new_one() {
    let mut rig = StoreRig::new(3);
    ask(&mut rig, ms(0), 0, key(1), pool(9)).unwrap();
    rig.replicas[0].release_idle(ms(1), &key(1));
    let release = rig.take(0).remove(0);
    rig.deliver(ms(1), 0, release.clone());
    assert_eq!(rows(&rig), 0);
    let values = ask(&mut rig, ms(2), 1, key(1), pool(9)).unwrap();
    rig.deliver(ms(3), 0, release);
    assert_eq!(rows(&rig), 2);
    assert_eq!(ask(&mut rig, ms(4), 2, key(1), pool(9)), Some(values), "the row was recalled from its owner");
}

#[test]
fn an_exhausted_pool_gives_each_number_again() {
    const NUMBERS: u32 = 20_000;
    let mut rig = StoreRig::new(1);
    let max = u64::from(NUMBERS);
    for number in 0..NUMBERS {
        assert!(ask(&mut rig, ms(0), 0, key(number), pool(max)).is_some());
    }
    assert_eq!(ask(&mut rig, ms(0), 0, key(NUMBERS), pool(max)), None);
    // This is the only free number each time; no search finds it in a short time.
    for step in 0..NUMBERS {
        release_idle(&mut rig, ms(1), 0, key(step));
        assert!(ask(&mut rig, ms(1), 0, key(NUMBERS + step), pool(max)).is_some(), "{step}");
        assert_eq!(rows(&rig), 2 * NUMBERS as usize);
    }
}
