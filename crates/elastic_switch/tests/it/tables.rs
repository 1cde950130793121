//! Tests the effects of single changes and single faults.

use engine::{EntryError, RowState};
use switch::{PortId, SwitchControl, Time};
use v1model::{Executor, PathReason};

use crate::rig::{Rig, RigSettings, entry, plain_switch, table};

/// Runs a test in all ways.
pub fn in_all_ways(settings: RigSettings, test: impl Fn(Rig)) {
    for executor in [Executor::Interpreter, Executor::Jit] {
        for in_place in [false, true] {
            test(Rig::new(RigSettings { executor, in_place, ..settings }));
        }
    }
}

const NONE: u16 = 0xffff;

#[test]
fn packets_wait_for_entries_of_both_tables_and_run_once() {
    in_all_ways(RigSettings::default(), |mut rig| {
        rig.write("one", 7, &[70]);
        rig.write("two", 70, &[700]);
        rig.write("one", 9, &[90, 900]);
        rig.run_ms(50);
        assert!(rig.switch.counts().iter().all(|counts| counts.is_settled), "{:?}", rig.switch.counts());
        for id in 0..3 {
            rig.send(id, 7);
        }
        rig.send(3, 8);
        rig.send(4, 9);
        assert!(rig.left.is_empty(), "each of them waits");
        rig.run_ms(1);
        let mut left = rig.left.clone();
        let of_7: Vec<u16> = left.iter().filter(|(_, it)| it.key == 7).map(|(_, it)| it.id).collect();
        assert_eq!(of_7, [0, 1, 2], "packets of a key leave in order");
        left.sort_by_key(|(_, request)| request.id);
        let values: Vec<_> = left.iter().map(|(_, it)| (it.id, it.first, it.second)).collect();
        // A miss of the first table is one of the second, whose key is still that of the packet.
        assert_eq!(values, [(0, 70, 700), (1, 70, 700), (2, 70, 700), (3, NONE, NONE), (4, 90, 900)]);
        let mut numbers: Vec<u32> = left.iter().map(|(_, request)| request.number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2, 3, 4], "the register was incremented once for each packet");
        // Keys 7, 8 and 9 of one table, and 70, 0xffff and 90 of the other: one READ each.
        assert_eq!(rig.reads(0) + rig.reads(1), 6);
        assert_eq!(rig.switch.residents(), 0, "nothing is cached");
    });
}

#[test]
fn the_control_plane_reads_what_it_wrote_and_packets_see_it() {
    in_all_ways(RigSettings::default(), |mut rig| {
        rig.run_ms(50);
        rig.write("one", 7, &[70]);
        // The switch itself knows what the servers may not have yet.
        rig.send(0, 7);
        assert_eq!(rig.take_left(), []);
        rig.run_ms(1);
        assert_eq!(rig.take_left(), [(0, 70, NONE)]);
        rig.run_ms(10);
        rig.send(1, 7);
        rig.write("one", 7, &[71]);
        rig.run_ms(1);
        assert_eq!(rig.take_left(), [(1, 71, NONE)], "the answer is that of its own moment");
        assert_eq!(rig.read("one", 7), Some(vec![71]));
        rig.write("one", 7, &[]);
        rig.send(2, 7);
        rig.run_ms(1);
        assert_eq!((rig.take_left(), rig.read("one", 7)), (vec![(2, NONE, NONE)], None));
        assert_eq!(rig.dropped("table.no-server"), 0);
    });
}

#[test]
fn entries_of_before_move_to_the_servers_and_errors_are_those_of_local_tables() {
    let settings = RigSettings::default();
    let mut switch = plain_switch(settings);
    let one = table(&switch, "one");
    let first = entry(&switch, one, 1, &[10]);
    switch.objects_mut().insert(one, first.clone()).unwrap();
    let mut rig = Rig::of(switch, settings);
    rig.run_ms(50);
    assert_eq!(rig.switch.objects_mut().insert(one, first), Err(EntryError::Duplicate));
    for key in 2..=512 {
        rig.write("one", key, &[key]);
    }
    let more = entry(&rig.switch, one, 513, &[1]);
    assert_eq!(rig.switch.objects_mut().insert(one, more), Err(EntryError::Full(512)));
    assert_eq!((rig.switch.objects().entry_count(one), rig.switch.objects().entries(one).count()), (512, 512));
    rig.run_ms(100);
    let before = rig.reads(0) + rig.reads(1);
    for key in 1..=512 {
        rig.send(key, key);
        rig.run_ms(1);
    }
    assert!(rig.take_left().iter().all(|(id, first, _)| *first == if *id == 1 { 10 } else { *id }));
    let reads = rig.reads(0) + rig.reads(1) - before;
    let stash = rig.switch.counts()[0].table_counts.local;
    assert_eq!(reads + stash, 1024, "each packet looks up two keys");
    assert!(stash < 20, "{stash} entries have no cell");
    rig.switch.objects_mut().clear(one).unwrap();
    rig.send(1, 1);
    rig.run_ms(1);
    assert_eq!(rig.take_left(), [(1, NONE, NONE)]);
}

