//! The tables of the region follow those of the switch, while packets run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bits::Bits;
use bpf::asm::MapRef;
use bpf::machine::{self, Environment};
use bpf::{CountSink, KernelOptions, PortState, RegionError, RegionWriter};
use engine::{ActionCall, Objects, TableEntry};
use ir::{ActionId, KeyValue, Program, TableId};
use rng::SplitMix64;
use v1model::{Config, Switch};

use crate::rig::{self, CPU, CPUS, Hits, Rig, Way, links};

/// Two tables of one exact key and of one prefix, with direct counters. Each gives the packet a number.
const TWO_TABLES: &str = include_str!("two_tables.p4");

fn two_tables() -> Arc<Program> {
    rig::compile_text(TWO_TABLES, None).expect("a valid program")
}

/// The places of a table of [`TWO_TABLES`] and its action.
fn place(program: &Program, table: &str) -> (TableId, ActionId) {
    let id = program.table_named(table).expect("a table");
    (id, program.tables[id].actions[0].action)
}

fn exact(program: &Program) -> (TableId, ActionId) {
    place(program, "MyIngress.exact_table")
}

fn prefixes(program: &Program) -> (TableId, ActionId) {
    place(program, "MyIngress.prefix_table")
}

fn exact_entry(program: &Program, key: u64, number: u64) -> TableEntry {
    TableEntry::new(
        vec![KeyValue::Exact(Bits::new(key.into(), 16))],
        0,
        exact(program).1,
        vec![Bits::new(number.into(), 32)],
    )
}

fn prefix_entry(program: &Program, key: u64, length: u32, number: u64) -> TableEntry {
    let keys = vec![KeyValue::Lpm(Bits::new(key.into(), 16), length)];
    TableEntry::new(keys, 0, prefixes(program).1, vec![Bits::new(number.into(), 32)])
}

/// A packet with this key: eight bytes behind it are the numbers of both tables.
fn packet(key: u16) -> Vec<u8> {
    [&[0; 12][..], &[0x12, 0x34], &key.to_be_bytes(), &[0; 40]].concat()
}

/// Returns the numbers that a packet was given by the tables.
fn numbers(packet: &[u8]) -> [u32; 2] {
    [16, 20].map(|at| u32::from_be_bytes(packet[at..at + 4].try_into().expect("four bytes")))
}

#[test]
fn the_tables_follow_the_switch() {
    let program = two_tables();
    let mut rig = Rig::new(&program, |_, _| ());
    let mut rng = SplitMix64::new(3);
    let mut present: Vec<u64> = Vec::new();
    for round in 0..400 {
        let mut writes: Vec<(u64, u64)> = Vec::new();
        for _ in 0..=rng.below(6) {
            writes.push((rng.below(40), rng.below(1 << 32)));
        }
        let (length, default) = (rng.below(17) as u32, rng.percent(20).then(|| rng.below(100)));
        rig.change(|program, objects| {
            for (key, number) in &writes {
                let (table, action) = exact(program);
                let entry = exact_entry(program, *key, *number);
                let is_present = objects.get(table, &entry.keys, 0).is_ok();
                match number % 3 {
                    0 if is_present => objects.delete(table, &entry.keys, 0).expect("it is there"),
                    _ if is_present => objects.modify(table, entry).expect("it is there"),
                    _ => objects.insert(table, entry).expect("there is room"),
                }
                if let Some(number) = default {
                    let call = ActionCall { action, args: vec![Bits::new(number.into(), 32)] };
                    objects.set_default_action(table, call).expect("it may change");
                }
                let (table, _) = prefixes(program);
                let value = if length == 0 { 0 } else { *key << 10 >> (16 - length) << (16 - length) & 0xffff };
                let entry = prefix_entry(program, value, length, *number);
                match objects.get(table, &entry.keys, 0).is_ok() {
                    true => objects.delete(table, &entry.keys, 0).expect("it is there"),
                    false if objects.entry_count(table) < 60 => objects.insert(table, entry).expect("there is room"),
                    false => {}
                }
            }
        })
        .expect("the entries fit");
        present.extend(writes.iter().map(|(key, _)| *key));
        for _ in 0..10 {
            let key = present[rng.below(present.len() as u64) as usize];
            let key = if rng.percent(50) { key } else { key << 10 | rng.below(4) };
            let way = rig.packet(rng.below(4) as u32, &packet(key as u16));
            assert!(matches!(way, Way::Sent { .. }), "round {round}: {way:?}");
        }
    }
}

