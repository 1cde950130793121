//! Tests tables with an `lpm` element: against the same table in a switch of its own, which the interpreter runs.

use std::collections::BTreeMap;

use bits::Bits;
use elastic_switch::ElasticError;
use engine::EntryError;
use ir::KeyValue;
use rng::SplitMix64;
use switch::{Device, Frame, PortId, Time};
use v1model::{Executor, Switch};

use crate::random::{History, draw};
use crate::rig::{Request, Rig, RigSettings, plain_switch, write};
use crate::tables::in_all_ways;

const NONE: u16 = 0xffff;

/// Number of a packet that skips the first table.
const SECOND_ONLY: u16 = 0xffff;

/// Addresses, with common prefixes of different lengths.
const ADDRESSES: [u16; 12] =
    [0xab00, 0xab01, 0xab03, 0xab0f, 0xab10, 0xab80, 0xaa00, 0xa000, 0x8000, 0x0000, 0x0001, NONE];

fn settings() -> RigSettings {
    RigSettings { program: include_str!("../../testdata/prefixes.p4"), entries: 2048, ..RigSettings::default() }
}

fn prefix(address: u16, length: u32) -> KeyValue {
    let value = Bits::new(u128::from(address), 16);
    KeyValue::Lpm(value.and(&Bits::ones(16).shl(16 - length)), length)
}

/// Returns the key of the first table, whose `id` is the last bit of a packet's number.
fn one(address: u16, length: u32, id: u16) -> Vec<KeyValue> {
    vec![prefix(address, length), KeyValue::Exact(Bits::new(u128::from(id), 1))]
}

/// Returns the values that a switch without servers gives a packet: the interpreter is the specification.
fn specified(switch: &mut Switch, id: u16, key: u16, first: u16) -> (u16, u16) {
    let request = Request { id, key, first, second: NONE, number: 0 };
    let (mut input, mut output) = (vec![Frame { port: PortId(1), data: request.to_bytes() }], Vec::new());
    switch.step(Time::ZERO, &mut input, &mut output);
    let answer = Request::parse(&output[0].data);
    (answer.first, answer.second)
}

/// The answers of the specification over time: of the first table by the number's bit and the address, and of the
/// second one.
struct Specification {
    switch: Switch,
    one: [History; 2],
    two: History,
}

impl Specification {
    fn new() -> Specification {
        let settings = RigSettings { executor: Executor::Interpreter, ..settings() };
        Specification { switch: plain_switch(settings), one: Default::default(), two: History::default() }
    }

    /// Notes what has changed.
    fn note(&mut self, at: Time) {
        let note = |history: &mut History, address, value| {
            let before = history.0.get(&address).and_then(|values| values.last()).map_or(NONE, |(_, value)| *value);
            if before != value {
                history.set(address, at, value);
            }
        };
        for address in ADDRESSES {
            for id in [0, 1] {
                let (first, _) = specified(&mut self.switch, id, address, NONE);
                note(&mut self.one[usize::from(id)], address, first);
            }
            let (_, second) = specified(&mut self.switch, SECOND_ONLY, 0, address);
            note(&mut self.two, address, second);
        }
    }
}

