//! Tests listing the rows of a running switch, moving them away, and its counts.

use resilient::RowProgress;
use resilient_switch::{ListedRow, ResilientCounts, RowCursor, RowQuery};
use switch::{Frame, SwitchControl, Time};

use crate::rig::{ADD, DELAY_NS, READ, Rig, SET, TABLES, request};

/// Returns all rows of a query, listing by listing.
fn list(rig: &Rig, switch: u32, mut query: RowQuery) -> Vec<ListedRow> {
    let mut rows = Vec::new();
    loop {
        let listing = rig.switches[&switch].list_rows(rig.now, &query);
        assert!(listing.rows.len() <= query.most);
        rows.extend(listing.rows);
        let Some(next) = listing.next else { return rows };
        assert!(next > query.from, "{next:?} is no progress");
        query.from = next;
    }
}

fn all() -> RowQuery {
    RowQuery { most: 7, ..RowQuery::default() }
}

fn counts(rig: &Rig, switch: u32) -> ResilientCounts {
    rig.switches[&switch].counts(rig.now)
}

fn drops(rig: &Rig, switch: u32, reason: &str) -> u64 {
    rig.switches[&switch].registry().get(&format!("drop.resilient.{reason}")).expect("the reason is registered")
}

/// Moves rows until the move is complete, and returns the number of rows and the time that it took.
fn move_all(rig: &mut Rig, switch: u32, group: Option<u32>, away_ns: Option<u64>) -> (u64, u64) {
    let start = rig.now;
    rig.switches.get_mut(&switch).expect("it runs").start_move(start, group, away_ns);
    loop {
        rig.continue_move(switch);
        let progress = rig.switches[&switch].move_progress(rig.now).expect("a move was started");
        if progress.is_done {
            return (progress.moved, rig.now.since_ns(start));
        }
        assert!(rig.now.since_ns(start) < 100_000_000, "{progress:?}");
        rig.run_until(rig.now.after_ns(DELAY_NS));
    }
}

#[test]
fn rows_of_arrays_are_listed_in_pages_with_their_state() {
    let mut rig = Rig::new(1);
    rig.send(1, (0..12).map(|row| request(SET, row, 100 + u32::from(row))).collect());
    rig.run_until(Time::from_us(300));
    assert_eq!(rig.answers().len(), 12);
    let rows = list(&rig, 1, all());
    assert_eq!(rows.len(), 12);
    let row = &rows[3];
    let values: Vec<(&str, &str)> = row.values.iter().map(|it| (it.name.as_str(), it.shown.as_str())).collect();
    assert_eq!((row.shown_key().as_str(), row.progress, row.is_pending), ("3", RowProgress::Owned, false));
    assert!(values[0].1 == "103" && row.epoch > 0, "{row:?}");
    assert_eq!(row.acknowledged_ns, Some(60_000), "acknowledged at 240 us");
    // A write under way, a row that is asked for, and one that is being given back.
    rig.send(1, vec![request(ADD, 3, 1), request(READ, 13, 0)]);
    let rows = list(&rig, 1, RowQuery { key: "3".to_owned(), ..all() });
    assert!(rows.len() == 1 && rows[0].is_pending && rows[0].values[0].shown == "104", "{rows:?}");
    let rows = list(&rig, 1, RowQuery { key: "13".to_owned(), ..all() });
    assert_eq!(rows.iter().map(|row| row.progress).collect::<Vec<_>>(), [RowProgress::Asked]);
    rig.switches.get_mut(&1).expect("it runs").start_move(rig.now, None, None);
    rig.continue_move(1);
    let rows = list(&rig, 1, RowQuery { key: "3".to_owned(), ..all() });
    assert_eq!(rows.iter().map(|row| row.progress).collect::<Vec<_>>(), [RowProgress::Releasing]);
}

#[test]
fn rows_of_tables_are_listed_by_key_and_by_group() {
    let mut rig = Rig::with_program(TABLES, 1);
    let forward = |key: u8| Frame::new(1, [&[0, key, 0, 0][..], &[0; 12]].concat());
    rig.send(1, (0..30).map(forward).collect());
    rig.run_until(Time::from_us(400));
    let names: Vec<String> = rig.switches[&1].group_names().map(str::to_owned).collect();
    let rows = list(&rig, 1, all());
    assert_eq!(rows.len(), 30);
    assert!(rows.iter().all(|row| row.group == names[0] && row.key.len() == 2 && row.values.len() == 1), "{rows:?}");
    assert_eq!(list(&rig, 1, RowQuery { group: Some(1), ..all() }).len(), 0);
    assert_eq!(list(&rig, 1, RowQuery { group: Some(0), ..all() }).len(), 30);
    // Positions that no listing returns yield no rows.
    for from in [(0, u64::MAX), (9, 0), (u32::MAX, u64::MAX)] {
        let from = RowCursor { group: from.0, index: from.1 };
        assert_eq!(list(&rig, 1, RowQuery { from, ..all() }).len(), 0);
    }
}