#[test]
fn hits_belong_to_the_entry_that_was_hit() {
    let program = two_tables();
    let mut rig = Rig::new(&program, |program, objects| {
        objects.insert(exact(program).0, exact_entry(program, 7, 1)).expect("there is room");
    });
    for _ in 0..3 {
        rig.packet(0, &packet(7));
    }
    // The next entry has the same number in the table.
    let replace = |key: u64, next: u64| {
        move |program: &Program, objects: &mut Objects| {
            let table = exact(program).0;
            objects.delete(table, &exact_entry(program, key, 0).keys, 0).expect("it is there");
            objects.insert(table, exact_entry(program, next, 2)).expect("there is room");
        }
    };
    rig.change(replace(7, 8)).expect("the entries fit");
    rig.packet(0, &packet(7));
    rig.packet(0, &packet(8));
    rig.change(replace(8, 9)).expect("the entries fit");
    rig.packet(0, &packet(9));
    rig.packet(0, &packet(9));
    let mut counted = Hits::default();
    rig.writer.collect_counts(&rig.region, &mut counted);
    counted.0.extend(&rig.hits.0);
    assert_eq!(counted.0.into_iter().collect::<Vec<_>>(), [((0, 1), 3), ((0, 2), 1), ((0, 3), 2)]);
    let mut again = Hits::default();
    rig.writer.collect_counts(&rig.region, &mut again);
    assert!(again.0.is_empty(), "counts are taken once");
}

#[test]
fn an_update_waits_for_packets_that_use_the_tables_it_changes() {
    let mut rig = Rig::new(&two_tables(), |_, _| ());
    let page = rig.compiled.layout.processor_bytes() / CPUS / 8;
    let at = (CPU * page) as usize;
    let add = |key: u64| {
        move |program: &Program, objects: &mut Objects| {
            objects.insert(exact(program).0, exact_entry(program, key, key)).expect("there is room");
        }
    };
    // A packet is in the middle of its run: its tables stay as they are.
    rig.region[at].fetch_add(1, Ordering::Relaxed);
    rig.change(add(1)).expect("the other copy is free");
    assert_eq!(rig.change(add(2)), Err(RegionError::Stuck));
    assert!(!rig.writer.is_open());
    rig.region[at].fetch_add(1, Ordering::Relaxed);
    assert_eq!(rig.packet(0, &packet(2)), Way::HandedOver, "the gate is closed");
    rig.change(add(3)).expect("the packet is done");
    for key in 1..=3 {
        assert!(matches!(rig.packet(0, &packet(key)), Way::Sent { .. }));
    }
}

#[test]
fn packets_of_a_table_without_room_are_handed_over_until_there_is_room_again() {
    let mut rig = Rig::new(&two_tables(), |_, _| ());
    // Keys whose slots are the same: the run of slots is full although the table is not.
    let shape = tables::flat::FlatExact::new(&[16], 64);
    let keys: Vec<u64> = (0..1 << 16).filter(|key| shape.home(&[*key]) == 5).take(17).collect();
    let (last, first) = keys.split_last().expect("17 keys");
    for key in first {
        let add = |program: &Program, objects: &mut Objects| {
            objects.insert(exact(program).0, exact_entry(program, *key, 1)).expect("there is room");
        };
        rig.change(add).expect("the entries fit");
    }
    let add = |program: &Program, objects: &mut Objects| {
        objects.insert(exact(program).0, exact_entry(program, *last, 2)).expect("the switch has room");
    };
    rig.change(add).expect("the gate stays open");
    assert_eq!(rig.writer.full_table(), Some(exact(&rig.program).0));
    for key in &keys {
        assert_eq!(rig.packet(0, &packet(*key as u16)), Way::HandedOver, "the search lacks an entry");
    }
    let remove = |program: &Program, objects: &mut Objects| {
        objects.delete(exact(program).0, &exact_entry(program, first[3], 1).keys, 0).expect("it is there");
    };
    rig.change(remove).expect("there is room again");
    // Both copies have all entries again.
    for _ in 0..2 {
        assert_eq!(rig.writer.full_table(), None);
        for key in &keys {
            assert!(matches!(rig.packet(0, &packet(*key as u16)), Way::Sent { .. }));
        }
        rig.change(|_, _| ()).expect("nothing changes");
    }
}