#[test]
fn a_server_that_restarts_empty_gives_no_false_miss() {
    in_all_ways(RigSettings::default(), |mut rig| {
        for key in 0..100 {
            rig.write("one", key, &[key + 1000]);
        }
        rig.run_ms(50);
        for server in [0, 1, 0] {
            rig.set_running(server, false);
            rig.set_running(server, true);
            for id in 0..100 {
                rig.send(id, id);
            }
            rig.run_ms(200);
            let left = rig.take_left();
            assert_eq!(left.len(), 100, "the other server has all of them");
            assert!(left.iter().all(|(id, first, _)| *first == id + 1000), "{left:?}");
        }
        // Both die: packets are dropped and counted, and no one gets the default action.
        rig.set_running(0, false);
        rig.set_running(1, false);
        for id in 0..100 {
            rig.send(id, id);
        }
        rig.run_ms(200);
        assert_eq!(rig.take_left(), []);
        assert_eq!(rig.dropped("table.no-answer") + rig.dropped("table.no-server"), 100);
        rig.set_running(0, true);
        rig.run_ms(200);
        rig.send(5, 5);
        rig.run_ms(1);
        assert_eq!(rig.take_left(), [(5, 1005, NONE)]);
    });
}

#[test]
fn a_server_that_was_given_up_for_its_damage_gets_another_chance() {
    in_all_ways(RigSettings { servers: 1, ..RigSettings::default() }, |mut rig| {
        rig.write("one", 7, &[70]);
        rig.run_ms(50);
        let distrusted = |rig: &Rig| rig.switch.counts()[0].table_counts.distrusted;
        for id in 0..200 {
            rig.clear_memory(0);
            rig.send(id, 7);
            rig.run_ms(5);
            if distrusted(&rig) > 0 {
                break;
            }
        }
        assert_eq!((distrusted(&rig), rig.take_left()), (1, vec![]));
        rig.run_ms(500);
        // The window of the other table is repaired after this packet.
        rig.send(0, 7);
        rig.run_ms(5);
        rig.send(1, 7);
        rig.run_ms(1);
        assert_eq!(rig.take_left(), [(1, 70, NONE)]);
    });
}

#[test]
fn a_step_places_a_part_of_a_large_batch_of_writes() {
    in_all_ways(RigSettings { entries: 20_000, servers: 1, ..RigSettings::default() }, |mut rig| {
        // Without a server all writes end at once, so only the budget bounds a step.
        rig.set_running(0, false);
        rig.run_ms(50);
        (0..20_000).for_each(|key| rig.write("one", key, &[key]));
        rig.write("two", 7, &[70]);
        rig.send(0, 7);
        let queued = rig.switch.counts()[0].queued_changes;
        assert!(queued > 10_000, "{queued}");
        rig.run_ms(1);
        assert_eq!(rig.switch.counts()[0].queued_changes, 0);
        rig.set_running(0, true);
        rig.run_ms(300);
        assert!(rig.switch.counts().iter().all(|counts| counts.is_settled));
        rig.send(1, 7);
        rig.run_ms(1);
        assert_eq!(rig.take_left(), [(1, 7, 70)]);
    });
}

#[test]
fn frames_between_switch_and_servers_are_in_the_counters_of_ports() {
    in_all_ways(RigSettings::default(), |mut rig| {
        (0..100).for_each(|key| rig.write("one", key, &[key]));
        rig.run_ms(50);
        (0..100).for_each(|key| rig.send(key, key));
        rig.run_ms(5);
        assert_eq!(rig.take_left().len(), 100);
        let of = |name: String| rig.switch.registry().get(&name).expect("a counter");
        for (port, server) in [(3, 0), (4, 1)] {
            for (way, is_to_server) in [("tx", true), ("rx", false)] {
                let counted = ["packets", "bytes"].map(|unit| of(format!("port.{port}.{way}.{unit}")));
                assert_eq!(rig.exchanged[&(is_to_server, server)], counted.into(), "port {port}, {way}");
            }
        }
        assert_eq!(of("port.1.rx.packets".to_owned()), 100);
    });
}