#[test]
fn a_move_loses_nothing_and_the_next_switch_takes_the_rows_at_once() {
    let mut rig = Rig::new(2);
    rig.send(1, (0..16).map(|row| request(SET, row, 1)).collect());
    rig.run_until(Time::from_us(400));
    assert_eq!(rig.answers().len(), 16);
    // Writes under way are acknowledged before the rows leave.
    rig.send(1, (0..16).map(|row| request(ADD, row, 1)).collect());
    let (moved, took_ns) = move_all(&mut rig, 1, None, None);
    assert_eq!(moved, 16);
    assert!(took_ns <= 8 * DELAY_NS, "two round trips, not a lease: {took_ns} ns");
    assert_eq!(counts(&rig, 1).replica.granted, 0);
    let answers = rig.answers();
    assert!(answers.len() == 16 && answers.iter().all(|(.., value)| *value == (2, 2)), "{answers:?}");
    let start = rig.now.as_us();
    rig.send(2, (0..16).map(|row| request(READ, row, 0)).collect());
    rig.run_until(rig.now.after_ns(500_000));
    let answers = rig.answers();
    let expected: Vec<_> = (0..16).map(|_| (start + 30, 2, (2, 2))).collect();
    assert_eq!(answers, expected, "one round trip");
    // Without an away time, the first switch asks for a row as soon as a packet needs it.
    rig.send(1, vec![request(ADD, 7, 1)]);
    rig.run_until(rig.now.after_ns(500_000));
    assert_eq!(rig.answers().iter().map(|(_, switch, value)| (*switch, *value)).collect::<Vec<_>>(), [(1, (3, 3))]);
}

#[test]
fn a_switch_that_is_away_drops_and_counts_packets_and_comes_back() {
    let mut rig = Rig::new(1);
    rig.send(1, (0..10).map(|row| request(SET, row, 1)).collect());
    rig.run_until(Time::from_us(400));
    // One row is under way to the switch.
    rig.send(1, vec![request(SET, 12, 1)]);
    let (moved, _) = move_all(&mut rig, 1, None, Some(2_000_000));
    assert_eq!((moved, rig.answers().len()), (11, 11));
    rig.send(1, vec![request(ADD, 3, 1), request(ADD, 12, 1)]);
    rig.run_until(rig.now.after_ns(100_000));
    assert_eq!((rig.answers().len(), drops(&rig, 1, "away"), counts(&rig, 1).parked), (0, 2, 0));
    rig.send(2, vec![request(ADD, 3, 1)]);
    rig.run_until(rig.now.after_ns(3_000_000));
    assert_eq!(rig.answers().iter().map(|answer| answer.2).collect::<Vec<_>>(), [(2, 2)]);
    rig.send(1, vec![request(ADD, 3, 1)]);
    rig.run_until(rig.now.after_ns(500_000));
    assert_eq!(rig.answers().iter().map(|answer| answer.2).collect::<Vec<_>>(), [(3, 3)]);
}

#[test]
fn only_the_rows_of_the_group_move() {
    let mut rig = Rig::with_program(TABLES, 1);
    let ask = |operation: u8, key: u8| Frame::new(1, [&[operation, key, 0, 0][..], &[0; 12]].concat());
    rig.send(1, (0..10).flat_map(|key| [ask(0, key), ask(2, key)]).collect());
    rig.run_until(Time::from_us(400));
    let owned = |rig: &Rig| counts(rig, 1).groups.iter().map(|(_, rows)| *rows).collect::<Vec<_>>();
    let before = owned(&rig);
    assert_eq!(before.iter().sum::<u64>(), 20);
    assert_eq!(move_all(&mut rig, 1, Some(0), None).0, before[0]);
    assert_eq!(owned(&rig), [&[0], &before[1..]].concat());
    // The entries were removed with the rows.
    rig.left.clear();
    rig.send(1, vec![ask(0, 3)]);
    assert_eq!((rig.left.len(), counts(&rig, 1).replica.asked), (0, 1));
}

#[test]
fn counts_say_what_was_sent_and_what_waits() {
    let mut rig = Rig::new(1);
    rig.send(1, vec![request(SET, 3, 5)]);
    assert_eq!((counts(&rig, 1).parked, counts(&rig, 1).replica.asked), (1, 1));
    rig.run_until(Time::from_us(400));
    rig.send(1, vec![request(SET, 3, 6), request(READ, 3, 0)]);
    let now = counts(&rig, 1);
    assert_eq!((now.held, now.parked, now.replica.granted, now.layout_epoch), (2, 0, 1, 1));
    assert!(now.held_bytes > 32 && now.groups[0].1 == 1, "{now:?}");
    assert_eq!((now.requests.asks, now.requests.writes, now.requests.releases), (1, 2, 0));
    assert!(now.leases_left_ns[0].1 > 0 && now.replica.retransmissions == 0, "{now:?}");
    rig.run_until(Time::from_us(500));
    let now = counts(&rig, 1);
    assert_eq!((now.held, now.held_bytes, now.replica.latency.count()), (0, 0, 2));
    assert_eq!(now.replica.latency.sum_ns(), 4 * DELAY_NS, "two round trips");
    rig.cut_off(1);
    rig.send(1, vec![request(SET, 3, 7)]);
    rig.run_until(Time::from_ms(30));
    let now = counts(&rig, 1);
    assert!(now.replica.retransmissions > 0 && now.leases_left_ns[0].1 == 0, "{now:?}");
    assert_eq!((now.groups[0].1, now.replica.granted), (0, 0), "the lease has ended");
}

#[test]
fn what_waits_when_a_switch_stops_is_counted() {
    let mut rig = Rig::new(1);
    rig.send(1, vec![request(SET, 3, 5)]);
    rig.run_until(Time::from_us(400));
    rig.left.clear();
    rig.send(1, vec![request(SET, 3, 6), request(READ, 3, 0), request(SET, 4, 1)]);
    let sent = |registry: &switch::Registry| registry.get("port.2.tx.packets").expect("the port is counted");
    let before = sent(rig.switches[&1].registry());
    let inner = rig.switches.remove(&1).expect("it runs").into_inner();
    assert_eq!(inner.registry().get("drop.resilient.stopped"), Some(3));
    assert_eq!(sent(inner.registry()), before - 2, "held frames were not sent");
}