fn run(seed: u64) {
    let mut random = SplitMix64::new(seed);
    let RigSettings { program, entries, .. } = settings();
    let settings = RigSettings { program, entries, ..draw(seed, &mut random) };
    let mut rig = Rig::new(settings);
    let mut specification = Specification::new();
    let mut arrivals: Vec<(Time, u16)> = Vec::new();
    rig.run_ms(random.below(30));
    let addresses = 2 + random.below(11);
    let address = |random: &mut SplitMix64| ADDRESSES[random.below(addresses) as usize];
    for _ in 0..300 {
        match random.below(20) {
            0..=11 => {
                arrivals.push((rig.now, address(&mut random)));
                rig.send(arrivals.len() as u16 - 1, arrivals[arrivals.len() - 1].1);
            }
            12..=16 => {
                let (to, length, value) = (address(&mut random), random.below(17) as u32, address(&mut random));
                let (name, keys) = match random.below(2) {
                    0 => ("one", one(to, length, random.below(2) as u16)),
                    _ => ("two", vec![prefix(to, length)]),
                };
                let values: &[u16] = if random.below(3) == 0 { &[] } else { &[value] };
                let written = write(&mut rig.switch, name, keys.clone(), values);
                if !matches!(written, Err(EntryError::NoCells(..))) {
                    assert_eq!(write(&mut specification.switch, name, keys, values), written, "seed {seed}");
                    specification.note(rig.now);
                }
            }
            17..=18 => rig.run_until(rig.now.after_ns(random.below(100_000))),
            _ => {
                let server = random.below(settings.servers as u64) as usize;
                rig.set_running(server, random.below(3) > 0);
                rig.run_ms(random.below(20));
            }
        }
    }
    (0..settings.servers).for_each(|server| rig.set_running(server, true));
    rig.run_ms(2_000);
    check(seed, &rig, &specification, &arrivals);
    check_entries(seed, &rig, &specification);
}

/// Checks the packets that left: their values are those of the specification at a moment between arrival and departure.
fn check(seed: u64, rig: &Rig, specification: &Specification, arrivals: &[(Time, u16)]) {
    let dropped: u64 = ["no-server", "no-answer", "queue-full", "links-busy"]
        .iter()
        .map(|reason| rig.dropped(&format!("table.{reason}")))
        .sum();
    assert_eq!(rig.left.len() as u64 + dropped, arrivals.len() as u64, "seed {seed}: each packet ends once");
    let mut last: BTreeMap<(u16, u16), u16> = BTreeMap::new();
    for (left, request) in &rig.left {
        let (arrived, key) = arrivals[usize::from(request.id)];
        let whole = (arrived, *left);
        let one = &specification.one[usize::from(request.id % 2)];
        assert!(one.had(key, request.first, whole), "seed {seed}: {request:?} of {whole:?}");
        assert!(specification.two.had(request.first, request.second, whole), "seed {seed}: {request:?} of {whole:?}");
        if !one.0.contains_key(&key) {
            let before = last.insert((request.id % 2, key), request.id);
            assert!(before.is_none_or(|before| before < request.id), "seed {seed}: {request:?} after {before:?}");
        }
    }
}

/// Checks that the control plane reads the same entries.
fn check_entries(seed: u64, rig: &Rig, specification: &Specification) {
    for name in ["one", "two"] {
        let of = |switch: &dyn switch::SwitchControl| {
            let table = crate::rig::table(switch, name);
            let mut entries: Vec<String> =
                switch.objects().entries(table).map(|installed| format!("{:?}", installed.entry)).collect();
            entries.sort();
            entries
        };
        assert_eq!(of(&rig.switch), of(&specification.switch), "seed {seed}: table {name}");
    }
}

#[test]
fn answers_are_those_of_a_local_table_at_a_moment_between_arrival_and_departure() {
    (0..100).for_each(run);
}

#[test]
fn the_longest_prefix_wins_with_a_read_for_each_length_in_use() {
    in_all_ways(RigSettings { servers: 1, ..settings() }, |mut rig| {
        let mut expect = |values: Option<&[u16]>, keys: Vec<KeyValue>, reads: u64, first: u16| {
            if let Some(values) = values {
                write(&mut rig.switch, "one", keys, values).unwrap();
            }
            rig.run_ms(50);
            let before = rig.reads(0);
            rig.send(0, 0xab03);
            rig.run_ms(1);
            assert_eq!((rig.take_left(), rig.reads(0) - before), (vec![(0, first, NONE)], reads));
        };
        expect(None, Vec::new(), 0, NONE);
        expect(Some(&[1]), one(0, 0, 0), 1, 1);
        expect(Some(&[2]), one(0xab00, 15, 0), 2, 1);
        expect(Some(&[3]), one(0xab03, 16, 0), 3, 3);
        expect(Some(&[4]), one(0xab00, 14, 0), 4, 3);
        expect(Some(&[]), one(0xab03, 16, 0), 3, 4);
        // A prefix of packets with other numbers is of a length that is read already.
        expect(Some(&[5]), one(0xab00, 15, 1), 3, 4);
        expect(Some(&[6]), one(0xab00, 14, 0), 3, 6);
        expect(Some(&[]), one(0xab00, 14, 0), 2, 1);
        assert_eq!(rig.switch.residents(), 0, "nothing is cached");
        assert_eq!(rig.read_entry("one", &one(0xab00, 15, 0)), Some(vec![2]));
        assert_eq!(rig.read_entry("one", &one(0xab00, 14, 0)), None);
    });
}

