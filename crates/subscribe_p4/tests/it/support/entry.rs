//! Conversion of entries of generated programs to the engine's tables.

use bits::Bits;
use engine::TableEntry;
use ir::{KeyValue, Program, TableId};
use subscribe_p4::entries::Matched;

/// Converts an entry. Keys that the entry does not name match any value.
pub fn entry(program: &Program, entry: &subscribe_p4::entries::ProgramEntry) -> (TableId, TableEntry) {
    let id = program.table_named(&entry.table).unwrap_or_else(|| panic!("there is no {}", entry.table));
    let table = &program.tables[id];
    let key = |key: &ir::Key| {
        let given = entry.keys.iter().find(|(name, _, _)| *name == key.name);
        let bits = |value: u128| Bits::new(value, key.width);
        given.map_or(KeyValue::Any, |(_, _, matched)| match *matched {
            Matched::Exact(value) => KeyValue::Exact(bits(value)),
            Matched::Lpm(value, length) => KeyValue::Lpm(bits(value), length),
            Matched::Range(first, last) => KeyValue::Range(bits(first), bits(last)),
            Matched::Ternary(value, mask) => KeyValue::Ternary(bits(value & mask), bits(mask)),
        })
    };
    let keys = table.keys.iter().map(key).collect();
    let named = |action: &&ir::TableAction| program.actions[action.action].name == entry.action;
    let action = table.actions.iter().find(named).unwrap_or_else(|| panic!("{} has it not", entry.table)).action;
    let args = entry.params.iter().map(|(_, width, value)| Bits::new(*value, *width)).collect();
    (id, TableEntry::new(keys, entry.priority.unwrap_or(0) as i32, action, args))
}
