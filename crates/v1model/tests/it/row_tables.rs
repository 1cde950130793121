//! Tests tables whose entries the stores create: packets wait for rows that the switch does not own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use compiler::Source;
use engine::StateRow;
use rng::SplitMix64;
use switch::{Device, DropReason, Frame, PortId, RowSwitch, Time};
use v1model::{Config, Switch, V1Model};

use crate::rows::{WAYS, Way, step};

const FORWARD: u8 = 0;
const REVERSE: u8 = 1;
const INSIDE: u8 = 2;
const OUTSIDE: u8 = 3;
const TWICE: u8 = 4;
const NONE: u16 = 0xffff;

fn switch(way: Way) -> Switch {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/row_tables.p4");
    let text = std::fs::read_to_string(path).expect("the program can be read");
    let program = Arc::new(compiler::expect_program(&Source::new("row_tables.p4", &text), &V1Model).ir);
    let mut switch = Switch::new(program, Config { executor: way.executor, ..Config::with_ports(4) }).expect("it fits");
    switch.own_rows(8);
    switch
}

fn request(operation: u8, key: u8, value: u16) -> Frame {
    let [high, low] = value.to_be_bytes();
    Frame::new(1, [&[operation, key, high, low][..], &[0; 12]].concat())
}

fn values(frames: &[Frame]) -> Vec<u16> {
    frames.iter().map(|frame| u16::from_be_bytes([frame.data[2], frame.data[3]])).collect()
}

/// Stores that answer at once: the rows that exist, by group and key.
#[derive(Default)]
struct Stores {
    rows: BTreeMap<(u32, Vec<u8>), Vec<u8>>,
    numbers: u16,
    owned: Vec<StateRow>,
    answers: usize,
}

/// The groups in the order of the program.
const FORWARD_GROUP: u32 = 0;
const REVERSE_GROUP: u32 = 1;

impl Stores {
    /// Answers the requests of waiting packets. Returns the frames that leave.
    fn answer(&mut self, switch: &mut Switch, way: Way) -> Vec<Frame> {
        let mut left = Vec::new();
        loop {
            let awaited = switch.take_awaited();
            if awaited.is_empty() {
                return left;
            }
            for row in awaited {
                self.answers += 1;
                let key = switch.objects().row_key(row).expect("it is a row of tables").to_vec();
                let name = (row.group, key.clone());
                if !self.rows.contains_key(&name) && switch.objects().row_has_maker(row) {
                    let is_forward = row.group == FORWARD_GROUP;
                    self.numbers += u16::from(is_forward);
                    let number = (100 + self.numbers).to_be_bytes().to_vec();
                    if is_forward {
                        self.rows.insert((REVERSE_GROUP, number.clone()), key);
                    }
                    self.rows.insert(name.clone(), if is_forward { number } else { Vec::new() });
                }
                match self.rows.get(&name) {
                    Some(data) => {
                        assert!(switch.objects_mut().add_row_entries(row, data));
                        self.owned.push(row);
                        switch.resume(row);
                    }
                    None => switch.resume_without(row, usize::MAX),
                }
                left.extend(step(switch, way, []));
                if switch.parked(row) == 0 && !self.owned.contains(&row) {
                    switch.objects_mut().forget_row(row);
                }
            }
        }
    }

    /// Takes a row from the switch, if it has one.
    fn recall(&mut self, switch: &mut Switch, rng: &mut SplitMix64) {
        if !self.owned.is_empty() {
            let row = self.owned.swap_remove(rng.below(self.owned.len() as u64) as usize);
            switch.objects_mut().forget_row(row);
        }
    }

    fn number(&self, key: u8) -> u16 {
        let number = self.rows.get(&(FORWARD_GROUP, vec![key, !key]));
        number.map_or(NONE, |number| u16::from_be_bytes([number[0], number[1]]))
    }

    fn is_allowed(&self, key: u8) -> bool {
        self.rows.contains_key(&(2, vec![key]))
    }
}

#[test]
fn packets_find_the_rows_of_the_stores_whether_or_not_the_switch_owns_them() {
    WAYS.into_iter().for_each(finds_rows);
}