#[test]
fn an_answer_that_is_kept_ends_with_a_change_of_its_entry() {
    for (values, expected) in [(&[71][..], (0, 71, 710)), (&[], (0, NONE, NONE))] {
        in_all_ways(RigSettings { servers: 1, ..RigSettings::default() }, |mut rig| {
            rig.write("one", 7, &[70]);
            rig.write("two", 70, &[700]);
            rig.write("two", 71, &[710]);
            rig.run_ms(50);
            rig.send(0, 7);
            while rig.reads(0) < 2 {
                rig.run_until(rig.now.after_ns(100));
            }
            // The packet waits for its second key, so the first answer is kept.
            assert_eq!(rig.take_left(), []);
            rig.write("one", 7, values);
            rig.run_ms(1);
            assert_eq!((rig.take_left(), rig.switch.residents()), (vec![expected], 0));
        });
    }
}

#[test]
fn a_packet_that_waits_is_counted_on_one_path() {
    for is_alone in [true, false] {
        let settings = RigSettings { executor: Executor::Jit, in_place: true, ..RigSettings::default() };
        let mut rig = Rig::new(settings);
        (0..40).for_each(|key| rig.write("one", key, &[key]));
        rig.run_ms(50);
        (0..40).for_each(|id| rig.send(id, if is_alone { 7 } else { id }));
        rig.run_ms(5);
        assert_eq!(rig.take_left().len(), 40);
        let counts = rig.switch.into_inner().path_counts();
        let copied: Vec<_> = counts.iter().map(|count| (count.path.name(), count.packets)).collect();
        assert_eq!(copied, [("copied", 40)], "each packet waited when it came");
    }
}

#[test]
fn packets_run_in_place_again_after_some_waited_behind_a_queue() {
    let mut rig = Rig::new(RigSettings { executor: Executor::Jit, in_place: true, ..RigSettings::default() });
    rig.write("one", 7, &[70]);
    rig.run_ms(50);
    // While a queue has a rate, packets whose answers come run one by one.
    rig.switch.set_port_rate(PortId(2), Some(1000));
    rig.send(0, 7);
    rig.run_ms(5);
    rig.switch.set_port_rate(PortId(2), None);
    rig.send(1, 7);
    rig.run_ms(5);
    assert_eq!(rig.take_left().len(), 2);
    let counts = rig.switch.into_inner().path_counts();
    assert_eq!(counts.iter().find(|count| count.reason == Some(PathReason::Interpreted)), None);
}

#[test]
fn popular_entries_need_no_reads_until_they_change() {
    in_all_ways(RigSettings { cache: 4, servers: 1, ..RigSettings::default() }, |mut rig| {
        rig.write("one", 7, &[70]);
        rig.write("two", 70, &[700]);
        rig.run_ms(50);
        for id in 0..20 {
            rig.send(id, 7);
            rig.run_ms(1);
        }
        assert!(rig.take_left().iter().all(|(_, first, second)| (*first, *second) == (70, 700)));
        // The eighth packet makes its keys popular.
        assert_eq!((rig.reads(0), rig.switch.residents()), (16, 2));
        rig.send(20, 7);
        assert_eq!(rig.take_left(), [(20, 70, 700)], "a popular entry is in the switch");
        rig.write("two", 70, &[701]);
        rig.send(21, 7);
        rig.run_ms(1);
        assert_eq!(rig.take_left(), [(21, 70, 701)]);
        rig.write("two", 70, &[]);
        rig.send(22, 7);
        rig.run_ms(1);
        assert_eq!(rig.take_left(), [(22, 70, NONE)]);
    });
}

#[test]
fn hits_of_a_key_leave_in_order_whether_they_wait_or_not() {
    in_all_ways(RigSettings { cache: 4, is_reordered: true, ..RigSettings::default() }, |mut rig| {
        rig.write("one", 7, &[70]);
        rig.write("two", 70, &[0]);
        rig.run_ms(50);
        for id in 0..300 {
            rig.send(id, 7);
            // The entry becomes popular, and leaves the switch with each change.
            if id % 50 == 49 {
                rig.write("two", 70, &[id]);
            }
            rig.run_until(rig.now.after_ns(700));
        }
        rig.run_ms(5);
        let left = rig.take_left();
        assert!(left.iter().map(|(id, ..)| *id).eq(0..300), "{left:?}");
        assert!(left.iter().all(|(_, first, second)| *first == 70 && *second != NONE), "{left:?}");
        assert!(rig.reads(0) + rig.reads(1) < 300, "many of them did not wait");
    });
}

