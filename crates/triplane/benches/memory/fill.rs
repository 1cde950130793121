//! Tables of every kind, filled with entries, and their memory. The benchmark and the test of memory share this.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::sync::Arc;

use bits::Bits;
use compiler::{CompiledProgram, Source};
use engine::{EntryError, TableEntry};
use ir::{KeyValue, TableId};
use p4runtime_server::{Pipeline, Server, Settings};
use rng::SplitMix64;
use testing::allocations::measure;
use v1model::{Config, Switch};

/// The program.
pub const SOURCE: &str = include_str!("memory.p4");

/// A table and its entries.
pub struct TableKind {
    /// Name of the table.
    pub table: &'static str,
    /// Kind of its key.
    pub kind: &'static str,
    keys: fn(&mut SplitMix64) -> Vec<KeyValue>,
    has_priority: bool,
}

/// One table of each kind.
pub const KINDS: [TableKind; 5] = [
    TableKind { table: "I.stations", kind: "exact, 48 bits", keys: station, has_priority: false },
    TableKind { table: "I.routes", kind: "LPM, IPv4", keys: |random| route(random).to_vec(), has_priority: false },
    TableKind { table: "I.routes6", kind: "LPM, IPv6", keys: route6, has_priority: false },
    TableKind { table: "I.rules", kind: "ternary, 5-tuple", keys: rule, has_priority: true },
    TableKind { table: "I.services", kind: "range, beside an address", keys: service, has_priority: true },
];

fn station(random: &mut SplitMix64) -> Vec<KeyValue> {
    vec![KeyValue::Exact(Bits::new(random.next_u64().into(), 48))]
}

/// Returns a value with zeros after a prefix.
fn cut(value: u128, length: u32, width: u32) -> Bits {
    let spare = width - length;
    let value = if spare >= 128 { 0 } else { value >> spare << spare };
    Bits::new(value, width)
}

/// Returns a prefix with the lengths of an Internet routing table; half of the addresses are in use.
fn route(random: &mut SplitMix64) -> [KeyValue; 1] {
    let length = random.pick(&[(1, 8), (2, 12), (13, 16), (6, 18), (10, 20), (14, 22), (60, 24), (2, 28), (2, 32)]);
    [KeyValue::Lpm(cut((random.next_u64() & 0x7fff_ffff).into(), length, 32), length)]
}

/// Returns a prefix below 2000::/3; most are /48 and /32.
fn route6(random: &mut SplitMix64) -> Vec<KeyValue> {
    let length = random.pick(&[(1, 20), (2, 29), (25, 32), (4, 36), (8, 40), (8, 44), (48, 48), (4, 64)]);
    let site = u128::from(random.below(1 << 14));
    let rest = u128::from(random.next_u64()) << 40;
    vec![KeyValue::Lpm(cut(0b001 << 125 | site << 104 | rest & ((1 << 104) - 1), length, 128), length)]
}

/// Returns a condition on a 5-tuple, as access lists have them.
fn rule(random: &mut SplitMix64) -> Vec<KeyValue> {
    let prefix = |random: &mut SplitMix64, width: u32, length: u32| {
        let mask = Bits::ones(width).shl(width - length);
        KeyValue::Ternary(Bits::new(random.next_u64().into(), width).and(&mask), mask)
    };
    let (source, target) =
        (random.pick(&[(1, 0), (2, 16), (5, 24), (2, 32)]), random.pick(&[(3, 24), (2, 28), (5, 32)]));
    let protocol = 8 * random.below(2) as u32;
    let port = 16 * random.below(2) as u32;
    let widths = [(32, source), (32, target), (8, protocol), (16, 0), (16, port)];
    widths.into_iter().map(|(width, length)| prefix(random, width, length)).collect()
}

/// Returns a range of ports of one of a few thousand addresses.
fn service(random: &mut SplitMix64) -> Vec<KeyValue> {
    let low = random.below(60_000);
    let high = low + random.below(1000);
    let port = |port: u64| Bits::new(port.into(), 16);
    vec![KeyValue::Exact(Bits::new(random.below(5000).into(), 32)), KeyValue::Range(port(low), port(high))]
}

/// Compiles the program.
pub fn program() -> CompiledProgram {
    compiler::expect_program(&Source::new("memory.p4", SOURCE), &v1model::V1Model)
}

