//! Fills a region with the state of the switch, and reads its counts.

use std::sync::atomic::{AtomicU64, Ordering};

use bits::Bits;
use engine::{ActionCall, ActionSpec, CounterValue, Objects, TableEntry};
use ir::{CounterId, KeyValue, LocId, Program, TableId};
use tables::flat::PrefixWriter;

use crate::emit::PORT_LENGTH_SHIFT;
use crate::layout::{RegionLayout, TableLayout, TableSearch, chain};

/// The state of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// Packets to the port are handed over.
    Slow,
    /// Packets leave by a device.
    Fast {
        /// Index of the device in its map.
        device: u32,
        /// Maximum length of a frame in bytes.
        max_frame: u32,
    },
}

/// A table of the switch has more entries than the region has room for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the entries of the table `{table}` do not fit into the memory that is shared with the kernel")]
pub struct TableFull {
    /// Name of the table.
    pub table: String,
}

/// Sets the state of a port. Ports beyond [`RegionLayout::ports`] are always slow.
///
/// # Panics
/// If the region is smaller than [`RegionLayout::bytes`].
pub fn set_port(layout: &RegionLayout, region: &[AtomicU64], port: u32, state: PortState) {
    if port >= layout.ports() {
        return;
    }
    let word = match state {
        PortState::Slow => 0,
        PortState::Fast { device, max_frame } => (u64::from(max_frame) << PORT_LENGTH_SHIFT) | (u64::from(device) + 1),
    };
    store(region, layout.port_states / 8 + port, word);
}

/// Writes the entries and default actions of all tables. The region's tables must be blank: all words 0.
///
/// # Errors
/// [`TableFull`]. The region is of no use then.
///
/// # Panics
/// If the region is smaller than [`RegionLayout::bytes`].
pub fn fill(
    layout: &RegionLayout,
    region: &[AtomicU64],
    program: &Program,
    objects: &Objects,
) -> Result<(), TableFull> {
    for (id, table) in &layout.tables {
        fill_table(*id, table, region, program, objects)
            .ok_or_else(|| TableFull { table: program.tables[*id].name.clone() })?;
    }
    Ok(())
}

fn fill_table(
    id: TableId,
    table: &TableLayout,
    region: &[AtomicU64],
    program: &Program,
    objects: &Objects,
) -> Option<()> {
    write_record(table, region, program, id, 0, objects.default_action(id))?;
    if table.search == TableSearch::Chain {
        let entries = chain(&program.tables[id])?;
        return (1..).zip(entries).try_for_each(|(number, entry)| {
            let action = program.tables[id].actions.get(entry.action as usize)?.action;
            let call = ActionCall { action, args: entry.args.clone() };
            write_record(table, region, program, id, number, &call)
        });
    }
    let end = table.words as usize / 8;
    let mut prefixes = match table.search {
        TableSearch::Prefixes(shape) => Some((PrefixWriter::new(shape), &region[end..end + shape.words()])),
        _ => None,
    };
    // Entries come in the order of their keys, so that the same entries have the same records.
    let mut entries: Vec<TableEntry> = objects.entries(id).map(|installed| installed.entry).collect();
    entries.sort_by_cached_key(|entry| format!("{:?}", entry.keys));
    for (number, entry) in (1..).zip(&entries) {
        if number > table.capacity {
            return None;
        }
        let ActionSpec::Direct(call) = &entry.action else { return None };
        write_record(table, region, program, id, number, call)?;
        match (&table.search, &entry.keys[..], &mut prefixes) {
            (TableSearch::Prefixes(_), [KeyValue::Lpm(value, length)], Some((writer, words))) => {
                writer.insert(words, value.low_u64(), *length, number).ok()?;
            }
            (TableSearch::Prefixes(_), [KeyValue::Any], Some((writer, words))) => {
                writer.insert(words, 0, 0, number).ok()?;
            }
            (TableSearch::Exact(shape), keys, _) => {
                let key: Option<Vec<u64>> = keys.iter().map(exact_word).collect();
                shape.insert(&region[end..end + shape.words()], &key?, number).ok()?;
            }
            _ => return None,
        }
    }
    Some(())
}

fn exact_word(value: &KeyValue) -> Option<u64> {
    if let KeyValue::Exact(value) = value { Some(value.low_u64()) } else { None }
}

/// Writes a record; `None` if the table does not have the action.
fn write_record(
    table: &TableLayout,
    region: &[AtomicU64],
    program: &Program,
    id: TableId,
    number: u32,
    call: &ActionCall,
) -> Option<()> {
    let action = program.tables[id].actions.iter().position(|action| action.action == call.action)?;
    let first = table.records / 8 + number * table.record_words;
    store(region, first, action as u64 + 1);
    for (at, value) in (first + 1..first + table.record_words).zip(&call.args) {
        // An argument of more words is used only by actions that hand over.
        store(region, at, Bits::low_u64(value));
    }
    Some(())
}

/// The counts of a region, as the commits of packets left them.
#[derive(Clone, Copy)]
pub struct RegionCounts<'r> {
    layout: &'r RegionLayout,
    region: &'r [AtomicU64],
}

impl<'r> RegionCounts<'r> {
    /// Reads the counts of a region of at least [`RegionLayout::bytes`].
    pub fn new(layout: &'r RegionLayout, region: &'r [AtomicU64]) -> RegionCounts<'r> {
        RegionCounts { layout, region }
    }

    fn pair(&self, first: u32, index: u32) -> CounterValue {
        let at = first / 8 + 2 * index;
        CounterValue { packets: load(self.region, at), bytes: load(self.region, at + 1) }
    }

    /// Returns the packets that were received by a port and not handed over.
    pub fn received(&self, port: u32) -> CounterValue {
        if port < self.layout.ports() { self.pair(self.layout.received, port) } else { CounterValue::default() }
    }

    /// Returns the packets that left by a port.
    pub fn sent(&self, port: u32) -> CounterValue {
        if port < self.layout.ports() { self.pair(self.layout.sent, port) } else { CounterValue::default() }
    }

    /// Returns the number of packets dropped by ingress (false) or egress (true) at each place of the program with
    /// drops.
    pub fn drops(&self) -> impl Iterator<Item = (bool, LocId, u64)> + use<'r> {
        let (region, places, first) = (self.region, self.layout.places, self.layout.drops / 8);
        let all = (0..2 * places).map(move |at| (at / places != 0, at % places, load(region, first + at)));
        all.filter(|(_, _, count)| *count > 0).map(|(is_egress, at, count)| (is_egress, LocId::from_u32(at), count))
    }

    /// Returns the number of packets with a parser error.
    pub fn errors(&self, error: u32) -> u64 {
        if error < self.layout.error_count { load(self.region, self.layout.errors / 8 + error) } else { 0 }
    }

    /// Returns an element of a counter array; `None` if the region does not have it.
    pub fn counter(&self, counter: CounterId, index: u32) -> Option<CounterValue> {
        let (first, size) = *self.layout.counters.get(&counter)?;
        (index < size).then(|| self.pair(first, index))
    }

    /// Returns the packets that hit the entries of a table with a direct counter, by the number of the record.
    pub fn hits(&self, table: TableId, record: u32) -> Option<CounterValue> {
        let table = self.layout.tables.get(&table)?;
        let first = table.counts.filter(|_| record <= table.capacity)?;
        Some(self.pair(first, record))
    }
}

fn load(region: &[AtomicU64], at: u32) -> u64 {
    region[at as usize].load(Ordering::Relaxed)
}

fn store(region: &[AtomicU64], at: u32, value: u64) {
    region[at as usize].store(value, Ordering::Relaxed);
}
