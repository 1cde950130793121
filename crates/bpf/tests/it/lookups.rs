//! Keys of several elements, small and large tries, and records that entries share.

use bits::Bits;
use engine::TableEntry;
use ir::{KeyValue, Program};
use rng::SplitMix64;

use crate::kernel::InKernel;
use crate::rig::{self, Rig, Way};

/// Widths of the fields of the keys.
const WIDTHS: [u32; 5] = [8, 16, 32, 48, 64];
/// Length of the header with the keys.
const KEY_BYTES: usize = 21;
/// Tables with exact keys, and the fields of their keys.
const EXACT: [(&str, &[usize]); 3] =
    [("MyIngress.one", &[4]), ("MyIngress.packed", &[0, 1]), ("MyIngress.long", &[2, 3, 1, 0])];
/// Tables with a prefix, and its field.
const PREFIXES: [(&str, usize); 2] = [("MyIngress.large", 2), ("MyIngress.small", 4)];

/// Draws one of a few values of a field, which differ in its first and last bits, and in some between them.
fn value(rng: &mut SplitMix64, field: usize) -> u64 {
    let width = WIDTHS[field];
    let middle = if rng.percent(80) { 0 } else { 1 << (width / 2 + rng.below(3) as u32) };
    rng.below(2) << (width - 1) | middle | rng.below(2)
}

/// Draws the key of an entry of a table, as the elements of an entry.
fn exact_key(rng: &mut SplitMix64, fields: &[usize]) -> Vec<KeyValue> {
    let element = |field: &usize| KeyValue::Exact(Bits::new(value(rng, *field).into(), WIDTHS[*field]));
    fields.iter().map(element).collect()
}

fn prefix_key(rng: &mut SplitMix64, field: usize) -> Vec<KeyValue> {
    let width = WIDTHS[field];
    let length = rng.below(u64::from(width) + 1) as u32;
    let value = if length == 0 { 0 } else { value(rng, field) >> (width - length) << (width - length) };
    vec![KeyValue::Lpm(Bits::new(value.into(), width), length)]
}

/// Draws an entry with an action of the table, with one of a few arguments.
fn entry(rng: &mut SplitMix64, program: &Program, table: &str, keys: Vec<KeyValue>) -> TableEntry {
    let table = &program.tables[program.table_named(table).expect("a table")];
    // The last one is NoAction.
    let action = table.actions[rng.below(table.actions.len() as u64) as usize].action;
    let params = &program.actions[action].params;
    let args = params.iter().map(|param| Bits::new(rng.below(5).into(), program.slots[param.slot].width)).collect();
    TableEntry::new(keys, 0, action, args)
}

/// Draws a packet, in which every table that hits stores a number behind the keys.
fn packet(rng: &mut SplitMix64) -> Vec<u8> {
    let mut packet = Vec::new();
    for (field, width) in WIDTHS.into_iter().enumerate() {
        packet.extend(&value(rng, field).to_be_bytes()[8 - width as usize / 8..]);
    }
    packet.extend([0xff; 40]);
    packet
}

#[test]
fn tables_of_all_shapes_follow_the_switch() {
    let program = rig::compile_text(include_str!("lookups.p4"), None).expect("a valid program");
    let mut rig = Rig::new(&program, |_, _| ());
    let mut rng = SplitMix64::new(11);
    let mut hits = [0; 5];
    for round in 0..250 {
        let mut entries: Vec<(&str, TableEntry, bool)> = Vec::new();
        for (table, fields) in EXACT {
            let keys = exact_key(&mut rng, fields);
            entries.push((table, entry(&mut rng, &program, table, keys), rng.percent(50)));
        }
        for (table, field) in PREFIXES {
            for _ in 0..2 {
                let keys = prefix_key(&mut rng, field);
                entries.push((table, entry(&mut rng, &program, table, keys), rng.percent(50)));
            }
        }
        rig.change(|program, objects| {
            for (table, entry, is_kept) in &entries {
                let table = program.table_named(table).expect("a table");
                match (objects.get(table, &entry.keys, 0).is_ok(), is_kept) {
                    (true, true) => objects.modify(table, entry.clone()).expect("it is there"),
                    (true, false) => objects.delete(table, &entry.keys, 0).expect("it is there"),
                    _ if objects.entry_count(table) < 64 => objects.insert(table, entry.clone()).expect("room"),
                    _ => {}
                }
            }
        })
        .expect("the entries fit");
        for _ in 0..6 {
            let packet = packet(&mut rng);
            let way = rig.packet(rng.below(4) as u32, &packet);
            let Way::Sent { data, .. } = way else { panic!("round {round}: {way:?}") };
            for (table, hits) in hits.iter_mut().enumerate() {
                let at = KEY_BYTES + 2 * table;
                *hits += u32::from(data[at..at + 2] != [0xff; 2]);
            }
        }
    }
    assert!(hits.iter().all(|hits| *hits > 20), "{hits:?}");
    match InKernel::load(&rig, 1) {
        Ok(kernel) => (0..300).for_each(|_| kernel.compare(&rig, 0, &packet(&mut rng))),
        Err(error) => testing::skip(&format!("needs root: {error}")),
    }
}