/// Returns entries that share their slots: any 16 of them have room, but no more.
fn crowded_entries(program: &Program) -> Vec<TableEntry> {
    let shape = tables::flat::FlatExact::new(&[16], 64);
    let keys = (0..1 << 16).filter(|key| shape.home(&[*key]) == 5);
    keys.take(60).map(|key| exact_entry(program, key, key)).collect()
}

#[test]
fn entries_without_room_come_in_whenever_others_go() {
    let mut rig = Rig::new(&two_tables(), |_, _| ());
    let entries = crowded_entries(&rig.program);
    let mut rng = SplitMix64::new(8);
    let (mut full, mut fast) = (0, 0);
    let mut present = vec![false; entries.len()];
    for round in 0..300 {
        let most = if round % 20 < 10 { 60 } else { 10 };
        let wanted: Vec<bool> =
            present.iter().map(|is_in| if rng.percent(10) { rng.percent(most) } else { *is_in }).collect();
        let change = |program: &Program, objects: &mut Objects| {
            for (entry, (was, is)) in entries.iter().zip(present.iter().zip(&wanted)) {
                match (was, is) {
                    (true, false) => objects.delete(exact(program).0, &entry.keys, 0).expect("it is there"),
                    (false, true) => objects.insert(exact(program).0, entry.clone()).expect("the switch has room"),
                    _ => {}
                }
            }
        };
        rig.change(change).expect("the gate stays open");
        present = wanted;
        let is_full = rig.writer.full_table().is_some();
        full += u32::from(is_full);
        for entry in &entries {
            let KeyValue::Exact(key) = &entry.keys[0] else { unreachable!("the key is exact") };
            let way = rig.packet(0, &packet(key.low_u64() as u16));
            assert_eq!(way == Way::HandedOver, is_full, "round {round}");
            fast += u32::from(way != Way::HandedOver);
        }
        let count = present.iter().filter(|is_in| **is_in).count();
        assert_eq!(is_full, count > 16, "round {round}");
    }
    assert!(full > 50 && fast > 4000, "{full} {fast}");
}

#[test]
fn the_largest_tables_get_less_room_than_they_request_if_all_have_some() {
    let text = include_str!("two_tables.p4").replace("size = 64;", "size = 4000000;");
    let program = rig::compile_text(&text, None).expect("a valid program");
    let pipeline = v1model::kernel_pipeline(&program).expect("a v1model program");
    let code = bpf::compile(&program, &pipeline, KernelOptions { cpus: CPUS, ports: 8 }).expect("it is small");
    let room: Vec<u32> = code.tables().map(|(_, entries)| entries).collect();
    assert!(room.len() == 2 && room.iter().all(|entries| (1 << 18..4_000_000).contains(entries)), "{room:?}");
    assert!(code.layout.bytes() <= 256 << 20);
    assert!(code.hand_overs.is_empty(), "{:?}", code.hand_overs);
}

#[test]
fn a_switch_whose_entries_do_not_fit_says_so_until_they_do() {
    let program = two_tables();
    let mut switch = Switch::new(program.clone(), Config::with_ports(8)).expect("a switch");
    let shape = tables::flat::FlatExact::new(&[16], 64);
    let keys: Vec<u64> = (0..1 << 16).filter(|key| shape.home(&[*key]) == 5).take(17).collect();
    for key in &keys {
        let entry = exact_entry(&program, *key, 1);
        switch.objects_mut().insert(exact(&program).0, entry).expect("the switch has room");
    }
    let pipeline = v1model::kernel_pipeline(&program).expect("a v1model program");
    let code = bpf::compile(&program, &pipeline, KernelOptions { cpus: CPUS, ports: 8 }).expect("it is small");
    let region: Vec<AtomicU64> = (0..code.layout.bytes() / 8).map(|_| AtomicU64::new(0)).collect();
    let full = RegionError::TableFull { table: "MyIngress.exact_table".to_owned() };
    assert_eq!(switch.attach_kernel(&code, Arc::new(region), rig::wait_for_packet), Ok(()));
    switch.publish();
    assert_eq!((switch.is_in_kernel(), switch.kernel_failure()), (true, Some(&full)));
    let removed = exact_entry(&program, keys[3], 1).keys;
    switch.objects_mut().delete(exact(&program).0, &removed, 0).expect("it is there");
    switch.publish();
    assert_eq!((switch.is_in_kernel(), switch.kernel_failure()), (true, None));
}