#[test]
fn packets_beyond_the_limit_are_dropped_and_counted() {
    in_all_ways(RigSettings { max_parked: 4, servers: 1, ..RigSettings::default() }, |mut rig| {
        rig.run_ms(50);
        for id in 0..10 {
            rig.send(id, id);
        }
        rig.run_ms(5);
        assert_eq!((rig.take_left().len(), rig.dropped("table.queue-full")), (4, 6));
        // Packets that wait when the switch stops are counted too.
        rig.send(1, 1);
        let switch = rig.switch.into_inner();
        assert_eq!(switch.registry().get("drop.table.stopped"), Some(1));
    });
}

#[test]
fn without_servers_the_entries_are_in_the_switch() {
    let mut switch = plain_switch(RigSettings::default());
    let one = table(&switch, "one");
    let first = entry(&switch, one, 1, &[10]);
    switch.objects_mut().insert(one, first).unwrap();
    let mut output = Vec::new();
    let data = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0].to_vec();
    let mut input = vec![switch::Frame { port: switch::PortId(1), data }];
    switch::Device::step(&mut switch, switch::Time::ZERO, &mut input, &mut output);
    assert_eq!(output[0].data[4..6], 10u16.to_be_bytes());
    assert!(RowState::default() == RowState::Absent && !switch.objects().has_ledger_changes());
}

#[test]
fn lookups_of_a_port_that_goes_down_are_sent_to_other_copies_in_the_same_step() {
    in_all_ways(RigSettings::default(), |mut rig| {
        (0..12).for_each(|key| rig.write("one", key, &[100 + key]));
        rig.run_ms(50);
        assert!(rig.switch.counts().iter().all(|counts| counts.is_settled), "{:?}", rig.switch.counts());
        // Each server may have 16 READs outstanding.
        (0..12).for_each(|key| rig.send(key, key));
        let before = [0, 1].map(|server| rig.exchanged[&(true, server)].0);
        assert!(rig.switch.set_port_up(PortId(4), false));
        // No time passes, and no timeout either.
        rig.run_until(rig.now);
        let after = [0, 1].map(|server| rig.exchanged[&(true, server)].0);
        assert!(after[0] > before[0] && after[1] == before[1], "{before:?}, {after:?}");
        rig.run_until(rig.now.after_ns(100_000));
        let mut left = rig.take_left();
        left.sort_unstable();
        assert_eq!(left, (0..12).map(|key| (key, 100 + key, NONE)).collect::<Vec<_>>());
        assert_eq!(rig.switch.server_counts()[1].requests.timeouts, 0, "{:?}", rig.switch.server_counts());
        // Nothing is sent as long as the port is down, and writes do not wait for it.
        rig.write("one", 7, &[70]);
        let written = rig.exchanged[&(true, 0)].0;
        rig.run_ms(100);
        assert_eq!(rig.exchanged[&(true, 1)].0, before[1]);
        let counts = &rig.switch.counts()[0];
        assert!(counts.queued_changes == 0 && rig.exchanged[&(true, 0)].0 > written, "{counts:?}");
        assert!(rig.switch.set_port_up(PortId(4), true));
        rig.run_ms(50);
        assert!(rig.switch.counts().iter().all(|counts| counts.is_settled), "{:?}", rig.switch.counts());
        // The server that was away has everything, also what changed meanwhile.
        assert!(rig.switch.set_port_up(PortId(3), false));
        (0..12).for_each(|key| rig.send(key, key));
        rig.run_until(rig.now.after_ns(100_000));
        let mut left = rig.take_left();
        left.sort_unstable();
        let expected = (0..12).map(|key| (key, if key == 7 { 70 } else { 100 + key }, NONE));
        assert_eq!(left, expected.collect::<Vec<_>>());
        assert_eq!(rig.dropped("table.no-server") + rig.dropped("table.no-answer"), 0);
    });
}