/// Returns a switch with empty tables.
pub fn new_switch(compiled: &CompiledProgram) -> Switch {
    Switch::new(Arc::new(compiled.ir.clone()), Config::with_ports(4)).expect("the switch runs the program")
}

/// Returns a table by its name.
pub fn table_named(switch: &Switch, name: &str) -> TableId {
    let mut tables = switch.program().tables.iter();
    tables.find(|(_, table)| table.name == name).map(|(id, _)| id).expect("the program has the table")
}

/// Inserts `count` different entries into a table.
pub fn fill(switch: &mut Switch, kind: &TableKind, count: u64) {
    let table = table_named(switch, kind.table);
    let action = switch.program().tables[table].actions[0].action;
    let params = switch.program().actions[action].params.len();
    let mut random = SplitMix64::new(1);
    let mut missing = count;
    while missing > 0 {
        let keys = (kind.keys)(&mut random);
        let priority = if kind.has_priority { 1 + random.below(1000) as i32 } else { 0 };
        let args = [Bits::new(random.next_u64().into(), 48), Bits::new(u128::from(missing % 4), 9)];
        let entry = TableEntry::new(keys, priority, action, args[..params].to_vec());
        match switch.objects_mut().insert(table, entry) {
            Ok(()) => missing -= 1,
            Err(EntryError::Duplicate) => {}
            Err(error) => panic!("{}: {error}", kind.table),
        }
    }
}

/// Bytes per entry of a table.
pub struct TableMemory {
    /// In the switch.
    pub switch: f64,
    /// In its second copy, which exists once tables change while packets are processed, if every entry has changed.
    pub second_copy: f64,
    /// In the P4Runtime server.
    pub mirror: f64,
}

/// Fills a table of a new switch and measures its memory.
pub fn measure_table(compiled: &CompiledProgram, kind: &TableKind, count: u64) -> TableMemory {
    let mut switch = new_switch(compiled);
    let table = table_named(&switch, kind.table);
    let ((), filled) = measure(|| fill(&mut switch, kind, count));
    let pipeline = || Pipeline::new(switch.program().clone(), compiled.p4info.clone(), Vec::new());
    let settings = || Settings::new(&v1model::V1Model, 0..4, None);
    let (empty, without) = {
        let other = new_switch(compiled);
        measure(|| Server::new(settings()).with_pipeline(pipeline(), &other))
    };
    let (server, with) = measure(|| Server::new(settings()).with_pipeline(pipeline(), &switch));
    drop((empty, server));
    let mut worker = switch.objects_mut().worker();
    let entries: Vec<TableEntry> = switch.objects().entries(table).map(|installed| installed.entry).collect();
    let ((), changed) = measure(|| {
        for entry in entries.iter() {
            let objects = switch.objects_mut();
            objects.modify(table, entry.clone()).expect("the entry is there");
            objects.publish();
            worker.pin();
        }
    });
    let per_entry = |bytes: i64| bytes as f64 / count as f64;
    TableMemory {
        switch: per_entry(filled.kept),
        second_copy: per_entry(changed.kept),
        mirror: per_entry(with.kept - without.kept),
    }
}

/// Returns an entries file with `count` IPv4 routes, as scripts write them.
pub fn routes_file(count: u64) -> String {
    let mut text = String::from("{\n  \"table_entries\": [\n");
    let mut random = SplitMix64::new(1);
    let mut seen = std::collections::HashSet::new();
    while (seen.len() as u64) < count {
        let [KeyValue::Lpm(value, length)] = route(&mut random) else { unreachable!("routes are prefixes") };
        if !seen.insert((value.low_u64(), length)) {
            continue;
        }
        let comma = if seen.len() == 1 { "" } else { ",\n" };
        let (address, port) = (Ipv4Addr::from(value.low_u64() as u32), seen.len() % 4);
        let mac = format!("02:00:{:02x}:{:02x}:00:01", port, seen.len() % 256);
        let _ = write!(
            text,
            "{comma}    {{ \"table\": \"I.routes\", \"match\": {{ \"hdr.ipv4.dst\": [\"{address}\", {length}] }},\n      \
             \"action_name\": \"I.forward\", \"action_params\": {{ \"mac\": \"{mac}\", \"port\": {port} }} }}"
        );
    }
    text + "\n  ]\n}\n"
}