/// Forgets all counts.
struct Nobody;

impl CountSink for Nobody {}

/// Runs a packet in two threads while `write` makes numbered changes. The packet is given two numbers, of one update.
pub fn all_changes_or_none(
    program: &Program,
    write: impl Fn(&Program, &mut Objects, u64),
    packet: &[u8],
    numbers: impl Fn(&[u8]) -> [u32; 2] + Sync,
) {
    const UPDATES: u64 = 3000;
    let pipeline = v1model::kernel_pipeline(program).expect("a v1model program");
    let compiled = bpf::compile(program, &pipeline, KernelOptions { cpus: CPUS, ports: 8 }).expect("it is small");
    let region: Vec<AtomicU64> = (0..compiled.layout.bytes() / 8).map(|_| AtomicU64::new(0)).collect();
    for port in 0..8 {
        bpf::set_port(&compiled.layout, &region, port, PortState::Fast { device: port, max_frame: 1514 }, true);
    }
    let mut objects = Objects::new(program);
    let mut writer = RegionWriter::new(&compiled.layout, rig::wait_for_packet);
    write(program, &mut objects, 0);
    writer.fill(&region, program, &objects).expect("the entries fit");
    objects.record_changes();
    let (code, is_done) = (compiled.encode(&links(0), true).expect("code"), AtomicBool::new(false));
    let seen: Vec<u64> = std::thread::scope(|scope| {
        let run = |cpu| {
            let (region, code, is_done, layout, numbers) = (&region, &code, &is_done, &compiled.layout, &numbers);
            scope.spawn(move || {
                let (mut last, mut different) = (0, 0);
                while !is_done.load(Ordering::Relaxed) {
                    let mut packet = packet.to_vec();
                    let environment = Environment { links: links(0), region, devices: 8, sockets: 1, cpu, time_ns: 0 };
                    let outcome = machine::run(code, &mut packet, environment).expect("no fault");
                    if matches!(outcome.redirect, Some((MapRef::Sockets, _))) {
                        // The other thread was suspended in the middle of a packet, so the gate was closed.
                        bpf::finish_hand_overs(layout, region);
                        continue;
                    }
                    let [first, second] = numbers(&packet);
                    assert_eq!(first, second, "both tables are of one update");
                    assert!(first >= last, "updates are seen in their order");
                    different += u64::from(first > last);
                    last = first;
                }
                different
            })
        };
        let threads = [run(0), run(1)];
        for number in 1..=UPDATES {
            write(program, &mut objects, number);
            let changes = objects.take_changes();
            // A thread may be suspended in the middle of a packet.
            while writer.update(&region, program, &objects, &changes, &mut Nobody).is_err() {}
        }
        is_done.store(true, Ordering::Relaxed);
        threads.map(|thread| thread.join().expect("no panic")).to_vec()
    });
    assert!(seen.iter().sum::<u64>() > 10, "packets ran beside the updates: {seen:?}");
}

#[test]
fn a_packet_sees_all_changes_of_an_update_or_none() {
    let write = |program: &Program, objects: &mut Objects, number| {
        let entries = [
            (exact(program).0, exact_entry(program, 7, number)),
            (prefixes(program).0, prefix_entry(program, 0, 0, number)),
        ];
        for (table, entry) in entries {
            objects.insert(table, entry.clone()).or_else(|_| objects.modify(table, entry)).expect("there is room");
        }
    };
    all_changes_or_none(&two_tables(), write, &packet(7), numbers);
}