#[test]
fn a_reply_that_arrives_on_a_port_that_is_down_opens_no_connection() {
    in_all_ways(RigSettings::default(), |mut rig| {
        // The requests for memory are under way.
        rig.run_until(Time::from_us(1));
        rig.set_port_up(1, false);
        rig.run_ms(50);
        let connections = |rig: &Rig| [0, 1].map(|server| rig.switch.server_counts()[server].connections);
        assert_eq!(connections(&rig), [2, 0]);
        rig.set_port_up(1, true);
        rig.run_ms(50);
        assert_eq!(connections(&rig), [2, 2]);
    });
}

#[test]
fn without_a_port_that_is_up_no_copy_is_given_up() {
    in_all_ways(RigSettings { servers: 1, ..RigSettings::default() }, |mut rig| {
        rig.write("one", 7, &[70]);
        rig.run_ms(50);
        rig.set_port_up(0, false);
        rig.run_until(rig.now.after_ns(100_000));
        rig.set_port_up(0, true);
        rig.send(1, 7);
        rig.run_ms(1);
        assert_eq!(rig.take_left(), [(1, 70, NONE)], "the server did not have to be filled again");
    });
}

#[test]
fn reads_avoid_a_link_at_its_rate_and_are_dropped_if_all_are() {
    let settings = RigSettings { read_rate: Some(8_000_000), ..RigSettings::default() };
    in_all_ways(settings, |mut rig| {
        (0..100).for_each(|key| rig.write("one", key, &[100 + key]));
        rig.run_ms(50);
        assert_eq!((rig.reads(0) + rig.reads(1), rig.dropped("table.links-busy")), (0, 0));
        let answers = |rig: &Rig| [0, 1].map(|server| rig.exchanged[&(false, server)]);
        let before = answers(&rig);
        // The burst of each link passes at once, whichever server a key prefers: 100 READs of the first table, and as
        // many of the second as are left.
        (0..100).for_each(|key| rig.send(key, key));
        rig.run_until(rig.now.after_ns(200_000));
        let after = answers(&rig);
        for server in [0, 1] {
            let (frames, bytes) = (after[server].0 - before[server].0, after[server].1 - before[server].1);
            let burst = 1 << 14;
            assert!(bytes <= burst && bytes + bytes / frames > burst, "{frames} answers, {bytes} bytes");
        }
        let refused = rig.dropped("table.links-busy");
        let read = rig.reads(0) + rig.reads(1);
        assert_eq!((rig.take_left().len() as u64, refused), (read - 100, 200 - read));
        assert!(refused > 0);
        // The rate is 1 MB/s, so the meters are full after 17 ms.
        rig.run_ms(17);
        (0..50).for_each(|key| rig.send(key, key));
        rig.run_until(rig.now.after_ns(200_000));
        assert_eq!((rig.take_left().len(), rig.dropped("table.links-busy")), (50, refused));
    });
}

#[test]
fn reads_avoid_a_link_that_others_use() {
    let settings = RigSettings { read_rate: Some(8_000_000), ..RigSettings::default() };
    in_all_ways(settings, |mut rig| {
        (0..40).for_each(|key| rig.write("one", key, &[100 + key]));
        rig.run_ms(50);
        // The burst is 16 KiB. The program looks up the key of these frames, too.
        (0..40).for_each(|_| rig.send_beside(0, vec![0xff; 1000]));
        rig.run_until(rig.now.after_ns(100_000));
        rig.take_left();
        let before = [0, 1].map(|server| rig.reads(server));
        (0..20).for_each(|key| rig.send(key, key));
        rig.run_until(rig.now.after_ns(100_000));
        assert_eq!(rig.reads(0), before[0], "the link is busy");
        assert!(rig.reads(1) >= before[1] + 20);
        assert_eq!((rig.take_left().len(), rig.dropped("table.links-busy")), (20, 0));
        // It is free again.
        rig.run_ms(50);
        (20..40).for_each(|key| rig.send(key, key));
        rig.run_ms(1);
        assert!(rig.reads(0) > before[0]);
    });
}

#[test]
fn a_server_is_heard_on_its_own_port_alone() {
    let elsewhere = RigSettings { servers: 1, answers_on: Some(PortId(1)), ..RigSettings::default() };
    in_all_ways(elsewhere, |mut rig| {
        rig.run_ms(50);
        assert_eq!((rig.switch.server_counts()[0].connections, rig.take_left()), (0, vec![]));
        rig.settings.answers_on = None;
        rig.run_ms(50);
        assert_eq!(rig.switch.server_counts()[0].connections, 2, "one for each table");
    });
}