#[test]
fn a_popular_address_follows_the_prefixes_over_it() {
    in_all_ways(RigSettings { servers: 1, cache: 8, ..settings() }, |mut rig| {
        write(&mut rig.switch, "one", one(0xab00, 8, 0), &[1]).unwrap();
        rig.run_ms(50);
        let popular = |rig: &mut Rig| {
            for _ in 0..20 {
                rig.send(0, 0xab03);
                rig.send(0, 0xab80);
                rig.run_ms(1);
            }
            rig.take_left();
            rig.reads(0)
        };
        let before = popular(&mut rig);
        assert_eq!((popular(&mut rig), rig.switch.residents()), (before, 2), "both are in the switch");
        // The other address stays.
        for (values, first) in [(&[2u16][..], 2), (&[], 1)] {
            write(&mut rig.switch, "one", one(0xab00, 9, 0), values).unwrap();
            rig.send(0, 0xab80);
            assert_eq!(rig.take_left(), [(0, 1, NONE)]);
            rig.send(0, 0xab03);
            rig.run_ms(1);
            assert_eq!(rig.take_left(), [(0, first, NONE)]);
            popular(&mut rig);
        }
        write(&mut rig.switch, "one", one(0xab00, 8, 0), &[3]).unwrap();
        rig.send(0, 0xab03);
        rig.send(0, 0xab80);
        rig.run_ms(1);
        assert_eq!(rig.take_left(), [(0, 3, NONE), (0, 3, NONE)]);
    });
}

#[test]
fn prefixes_count_as_the_cells_that_they_may_take() {
    let settings = RigSettings { entries: 300, ..settings() };
    let mut rig = Rig::new(settings);
    let mut write =
        |address, length, values: &[u16]| write(&mut rig.switch, "two", vec![prefix(address, length)], values);
    assert_eq!(write(0, 0, &[1]), Ok(()), "it stays in the switch");
    assert_eq!(write(0x1000, 4, &[2]), Ok(()), "256 cells");
    assert_eq!(write(0x2000, 6, &[3]), Err(EntryError::NoCells(64, 300)));
    assert_eq!(write(0x2000, 7, &[3]), Ok(()), "32 cells");
    assert_eq!(write(0x1000, 4, &[4]), Ok(()), "a change of the action");
    (0..11).for_each(|number| assert_eq!(write(0x3000 + number, 16, &[5]), Ok(())));
    assert_eq!(write(0x4000, 16, &[5]), Err(EntryError::Full(300)));
    assert_eq!(write(0x1000, 4, &[]), Ok(()));
    assert_eq!(write(0x2000, 6, &[3]), Ok(()));
    rig.run_ms(100);
    assert!(rig.switch.counts().iter().all(|counts| counts.is_settled));
}

#[test]
fn a_switch_whose_prefixes_take_too_many_cells_is_refused() {
    let mut switch = plain_switch(RigSettings { entries: 300, ..settings() });
    write(&mut switch, "two", vec![prefix(0x1000, 4)], &[1]).unwrap();
    write(&mut switch, "two", vec![prefix(0x2000, 6)], &[1]).unwrap();
    let table = crate::rig::table(&switch, "two");
    let name = switch::SwitchControl::program(&switch).tables[table].name.clone();
    let config = crate::rig::config(RigSettings::default());
    let made = elastic_switch::ElasticSwitch::new(switch, &config, [1, 2], Box::new(SplitMix64::new(1)));
    assert_eq!(made.err(), Some(ElasticError::Cells(name, 320, 300)));
}