fn finds_rows(way: Way) {
    let (mut switch, mut stores) = (switch(way), Stores::default());
    let mut rng = SplitMix64::new(1);
    let mut counts = [0_u64; 5];
    for round in 0..3_000 {
        // Packets of one step have different keys, so that their order does not matter.
        let first = rng.below(40) as u8;
        let packets: Vec<(u8, u8, u16)> = (0..1 + rng.below(6) as u8)
            .map(|place| {
                let (operation, key) = (rng.below(5) as u8, (first + 7 * place) % 50);
                let number = if operation == REVERSE { 100 + rng.below(64) as u16 } else { 0 };
                (operation, key, number)
            })
            .collect();
        let before: Vec<bool> = (0..=50).map(|key| stores.is_allowed(key)).collect();
        let known = stores.rows.clone();
        let frames = packets.iter().map(|(operation, key, value)| request(*operation, *key, *value));
        let mut left = step(&mut switch, way, frames);
        left.extend(stores.answer(&mut switch, way));
        assert_eq!(left.len(), packets.len(), "round {round} {way:?}");
        for frame in &left {
            let (operation, key, value) = (frame.data[0], frame.data[1], values(std::slice::from_ref(frame))[0]);
            counts[usize::from(operation)] += 1;
            let passes = |key: u8| before[usize::from(key)];
            match operation {
                FORWARD => assert_eq!(value, stores.number(key), "{way:?}"),
                INSIDE => assert_eq!(value, 1, "{way:?}"),
                OUTSIDE => assert_eq!(value, if passes(key) { 1 } else { NONE }, "key {key} {way:?}"),
                TWICE if passes(key) == passes(key + 1) => {
                    // Keys of other packets in this step are not the next key of this one.
                    let is_made = packets.iter().any(|(of, other, _)| *of == INSIDE && *other == key + 1);
                    let expected = if passes(key) { 2 } else { NONE };
                    assert!(value == expected || is_made, "{value} {way:?}");
                }
                _ => {}
            }
        }
        for (operation, _, number) in packets.iter().filter(|(operation, ..)| *operation == REVERSE) {
            let key = known.get(&(REVERSE_GROUP, number.to_be_bytes().to_vec()));
            let found = left.iter().any(|frame| {
                frame.data[0] == *operation
                    && key.is_some_and(|key| {
                        values(std::slice::from_ref(frame)) == [u16::from_be_bytes([key[1], key[0]])]
                    })
            });
            assert!(found || key.is_none(), "{number} {way:?}");
        }
        (0..rng.below(4)).for_each(|_| stores.recall(&mut switch, &mut rng));
    }
    assert!(stores.answers > 1_000, "{}", stores.answers);
    // Each packet has counted once, regardless of the number of its runs.
    let counter = switch.objects().counter(counter(&switch), 0);
    assert_eq!(counter.unwrap().packets, counts[0]);
}

fn counter(switch: &Switch) -> ir::CounterId {
    let named = switch.program().counters.iter().find(|(_, counter)| counter.name.ends_with("requests"));
    named.expect("the program has the counter").0
}

#[test]
fn packets_beyond_the_limit_are_dropped_and_leave_no_row_behind() {
    for way in WAYS {
        let mut switch = switch(way);
        assert_eq!(step(&mut switch, way, (0..10).map(|key| request(INSIDE, key, 0))).len(), 0);
        assert_eq!(switch.registry().get("drop.resilient.hold-full"), Some(2));
        let awaited = switch.take_awaited();
        assert_eq!(awaited.len(), 8);
        assert_eq!(switch.objects().row_with_key(2, &[9]), None);
        for row in awaited {
            switch.drop_parked(row, DropReason::RowUnavailable);
            switch.objects_mut().forget_row(row);
        }
        assert_eq!(switch.objects().row_with_key(2, &[1]), None);
        // The places of forgotten rows are reused.
        step(&mut switch, way, [request(OUTSIDE, 77, 0)]);
        assert!(switch.take_awaited()[0].index < 10);
        assert_eq!(switch.next_event(), None);
        switch.step(Time::from_us(2), &mut Vec::new(), &mut Vec::new());
    }
}

#[test]
fn entries_of_the_stores_are_not_those_of_the_control_plane() {
    let mut switch = switch(WAYS[0]);
    let table = switch.program().tables.iter().find(|(_, table)| table.name.ends_with("inside")).unwrap().0;
    let action = switch.program().tables[table].actions[0].action;
    let key = vec![ir::KeyValue::Exact(bits::Bits::new(5, 8))];
    let entry = engine::TableEntry::new(key, 0, action, Vec::new());
    let refused = engine::EntryError::RowEntries(table);
    assert_eq!(switch.objects_mut().insert(table, entry), Err(refused.clone()));
    assert_eq!(switch.objects_mut().clear(table), Err(refused.clone()));
    let key = [ir::KeyValue::Exact(bits::Bits::new(5, 8))];
    let objects = switch.objects_mut();
    assert_eq!(objects.set_entry_counter(table, &key, 0, engine::CounterValue::default()), Err(refused.clone()));
    assert_eq!(objects.configure_entry_meter(table, &key, 0, None), Err(refused));
}

#[test]
fn a_packet_knows_nothing_of_the_misses_of_others() {
    let way = WAYS[2];
    let mut switch = switch(way);
    // Some other port is shaped, so frames run one by one: parser to ingress, then egress in place.
    switch.set_port_rate(PortId(3), Some(1000));
    let mut stores = Stores::default();
    let left = {
        let mut left = step(&mut switch, way, [request(TWICE, 10, 0)]);
        left.extend(stores.answer(&mut switch, way));
        left
    };
    assert_eq!(values(&left), [NONE]);
    // Another switch creates both rows, long before the next packet.
    stores.rows.insert((2, vec![10]), Vec::new());
    stores.rows.insert((2, vec![11]), Vec::new());
    let mut left = step(&mut switch, way, [request(TWICE, 10, 0)]);
    left.extend(stores.answer(&mut switch, way));
    assert_eq!(values(&left), [2], "both rows exist");
}
